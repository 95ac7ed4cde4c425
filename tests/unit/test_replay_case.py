"""``armdiff replay`` of cases: what counts as one, what is known, the command that is named, exit status."""

import json
from typing import ClassVar

import msgspec
import pytest
from click.testing import CliRunner

from harness.campaign.replay_command import Again
from harness.campaign.summary import Tally
from harness.case.case import Constant, encode_case
from harness.cli.command import main
from harness.cli.replay import sorted_out
from harness.compat.releases import Basis
from harness.corrections import chosen
from harness.evidence.inspection.surroundings import seen_place
from harness.evidence.observation import Mismatch
from harness.reports.listing import listing
from harness.triage.findings import finding_of
from harness.workers.protocol import CaseResult
from tests.unit.observations import CASE

ENTRY = """\
title = "relu is off"
expires = 2099-01-01
operators = ["relu"]
[[conditions]]
path = []
at = ["steps == 13"]
graph = "aten"
[lines.default]
status = "reproduces"
bucket = "v1/numeric/outside-rounding/run/-/tosa-int/"
"""


def off(path, oracle="numeric"):
    measured = {"distance": 13.0, "unit": "steps", "output": 0}
    place = seen_place({"steps": 13.0})
    return finding_of(Mismatch(oracle, "outside rounding", "off", measured=measured, place=place), CASE, str(path))


@pytest.fixture
def replay(tmp_path, monkeypatch):
    """``replay(*words)`` with a checkout's corpus of no entry; what each case shows is in ``replay.shows``."""
    (tmp_path / "corpus").mkdir()
    monkeypatch.setattr("harness.cli.replay.corpus_folders", lambda **_: [tmp_path / "corpus"])
    monkeypatch.setattr("harness.cli.replay.entries", _entries)
    monkeypatch.setattr("harness.cli.replay.known_entries", _entries)
    monkeypatch.setattr("harness.cli.replay.need_environment", lambda: None)
    monkeypatch.setattr("harness.cli.replay.Pool", Ran)
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: Basis("default"))
    Ran.shows, Ran.tasks = {}, []

    def run(*words):
        return CliRunner().invoke(main, ["replay", *map(str, words)])

    run.shows = Ran.shows
    return run


def _entries(folders):
    from harness.triage.corpus import read_entry

    return [read_entry(file.parent) for folder in folders for file in sorted(folder.rglob("status.toml"))]


class Ran:
    """A pool whose cases show what was told by path."""

    shows: ClassVar = {}
    tasks: ClassVar = []

    def __init__(self, jobs, command=()):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, tasks):
        for task in tasks:
            self.tasks.append(task)
            words = self.shows.get(task.case, {})
            yield CaseResult(case=task.case, target=CASE.target, legs={"eager": "ran"}, **words)


@pytest.fixture
def case(tmp_path):
    file = tmp_path / "x.json"
    file.write_bytes(encode_case(CASE))
    return file


def entry(folder):
    folder.mkdir(parents=True)
    (folder / "case.json").write_bytes(encode_case(CASE))
    (folder / "status.toml").write_text(ENTRY)
    return folder


def test_a_case_is_a_file_or_a_folder_without_a_status(tmp_path, case):
    known, bare = entry(tmp_path / "known"), tmp_path / "bare"
    bare.mkdir()
    (bare / "case.json").write_bytes(encode_case(CASE))
    assert sorted_out([known, case, bare, known / "case.json", bare / "case.json"]) == (
        [known],
        [case, bare / "case.json", known / "case.json"],
    )


def test_a_case_shows_its_findings_as_new_and_names_the_command(replay, case):
    replay.shows[str(case)] = {"findings": (off(case),)}
    result = replay(case, "--correction", "neg-rescaled")
    assert result.exit_code == 1, result.output
    assert f"{case}: what it shows now" in result.output
    assert "1 new finding, 1 kind" in result.output
    assert f"        replay: armdiff replay {case} --correction neg-rescaled\n" in result.output
    assert Ran.tasks[0].corrections == ("neg-rescaled",)


def test_what_the_checkout_knows_is_known_and_status_0(replay, case, tmp_path):
    entry(tmp_path / "corpus" / "relu-off")
    replay.shows[str(case)] = {"findings": (off(case),)}
    result = replay(case)
    assert result.exit_code == 0, result.output
    assert "  1x relu-off: relu is off" in result.output


