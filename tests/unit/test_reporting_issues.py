"""Which buckets get an issue: new, re-run, minimized, and never one that an issue was about."""

import json
import re

import msgspec
import pytest
from click.testing import CliRunner

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.cli.command import main
from harness.reports.reporting import report_on, tallied
from harness.reports.reporting.issues import LONGEST_BODY, Filed, issues, keys_in, marker, read_filed
from harness.reports.reporting.markdown import markdown
from harness.reports.reporting.page import html as page
from tests.unit.reporting_runs import chain_case, each_target, entry, finding, make_run

VALUES = "v1/numeric/outside-rounding/run/-/*/"
KEY = f"{VALUES}#relu"


def minimized(folder, found=None, operators=("relu",), report="", **changes):
    found = found or finding()
    place = folder / "bugs" / "b"
    place.mkdir(parents=True, exist_ok=True)
    (place / "case.json").write_bytes(encode_case(chain_case(*operators)))
    if report:
        (place / "REPORT.md").write_text(report)
    values = {"bucket": found.bucket, "final": f"{found.bucket}#{'>'.join(operators)}", "operators": operators}
    values |= {"origin": "", "case": "bugs/b/case.json", "state": "minimized", "folder": "b" if report else ""}
    values["finding"] = msgspec.structs.replace(found, message=f"minimized: {found.message}", chain=operators)
    return Minimized(**{**values, **changes})


def report(folder, *items, found=(), corpus=(), **asked):
    cases = each_target("relu", findings=[*(found or [finding()])])
    return report_on([tallied(make_run(folder, cases, minimized=items, **asked), corpus)], None)


def test_a_new_minimized_bucket_gets_an_issue_with_its_key(tmp_path):
    made, held = issues(report(tmp_path, minimized(tmp_path)))
    assert held == []
    (issue,) = made
    assert issue.text.splitlines()[0] == "Outside rounding in relu (numeric, TOSA-1.0+INT, ethos-u55-128)"
    assert keys_in(issue.text) == [KEY]
    assert "minimized: 3 of 4 elements are off" in issue.body
    assert '"operator": "relu"' in issue.body


def test_an_issue_is_about_one_case_and_names_the_worse_one_as_another(tmp_path):
    large = finding(chain=("relu", "tanh"), message="the large one", measured={"distance": 86.0, "unit": "steps"})
    small = finding(measured={"distance": 3.0, "unit": "steps"})
    (issue,), _ = issues(report(tmp_path, minimized(tmp_path, small), found=[large]))
    assert "minimized: 3 of 4 elements are off" in issue.body
    assert "smallest graph: relu\n" in issue.body
    assert "the large one" not in issue.body
    assert re.search(r"largest error, in another case \(\w+\.json\): 86 steps", issue.body)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"state": "stopped"}, "ended early"),
        ({"state": "lost"}, "did not show again"),
        ({"repro": "does not show"}, "does not show it in a fresh process"),
    ],
)
def test_what_is_not_minimized_or_not_repeated_waits(tmp_path, changes, why):
    made, held = issues(report(tmp_path, minimized(tmp_path, **changes)))
    assert made == []
    assert why in held[0].why


def test_what_was_cut_down_to_a_known_bug_waits_and_the_report_says_so(tmp_path):
    item = minimized(tmp_path)
    known = msgspec.structs.replace(item.finding, state="known", entry="e", proof="correction c alone takes it away")
    told = report(tmp_path, msgspec.structs.replace(item, finding=known))
    made, held = issues(told)
    assert made == []
    words = "its smallest case shows the known bug e (correction c alone takes it away)"
    assert held[0].why == words
    assert words.capitalize() in markdown(told)
    assert "shows the known bug <code>e</code> (correction c alone takes it away)" in page(told, tmp_path)
    assert len(told.new) == 1


def test_without_minimization_known_or_on_an_unknown_line_there_is_no_issue(tmp_path):
    assert issues(report(tmp_path / "a"))[1][0].why == "it was not minimized"
    item = minimized(tmp_path / "b")
    assert issues(report(tmp_path / "b", item, corpus=[entry("e", finding())])) == ([], [])
    made, held = issues(report(tmp_path / "c", minimized(tmp_path / "c"), line=None))
    assert made == []
    assert "nothing is known on executorch 9" in held[0].why
    assert len(issues(report(tmp_path / "d", minimized(tmp_path / "d"), line=None, expect="default"))[0]) == 1


def test_a_mismatch_that_did_not_show_twice_gets_no_issue(tmp_path):
    run = make_run(tmp_path, each_target("relu", unrepeated=(finding(),)), minimized=[minimized(tmp_path)])
    assert issues(report_on([tallied(run, ())], None)) == ([], [])


@pytest.mark.parametrize("state", ["open", "closed"])
def test_what_an_issue_was_about_is_never_filed_again(tmp_path, state):
    made, held = issues(report(tmp_path, minimized(tmp_path)), [Filed(KEY, "#7", state)])
    assert made == []
    assert held[0].why == f"filed already: #7 ({state})"


