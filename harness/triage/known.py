"""Known bugs, and what proves a finding to be one.

*Known* needs a proof, which the finding keeps: the entry's condition holds at the finding's place
(``harness.triage.conditions``), or the entry's correction, applied alone, takes the finding away and brings nothing
else (``harness.triage.proving``), or the smallest TOSA program that shows the finding is the entry's, by its
fingerprint (``harness.tosa.fingerprint``), or the user said so (``--known``, ``--ignore``). A finding that only looks
like an entry's bug, by its bucket and the operators of its graph, is *resembling*, and counts like a new one.

A workaround that keeps a pattern away from Ethos-U proves nothing: it takes away whatever Vela does wrong with the
pattern, an unknown bug as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.case.chains import contains_in_order
from harness.case.place import INPUT
from harness.case.target import parse_target
from harness.case.traits import TOSA_EVERYWHERE
from harness.evidence.observation import CRASH, oracle_named
from harness.triage.buckets import (
    SILENT_DEATH,
    VELA_STAGE,
    any_family,
    any_pass,
    any_range,
    kind_of_bucket,
    pass_of,
)
from harness.triage.conditions import Condition
from harness.triage.findings import Finding

VALUES = "values"
_VALUES = (
    "numeric/differs-from-the-TOSA-reference",
    "stream/out-of-bounds",
    "stream/unwritten-read",
    "stream/unwritten-output",
    "stream/overlap",
)
"""What a wrong shape or address in the registers shows as: a condition that speaks of one speaks of all."""
ProofKind = Literal["condition", "correction", "reduction", "given"]


class KnownBug(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus entry's bug on the release line that is judged.

    :param entry: the entry's name.
    :param bucket: the coarse bucket in which it shows; ``also``: further ones, of other oracles.
    :param message: a part of the message in ``bucket``.
    :param operators: what a graph must contain, in order, for a finding to be like it.
    :param families: target families that have the bug; none stands for all.
    :param recipe: a word that the recipe must have, for all of the graph or for some of its nodes.
    :param conditions: any of them that holds at a finding's place proves it.
    :param corrections: those that, applied alone, prove it by taking the finding away.
    :param fingerprints: those of the bug's smallest programs (``harness.tosa.fingerprint``).
    :param given: the user says that the bucket is known, whatever the place.
    :param reduced: nothing but the smallest program proves it, since a place in a larger one never did.
    """

    entry: str
    bucket: str
    also: tuple[str, ...] = ()
    message: str = ""
    operators: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    recipe: str = ""
    conditions: tuple[Condition, ...] = ()
    corrections: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    given: bool = False
    reduced: bool = False

    def resembles(self, finding: Finding) -> bool:
        """Does the finding look like the bug, by bucket and operators?"""
        if self.reduced or not self._is_possible(finding):
            return False
        # the frame in which Python raised says enough; all else needs its operators as well
        native = finding.oracle == CRASH and (finding.stage == VELA_STAGE or SILENT_DEATH in finding.bucket)
        coarse = oracle_named(finding.oracle).coarse or finding.stage.startswith("leg:") or native
        if coarse and not contains_in_order(finding.chain, self.operators):
            return False
        unblamed = oracle_named(finding.oracle).values and pass_of(finding.bucket) is None
        places = any_pass if unblamed else str
        seen = places(any_family(finding.bucket))
        if seen in (places(any_family(bucket)) for bucket in self.also):
            return True
        wanted = places(any_family(self.bucket))
        return any_range(seen) == any_range(wanted) and self.message in finding.message

    def proof(self, finding: Finding) -> Condition | None:
        """The condition that holds at the finding's place, the one that asks for most; None if none does."""
        place = finding.place
        if place is None or not self._is_possible(finding) or (self.reduced and not finding.fingerprint):
            return None
        held = (item for item in self.conditions if self._is_about(item, finding) and item.holds(place))
        return max(held, key=lambda item: item.asks, default=None)

    def is_smallest_of(self, finding: Finding) -> bool:
        """Is the smallest program that shows the finding the bug's?"""
        return finding.fingerprint in self.fingerprints and self._is_possible(finding)

    def _is_possible(self, finding: Finding) -> bool:
        """Can the target and the recipe show the bug?"""
        if self.families and parse_target(finding.target).family not in self.families:
            return False
        words = finding.recipe.split(",")  # ``a16w8=n0``: node n0 alone
        return not self.recipe or any(word == self.recipe or word.startswith(f"{self.recipe}=") for word in words)

    def _is_about(self, condition: Condition, finding: Finding) -> bool:
        """Does it speak of findings of this kind and target? Without a word on the kind, of the entry's own."""
        if condition.families and parse_target(finding.target).family not in condition.families:
            return False
        if condition.whole and not is_all_of_smallest(finding):
            return False
        kind = kind_of_bucket(any_range(finding.bucket))
        shows = condition.shows or (kind_of_bucket(any_range(self.bucket)),)
        if kind in _VALUES and (VALUES in shows or any(item in _VALUES for item in shows)):
            return True
        if kind.startswith("crash/"):  # the words of the exception say which refusal or death it is
            return any(item in (CRASH, kind) for item in shows) and _same_crash(finding.bucket, self)
        return kind in shows


