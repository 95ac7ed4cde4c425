"""Blame for what the value oracles say: from a mismatch to a bracket of passes.

``numeric`` names an output and an evaluation input; ``outputs`` speaks of the order of all of
them. *Right* is what ``numeric`` calls right, on that input. Two outputs are *alike* if they lie no
further apart than the widest element's envelope and one step.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from harness.case.arrays import Array
from harness.evidence.agreement import KINDS
from harness.evidence.observation import Domain, Envelope, Mismatch, Observation, oracle_named
from harness.evidence.references import reference_leg
from harness.evidence.rounding.interval import FLOAT32_EPSILON
from harness.locate.blame.bracket import Judge, Outputs, blamed, bracket_values
from harness.pipeline.lowering import Lowered

_NO_BLAME = ("count", "shape", "dtype", "qmin lost", *KINDS)
"""Kinds that are not wrong values, or no single pass's fault, or say what happened after the passes."""


def suspects_of(mismatches: Sequence[Mismatch]) -> frozenset[str]:
    """Passes that oracles blame by the lowering alone: they see a wrong number before it moves a value."""
    return frozenset(
        item.pass_name
        for item in mismatches
        if oracle_named(item.oracle).lowered and item.pass_name is not None and not item.information
    )


def blamed_values(
    mismatch: Mismatch, observation: Observation, lowered: Lowered, suspects: Collection[str] = ()
) -> Mismatch:
    """The mismatch with the pass to blame, if it is about values and names none.

    No pass carries a quantize node's qmin into TOSA: a lost qmin is none's in particular.
    """
    if not is_blamed(mismatch):
        return mismatch
    run = mismatch.measured.get("input", 0)
    output = mismatch.measured.get("output")
    if not isinstance(run, int) or observation.rounding is None:
        return mismatch
    judge = judge_of(observation, run, output)
    return blamed(mismatch, bracket_values(lowered, observation.inputs[run].arrays, judge, suspects))


def is_blamed(mismatch: Mismatch) -> bool:
    """Are passes run again for a mismatch? If it is about values and names none."""
    named = mismatch.pass_name or mismatch.kind.startswith(_NO_BLAME)
    return oracle_named(mismatch.oracle).replayed and not named


def judge_of(observation: Observation, run: int, output: object) -> Judge:
    """What ``numeric`` asks of the outputs on one input: of one of them, or of all."""
    from harness.evidence.comparing import compare

    envelopes = observation.rounding if observation.saturation is None else observation.saturation
    assert envelopes is not None
    item, allowed = observation.inputs[run], envelopes[run]
    wanted = observation.legs[reference_leg(observation)].outputs[run]
    indices = range(len(wanted)) if not isinstance(output, int) else (output,)
    domains = [output.domain for output in observation.lowering.outputs]

    def right(outputs: Outputs) -> bool:
        if [array.shape for array in outputs] != [array.shape for array in wanted]:
            return False
        rows = (compare(item, at, outputs[at], wanted[at], allowed[at], domains[at]) for at in indices)
        return not any(np.any(row.excess > 0) for row in rows)

    def alike(one: Outputs, other: Outputs) -> bool:
        if [array.shape for array in one] != [array.shape for array in other]:
            return False
        return all(np.all(_apart(one[at], other[at]) <= freedom(allowed[at], domains[at])) for at in indices)

    return Judge(right, alike)


def freedom(envelope: Envelope, domain: Domain | None) -> float:
    """How far two roundings of one value may be apart: the widest judged element, and a step."""
    judged = np.isfinite(envelope.low) & np.isfinite(envelope.high)
    low, high = envelope.low[judged], envelope.high[judged]
    largest = float(np.max(np.maximum(np.abs(low), np.abs(high)), initial=0.0))
    step = largest * FLOAT32_EPSILON if domain is None else domain.scale
    return float(np.max(high - low, initial=0.0)) + 1.5 * step  # results lie on a grid: the half is no step


def _apart(one: Array, other: Array) -> Array:
    """Distances; NaN and infinity are at none from themselves, and infinitely far from the rest."""
    first, second = one.astype(np.float64), other.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(same, 0.0, np.nan_to_num(np.abs(first - second), nan=np.inf)))


def unblamed(mismatch: Mismatch) -> Mismatch:
    """The mismatch as it was before its values were bracketed: what one run says without graphs."""
    if not oracle_named(mismatch.oracle).replayed or mismatch.kind in KINDS:
        return mismatch
    return replace(mismatch, pass_name=None, last_right=None)