def test_a_bug_folder_beside_a_case_does_not_make_the_case_known(replay, case, tmp_path):
    folder = entry(tmp_path / "bugs" / "relu-off")
    for file in (case, folder / "case.json"):
        replay.shows[str(file)] = {"findings": (off(file),)}
    result = replay(folder, case, "--json", tmp_path / "made.json")
    assert result.exit_code == 1
    assert "reproduces: relu-off" in result.output
    assert "1 new finding, 1 kind" in result.output
    made = json.loads((tmp_path / "made.json").read_text())
    assert [item["known"] for item in made["findings"]] == [True, False]
    assert ([row["outcome"] for row in made["entries"]], made["cases"]) == (["reproduces"], 2)


def test_a_clean_case_does_not_hide_that_an_entry_went_against_expectation(replay, case, tmp_path):
    result = replay(case, entry(tmp_path / "bugs" / "relu-off"))
    assert "unexpected pass" in result.output
    assert result.exit_code == 1


def test_json_of_a_case_is_all_that_standard_output_holds(replay, case):
    replay.shows[str(case)] = {"findings": (off(case),)}
    result = replay(case, "--json", "-")
    [finding] = json.loads(result.stdout)["findings"]
    assert (finding["case"], result.exit_code) == (str(case), 1)


@pytest.mark.parametrize("trouble", [{"invalid": "fails in float eager: no"}, {"problem": "no room"}])
def test_a_case_that_cannot_run_is_told_with_its_name_and_status_2(replay, case, trouble):
    replay.shows[str(case)] = trouble
    result = replay(case)
    assert result.exit_code == 2
    assert f"problem: {case}: " in result.output


def test_what_is_no_case_is_one_line_and_status_2(replay, tmp_path):
    broken = tmp_path / "broken.json"
    stored = Constant(name="k", shape=(2,), kind="tensor", parameters={"key": "k"})
    graph = msgspec.structs.replace(CASE.graph, constants=(stored,))
    lost = msgspec.structs.replace(CASE, graph=graph, tensors="lost.safetensors")
    texts = {
        b'{"graph": 1}': f"{broken}: $.graph: expected `object`, got `int`; see Case in harness/case/case.py",
        b'{"findings": []}': f"{broken}: $: object contains unknown field `findings`; see Case in harness/case/case.py",
        b"{": f"{broken}: $: input data was truncated; see Case in harness/case/case.py",
        encode_case(lost): f"{broken}: $.tensors: {tmp_path / 'lost.safetensors'}: cannot be read as safetensors",
    }
    for text, words in texts.items():
        broken.write_bytes(text)
        result = replay(broken)
        assert result.exit_code == 2
        assert words in result.output
        assert len(result.output.strip().splitlines()) == 1
    assert "restore the file that belongs to the case" in result.output
    assert "gone.json: cannot be read (No such file or directory); give a case.json" in replay("gone.json").output
    assert not Ran.tasks


def test_an_option_is_named_only_where_the_finding_may_need_it():
    assert Again().command("a b.json", "numeric") == "armdiff replay 'a b.json'"
    every = Again(("one", "two"), "model", "all")
    options = "--correction one --correction two --ethos-u-engine model"
    assert every.command("x.json", "numeric") == f"armdiff replay x.json {options}"
    assert every.command("x.json", "metamorphic") == f"armdiff replay x.json {options} --probes all"
    assert Again(probes="default").command("x.json", "metamorphic") == "armdiff replay x.json"


def test_all_corrections_of_a_release_are_one_word(monkeypatch):
    monkeypatch.setattr("harness.corrections.installed", lambda: {"executorch": "1.5.1"})
    names = [item.name for item in chosen(["all"])]
    assert len(names) > 20
    assert Again(tuple(names)).command("x.json", "numeric") == "armdiff replay x.json --correction all"
    assert Again(tuple(names[1:])).command("x.json", "numeric").count("--correction") == len(names) - 1


def test_the_listing_ends_each_finding_with_the_command():
    tally = Tally(again=Again(probes="all"))
    tally.add(CaseResult(case="c.json", findings=(off("c.json", "deterministic"),)))
    assert "        replay: armdiff replay c.json --probes all" in listing(tally)