def shown_kind(finding: Finding) -> str:
    """What a finding shows, whatever oracle saw it: wrong values in all their forms are ``values``."""
    if finding.oracle == CRASH:
        return f"{CRASH} {finding.measured.get('type', '')}".strip()
    kind = kind_of_bucket(any_range(finding.bucket))
    return VALUES if kind in _VALUES else kind


def is_all_of_smallest(finding: Finding) -> bool:
    """Is its place the smallest program that shows it, and all of it?"""
    place = finding.place
    if not finding.fingerprint or place is None:
        return False
    seen = Counter(item.op for item in place.operators if item.op not in (INPUT, *TOSA_EVERYWHERE))
    return seen == Counter(op for op in finding.chain if op not in TOSA_EVERYWHERE)


def _same_crash(bucket: str, bug: KnownBug) -> bool:
    return any(any_family(bucket) == any_family(item) for item in (bug.bucket, *bug.also))


def classified(finding: Finding, bugs: Sequence[KnownBug]) -> Finding:
    """The finding in the state that a corpus gives it.

    A proof by a correction or a reduction stands if the corpus has the entry; everything else is judged anew. Where the
    conditions of several entries hold, the one that asks for most names the finding.
    """
    run = finding.known and finding.proof.startswith((BY_CORRECTION, BY_REDUCTION))
    if run and any(bug.entry == finding.entry for bug in bugs):
        return finding
    given = next((bug.entry for bug in bugs if bug.given and bug.resembles(finding)), None)
    if given is not None:
        return msgspec.structs.replace(finding, state="known", entry=given, proof=f"{given} says so")
    held = [(proof, bug.entry) for bug in bugs if (proof := bug.proof(finding)) is not None]
    if held:
        condition, entry = max(held, key=lambda item: item[0].asks)
        words = f"condition of {entry} holds at its place ({condition})"
        return msgspec.structs.replace(finding, state="known", entry=entry, proof=words)
    smallest = next((bug.entry for bug in bugs if bug.is_smallest_of(finding)), None)
    if smallest is not None:
        words = f"its smallest program is that of {smallest} ({finding.fingerprint})"
        return msgspec.structs.replace(finding, state="known", entry=smallest, proof=words)
    like = next((bug.entry for bug in bugs if bug.resembles(finding)), "")
    return msgspec.structs.replace(finding, state="resembling" if like else "new", entry=like, proof="")


BY_CORRECTION, BY_REDUCTION = "correction ", "reduced to "
"""How the proofs begin that took runs: by a correction, and by the smallest program (``harness.tosa.smallest``)."""


def proved(finding: Finding, entry: str, corrections: Sequence[str], why: str = "") -> Finding:
    """The finding as known, since corrections take it away."""
    alone = " alone takes it away" if len(corrections) == 1 else " together take it away"
    proof = f"{BY_CORRECTION}{' and '.join(corrections)}{alone}{why}"
    return msgspec.structs.replace(finding, state="known", entry=entry, proof=proof)


def proving_names(finding: Finding) -> tuple[str, ...]:
    """The corrections that took a finding away, applied alone; empty if it was proved in another way."""
    if not finding.known or not finding.proof.startswith(BY_CORRECTION):
        return ()
    names, _, _ = re.split(r" (alone|together) ", finding.proof.removeprefix(BY_CORRECTION), maxsplit=1)
    return tuple(names.split(" and "))


def kind_of_proof(finding: Finding) -> ProofKind | None:
    """How a known finding was proved."""
    if not finding.known:
        return None
    if finding.proof.startswith(BY_CORRECTION):
        return "correction"
    if finding.proof.startswith(BY_REDUCTION):
        return "reduction"
    return "condition" if finding.proof.startswith("condition") else "given"
