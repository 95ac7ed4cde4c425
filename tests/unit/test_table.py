"""The release table and the lines' environments, from made-up replays."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from generators.cases import draw_block
from harness.campaign.certify.evidence import Certificate, certified_on
from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.cli.command import main
from harness.compat.releases import TABLE
from harness.corrections import corrections
from harness.corrections.correction import Correction
from harness.triage.corpus import Entry, Expectation, Status, default_corpus, entries
from harness.triage.release_changes import changes, told
from harness.triage.release_environments import Environments, read_environments
from harness.triage.release_records import recorded
from harness.triage.release_table import html, markdown, merged, spans


def row(outcome, entry="bug", oracle="numeric", findings=True, what="6 steps"):
    found = [{"oracle": oracle, "bucket": "b"}] if findings else []
    return {
        "entry": entry,
        "title": "a <b> title",
        "outcome": outcome,
        "what": what,
        "findings": found,
        "upstream": ["https://u"],
    }


def replay(*rows):
    return {"entries": list(rows), "releases": {"executorch": "1", "torch": "2"}}


def states(*outcomes, lines=("et110", "seed", "et120", "et131", "et141", "default")):
    rows = [row(outcome, findings=outcome not in ("fixed", "unexpected pass")) for outcome in outcomes]
    table = merged({line: replay(item) for line, item in zip(lines, rows, strict=False)}, covers={})
    return [str(table.rows[0].cells[line]) for line in table.lines]


def test_fixed_is_told_apart_by_where_the_bug_is():
    assert states("reproduces", "reproduces", "fixed", "fixed") == ["reproduces", "reproduces", "fixed", "fixed"]
    assert states("fixed", "fixed", "reproduces") == ["not yet", "not yet", "reproduces"]
    assert states("reproduces", "unexpected pass", "reproduces") == ["reproduces", "not here", "reproduces"]


def test_other_findings_are_no_reproduction():
    table = merged(
        {"default": replay(row("other failure", oracle="crash"), row("no expectation", entry="other"))}, covers={}
    )
    assert [str(item.cells["default"]) for item in table.rows] == ["crashes differently", "differs"]
    broken = merged({"default": replay(row("cannot run", findings=False))}, covers={})
    assert str(broken.rows[0].cells["default"]) == "cannot run"


def test_a_certificate_shows_on_its_line_where_the_bug_is():
    replays = {
        "et120": replay(row("reproduces")),
        "default": replay(row("reproduces")),
        "et141": replay(row("fixed", findings=False)),
    }
    table = merged(
        replays,
        [("et120", "mended", ""), ("default", "again", "et131")],
        covers=dict.fromkeys(("mended", "again"), ("bug",)),
    )
    assert table.lines == ("et120", "et141", "default")
    assert [str(table.rows[0].cells[line]) for line in table.lines] == [
        "reproduces, certified: mended",
        "not here",
        "reproduces, certified on et131: again",
    ]


@pytest.mark.parametrize(("workaround", "on_vela52"), [(False, [("vela52", "x", "default")]), (True, [])])
def test_what_is_certified_of_a_pass_holds_with_another_compiler(tmp_path, workaround, on_vela52):
    correction = Correction("x", (), "because", "change", (), (), workaround=workaround)
    assert [*certified_on(correction, tmp_path)] == []
    (tmp_path / "default").mkdir()
    made = Certificate(name="x", verdict="certified", why="because", line="default", releases={})
    (tmp_path / "default" / "x.json").write_bytes(msgspec.json.encode(made))
    found = [*certified_on(correction, tmp_path)]
    assert [row for row in found if row[0] != "vela50"] == [*on_vela52, ("default", "x", "")]
    (tmp_path / "vela52").mkdir()
    refused = msgspec.structs.replace(made, verdict="refused", line="vela52")
    (tmp_path / "vela52" / "x.json").write_bytes(msgspec.json.encode(refused))
    assert "vela52" not in {line for line, _, _ in certified_on(correction, tmp_path)}


@pytest.mark.parametrize(
    ("verdict", "cell"), [("certified", "reproduces, certified: neg-rescaled"), ("refused", "reproduces")]
)
def test_the_verb_finds_certificates_among_the_cases_that_certify_left(tmp_path, verdict, cell):
    [entry, *_] = corrections()["neg-rescaled"].entries
    made = Certificate(name="neg-rescaled", verdict=verdict, why="because", line="et120", releases={})
    folder = tmp_path / "certify"
    for place in ("et120", "cases"):
        (folder / place).mkdir(parents=True)
    (folder / "et120" / "neg-rescaled.json").write_bytes(msgspec.json.encode(made))
    [case] = draw_block(0, 0, 1, ("TOSA-1.0+INT",))[0]
    (folder / "cases" / "0123456789ab.json").write_bytes(encode_case(case))
    data = replay({**row("reproduces"), "entry": entry})
    (tmp_path / "et120.json").write_text(json.dumps(data))
    words = [tmp_path / "et120.json", "--line", "et120", "--certificates", folder, "--out", tmp_path / "out"]
    result = CliRunner().invoke(main, ["table", *map(str, words), "--json", str(tmp_path / "table.json")])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "table.json").read_text())["bugs"] == [
        {"entry": entry, "lines": {"et120": cell}, "versions": {"executorch": "1", "ethos-u-vela": "?"}}
    ]


VERSIONS = {line.name: line.releases for line in TABLE}


def replays_with(**outcomes):
    """Replays of one bug, with the versions of their lines."""
    return {
        line: {**replay(row(outcome, findings=outcome != "fixed")), "releases": VERSIONS[line]}
        for line, outcome in outcomes.items()
    }


def lines_with(**outcomes):
    """Their table."""
    return merged(replays_with(**outcomes), covers={})


def written(folder, **outcomes):
    """The same in files, with their names."""
    for line, data in replays_with(**outcomes).items():
        (folder / f"{line}.json").write_text(json.dumps(data))
    return [str(folder / f"{line}.json") for line in outcomes]


def test_a_bug_has_a_first_and_a_last_version_of_executorch_and_of_vela():
    table = lines_with(
        et120="fixed", et131="reproduces", et141="reproduces", default="fixed", vela50="reproduces", vela52="reproduces"
    )
    assert spans(table.rows[0], table) == {"executorch": "1.3.1 to 1.4.1", "ethos-u-vela": "5.0.0 to 5.2.0"}


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ({"et141": "reproduces", "default": "fixed"}, "fixed"),
        ({"et141": "fixed", "default": "reproduces"}, "broke"),
        ({"et131": "reproduces", "et141": "fixed", "default": "reproduces"}, "came back"),
        ({"et141": "reproduces", "default": "other failure"}, "left"),
        ({"et141": "hidden", "default": "reproduces"}, "cannot be told"),
        ({"et141": "reproduces", "default": "cannot run"}, "cannot be told"),
    ],
)
def test_a_release_fixes_breaks_and_leaves(outcomes, kind):
    older = [replays_with(**{line: outcome})[line] for line, outcome in outcomes.items() if line == "et131"]
    found = changes(*(replays_with(**outcomes)[line] for line in ("et141", "default")), older)
    assert [bug.kind for bug in found.bugs] == [kind]
    text = "\n".join(told(found))
    assert text.startswith("## executorch 1.4.1 to 1.5.1\n")
    assert ("### 1 bug " + kind in text) == (kind != "left")
    assert text.endswith("1 bug left." if kind == "left" else "0 bugs left.")
    assert (": then hidden: 6 steps" in text or ": now cannot run: 6 steps" in text) == (kind == "cannot be told")


def test_a_bug_that_neither_has_is_no_change_and_one_that_was_not_replayed_cannot_be_told():
    clean = replays_with(default="fixed")["default"]
    assert changes(clean, clean).bugs == ()
    [change] = changes({**clean, "entries": []}, clean).bugs
    assert (change.kind, change.what) == ("cannot be told", "was not replayed then")
    assert "## The same packages" in "\n".join(told(changes(clean, clean)))


@pytest.mark.parametrize("since", ["et110", "default", "et999"])
def test_since_a_line_that_cannot_be_compared_is_one_line(tmp_path, since):
    files = written(tmp_path, et141="fixed", default="fixed")
    result = CliRunner().invoke(main, ["table", *files, "--line", "et141", "--since", since, "--out", str(tmp_path)])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--since" in result.stderr


@pytest.mark.parametrize("by_file", [False, True])
def test_the_verb_says_what_changed(tmp_path, by_file):
    before, now = written(tmp_path, et141="reproduces", default="fixed")
    since = [before] if by_file else ["et141", before]
    words = ["--since", *since, now, "--line", "default", "--out", tmp_path / "out", "--json", tmp_path / "table.json"]
    result = CliRunner().invoke(main, ["table", *map(str, words)])
    assert result.exit_code == 0, result.output
    assert "### 1 bug fixed\n\n* `bug`: a <b> title, https://u\n" in result.output
    assert "### 1 bug fixed" in (tmp_path / "out" / "since.md").read_text()
    found = json.loads((tmp_path / "table.json").read_text())["changes"]
    assert (found["before"]["executorch"], found["now"]["executorch"]) == ("1.4.1", "1.5.1")
    assert found["fixed"] == [{"entry": "bug", "upstream": ["https://u"]}]
    assert found["broke"] == found["came back"] == found["left"] == found["cannot be told"] == []


def recording(tmp_path, package="executorch", **lines):
    """An entry that records these statuses."""
    numeric, crash = "v1/numeric/outside-rounding/run/P/tosa-int/", "v1/crash/exception/lower/P/tosa-int/x"
    shown = {
        "reproduces": Expectation(status="reproduces", bucket=numeric, also=(crash,)),
        "fixed": Expectation(status="fixed"),
        "hidden": Expectation(status="hidden", other=(crash,)),
    }
    lines = {line: shown[status] for line, status in lines.items()}
    return Entry(tmp_path / "bug", Status(title="t", package=package, expires="2999-01-01", lines=lines))


def recorded_states(entry):
    """Line -> state in the table that is made of what it records."""
    lines = [line for line in VERSIONS if recorded([entry], line)["entries"]]
    [found] = merged({line: recorded([entry], line) for line in lines}, covers={}).rows
    return {line: cell.state for line, cell in found.cells.items()}


def test_what_the_corpus_records_makes_the_table_without_a_replay(tmp_path):
    entry = recording(tmp_path, et120="hidden", et131="fixed", et141="reproduces", default="reproduces")
    on_all = {"et120": "hidden", "et131": "not yet", "et141": "reproduces", "default": "reproduces"}
    assert recorded_states(entry) == {**on_all, "vela50": "reproduces", "vela52": "reproduces"}
    rows = {line: recorded([entry], line)["entries"] for line in VERSIONS}
    assert rows["et110"] == rows["seed"] == [], "nothing is recorded there"
    assert [item["oracle"] for item in rows["default"][0]["findings"]] == ["numeric", "crash"]
    assert rows["vela52"][0]["what"].startswith("not tried: default's")
    assert rows["default"][0]["what"].startswith("recorded: v1/numeric/")


def test_a_bug_of_vela_has_no_cell_where_another_vela_was_not_tried(tmp_path):
    entry = recording(tmp_path, package="ethos-u-vela", default="reproduces", vela52="fixed")
    assert recorded_states(entry) == {"default": "reproduces", "vela52": "fixed"}


def test_the_verb_makes_the_table_of_what_is_recorded(tmp_path):
    names = {entry.name for entry in entries([default_corpus()])}
    words = ["--recorded", "--out", str(tmp_path), "--json", str(tmp_path / "table.json")]
    result = CliRunner().invoke(main, ["table", *words])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "table.json").read_text())
    assert {row["entry"] for row in found["bugs"]} == names
    assert found["lines"] == [line.name for line in reversed(TABLE)]
    assert all(row["lines"].get("default") for row in found["bugs"])


def test_the_stored_table_is_what_is_recorded(tmp_path):
    """``armdiff table --recorded --certificates corpus/certificates`` makes it."""
    stored = default_corpus() / "certificates"
    result = CliRunner().invoke(main, ["table", "--recorded", "--certificates", str(stored), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "table.md").read_text() == (stored / "table.md").read_text()


def test_the_pages():
    table = merged({"et120": replay(row("reproduces")), "default": replay(row("fixed", findings=False))}, covers={})
    assert "| bug | reproduces | fixed | 1 | ? |" in markdown(table)
    page = html(table)
    assert "a &lt;b&gt; title" in page
    assert 'class="reproduces" title="6 steps"' in page
    assert "http" not in page.replace("https://u", ""), "one page that needs nothing else"


def test_environments(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("")
    assert read_environments((f"et120={python}",)) == {"et120": python}
    with pytest.raises(BadInput, match="'et999' is no release line"):
        read_environments((f"et999={python}",))
    with pytest.raises(BadInput, match="is no interpreter"):
        read_environments(("et120=/nowhere",))
    monkeypatch.setattr("harness.triage.release_environments.release_line", lambda: "default")
    monkeypatch.setattr("harness.triage.release_environments._CHECKOUT", tmp_path)
    found = Environments({"et120": python}, False, print)
    with found.python("et120") as there, found.python("default") as own, found.python("seed") as missing:
        assert (there, missing) == (python, None)
        assert own is not None


def test_a_made_environment_is_removed_also_after_an_exception(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.triage.release_environments._CHECKOUT", tmp_path)

    def make(line):
        (tmp_path / ".tox" / line / "bin").mkdir(parents=True)

    monkeypatch.setattr("harness.triage.release_environments._run_tox", make)

    def use():
        with Environments({}, True, lambda line: None).python("seed") as python:
            assert python == tmp_path / ".tox" / "seed" / "bin" / "python"
            assert Path(python).parent.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert not (tmp_path / ".tox" / "seed").exists()
