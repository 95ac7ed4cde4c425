"""Upstream's tests as a campaign, without upstream: which files, which cases in which order, and the table."""

from collections import Counter

import msgspec
import pytest
from click.testing import CliRunner

from harness.campaign.campaign import STORED, Options, run_campaign
from harness.campaign.run_folder import SUITE, read_run, unfinished
from harness.campaign.suite import table
from harness.campaign.suite.source import MOST, UpstreamTests, read_taken
from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.cli.command import main
from harness.compat.suite_files import selected_files
from harness.evidence.observation import Unjudged
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, SuiteFile, SuiteTest
from tests.integration.conftest import linear_case
from tests.stand_in import InProcess
from tests.unit.reporting_runs import finding

TARGETS = ("TOSA-1.0+INT", "ethos-u55-128", "TOSA-1.0+FP")
QUANTIZED, FLOAT = {"TOSA-1.0+INT": "a.json", "ethos-u55-128": "b.json"}, {"TOSA-1.0+FP": "c.json"}


def taken(file, *cases, **words):
    return SuiteFile(
        file=file, tests=tuple(SuiteTest(test=f"{file}::t{n}", cases=c) for n, c in enumerate(cases)), **words
    )


UPSTREAM = " (upstream expects it to fail: MLETORCH-1)"


class Taking(InProcess, Pool):
    """A pool that takes what it is told to, and remembers of which files."""

    def __init__(self, *files):
        InProcess.__init__(self)
        self.files = {item.file: item for item in files}
        self.asked = []

    def take(self, task):
        self.asked.append(task.file)
        return self.files[task.file]


def source(out, *files, shard=(1, 1)):
    out.mkdir(exist_ok=True)
    return UpstreamTests([item.file for item in files], (), TARGETS, shard, out)


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path):
    for name in (
        "ops/test_b.py",
        "ops/test_a.py",
        "ops/mxfp/test_c.py",
        "ops/common.py",
        "passes/test_d.py",
        "x/test_e.py",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        ((), ["ops/mxfp/test_c.py", "ops/test_a.py", "ops/test_b.py", "passes/test_d.py"]),
        (("ops/test_b.py", "ops"), ["ops/test_b.py", "ops/mxfp/test_c.py", "ops/test_a.py"]),
        (("x",), ["x/test_e.py"]),
    ],
)
def test_files_are_selected_by_path_each_once(wheel, paths, files):
    assert selected_files(wheel, paths) == files


@pytest.mark.parametrize("path", ["ops/test_gone.py", "gone", "../x", "/etc/passwd"])
def test_a_path_without_tests_is_one_line(wheel, path):
    with pytest.raises(BadInput, match=f"^{path}: is no test file or folder of .*; give for example ops") as raised:
        selected_files(wheel / "ops" if path == "../x" else wheel, (path,))
    assert "\n" not in str(raised.value)


# ---- cases ----------------------------------------------------------------------------------------------------------


def test_a_subject_is_given_once_with_the_places_of_its_targets(tmp_path):
    one, two = taken("ops/a.py", QUANTIZED, QUANTIZED, FLOAT, {}), taken("ops/b.py", FLOAT, {"TOSA-1.0+FP": "d.json"})
    given = [
        (number - STORED, [(place, path.name) for place, path in cases])
        for number, cases in source(tmp_path, one, two)(Taking(one, two))
    ]
    assert given == [
        (0, [(0, "a.json"), (1, "b.json")]),
        (1, [(2, "c.json")]),
        (MOST + 1, [(2, "d.json")]),
    ]


def test_what_was_taken_is_not_taken_again(tmp_path):
    files = [taken("ops/a.py", QUANTIZED), taken("ops/b.py", FLOAT)]
    first = list(source(tmp_path, *files)(Taking(*files)))
    pool = Taking()
    again = source(tmp_path, *files)
    assert list(again(pool)) == first
    assert (pool.asked, again.taken) == ([], files)


