"""The corpus replays as recorded on the installed release line."""

import json

import pytest

from harness.compat.releases import release_line
from harness.corpus import default_corpus
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
