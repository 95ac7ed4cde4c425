"""The page of a report: complete, escaped, self-contained, and there for odd runs too."""

import base64
import hashlib
import html.parser
import json
import re

import msgspec
import pytest
from junitparser import JUnitXml

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.reports.bugs.verifying import NEEDS_ENGINE
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
    assert tags.all("script") == [{}]
    assert not [name for _, attributes in tags.tags for name in attributes if name.startswith("on")]
    links = [link["href"] for link in tags.all("a")]
    assert all(link.startswith(("#", "https://", "bugs/b/", "cases/")) and link != "cases" for link in links), links
    assert "&lt;script&gt;" in text


def test_a_page_needs_no_network_and_runs_only_its_own_script(tmp_path):
    run = make_run(tmp_path, [*each_target("relu", findings=[finding()]), *[(c, {}) for g in drawn() for c in g]])
    text = page(make_report(run, [entry("e", finding())], run), tmp_path)
    tags = Tags(text)
    assert tags.wrong == tags.open == []
    assert {tag for tag, _ in tags.tags} & {
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
    (policy,) = (meta["content"] for meta in tags.all("meta") if "content" in meta and "default-src" in meta["content"])
    (script,) = re.findall("<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
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
        finding=finding(),
    )
    run = make_run(tmp_path / "a run", each_target("relu", findings=[finding()]), minimized=[item])
    out = tmp_path / "out"
    text = page(make_report(run, (), None), out)
    links = [link["href"] for link in Tags(text).all("a")]
    assert "../a%20run/bugs/b/case.json" in links
    assert "../a%20run/bugs/b" in links
    assert "✓ repro.py shows the bug in a fresh process" in text


def test_each_part_of_a_card_is_about_one_case(tmp_path):
    made = []
    for operators, distance in ((("relu", "tanh"), 86.0), (("abs",), 3.0)):
        case = chain_case(*operators, samples=len(operators), recipe="a16w8" if distance > 9 else "a8w8")
        found = finding(
            chain=operators, message=f"says {operators[0]}", measured={"distance": distance, "unit": "steps"}
        )
        made.append((case, {"findings": [found]}))
    run = make_run(tmp_path, made, targets=("TOSA-1.0+INT",))
    worst, small = (item.result.case.rsplit("/", 1)[-1] for item in run.done)
    text = page(make_report(run, (), None), tmp_path)
    parts = [part.split('<dl class="facts all">')[0] for part in text.split('<div class="case">')[1:]]
    for part, (name, words) in zip(
        parts, ((small, ("abs", "a8w8", "3 steps")), (worst, ("relu", "a16w8", "86 steps"))), strict=True
    ):
        assert f'href="cases/{name}"' in part
        assert f"armdiff replay cases/{name}<" in part
        assert f"armdiff replay cases/{name} --keep files<" in part
        for word in (f"says {words[0]}", f"<code>{words[1]}</code> on", f"{words[2]} off"):
            assert word in part
    assert "tanh" not in parts[0]
    assert "(2 samples)" in parts[1]
    assert f">{small}</a> TOSA-1.0+INT, <code>a8w8</code>, 3 steps" in text


def test_files_of_a_run_are_linked_with_the_commands_that_open_them(tmp_path):
    run = make_run(tmp_path / "run", each_target("relu", findings=[finding()]))
    stem = run.done[0].result.case.rsplit("/", 1)[-1].removesuffix(".json")
    (tmp_path / "run" / "files").mkdir()
    for name in (f"{stem}.pte", f"{stem}.lowered_module_0.tosa", "other.pte", f"{stem}.txt"):
        (tmp_path / "run" / "files" / name).touch()
    text = page(make_report(run, (), None), tmp_path / "out")
    links = [link["href"] for link in Tags(text).all("a")]
    assert [link for link in links if "/files/" in link] == [
        f"../run/files/{stem}.pte",
        f"../run/files/{stem}.lowered_module_0.tosa",
    ]
    assert f"<code>netron ../run/files/{stem}.pte</code>" in text
    assert f"<code>netron ../run/files/{stem}.lowered_module_0.tosa</code>" in text
    assert "tosa_adapter_model_explorer FILE</code>" in text
    assert "--keep" not in text


@pytest.mark.parametrize("state", ["known", "resembling"])
def test_an_entry_is_linked_with_its_issue_and_its_graph(tmp_path, state):
    found, place = finding(), tmp_path / "corpus" / "an entry"
    place.mkdir(parents=True)
    (place / "REPORT.md").touch()
    (place / "lowered_module_0.tosa").touch()
    known = msgspec.structs.replace(entry("an entry", found), folder=place)
    if state == "resembling":
        found = msgspec.structs.replace(found, state="resembling", entry="an entry", place=None)
    run = make_run(tmp_path / "run", each_target("relu", findings=[found]))
    text = page(make_report(run, [known], None), tmp_path / "run")
    links = [link["href"] for link in Tags(text).all("a")]
    assert "../corpus/an%20entry/REPORT.md" in links
    assert "../corpus/an%20entry/lowered_module_0.tosa" in links
    assert "https://example.org/1" in links
    assert "netron &#39;../corpus/an entry/lowered_module_0.tosa&#39;" in text
    assert (f'<li class="{state}">' in text) == (state == "known")


def test_what_can_be_filtered_by_is_what_the_buckets_carry(tmp_path):
    found = [finding(blamed="APass"), finding("crash", "exception", stage="lower", chain=("abs",))]
    tags = Tags(page(make_report(make_run(tmp_path, each_target("relu", findings=found)), (), None), tmp_path))
    (bar,) = (item for item in tags.all("div") if item.get("id") == "filter")
    assert "hidden" in bar  # until the script shows it
    buckets = [item for item in tags.all("div") if item.get("class") == "bucket"]
    assert [item["data-pass"] for item in buckets] == ["APass", "none"]
    assert {item["data-target"] for item in buckets} == {"TOSA-1.0+INT\nethos-u55-128"}
    assert [item["data-rank"] for item in tags.all("article")] == ["1", "2"]


@pytest.mark.parametrize("repro", ["does not show", "it took more than 60 s", ""])
def test_a_repro_that_did_not_run_is_not_praised(tmp_path, repro):
    item = Minimized(
        bucket=finding().bucket, final="f", origin="", case="", operators=("relu",), state="stopped", repro=repro
    )
    run = make_run(tmp_path, each_target("relu", findings=[finding()]), minimized=[item])
    text = page(make_report(run, (), None), tmp_path)
    assert "✓ repro" not in text
    assert ("✗ repro.py does not show" if repro == "does not show" else "repro.py was not verified") in text


def test_a_repro_that_needs_an_ethos_u_is_no_failure_and_the_card_says_what_executes_the_stream(tmp_path):
    item = Minimized(
        bucket=finding().bucket,
        final="f",
        origin="",
        case="",
        operators=("relu",),
        state="minimized",
        repro=NEEDS_ENGINE,
    )
    run = make_run(tmp_path, each_target("relu", findings=[finding()]), minimized=[item])
    text = page(make_report(run, (), None), tmp_path)
    assert "repro.py was not verified" not in text
    assert "It runs no command stream: an Ethos-U does, or armdiff's model of it" in text


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
