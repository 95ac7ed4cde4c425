"""How bad the evidence of a bug is, so that a smaller case does not show less of it.

A case may show one cause in several ways: a scale that was lost (structure), and outputs that are 86 steps off
(values). Who reads a report believes the values. So a case is as bad as its worst evidence, and a cut keeps the
*harm* if the kind of evidence stays and at least half of the distance does.

What shares a finding's cause is decided narrowly, since a cut that has to keep another bug as well would end too
early: the same bucket; the same known entry; or the same single pass, and for Vela, which stands for a whole
compiler, the same operation of the same delegate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from harness.case.recipe import parse_recipe
from harness.evidence.agreement import DIFFERS_FROM_TOSA
from harness.evidence.observation import oracle_named
from harness.triage.buckets import OUT_OF_RANGE, any_range
from harness.triage.corpus import Entry, shown_by
from harness.triage.findings import Finding

STRUCTURE, VALUES_OUT_OF_RANGE, VALUES = range(3)
"""Kinds of evidence: anything but values; wrong values, but on no input that calibration saw; wrong values."""
KEPT = 0.5
"""The part of the distance that a smaller case must keep."""
MUCH = 0.25
"""The part of all codes that is enough in a narrower type: 1,000 steps of int16 have no counterpart in int8."""
_STEPS, _OCTAVES = ("steps", "units"), "octaves"


class Harm(msgspec.Struct, frozen=True, kw_only=True):
    """The worst evidence of a cause in one case.

    :param kind: ``STRUCTURE``, ``VALUES_OUT_OF_RANGE`` or ``VALUES``.
    :param distance: how far values are off, in ``unit`` (of a scale, in octaves of its ratio); None if nothing was
        measured, or it is not finite.
    :param codes: how many codes the recipe's activations have.
    """

    kind: int = STRUCTURE
    distance: float | None = None
    unit: str = ""
    codes: int = 256

    def as_bad_as(self, other: Harm) -> bool:
        """Is this at least as bad in kind, and at least half as bad in distance?"""
        if self.kind != other.kind:
            return self.kind > other.kind
        if self.distance is None or other.distance is None:
            return True
        if self.unit in _STEPS and other.unit in _STEPS:
            wanted = KEPT * other.distance
            return self.distance >= (min(wanted, MUCH * self.codes) if self.codes < other.codes else wanted)
        return self.share >= KEPT * other.share

    def order(self) -> tuple[int, float]:
        """Larger for what is worse."""
        return self.kind, self.share

    @property
    def share(self) -> float:
        """The distance as a part of all codes, or of the largest value, for one order of different units."""
        if self.distance is None:
            return 0.0
        return self.distance / self.codes if self.unit in _STEPS else self.distance * 2.0**-23  # epsilons


def harm_of(findings: Sequence[Finding]) -> Harm:
    """The worst of some findings of one case; no harm at all if there are none."""
    return _harm(worst_of(findings)) if findings else Harm()


def worst_of(findings: Sequence[Finding]) -> Finding:
    """Of some findings of one case, at least one, the worst; of equals, the first."""
    return max(findings, key=lambda item: _harm(item).order())


def sharing(finding: Finding, corpus: Sequence[Entry]) -> Callable[[Finding], bool]:
    """Tells which findings of the same case have the cause of a finding.

    Findings of probes count only for a finding of one: no other case is searched with probes.
    """
    entry = shown_by(corpus, finding)

    def shares(item: Finding) -> bool:
        beside = oracle_named(item.oracle).probed and not oracle_named(finding.oracle).probed
        if item.information != finding.information or beside:
            return False
        if shown_by(corpus, item) != entry:
            return False
        same = any_operation(item.bucket) == any_operation(finding.bucket)
        return same or entry is not None or _same_place(item, finding)

    return shares


def any_operation(bucket: str) -> str:
    """A bucket as it stays while a case is cut: without the range of inputs, and without what a wrong step makes."""
    words = any_range(bucket).split("/")
    return "/".join(words[:-1]) if words[2:3] == [DIFFERS_FROM_TOSA.replace(" ", "-")] else "/".join(words)


def _harm(finding: Finding) -> Harm:
    kind = STRUCTURE
    if oracle_named(finding.oracle).values:
        kind = VALUES_OUT_OF_RANGE if finding.kind.endswith(OUT_OF_RANGE) else VALUES
    measured, unit = finding.measured, str(finding.measured.get("unit", ""))
    distance = measured.get("distance", measured.get("excess"))
    if distance is None and measured.get("ratio"):
        distance, unit = abs(math.log2(abs(measured["ratio"]))), _OCTAVES
    return Harm(
        kind=kind,
        distance=None if distance is None else float(distance),
        unit=unit,
        codes=2 ** parse_recipe(finding.recipe).activation_bits,
    )


def _same_place(one: Finding, other: Finding) -> bool:
    name = one.pass_name
    if name is None or name != other.pass_name or ".." in name:
        return False
    if name != "Vela":
        return True
    keys = ("delegate", "operation")
    return all(key in one.measured and one.measured[key] == other.measured.get(key) for key in keys)
