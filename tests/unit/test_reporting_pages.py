"""The pages of a report: complete, escaped, self-contained, and the same in four formats."""

import html.parser
import json
import os
import re
import subprocess
import sys

import msgspec
import pytest
from click.testing import CliRunner
from junitparser import JUnitXml

from harness.case import encode_case
from harness.cli import main
from harness.errors import CannotRun
from harness.reporting import Verdict, make_report, write_reports
from harness.reporting.junit import junit
from harness.reporting.markdown import markdown, plain
from harness.reporting.page import html as page
from harness.reporting.plain import data
from harness.runs import BUCKETS, RESULTS, Minimized
from tests.unit.reporting_runs import TARGETS, chain_case, drawn, each_target, entry, finding, join_case, make_run

HOSTILE = "<script>alert(1)</script>&\"'`|*_[x](javascript:1)\n# \x00\x1b[31m\u202e$"


class Tags(html.parser.HTMLParser):
    """Every tag of a page with its attributes, ids, and what is never closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.wrong = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.wrong.append(tag)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def hostile_run(folder):
    """A run in which every text that comes from outside tries to leave its place."""
    found = finding(
        message=HOSTILE,
        detail=HOSTILE,
        chain=(HOSTILE, "relu"),
        recipe=HOSTILE,
        signature=HOSTILE.replace("/", ":"),
        measured={"distance": 3.0, "unit": HOSTILE},
    )
    crash = finding("crash", HOSTILE, stage=HOSTILE, blamed=HOSTILE.replace("/", ":"), measured={"type": HOSTILE})
    known = finding("qparams", "known", message=HOSTILE)
    minimized = Minimized(
        bucket=found.bucket,
        final=f"{found.bucket}{HOSTILE}",
        origin=HOSTILE,
        case="bugs/b/case.json",
        operators=(HOSTILE,),
        state="minimized",
        neighbour=HOSTILE,
        distinguishes=HOSTILE,
        folder="../cases",
        repro=HOSTILE,
    )
    (folder / "bugs" / "b").mkdir(parents=True)
    (folder / "bugs" / "b" / "case.json").write_bytes(encode_case(chain_case("relu")))
    cases = [
        *each_target("relu", findings=[found, crash, known], unrepeated=(found,), legs={"eager": HOSTILE}),
        *each_target("tanh", invalid=HOSTILE, seconds={HOSTILE: 1.0}),
        *each_target("abs", problem=HOSTILE),
    ]
    run = make_run(folder, cases, minimized=[minimized], left=[HOSTILE], problems=[HOSTILE], corrections=(HOSTILE,))
    corpus = [entry(HOSTILE, known, upstream=("javascript:alert(1)", f"https://example.org/{HOSTILE}", HOSTILE))]
    return run, corpus


def test_nothing_from_outside_becomes_markup(tmp_path):
    run, corpus = hostile_run(tmp_path / "run")
    before = make_run(tmp_path / HOSTILE.replace("/", "").replace("\x00", ""), each_target("relu"))
    text = page(make_report(run, corpus, before), tmp_path / "run")
    tags = Tags(text)
    assert tags.wrong == []
    assert tags.open == []
    assert tags.all("script") == []
    assert not [name for _, attributes in tags.tags for name in attributes if name.startswith("on")]
    links = [link["href"] for link in tags.all("a")]
    assert all(link.startswith(("#", "https://", "bugs/b/", "cases/")) and link != "cases" for link in links), links
    assert "&lt;script&gt;" in text


def test_a_page_needs_no_network_and_no_script(tmp_path):
    run = make_run(tmp_path, [*each_target("relu", findings=[finding()]), *[(c, {}) for g in drawn() for c in g]])
    text = page(make_report(run, [entry("e", finding())], run), tmp_path)
    tags = Tags(text)
    assert tags.wrong == tags.open == []
    assert {tag for tag, _ in tags.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    } == set()
    assert not [attributes for _, attributes in tags.tags if {"src", "srcset", "xlink:href"} & set(attributes)]
    assert not re.search(r"@import|url\(", text)
    assert any("default-src 'none'" in meta.get("content", "") for meta in tags.all("meta"))
    assert "prefers-color-scheme: dark" in text


def test_a_page_can_be_used_without_seeing_it(tmp_path):
    sized = finding(measured={"distance": 2.0, "unit": "steps"})
    run = make_run(tmp_path, [*each_target("relu", findings=[sized]), *each_target("tanh", "relu") * 20])
    tags = Tags(page(make_report(run, (), None), tmp_path))
    ids = [attributes["id"] for _, attributes in tags.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(tags.all("svg")) >= 3  # a graph, a histogram, the rate
    for svg in tags.all("svg"):
        assert svg["role"] == "img"
        assert {svg["aria-labelledby"], svg["aria-describedby"]} <= set(ids)
    assert all("scope" in header for header in tags.all("th"))
    assert [attributes["lang"] for attributes in tags.all("html")] == ["en"]
    anchors = [link["href"][1:] for link in tags.all("a") if link["href"].startswith("#")]
    assert anchors
    assert set(anchors) <= set(ids)


def test_the_verdict_comes_first_and_the_bugs_in_their_order(tmp_path):
    found = [finding("crash", "exception", chain=("a",)), finding("numeric", chain=("b",), message="the silent one")]
    run = make_run(tmp_path, each_target("relu", findings=found))
    text = page(make_report(run, (), None), tmp_path)
    places = [text.index(part) for part in ("2 new bugs (2 buckets)", "the silent one", 'id="known"', 'id="undone"')]
    assert places == sorted(places)
    assert text.index("1. Outside rounding in b") < text.index("2. Exception during run in a")


def test_links_lead_to_the_runs_files_from_wherever_the_page_lies(tmp_path):
    case_folder = tmp_path / "a run" / "bugs" / "b"
    case_folder.mkdir(parents=True)
    (case_folder / "case.json").write_bytes(encode_case(chain_case("relu")))
    item = Minimized(
        bucket=finding().bucket,
        final="f",
        origin="",
        case="bugs/b/case.json",
        operators=("relu",),
        state="minimized",
        folder="b",
        repro="shows",
    )
    run = make_run(tmp_path / "a run", each_target("relu", findings=[finding()]), minimized=[item])
    out = tmp_path / "out"
    text = page(make_report(run, (), None), out)
    links = [link["href"] for link in Tags(text).all("a")]
    assert "../a%20run/bugs/b/case.json" in links
    assert "../a%20run/bugs/b" in links
    assert "✓ repro.py shows the bug in a fresh process" in text


@pytest.mark.parametrize("repro", ["does not show", "it took more than 60 s", ""])
def test_a_repro_that_did_not_run_is_not_praised(tmp_path, repro):
    item = Minimized(
        bucket=finding().bucket, final="f", origin="", case="", operators=("relu",), state="stopped", repro=repro
    )
    run = make_run(tmp_path, each_target("relu", findings=[finding()]), minimized=[item])
    text = page(make_report(run, (), None), tmp_path)
    assert "✓" not in text
    assert ("✗ repro.py does not show" if repro == "does not show" else "repro.py was not verified") in text


def empty(folder):
    return make_run(folder)


def only_problems(folder):
    return make_run(folder, each_target("relu", problem="no worker", legs={}, seconds={}))


def without_cases(folder):
    run = make_run(folder, each_target("relu", findings=[finding()]))
    for file in (folder / "cases").iterdir():
        file.unlink()
    return run


def other_targets(folder):
    return make_run(folder, [(join_case(), {"findings": [finding()]})], targets=("ethos-u85-256",))


@pytest.mark.parametrize("made", [empty, only_problems, without_cases, other_targets])
def test_odd_runs_have_all_their_pages(tmp_path, made):
    run = made(tmp_path)
    verdict = write_reports(run, (), run, tmp_path)
    assert [file.name for file in verdict.files] == ["report.html", "report.md", "report.json", "report.xml"]
    tags = Tags((tmp_path / "report.html").read_text())
    assert tags.wrong == tags.open == []
    assert verdict.sentence in (tmp_path / "report.md").read_text().replace("\\", "")
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["sentence"] == verdict.sentence
    assert len(JUnitXml.fromfile(str(tmp_path / "report.xml"))) >= 1
    assert not list(tmp_path.glob("*.new"))


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
    assert plain("a|b\n`c` <d> *e* [f](g) & h\\") == r"a\|b \`c\` &lt;d> \*e\* \[f\](g) &amp; h\\"
    assert plain("x" * 300, 10) == "x" * 9 + "…"


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
    assert read["releases"] == {"executorch": "1.5.1"}
    assert (read["graphs"], read["cases"], len(read["findings"])) == (1, 2, 4)
    assert [item["known"] for item in read["findings"]] == [False, True, False, True]
    assert [(bug["rank"], bug["known"], bug["hits"]) for bug in read["bugs"]] == [(1, False, 2), (2, True, 2)]
    assert read["bugs"][0]["buckets"][0]["shown"]["case"]["graph"]["nodes"][0]["operator"] == "relu"
    assert read["coverage"]["outcomes"]["counts"][TARGETS[0]] == {"new": 1}
    assert "relu" not in read["coverage"]["never"]["operators"]
    assert read["undone"]["problems"] == [{"text": "one", "count": 1, "case": ""}]
    assert len(read["previous"]["still"]) == 2


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


def test_reporting_does_not_import_torch(tmp_path):
    make_run(tmp_path, each_target("relu", findings=[finding()]))
    script = (  # in a process of its own: other tests of this one may have imported it
        "import sys; from pathlib import Path; from harness.reporting import write_reports; from harness.runs import "
        "read_run; folder = Path(sys.argv[1]); write_reports(read_run(folder), (), None, folder); "
        "sys.exit(bool({'torch', 'executorch'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert (tmp_path / "report.html").exists()


def command(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


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
    monkeypatch.setattr("harness.corpus.release_line", lambda: None)
    monkeypatch.setattr("harness.summary.installed", dict)
    run = make_run(tmp_path, each_target("relu", findings=[finding()]))
    verdict = write_reports(run, [entry("e", finding())], None, tmp_path)
    assert verdict.known == 1
    assert json.loads((tmp_path / "report.json").read_text())["releases"] == {"executorch": "1.5.1"}


def test_msgspec_and_pages_agree_on_what_is_in_a_run(tmp_path):
    run = make_run(tmp_path, each_target("relu"))
    assert msgspec.to_builtins(run.info) == data(make_report(run, (), None))["run"]
