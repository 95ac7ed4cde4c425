"""The listing: new first, resembling after it, known in one line a bug, what does no harm folded; the verdict."""

import datetime
from pathlib import Path

import msgspec

from harness.campaign.summary import Tally
from harness.compat.releases import Basis
from harness.evidence.inspection.surroundings import seen_place
from harness.reports.listing import listing, verdict
from harness.triage.conditions import Condition
from harness.triage.corpus import Entry, Expectation, Status
from harness.triage.known import proved
from harness.workers.protocol import CaseResult
from tests.unit.reporting_runs import finding


def entry(name, kind, harmless=""):
    bucket = f"v1/numeric/{kind}/run/-/tosa-int/"
    condition = Condition(path=(), at=(f"kind == {kind}",), graph="aten")
    status = Status(
        title=f"title of {name}",
        expires=datetime.date(2999, 1, 1),
        conditions=(condition,),
        harmless=harmless,
        lines={"default": Expectation(status="reproduces", bucket=bucket)},
    )
    return Entry(Path("corpus") / name, status, basis=Basis("default"))


CORPUS = [entry("bad", "wrong"), entry("slight", "lost", "one code at the end of the range")]


def seen(kind, **changes):
    return finding(kind=kind, place=seen_place({"kind": kind}), case=f"{kind}.json", **changes)


def shown(*findings, verbose=False):
    tally = Tally(CORPUS)
    tally.add(CaseResult(case="c.json", findings=findings, seconds={"prove": 2.0}))
    return "\n".join(listing(tally, verbose=verbose)), verdict(tally)


def test_known_bugs_are_one_line_each_and_what_does_no_harm_is_folded():
    text, said = shown(seen("wrong"), seen("wrong"), seen("lost"))
    assert (
        "3 known findings of 2 bugs\n  2x bad: title of bad\n  1x without harm to values (slight: 1x, one code" in text
    )
    assert "proved to be known: 3 by condition; 2 s went into proofs" in text
    assert "wrong.json" not in text
    assert said == "nothing new"


def test_what_a_correction_proved_of_a_harmless_entry_is_not_folded():
    """It may be another face of the bug: 6 steps are not one code."""
    text, _ = shown(proved(seen("other"), "slight", ("fix",)))
    assert "  1x slight: title of slight" in text
    assert "without harm" not in text


def test_v_lists_known_findings_with_their_proofs():
    text, _ = shown(seen("wrong"), verbose=True)
    assert "known: corpus entry bad; condition of bad holds at its place (kind == wrong)" in text
    assert "replay: armdiff replay wrong.json" in text


def test_new_comes_first_then_resembling_and_both_count():
    alike = seen("wrong", oracle="numeric")
    alike = msgspec.structs.replace(alike, place=None)
    text, said = shown(alike, seen("strange"))
    assert text.index("1 new finding, 1 kind") < text.index("1 finding resembling a known bug")
    assert "        resembles bad\n" in text
    assert said == "new findings (1 of 2 resembling a known bug)"
