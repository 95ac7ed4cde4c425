"""The verb ``report``: what it writes and knows, how it ends, and what it says of a damaged run."""

import json
import os

import pytest
from click.testing import CliRunner

from harness.campaign.run_folder import BUCKETS, RESULTS
from harness.case.errors import CannotRun
from harness.cli.command import main
from harness.compat.releases import basis_of, line_named
from harness.reports.reporting import Verdict, write_reports
from tests.unit.reporting_runs import each_target, entry, finding, make_run


def test_a_verdict_says_what_to_exit_with(tmp_path):
    found = each_target("relu", findings=[finding()])
    new = write_reports(make_run(tmp_path / "new", found), (), None, tmp_path / "out")
    known = write_reports(make_run(tmp_path / "known", found), [entry("e", finding())], None, tmp_path / "out")
    assert isinstance(new, Verdict)
    assert (new.exit_status, new.bugs, new.buckets, new.known) == (1, ("Outside rounding in relu",), 1, 0)
    assert (known.exit_status, known.bugs, known.buckets, known.known) == (0, (), 0, 1)
    assert (new.graphs, new.cases) == (1, 2)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRun, match="cannot be written"):
        write_reports(make_run(tmp_path / "run"), (), None, tmp_path / "file")


def command(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


@pytest.mark.parametrize("present", [(1,), (1, 2, 4)])
def test_a_report_without_all_shards_is_no_verdict(tmp_path, present):
    shards = [tmp_path / str(index) for index in present]
    for index, folder in zip(present, shards, strict=True):
        make_run(folder, each_target("relu"), shard=(index, max(2, present[-1])))
    result = command(*shards, "--out", tmp_path / "out")
    missing = "2/2" if present == (1,) else "3/4"
    assert result.exit_code == 2
    assert f"armdiff: not among the runs: shard {missing} of default, seed 0; give" in result.stderr
    assert f"without shard {missing} of default" in result.stdout.splitlines()[0]
    assert f"Not in this report: shard {missing} of default, seed 0." in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_a_report_of_a_run_that_did_not_end_is_no_verdict(tmp_path, state):
    make_run(tmp_path, each_target("relu"), state=state)
    result = command(tmp_path)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.endswith(f"'armdiff fuzz --resume --out {tmp_path}' goes on")


def test_a_run_that_ended_before_its_first_case_is_no_verdict(tmp_path):
    make_run(tmp_path, seconds=5.0)
    result = command(tmp_path)
    assert (result.exit_code, "ended before its first case" in result.stderr) == (2, True)
    make_run(tmp_path, max_examples=20)
    assert command(tmp_path).exit_code == 0


@pytest.mark.parametrize("keep", [0, 1, -1])
def test_results_that_are_gone_are_damage_and_not_silence(tmp_path, keep):
    make_run(tmp_path, each_target("relu"))
    lines = (tmp_path / RESULTS).read_bytes().splitlines(keepends=True)
    (tmp_path / RESULTS).write_bytes(b"".join(lines[:keep]) if keep >= 0 else b"".join(lines)[:-5])
    result = command(tmp_path)
    assert result.exit_code == 2
    assert f"{RESULTS}: holds {max(keep, 0) or 1 if keep else 0} of the 2 cases that run.json counts" in result.stderr
    assert not (tmp_path / "report.md").exists()


def test_the_verb_writes_pages_and_exits_with_the_verdict(tmp_path):
    make_run(tmp_path / "run", each_target("relu", findings=[finding(blamed="NoSuchPass")]))
    make_run(tmp_path / "before", each_target("relu"))
    result = command(tmp_path / "run", "--previous", tmp_path / "before", "--out", tmp_path / "out")
    assert result.exit_code == 1
    first, second, *files = result.stdout.splitlines()
    assert first == "1 new bug (1 bucket) and no known ones in 1 graph, 2 cases; ethos-u-fvp never ran."
    assert second == "  1. Outside rounding in relu: 2 cases on TOSA-1.0+INT, ethos-u55-128"
    assert files == [str(tmp_path / "out" / f"report.{kind}") for kind in ("html", "md", "json", "xml")]
    assert all(os.path.getsize(file) for file in files)
    assert "0 gone" in (tmp_path / "out" / "report.md").read_text()


def test_the_verb_exits_with_0_where_nothing_is_new_and_prints_only_json_on_request(tmp_path):
    make_run(tmp_path, each_target("relu"))
    result = command(tmp_path, "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["verdict"]["new_bugs"] == 0
    assert (tmp_path / "report.html").exists()


def test_the_verb_knows_what_a_given_corpus_knows(tmp_path):
    (tmp_path / "mine" / "bug").mkdir(parents=True)
    (tmp_path / "mine" / "bug" / "status.toml").write_text(
        'title = "mine"\nexpires = 2999-01-01\n[lines.et120]\nstatus = "reproduces"\n'
        f'bucket = "{finding(blamed="NoSuchPass").bucket}"\n'
    )
    make_run(tmp_path / "run", each_target("relu", findings=[finding(blamed="NoSuchPass")]), line="et120")
    assert command(tmp_path / "run").exit_code == 1
    result = command(tmp_path / "run", "--known", tmp_path / "mine")
    assert result.exit_code == 0
    assert "1 known one" in result.stdout


def test_a_correction_from_a_file_is_not_executed_to_read_about_a_run(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    make_run(tmp_path / "run", each_target("relu"), corrections=(str(trap),))
    result = command(tmp_path / "run")
    assert result.exit_code == 0
    assert not (tmp_path / "sprung").exists()
    assert "is not in the tree" in result.stderr


def damaged_line(folder):
    with (folder / RESULTS).open("ab") as file:
        file.write(b'{"number": "one"}\n')


def damaged_info(folder):
    (folder / "run.json").write_text('{"schema": 1')


def damaged_buckets(folder):
    (folder / BUCKETS).write_bytes(b"\xff\xfe\n")


@pytest.mark.parametrize(
    ("damage", "part"),
    [(damaged_line, "results.jsonl: line 3"), (damaged_info, "run.json"), (damaged_buckets, BUCKETS)],
)
def test_a_damaged_run_is_one_line_and_status_2(tmp_path, damage, part):
    make_run(tmp_path, each_target("relu"))
    damage(tmp_path)
    result = command(tmp_path)
    assert result.exit_code == 2
    assert part in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_line_that_a_kill_cut_off_does_not_matter(tmp_path):
    make_run(tmp_path, each_target("relu"))
    with (tmp_path / RESULTS).open("ab") as file:
        file.write(b'{"number": 7, "at"')
    result = command(tmp_path)
    assert result.exit_code == 0
    assert "1 graph, 2 cases" in result.stdout


def test_no_run_and_no_place_are_status_2_and_3(tmp_path):
    result = command(tmp_path / "none")
    assert (result.exit_code, "is no run's folder" in result.output) == (2, True)
    make_run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    assert command(tmp_path / "run", "--out", tmp_path / "file").exit_code == 3


def test_a_report_without_the_packages_of_the_run(tmp_path, monkeypatch):
    """A CI job that only collects folders has no executorch: what is known is known all the same."""
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: basis_of({}))
    monkeypatch.setattr("harness.campaign.summary.installed", dict)
    run = make_run(tmp_path, each_target("relu", findings=[finding()]))
    verdict = write_reports(run, [entry("e", finding())], None, tmp_path)
    assert verdict.known == 1
    assert json.loads((tmp_path / "report.json").read_text())["releases"] == line_named("default").releases
