"""A report as Markdown, JUnit and JSON: each complete, and whole whatever text comes from outside."""

import json
import re

import msgspec
from junitparser import JUnitXml

from harness.compat.releases import line_named
from harness.reports.reporting import make_report
from harness.reports.reporting.json_data import data
from harness.reports.reporting.junit import junit
from harness.reports.reporting.markdown import escaped, markdown
from tests.unit.reporting_runs import (
    TARGETS,
    chain_case,
    each_target,
    entry,
    finding,
    hostile_run,
    make_run,
)


def test_markdown_keeps_every_cell_in_its_place(tmp_path):
    run, corpus = hostile_run(tmp_path)
    lines = markdown(make_report(run, corpus, None)).splitlines()
    widths = {}
    for number, line in enumerate(lines):
        if line.startswith("|---"):
            columns = line.count("|")
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                widths[row] = (len(re.findall(r"(?<!\\)\|", row)), columns)
    assert widths
    assert all(found == wanted for found, wanted in widths.values())
    assert not [line for line in lines if "<script" in line or "\x1b" in line]
    assert "](javascript" not in "\n".join(lines).replace("\\](", "")


def test_markdown_fits_a_summary_page_however_much_was_found(tmp_path):
    found = [finding(kind=f"kind {number}", blamed=f"Pass{number}") for number in range(60)]
    known = [finding(kind=f"known {number}") for number in range(60)]
    cases = each_target("relu", findings=[*found, *known], unrepeated=found)
    for number in range(12):
        cases += each_target("tanh", legs={"eager": f"reason {'x' * number}", "tosa-reference": "failed"})
    cases += [item for name in ("a", "b", "c", "d", "e") for item in each_target("abs", invalid=name, problem=name)]
    run = make_run(tmp_path / "now", cases, left=["left"] * 20)
    before = make_run(tmp_path / "before", each_target("relu", findings=[finding(kind=f"gone {n}") for n in range(40)]))
    corpus = [entry(f"e{number}", item) for number, item in enumerate(known)]
    lines = markdown(make_report(run, corpus, before)).splitlines()
    assert len(lines) <= 115
    assert lines[0].startswith("# armdiff: 60 new bugs (60 buckets) and 60 known ones")
    assert any("and 45 more, in report.html" in line for line in lines)


def test_text_is_one_plain_line_in_markdown():
    assert escaped("a|b\n`c` <d> *e* [f](g) & h\\") == r"a\|b \`c\` &lt;d> \*e\* \[f\](g) &amp; h\\"
    assert escaped("x" * 300, 10) == "x" * 9 + "…"


def test_junit_has_a_suite_a_target_and_a_case_a_bucket(tmp_path):
    new, known = finding(message="worst of TOSA"), finding("qparams", "known")
    u55 = finding(target="ethos-u55-128", message="worst of U55")
    cases = [
        (chain_case("relu"), {"findings": [new, known]}),
        (chain_case("relu", target=TARGETS[1]), {"findings": [u55]}),
    ]
    made = make_report(make_run(tmp_path, cases), [entry("known-one", known)], None)
    (tmp_path / "x.xml").write_bytes(junit(made))
    suites = {suite.name: list(suite) for suite in JUnitXml.fromfile(str(tmp_path / "x.xml"))}
    assert list(suites) == list(TARGETS)
    tosa, other = suites[TARGETS[0]], suites[TARGETS[1]]
    assert [case.is_failure for case in tosa] == [True, False, False]
    assert tosa[0].name == "v1/numeric/outside-rounding/run/-/*/"
    assert "worst of TOSA" in tosa[0].result[0].text
    assert tosa[1].is_skipped
    assert "corpus entry known-one" in tosa[1].result[0].message
    assert tosa[2].is_passed
    assert "new: 1" in tosa[2].system_out
    assert [case.is_failure for case in other] == [True, False]
    assert "worst of U55" in other[0].result[0].text


