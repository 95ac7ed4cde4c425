"""The corpus replays as recorded on the installed release line."""

import json
import shutil

import pytest

from harness.compat.releases import release_line
from harness.triage.corpus import default_corpus
from tests.integration.test_commands import armdiff


@pytest.mark.skipif(release_line() is None, reason="no release line of the table is installed")
def test_every_entry_does_what_its_status_says(tmp_path):
    corpus = default_corpus()
    assert corpus is not None
    result = armdiff("replay", corpus, "--json", "replay.json", cwd=tmp_path)
    data = json.loads((tmp_path / "replay.json").read_text())
    against = [(row["entry"], row["outcome"], row["what"]) for row in data["entries"] if row["counts"]]
    assert against == []
    assert result.returncode == 0
    assert {row["entry"] for row in data["entries"]} >= {
        "000-full-kwargs",
        "001-conv-relu-cat",
        "002-cat-constant-fold",
        "003-attention-boundary-dtype",
    }


@pytest.mark.skipif(release_line() != "default", reason="the bug is of the default release line")
def test_a_case_shows_its_known_bug_and_nothing_once_that_is_corrected(tmp_path):
    corpus = default_corpus()
    assert corpus is not None
    file = shutil.copy(corpus / "found" / "neg-ignores-scale" / "case.json", tmp_path / "colleague.json")
    stock = armdiff("replay", file, "-v", "--jobs", "1", "--json", "stock.json", cwd=tmp_path)
    assert stock.returncode == 0, stock.stdout + stock.stderr
    assert "known: corpus entry neg-ignores-scale; correction neg-rescaled alone takes it away\n" in stock.stdout
    assert f"        replay: armdiff replay {file}\n" in stock.stdout
    data = json.loads((tmp_path / "stock.json").read_text())
    assert {item["known"] for item in data["findings"] if item["oracle"] == "numeric"} == {True}
    corrected = armdiff("replay", file, "--jobs", "1", "--correction", "neg-rescaled", "--json", "-", cwd=tmp_path)
    data = json.loads(corrected.stdout)
    assert (corrected.returncode, data["findings"], data["cases"]) == (0, [], 1)
