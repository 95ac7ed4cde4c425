"""From comparisons to outcomes, and from outcomes to a verdict: pure functions over data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import get_args

from harness.campaign.certify.evidence import Outcome, Verdict
from harness.corrections import Correction
from harness.evidence.observation import CRASH, oracle_named
from harness.evidence.references import RUNTIME
from harness.triage.buckets import STAGES, VELA_STAGE
from harness.triage.corpus import Entry, known_by, resembled_by
from harness.triage.findings import Finding
from harness.triage.proving import key_of
from harness.workers.protocol import QUANTIZED_GRAPH, Comparison

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_BEFORE_VELA = STAGES[: STAGES.index(VELA_STAGE)]
_RUNTIME_STAGE = f"leg:{RUNTIME}"
SELDOM = 20
"""A correction may lead to bugs of Vela's in one of so many graphs that it changes."""


def outcome_of(comparison: Comparison, corpus: Sequence[Entry], *, alone: bool = True) -> Outcome:
    """What a comparison means.

    :param corpus: what is known while the variant's corrections apply (``harness.triage.corpus.with_corrections``).
    :param alone: with one correction: what Vela does is to be proved a known bug of Vela's. With all of them, nobody
        learns from a bug of Vela's which one led there.
    """
    outcome = _outcome_of(comparison, corpus)
    if outcome != "worse":
        return outcome
    added = _only_in_vela(comparison)
    excused = not alone or all(known_by(corpus, item) is not None for item in added)
    return "vela" if added and excused else "worse"


def _outcome_of(comparison: Comparison, corpus: Sequence[Entry]) -> Outcome:
    if comparison.same:
        return "same"
    stock = {_identity(item) for item in comparison.stock}
    added = [item for item in comparison.corrected if _identity(item) not in stock]
    if not stock:
        return "worse" if added else "rounded" if comparison.apart else "equal"
    if any(resembled_by(corpus, item) is None and not _was_never_met(item, comparison.stock) for item in added):
        return "worse"
    if added:
        return "uncovered"
    left = {_identity(item) for item in comparison.corrected}
    return "right" if not left else "alike" if left == stock else "better"


def _identity(finding: Finding) -> Hashable:
    """What makes it the same finding of another program.

    Vela's wrong output is, whatever step is wrong first. So is what is wrong with an operator in the lowered graph,
    whichever pass had it last: a correction may put another node behind the operator's.
    """
    by_key = finding.pass_name == "Vela" or oracle_named(finding.oracle).lowered
    return key_of(finding) if by_key else finding.bucket


def _was_never_met(finding: Finding, stock: Sequence[Finding]) -> bool:
    """Is it Vela's, or a kernel's refusal, where the stock compile raised before it gave either of them anything?"""
    stages = _BEFORE_VELA if _is_vela_s(finding) else STAGES if finding.stage == _RUNTIME_STAGE else ()
    return any(item.oracle == CRASH and item.stage in stages for item in stock)


def _is_vela_s(finding: Finding) -> bool:
    """Is a finding about what Vela makes of a TOSA program? No correction of ExecuTorch is to blame for that."""
    return finding.stage == VELA_STAGE or finding.pass_name == "Vela"


def met_in_vela(comparison: Comparison, corpus: Sequence[Entry]) -> str:
    """The bug of Vela that the corrected program meets and stock's does not; empty if anything else is new, too."""
    added = _only_in_vela(comparison)
    if not added:
        return ""
    entry = resembled_by(corpus, added[0])
    if entry is None:
        return "a bug of Vela that no corpus entry describes"
    proved = "" if entry.knows(added[0]) else ", which it resembles and which nothing proves"
    return f"Vela's bug {entry.name}{proved}"


def _only_in_vela(comparison: Comparison) -> list[Finding]:
    """What the corrected program shows and stock's does not, if all of it is about what Vela makes of it."""
    stock = {_identity(item) for item in comparison.stock}
    added = [item for item in comparison.corrected if not item.information and _identity(item) not in stock]
    return added if all(map(_is_vela_s, added)) else []


def too_often_in_vela(outcomes: Mapping[str, int]) -> bool:
    """Does a correction lead to bugs of Vela's in more than one of twenty graphs that it changes?"""
    return outcomes.get("vela", 0) * SELDOM > sum(outcomes.values()) - outcomes.get("same", 0)


def refuses(outcome: Outcome, correction: Correction | None, comparison: Comparison, *, quantized: bool = True) -> bool:
    """Does an outcome refuse a correction (None: all of them together, workarounds among them)?

    Where the quantized graph is another one, quantized eager returns other values, and is right. Floats that are
    computed in another way are rounded in another way.

    :param quantized: is the target one of quantized models?
    """
    another = not quantized or comparison.what.startswith(QUANTIZED_GRAPH)
    may_round = correction is None or correction.workaround or another
    return outcome == "worse" or (outcome == "rounded" and not may_round)


def tally(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How often each outcome occurs, in the order of the table in ``evidence``."""
    counts = Counter(outcomes)
    return {name: counts[name] for name in OUTCOMES if counts[name]}


def by_bucket(findings: Iterable[Finding]) -> dict[str, str]:
    return {item.bucket: item.message for item in findings if not item.information}


def remaining(
    entry: Entry, findings: Sequence[Finding], corpus: Sequence[Entry], before: Sequence[Finding] = ()
) -> list[Finding]:
    """Findings of a corrected corpus case that are no other known bug: what refuses the correction.

    :param corpus: what is known while the corrections apply.
    :param before: what stock shows on the case, and is none of the bugs that are corrected.
    """
    expected = entry.expected
    others = {item.bucket for item in before} | set(expected.other if expected is not None else ())
    return [
        item
        for item in findings
        if not item.information and item.bucket not in others and resembled_by(corpus, item) is None
    ]


def verdict_on(bug_shown: bool, trouble: Mapping[str, str]) -> tuple[Verdict, str]:
    """The verdict and its reason.

    :param bug_shown: stock shows the bug on a corpus case.
    :param trouble: step -> what refuses the correction there, in order.
    """
    if not bug_shown:
        return "not-needed", "stock does not show the bug on any of its corpus cases: fixed upstream, or not affected"
    for step, what in trouble.items():
        return "refused", f"{step}: {what}"
    return "certified", "the bug is gone from its corpus cases, and nothing that was right moved"
