"""The page of a report: complete, escaped, self-contained, and there for odd runs too."""

import html.parser
import json
import re

import pytest
from junitparser import JUnitXml

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.reports.reporting import make_report, write_reports
from harness.reports.reporting.page import html as page
from tests.unit.reporting_runs import (
    HOSTILE,
    chain_case,
    drawn,
    each_target,
    entry,
    finding,
    hostile_run,
    join_case,
    make_run,
)


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
