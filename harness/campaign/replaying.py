"""What a replay of a corpus entry shows, against what is expected of it on the installed release line."""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec

from harness.triage.corpus import Entry
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult

Outcome = Literal[
    "reproduces",
    "fixed",
    "hidden",
    "unexpected pass",
    "unexpected failure",
    "other failure",
    "cannot run",
    "no expectation",
]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one entry."""

    entry: str
    title: str
    outcome: Outcome
    expected: str
    what: str
    counts: bool
    case: str
    findings: tuple[Finding, ...] = ()
    upstream: tuple[str, ...] = ()


def held_against_status(entry: Entry, result: CaseResult, today: datetime.date) -> Replayed:
    """Compare an entry's result with what is expected on the installed line."""
    expected = entry.expected
    findings = tuple(item for item in result.findings if expected is None or item.bucket not in expected.other)
    outcome: Outcome
    trouble = result.problem or result.invalid
    if trouble is not None:
        outcome, what, counts = "cannot run", trouble, True
    elif expected is None:
        outcome, counts = "no expectation", bool(findings)
        what = "; ".join(item.message for item in findings) or _nothing(result)
    elif not findings:
        outcome = "fixed" if expected.status == "fixed" else "unexpected pass"
        what = _nothing(result)
        if expected.status == "hidden" and result.findings:
            outcome, what, findings = "hidden", result.findings[0].message, result.findings
        counts = outcome == "unexpected pass"
    else:
        hits = [item for item in findings if item.bucket == expected.bucket and expected.message in item.message]
        if expected.status != "reproduces":
            outcome = "unexpected failure"
        else:
            outcome = "reproduces" if hits else "other failure"
        what, counts = (hits or list(findings))[0].message, outcome != "reproduces"
    if today > entry.status.expires:
        what, counts = f"{what}; expired on {entry.status.expires}: look at the entry again and renew it", True
    return Replayed(
        entry=entry.name,
        title=entry.status.title,
        outcome=outcome,
        what=what,
        counts=counts,
        expected=expected.status if expected else "-",
        case=result.case,
        findings=findings,
        upstream=entry.status.upstream,
    )


def _nothing(result: CaseResult) -> str:
    """The words for no finding, and what did not show twice."""
    once = "; ".join(item.message for item in result.unrepeated)
    return f"nothing found; did not show a second time: {once}" if once else "nothing found"
