"""Several runs in one report: counts added, buckets collected, paths that lead to each run's own files."""

import json

import pytest
from click.testing import CliRunner

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.cli.command import main
from harness.reports.reporting import report_on, tallied
from harness.reports.reporting.markdown import markdown
from harness.reports.reporting.merging import missing_shards
from tests.unit.reporting_runs import TARGETS, chain_case, each_target, entry, finding, make_run


def together(*runs, corpus=()):
    return report_on([tallied(run, corpus) for run in runs], None)


def small(run, operators, **changes):
    """A minimized case of the usual bucket, with its folder."""
    (run / "bugs" / "b").mkdir(parents=True)
    (run / "bugs" / "b" / "case.json").write_bytes(encode_case(chain_case(*operators)))
    key = finding().bucket
    values = {"final": f"{key}#{'>'.join(operators)}", "operators": operators, "state": "minimized", "folder": "b"}
    values["finding"] = finding(chain=operators)
    return Minimized(**{"bucket": key, "origin": "", "case": "bugs/b/case.json", **values, **changes})


def test_one_bucket_in_two_shards_is_one_with_its_hits_added(tmp_path):
    cases = each_target("relu", findings=[finding()], unrepeated=(finding("crash"),), invalid=None)
    one = make_run(tmp_path / "one", cases, shard=(1, 2))
    two = make_run(tmp_path / "two", [*cases, *each_target("tanh", problem="no worker")], shard=(2, 2))
    made = together(one, two)
    (bucket,) = made.buckets
    assert (bucket.hits, len(bucket.graphs), bucket.targets) == (4, 2, dict.fromkeys(TARGETS, 2))
    tally = made.judged.tally
    assert (made.judged.graphs, tally.cases, tally.ran["eager"], len(tally.unrepeated)) == (3, 6, 6, 4)
    assert (tally.problems, tally.seconds["lower"]) == (["no worker"] * 2, 6.0)
    assert made.coverage.outcomes.counts[TARGETS[0]] == {"new": 2, "problem": 1}
    assert made.sentence.startswith("1 new bug (1 bucket) and no known ones in 3 graphs, 6 cases of 2 runs")


def test_runs_with_other_targets_keep_their_graphs_apart(tmp_path):
    one = make_run(tmp_path / "one", [(chain_case("relu"), {}), (chain_case("tanh"), {})], targets=TARGETS[:1])
    two = make_run(tmp_path / "two", each_target("abs", findings=[finding()]))
    made = together(one, two)
    assert (made.judged.graphs, made.judged.unfinished, made.coverage.graphs) == (3, 0, 3)
    reached = next(item.counts for item in made.coverage.reaches if item.what == "operators")
    assert (reached["relu"], reached["tanh"], reached["abs"]) == (1, 1, 1)


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_the_smallest_minimized_case_stands_for_the_bucket(tmp_path, order):
    cases = each_target("relu", "tanh", "abs", findings=[finding()])
    items = {
        "one": small(tmp_path / "one", ("relu", "tanh")),
        "two": small(tmp_path / "two", ("relu",)),
    }
    runs = [make_run(tmp_path / name, cases, minimized=[items[name]]) for name in order]
    (bucket,) = together(*runs).buckets
    assert bucket.final.endswith("#relu")
    assert bucket.shown.path == "two/bugs/b/case.json"
    assert len(bucket.minimized) == 2


def test_each_run_is_judged_by_its_own_line_and_lines_are_told(tmp_path):
    cases = each_target("relu", findings=[finding()])
    runs = [make_run(tmp_path / line, cases, line=line) for line in ("default", "et120")]
    made = together(*runs, corpus=[entry("old-bug", finding(), lines=("et120",))])
    assert [(bug.known, bug.lines) for bug in made.bugs] == [(False, ("default",)), (True, ("et120",))]
    text = markdown(made)
    assert "; on default |" in text
    assert "; on et120 |" in text
    assert "; on default" not in markdown(together(runs[0], make_run(tmp_path / "again", cases)))