def test_shards_share_the_files_and_keep_their_numbers(tmp_path):
    files = [taken(f"ops/{name}.py", {"TOSA-1.0+FP": f"{name}.json"}) for name in "abc"]
    pool = Taking(*files)
    numbers = [
        [number - STORED for number, _ in source(tmp_path / str(index), *files, shard=(index, 2))(pool)]
        for index in (1, 2)
    ]
    assert numbers == [[0, 2 * MOST], [MOST]]
    assert pool.asked == ["ops/a.py", "ops/c.py", "ops/b.py"]


def test_a_damaged_line_names_the_remedy(tmp_path):
    (tmp_path / SUITE).write_bytes(msgspec.json.encode(taken("ops/a.py")) + b"\n{\n")
    with pytest.raises(BadInput, match=rf"{SUITE}: line 2: .*; remove the line; the file is taken again"):
        read_taken(tmp_path)


def test_a_line_that_was_cut_off_is_taken_again(tmp_path):
    (tmp_path / SUITE).write_bytes(msgspec.json.encode(taken("ops/a.py")) + b'\n{"type": "su')
    assert read_taken(tmp_path) == [taken("ops/a.py")]


@pytest.fixture
def campaign(tmp_path):
    """Runs a campaign of two subjects, of which the second fits one target only; returns its tally."""
    folder = tmp_path / "cases"
    folder.mkdir()
    for name, target in {"a": "TOSA-1.0+INT", "b": "ethos-u55-128", "c": "TOSA-1.0+INT"}.items():
        (folder / f"{name}.json").write_bytes(encode_case(linear_case(target)))
    file = taken("ops/a.py", QUANTIZED, {"TOSA-1.0+INT": "c.json"})

    def run(**words):
        options = Options(TARGETS, None, out=tmp_path, suite=("ops",), **words)
        tests = source(tmp_path, file)
        return run_campaign(options, (), lambda *_: None, workers=lambda _: Taking(file), source=tests)

    return run


def test_a_campaign_runs_them_and_goes_on_where_it_was(campaign, tmp_path):
    tally = campaign()
    assert (tally.graphs, tally.cases) == (2, 3)
    run = read_run(tmp_path)
    assert (run.info.asked.verb, run.info.asked.suite, run.info.state) == ("suite", ("ops",), "done")
    assert unfinished(run) is None
    kept = (tmp_path / "results.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "results.jsonl").write_bytes(kept[0])
    again = campaign(resume=True)
    assert (again.graphs, again.cases) == (2, 3)
    assert [item.number for item in read_run(tmp_path).done] == [STORED * 3, STORED * 3 + 1, STORED * 3 + 3]


def test_an_interrupted_run_names_the_verb_that_goes_on(campaign, tmp_path):
    campaign()
    run = read_run(tmp_path)
    stopped = msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, state="interrupted"))
    assert f"'armdiff suite --resume --out {tmp_path}' goes on" in unfinished(stopped)


# ---- table ----------------------------------------------------------------------------------------------------------


def result(name, **words):
    return CaseResult(case=f"out/cases/{name}.json", **words)


@pytest.fixture
def rows():
    first = taken("ops/a.py", QUANTIZED, QUANTIZED, FLOAT)
    marked = msgspec.structs.replace(first.tests[1], expected="MLETORCH-1")
    files = [
        msgspec.structs.replace(first, tests=(first.tests[0], marked, first.tests[2])),
        msgspec.structs.replace(taken("ops/b.py", FLOAT), tests=(SuiteTest(test="t", why="no tensors"),) * 2),
        SuiteFile(file="ops/c.py", problem="ops/c.py: cannot be collected"),
    ]
    lost = Unjudged(what="aten.erfinv", why="no rule")
    results = [result("a", unjudged=(lost,)), result("b"), result("c", problem="armdiff itself fails")]
    found = [msgspec.structs.replace(finding(), case="out/cases/b.json", state=state) for state in ("new", "known")]
    return files, table.rows(files, results, found)


def test_every_case_and_every_test_counts_once(rows):
    _, [first, second, third] = rows
    assert first.counts == {"cases": 3, "unjudged": 1, "judged": 1, "new": 1, "known": 1, "failed": 1}
    assert (first.tests, first.refused) == (3, {})
    assert (second.counts, second.refused) == ({}, {"no tensors": 2})
    assert (third.tests, third.refused) == (0, {"cannot be collected": 1})