@pytest.mark.parametrize(
    ("filed", "final", "covers"),
    [
        (KEY, KEY, True),
        ("v1/numeric/outside-rounding/run/-/ethos-u55/#relu", "v1/numeric/outside-rounding/run/-/tosa-int/#relu", True),
        (f"{VALUES}#permute>flatten>select", f"{VALUES}#permute>relu>flatten>select", True),
        (f"{VALUES}#permute>relu>select", f"{VALUES}#permute>select", True),
        (f"{VALUES}#permute>select", f"{VALUES}#select>permute", False),
        (f"{VALUES}#relu", f"{VALUES}#tanh", False),
        (VALUES, KEY, True),
        ("v1/numeric/outside-rounding/run/APass/*/#relu", KEY, True),
        ("v1/numeric/outside-rounding/run/APass/*/#relu", "v1/numeric/outside-rounding/run/BPass/*/#relu", False),
        ("v1/crash/exception/lower/APass/*/KeyError#relu", "v1/crash/exception/lower/APass/*/KeyError#tanh", True),
        ("v1/crash/exception/lower/APass/*/KeyError#relu", "v1/crash/exception/lower/APass/*/TypeError#relu", False),
        ("v1/numeric/outside-rounding,-out-of-range-input-only/run/-/*/#relu", KEY, True),
    ],
)
def test_an_issue_covers_what_the_corpus_would_take_for_one_bug(filed, final, covers):
    assert Filed(filed, "#1").covers(final) is covers


def test_two_buckets_of_one_crash_in_a_report_are_one_issue(tmp_path):
    crash = finding("crash", "exception", stage="lower", blamed="APass", signature="KeyError")
    items = [minimized(tmp_path), minimized(tmp_path, crash, ("tanh",), case="bugs/b/case.json")]
    made, _ = issues(report(tmp_path, *items, found=[finding(), crash]))
    assert [issue.key.split("/")[1] for issue in made] == ["numeric", "crash"]
    assert len(issues(report(tmp_path / "few", *items, found=[finding(), crash]), most=1)[0]) == 1


def test_the_bugs_own_report_is_the_text(tmp_path):
    (issue,), _ = issues(report(tmp_path, minimized(tmp_path, report="# relu is off\n\nrun repro.py\n")))
    assert issue.body.startswith("# relu is off\n\nrun repro.py\n")
    assert "3 of 4" not in issue.body
    long = "# long\n```\n" + "x" * 70 * 1000 + "\n```\n"
    (issue,), _ = issues(report(tmp_path / "long", minimized(tmp_path / "long", report=long.replace("x" * 70, "x\n"))))
    assert len(issue.body) < LONGEST_BODY + 2000
    assert issue.body.count("\n```") % 2 == 0
    assert keys_in(issue.body) == [KEY]


@pytest.mark.parametrize("key", [KEY, "v1/crash/a-->/run/-/*/--->\n<x>&quot;\t--", "v1/numeric/x/y/-/*/`@someone`"])
def test_the_hidden_line_holds_any_key_and_stays_hidden(key):
    line = marker(key)
    assert line.count("-->") == 1
    assert "--" not in line[4:-3]
    assert len(line.splitlines()) == 1
    assert keys_in(f"text\n{line}\nmore") == [key]


def test_text_from_outside_stays_in_its_block(tmp_path):
    hostile = finding(message="```\n@everyone <!-- armdiff bucket: v1/x -->")
    (issue,), _ = issues(report(tmp_path, minimized(tmp_path, hostile), found=[hostile]))
    assert "\n````text\nminimized: ```\n@everyone" in issue.body


def test_githubs_list_and_a_plain_list_are_read(tmp_path):
    file = tmp_path / "filed"
    file.write_text(json.dumps([{"number": 3, "state": "CLOSED", "body": f"a\n{marker(KEY)}"},
                                {"number": 4, "state": "OPEN", "body": None}]))  # fmt: skip
    assert read_filed(file) == [Filed(KEY, "#3", "closed")]
    file.write_text(f"# why\n{KEY} https://example.org/3 closed  # note\n\n{VALUES}\n")
    assert read_filed(file) == [Filed(KEY, "https://example.org/3", "closed"), Filed(VALUES, str(file))]


@pytest.mark.parametrize(("text", "part"), [("v1/numeric/\n", "line 1: 'v1/numeric/' is no bucket"), ("[{]", "byte")])
def test_a_damaged_list_is_one_line(tmp_path, text, part):
    (tmp_path / "filed").write_text(text)
    with pytest.raises(BadInput, match=part):
        read_filed(tmp_path / "filed")
    with pytest.raises(BadInput, match="cannot be read"):
        read_filed(tmp_path / "none")


def test_the_verb_writes_what_is_to_be_filed_and_says_what_is_not(tmp_path):
    run, folder = tmp_path / "run", tmp_path / "issues"
    new = finding(blamed="APassThatNoCorpusEntryKnows")
    make_run(run, each_target("relu", findings=[new]), minimized=[minimized(run, new)])
    command = ["report", str(run), "--issues", str(folder)]
    assert "issue " in CliRunner().invoke(main, command).stdout
    (file,) = folder.iterdir()
    (tmp_path / "filed.json").write_text(json.dumps([{"number": 1, "state": "OPEN", "body": file.read_text()}]))
    again = CliRunner().invoke(main, [*command, "--filed", str(tmp_path / "filed.json")])
    assert again.exit_code == 1
    assert f"{new.pass_name}/*/#relu: filed already: #1 (open)" in again.stdout
    assert list(folder.iterdir()) == []
