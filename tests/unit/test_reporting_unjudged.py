"""Every page of a report says what was not judged: sentence, table, leg table, JUnit's properties, JSON."""

from dataclasses import replace

from junitparser import JUnitXml

from harness.evidence.observation import Unjudged
from harness.reports.reporting import make_report
from harness.reports.reporting.json_data import data
from harness.reports.reporting.junit import junit
from harness.reports.reporting.markdown import markdown
from harness.reports.reporting.material import tallied
from harness.reports.reporting.page import html as page
from harness.reports.reporting.report import report_on
from tests.unit.reporting_runs import TARGETS, chain_case, each_target, make_run

SIN = Unjudged(what="aten.sin", why="no rule of rounding", leg="tosa-reference", outputs=(0,), parts=4, of=4)
LOST = Unjudged(what="lower failed", why="ValueError: no", outputs=(0,))
PHRASE = "2 outputs of 2 cases unjudged (aten.sin, lower failed)"


def run(folder):
    cases = [(chain_case("relu"), {"unjudged": (SIN,)}), (chain_case("relu", target=TARGETS[1]), {"unjudged": (LOST,)})]
    return make_run(folder, [*cases, *each_target("tanh")])


def test_the_verdict_of_a_report_says_so(tmp_path):
    made = make_report(run(tmp_path), (), None)
    assert made.sentence.endswith(f"; {PHRASE}.")
    assert [(row.what, row.outputs, row.cases, row.share, row.why) for row in made.not_run.unjudged] == [
        ("aten.sin", 1, 1, "4 of 4 elements", "no rule of rounding"),
        ("lower failed", 1, 1, "", "ValueError: no"),
    ]
    assert {row.name: row.unjudged for row in made.not_run.legs}["tosa-reference"] == "1 output of 1 case (aten.sin)"


def test_markdown_and_html_have_a_table_and_a_column(tmp_path):
    made = make_report(run(tmp_path), (), None)
    lines = markdown(made).splitlines()
    assert lines[0].endswith(f"{PHRASE}.")
    assert "## What was not judged: 2 outputs of 2 cases" in lines
    assert "| aten.sin | 1 | 1 | 4 of 4 elements | no rule of rounding |" in lines
    assert any(line.startswith("| tosa-reference |") and "1 output of 1 case (aten.sin) |" in line for line in lines)
    text = page(made, tmp_path)
    assert '<td class="why">1 output of 1 case (aten.sin)</td>' in text
    assert '<th scope="row"><code>aten.sin</code></th><td class="n">1</td><td class="n">1</td>' in text
    assert "<dt>outputs unjudged</dt><dd>2</dd>" in text


def test_a_run_that_was_judged_whole_says_that_as_well(tmp_path):
    made = make_report(make_run(tmp_path, each_target("relu")), (), None)
    assert "unjudged" not in made.sentence
    assert "## What was not judged: 0 outputs of 0 cases" in markdown(made).splitlines()
    assert "Every output of every case was judged." in page(made, tmp_path)


def test_many_reasons_leave_the_summary_page_short(tmp_path):
    items = tuple(replace(LOST, what=f"reason {number}") for number in range(30))
    lines = markdown(make_report(make_run(tmp_path, each_target("relu", unjudged=items)), (), None)).splitlines()
    assert "| and 22 more, in report.html | | | | |" in lines


def test_junit_has_properties_for_each_target(tmp_path):
    suites = JUnitXml.fromstring(junit(make_report(run(tmp_path), (), None)))
    told = {suite.name: {item.name: item.value for item in suite.properties()} for suite in suites}
    assert told == {
        TARGETS[0]: {
            "unjudged": "1 output of 1 case",
            "unjudged: aten.sin": "1 output of 1 case: no rule of rounding",
        },
        TARGETS[1]: {"unjudged": "1 output of 1 case", "unjudged: lower failed": "1 output of 1 case: ValueError: no"},
    }


def test_json_has_them_under_the_name_that_design_fixes(tmp_path):
    made = data(make_report(run(tmp_path), (), None))
    assert made["unjudged"]["aten.sin"] == {
        "outputs": 1,
        "cases": 1,
        "why": "no rule of rounding",
        "parts": {"elements": {"unjudged": 4, "of": 4}},
    }
    assert made["undone"]["unjudged"][1]["what"] == "lower failed"


def test_merged_runs_add_up(tmp_path):
    runs = [tallied(run(tmp_path / name), ()) for name in ("one", "two")]
    made = report_on(runs, None)
    assert "4 outputs of 4 cases unjudged (aten.sin, lower failed)" in made.sentence
    assert made.not_run.unjudged[0].share == "8 of 8 elements"
