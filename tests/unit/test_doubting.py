"""Which known findings are tried with their corrections, and what stays; no torch."""

import datetime
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from generators.cases import draw_block
from harness.campaign import Options, run_campaign
from harness.cli import main
from harness.cli.doubt import doubt
from harness.corpus import Entry, Expectation, Status
from harness.doubting import stays, taken_for
from harness.pool import Pool
from harness.protocol import CaseResult
from harness.triage import Finding

BUCKET = "v1/numeric/differs/run/Vela/ethos-u85/RESCALE"
FINDING = Finding(
    bucket=BUCKET,
    oracle="numeric",
    kind="differs",
    target="ethos-u85-256",
    stage="run",
    message="wrong",
    chain=("view", "conv2d"),
    case="a.json",
)


def entry(name, *, gone=False, operators=("conv2d",)):
    """A bug of convolutions; ``gone`` as it is where its correction applies."""
    status = Status(title=name, expires=datetime.date.max, operators=operators)
    return Entry(Path(name), status, Expectation(status="fixed" if gone else "reproduces", bucket=BUCKET))


def result(*findings, case="a.json"):
    return CaseResult(case=case, findings=findings)


def other(**changes):
    return msgspec.structs.replace(FINDING, **changes)


def test_a_known_value_whose_entry_has_a_correction_is_tried_once_a_case():
    results = [result(FINDING, other(target="ethos-u55-128")), result(FINDING, case="b.json")]
    assert taken_for(results, [entry("x")], [entry("x", gone=True)]) == ({"a.json": "x", "b.json": "x"}, 0)


def test_what_has_no_correction_is_counted_and_what_is_new_or_no_value_is_not():
    results = [result(FINDING, other(chain=("relu",)), other(oracle="crash"), other(information=True))]
    assert taken_for(results, [entry("x")], [entry("x")]) == ({}, 1)


def test_what_shows_with_the_corrections_stays_unless_another_entry_knows_it():
    seen = result(FINDING, other(bucket=BUCKET.replace("u85", "u55")), other(oracle="qparams"))
    [found] = stays("x", seen, [entry("x", gone=True)])
    assert (found.entry, found.finding) == ("x", FINDING)
    assert stays("x", seen, [entry("x", gone=True), entry("y")]) == []
    assert stays("x", result(), [entry("x", gone=True)]) == []


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A folder with one case in which the stand-in worker finds what is known."""
    [[case]] = draw_block(0, 0, 1, ("ethos-u85-256",))
    stand_in = (sys.executable, "-m", "tests.unit.stand_in_worker")
    options = Options((case.target,), max_examples=1, out=tmp_path / "run")
    run_campaign(options, (), lambda *_: None, workers=lambda jobs: Pool(jobs, command=stand_in))
    [line] = (tmp_path / "run" / "results.jsonl").read_bytes().splitlines()
    done = msgspec.json.decode(line)
    done["result"]["findings"] = [msgspec.to_builtins(other(case=done["result"]["case"]))]
    (tmp_path / "run" / "results.jsonl").write_bytes(msgspec.json.encode(done) + b"\n")
    monkeypatch.setattr("harness.cli.doubt.need_environment", lambda: None)
    monkeypatch.setattr("harness.cli.doubt.known_entries", lambda *_: [entry("x")])
    monkeypatch.setattr("harness.cli.doubt.with_corrections", lambda *_: [entry("x", gone=True)])
    monkeypatch.setattr("harness.cli.doubt.chosen", lambda words: words)
    return tmp_path / "run"


class Answers:
    """A pool whose cases all show the same findings."""

    def __init__(self, *findings, problem=None):
        self.findings, self.problem, self.tasks = findings, problem, []

    def __call__(self, jobs, command):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, tasks):
        for task in tasks:
            self.tasks.append(task)
            found = tuple(msgspec.structs.replace(item, case=task.case) for item in self.findings)
            yield CaseResult(case=task.case, findings=found, problem=self.problem)


def test_the_verb_tries_the_case_of_the_folder_with_all_corrections_and_says_how_to_go_on(campaign, monkeypatch):
    pool = Answers(FINDING)
    monkeypatch.setattr("harness.cli.doubt.Pool", pool)
    ended = CliRunner().invoke(main, ["doubt", str(campaign)])
    [task] = pool.tasks
    assert ended.exit_code == 1
    assert (Path(task.case).parent, task.corrections, task.confirm) == (campaign / "cases", ("all",), True)
    assert "view -> conv2d on ethos-u85-256" in ended.output
    assert "taken for x, and stays" in ended.output
    assert f"armdiff reduce {task.case} --correction all --bucket '{BUCKET}'" in ended.output


def test_the_verb_is_content_when_nothing_stays_and_tells_problems(campaign, monkeypatch):
    monkeypatch.setattr("harness.cli.doubt.Pool", Answers())
    ended = CliRunner().invoke(main, ["doubt", str(campaign)])
    assert ended.exit_code == 0
    assert "1 case with known wrong values or streams run with all corrections; 0 findings of entries" in ended.output
    monkeypatch.setattr("harness.cli.doubt.Pool", Answers(problem="no such package; install it"))
    ended = CliRunner().invoke(main, ["doubt", str(campaign)])
    assert ended.exit_code == 3
    assert "problem: " in ended.output


def test_a_folder_without_a_campaign_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.cli.doubt.need_environment", lambda: None)
    ended = CliRunner().invoke(main, ["doubt", str(tmp_path / "none")])
    assert ended.exit_code == 2
    assert str(tmp_path / "none") in ended.output
    assert doubt.name == "doubt"
