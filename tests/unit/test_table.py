"""The release table and the lines' environments, from made-up replays."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from generators.cases import draw_block
from harness.campaign.certify.evidence import Certificate
from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.cli.command import main
from harness.corrections import corrections
from harness.triage.release_environments import Environments, read_environments
from harness.triage.release_table import html, markdown, merged


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
    table = merged(replays, [("et120", "mended")], covers={"mended": ("bug",)})
    assert table.lines == ("et120", "et141", "default")
    assert [str(table.rows[0].cells[line]) for line in table.lines] == [
        "reproduces, certified: mended",
        "not here",
        "reproduces",
    ]


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
    assert json.loads((tmp_path / "table.json").read_text())["bugs"] == [{"entry": entry, "lines": {"et120": cell}}]


def test_the_pages():
    table = merged({"et120": replay(row("reproduces")), "default": replay(row("fixed", findings=False))}, covers={})
    assert "| bug | reproduces | fixed |" in markdown(table)
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