def two_sizes(folder):
    """A bucket whose smallest case and whose worst one are different cases."""
    cases = []
    for operators, distance in ((("relu", "tanh"), 86.0), (("abs",), 3.0)):
        case = chain_case(*operators, recipe="a8w8" if distance == 3.0 else "a8w8,qmin=-127")
        size = {"distance": distance, "unit": "steps"}
        found = finding(chain=operators, message=f"off in {operators[0]}", measured=size, recipe=case.recipe)
        cases.append((case, {"findings": [found]}))
    run = make_run(folder, cases, targets=TARGETS[:1])
    names = [item.result.case.rsplit("/", 1)[-1] for item in run.done]
    return make_report(run, (), None), names


def test_every_format_keeps_what_two_cases_show_apart(tmp_path):
    made, (worst, small) = two_sizes(tmp_path)
    failure = next(case for suite in JUnitXml.fromstring(junit(made)) for case in suite).result[0].text.splitlines()
    assert failure == [
        "off in relu",
        "on TOSA-1.0+INT, a8w8,qmin=-127",
        f"replay: armdiff replay cases/{worst}",
        "smallest case, on TOSA-1.0+INT, a8w8: off in abs",
        f"replay: armdiff replay cases/{small}",
    ]
    text = markdown(made).replace("\\", "")
    assert f"1. smallest case, on TOSA-1.0+INT, a8w8: off in abs (armdiff replay cases/{small})" in text
    assert f"   Largest error, in another case: 86 steps (armdiff replay cases/{worst})" in text
    assert "| 3 to 86 steps |" in text
    (bucket,) = data(made)["bugs"][0]["buckets"]
    for name, file, message in (("shown", small, "off in abs"), ("worst", worst, "off in relu")):
        assert bucket[name]["path"] == bucket[name]["finding"]["case"] == f"cases/{file}"
        assert bucket[name]["finding"]["message"] == message
    assert [item["case"] for item in bucket["cases"]] == [f"cases/{small}", f"cases/{worst}"]


def test_junit_of_an_empty_run_is_not_green(tmp_path):
    made = make_report(make_run(tmp_path), (), None)
    cases = [case for suite in JUnitXml.fromstring(junit(made)) for case in suite]
    assert [case.is_skipped for case in cases] == [True, True]


def test_junit_survives_hostile_text(tmp_path):
    run, corpus = hostile_run(tmp_path)
    document = JUnitXml.fromstring(junit(make_report(run, corpus, None)))
    names = [case.name for suite in document for case in suite]
    assert any("<script>" in name for name in names)
    assert document.failures == 4


def test_json_has_what_design_fixes_and_what_the_page_shows(tmp_path):
    known = finding("qparams", "known")
    run = make_run(tmp_path, each_target("relu", findings=[finding(), known]), problems=["one"])
    made = data(make_report(run, [entry("e", known)], run))
    read = json.loads(json.dumps(made, allow_nan=False))
    assert {"armdiff", "releases", "graphs", "cases", "legs", "findings", "seconds", "unrepeated"} <= set(read)
    assert read["releases"] == line_named("default").releases
    assert (read["graphs"], read["cases"], len(read["findings"])) == (1, 2, 4)
    assert [item["known"] for item in read["findings"]] == [False, True, False, True]
    assert [(bug["rank"], bug["known"], bug["hits"]) for bug in read["bugs"]] == [(1, False, 2), (2, True, 2)]
    assert read["bugs"][0]["buckets"][0]["shown"]["case"]["graph"]["nodes"][0]["operator"] == "relu"
    assert read["coverage"]["outcomes"]["counts"][TARGETS[0]] == {"new": 1}
    assert "relu" not in read["coverage"]["never"]["operators"]
    assert read["undone"]["problems"] == [{"text": "one", "count": 1, "case": ""}]
    assert len(read["previous"]["still"]) == 2


def test_msgspec_and_pages_agree_on_what_is_in_a_run(tmp_path):
    run = make_run(tmp_path, each_target("relu"))
    assert msgspec.to_builtins(run.info) == data(make_report(run, (), None))["run"]