def test_packages_of_no_known_line_are_judged_as_the_run_asked(tmp_path):
    cases, corpus = each_target("relu", findings=[finding()]), [entry("e", finding())]
    without = together(make_run(tmp_path / "without", cases, line=None), corpus=corpus)
    expecting = together(make_run(tmp_path / "with", cases, line=None, expect="default"), corpus=corpus)
    assert [len(without.new), len(expecting.new)] == [1, 0]
    assert expecting.bugs[0].lines == ("executorch 9",)


def test_a_shard_that_is_not_there_is_told(tmp_path):
    runs = [make_run(tmp_path / str(index), shard=(index, 3), seed=7) for index in (1, 3)]
    assert missing_shards([run.info for run in runs]) == ["shard 2/3 of default, seed 7"]
    assert "Not in this report: shard 2/3 of default, seed 7." in together(*runs).not_run.left


def test_what_a_run_left_is_told_with_its_name(tmp_path):
    cases = each_target("relu")
    runs = [
        make_run(tmp_path / "a", cases),
        make_run(tmp_path / "b", cases, left=["not minimized: x"], state="interrupted"),
    ]
    made = together(*runs)
    assert "b: not minimized: x" in made.not_run.left
    assert not [line for line in made.not_run.left if line.startswith("a:")]
    assert "interrupted" in made.sentence


NEW = finding(blamed="APassThatNoCorpusEntryKnows")


def report(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_paths_lead_from_the_reports_folder_to_every_runs_files(tmp_path):
    cases, second = each_target("relu", findings=[NEW]), tmp_path / "night" / "two"
    make_run(tmp_path / "night" / "one", cases)
    make_run(second, cases, minimized=[small(second, ("relu",), bucket=NEW.bucket)])
    out = tmp_path / "reports" / "today"
    result = report(tmp_path / "night" / "one", tmp_path / "night" / "two", "--out", out)
    assert result.exit_code == 1, result.output
    data = json.loads((out / "report.json").read_text())
    paths = [item["case"] for item in data["findings"]]
    (bucket,) = data["bugs"][0]["buckets"]
    paths += [bucket["shown"]["path"], bucket["minimized"][0]["case"], bucket["worst"]["path"]]
    paths += [bucket["shown"]["finding"]["case"], bucket["minimized"][0]["finding"]["case"]]
    paths += [item["case"] for item in bucket["cases"]]
    assert all((out / path).is_file() for path in paths), paths
    assert len({path.rpartition("/cases/")[0] for path in paths[:4]}) == 2
    assert [(out / run["folder"] / "run.json").is_file() for run in data["runs"]] == [True, True]
    page = (out / "report.html").read_text()
    assert 'href="../../night/two/bugs/b"' in page
    assert f"replay: armdiff replay {bucket['shown']['path']}<" in (out / "report.xml").read_text()


def test_a_path_out_of_a_run_leads_nowhere(tmp_path):
    (tmp_path / "secret" / "bugs" / "b").mkdir(parents=True)
    (tmp_path / "secret" / "case.json").write_bytes(encode_case(chain_case("abs")))
    item = small(tmp_path / "two", ("relu",), case="../secret/case.json", folder="../../secret/bugs/b",
                 bucket=NEW.bucket)  # fmt: skip
    cases = each_target("relu", findings=[NEW])
    report(make_run(tmp_path / "one", cases).folder, make_run(tmp_path / "two", cases, minimized=[item]).folder,
           "--out", tmp_path / "out")  # fmt: skip
    page = (tmp_path / "out" / "report.html").read_text()
    assert "cases/" in page
    assert "secret" not in page


def test_a_bad_folder_among_several_is_one_line_and_status_2(tmp_path):
    make_run(tmp_path / "one", each_target("relu"))
    result = report(tmp_path / "one", tmp_path / "none", tmp_path / "one", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert [line.count("is no run's folder") for line in result.stderr.splitlines()] == [1]
    assert "in 1 graph, 2 cases; " in result.stdout  # and the folder that was given twice counts once
    assert (tmp_path / "out" / "report.html").exists()
    nothing = report(tmp_path / "none", tmp_path / "nor this", "--out", tmp_path / "other")
    assert (nothing.exit_code, nothing.stderr.count("is no run's folder")) == (2, 2)
    assert not (tmp_path / "other").exists()
