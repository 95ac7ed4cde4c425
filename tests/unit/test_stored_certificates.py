"""The certificates of the corpus: each is of its correction as it is, and which corrections have none."""

from pathlib import Path

import msgspec
import pytest

from harness.campaign.certify.evidence import Certificate
from harness.campaign.certify.page import markdown
from harness.corrections import chosen, find_correction
from harness.triage.corpus import default_corpus

STORED = sorted((default_corpus() or Path()).glob("certificates/*/*.json"))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
def test_a_stored_certificate_is_of_the_correction_as_it_is(file):
    """A changed correction needs a new one: ``armdiff certify NAME --out corpus/certificates``."""
    found = msgspec.json.decode(file.read_bytes(), type=Certificate)
    correction = find_correction(found.name)
    assert found.digest == correction.digest(found.releases["executorch"])
    assert found.verdict == "certified" or (found.verdict == "not-needed" and found.line != "default")
    assert found.line == file.parent.name
    assert file.with_suffix(".md").read_text() == markdown(found)
    assert not found.patch or file.with_name(found.patch).exists()


NOT_MADE = {
    "written-int64-not-cast",
}
"""New corrections whose certificates nobody has made yet (docs/corrections.md, "Not made yet")."""


def test_every_correction_that_the_default_line_needs_has_a_certificate_or_is_told_of():
    needed = {item.name for item in chosen(("all",)) if item.for_release("1.5.1")}
    stored = {file.stem for file in STORED if file.parent.name == "default"}
    assert needed - stored == NOT_MADE
    told = (Path(__file__).parents[2] / "docs" / "corrections.md").read_text()
    assert all(f"`{name}`" in told for name in NOT_MADE)