def test_the_table_has_a_row_a_file_the_sum_and_the_reasons(rows):
    files, found = rows
    text = table.lines(found)
    assert [line.split()[0] for line in text[:5]] == ["test", "ops/a.py", "ops/b.py", "ops/c.py", "all"]
    assert text[4].split() == ["all", "5", "3", "1", "-", "1", "1", "1", "-", "1", "-", "3"]
    assert text[5:7] == ["", "judged: 1 of 3 cases (33.3 %)"]
    assert text[8:11] == ["new and resembling findings are of:", f"  ops/a.py::t0{UPSTREAM}", ""]
    assert text[11:] == ["refused:", "  2 tests: no tensors", "  1 test: cannot be collected"]
    data = table.as_data(found, files)
    assert (data[0]["judged"], data[1]["refused"]) == (1, {"no tensors": 2})
    assert data[0]["tests"][0]["cases"] == QUANTIZED
    assert data[0]["counting"] == {"ops/a.py::t0": "MLETORCH-1"}


CRASHED = Unjudged(what="executorch failed", why="no kernel", leg="executorch")
NOT_RUN = Unjudged(what="no leg ran the command stream", why="no stream")


@pytest.mark.parametrize(
    ("unjudged", "states", "column"),
    [
        ((CRASHED,), {"known"}, "stopped"),
        ((CRASHED, NOT_RUN), {"known"}, "stopped"),
        ((CRASHED,), set(), "unjudged"),
        ((NOT_RUN,), {"known"}, "unjudged"),
        ((CRASHED, Unjudged(what="aten.erfinv", why="no rule")), {"known"}, "unjudged"),
        ((Unjudged(what="armdiff failed", why="a bug"),), {"new"}, "unjudged"),
    ],
)
def test_a_case_that_a_crash_ends_is_stopped(unjudged, states, column):
    assert table.outcomes(result("a", unjudged=unjudged), states) == ["cases", column, *states]


def test_the_share_counts_what_a_crash_stopped():
    counts = Counter({"cases": 5, "invalid": 1, "judged": 2, "stopped": 1})
    assert table.share(counts) == "judged or stopped by a crash that is a finding (1): 3 of 4 cases (75.0 %)"


# ---- the verb -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["gone"], 2, "gone: is no test file or folder of"),
        (["--shard", "3/2"], 2, "--shard: '3/2' is no shard"),
        (["--target", "gone"], 2, "--target: unknown target 'gone'"),
        (["--resume", "--out", "fuzzed"], 2, "is a run of 'armdiff fuzz'; go on with 'armdiff fuzz --resume'"),
        (["--resume", "--out", "suited", "-k", "x"], 2, "-k: differs from the run to go on with"),
        (["--resume", "--out", "none"], 2, "none: is no run's folder"),
    ],
)
def test_what_cannot_be_asked_is_one_line(words, status, told, wheel, monkeypatch):
    monkeypatch.chdir(wheel)
    monkeypatch.setattr("harness.cli.suite.need_environment", lambda: None)
    monkeypatch.setattr("harness.cli.suite.upstream_tests", lambda: wheel)
    for name, suite in {"fuzzed": None, "suited": ()}.items():
        run_campaign(
            Options(("TOSA-1.0+INT",), 1, out=wheel / name, suite=suite),
            (),
            lambda *_: None,
            workers=InProcess,
            source=lambda _: iter(()),
        )
    ended = CliRunner().invoke(main, ["suite", *words])
    assert (ended.exit_code, ended.output.count("\n")) == (status, 1)
    assert told in ended.output


def test_a_missing_pytest_is_named(wheel, monkeypatch):
    monkeypatch.setattr("harness.cli.suite.need_environment", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    ended = CliRunner().invoke(main, ["suite", "ops"])
    assert (ended.exit_code, ended.output) == (
        3,
        "armdiff: upstream's tests need pytest, which is not installed; 'pip install pytest' beside armdiff\n",
    )
