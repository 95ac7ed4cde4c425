"""Outputs against rounding's envelopes, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.evidence.observation import Domain, Envelope, Observation, OutputType
from harness.evidence.references import reference_leg

RELATIVE_MARGIN = 2.0**-20
"""Float32 representation of a dequantized code, and of the float64 envelope's ends."""
SMALLEST_NORMAL = 2.0**-126
"""Below it float32 results may be flushed to zero or rounded absolutely."""
STEP_MARGIN = 1.0e-3
"""Ends of envelopes of quantized outputs lie on the code grid: any fraction of a step will do."""


Measure = Literal["step", "unit", "float32 epsilon"]


@dataclass(frozen=True)
class Comparison:
    """One output of one leg on one evaluation input, judged element by element.

    :param unit: value of one of what ``measure`` names.
    :param measure: a ``step`` of a quantized output, a ``unit`` of an integer one, a ``float32 epsilon`` of a float
        output's largest value.
    :param excess: how far outside the envelope each element is, in units; 0 inside or not judged.
    :param bound: widest distance from the reference that the envelope allows, in units, over
        judged elements.
    """

    item: EvaluationInput
    output: int
    unit: float
    measure: Measure
    excess: Array
    bound: float
    unsound: int
    unjudged: int

    @property
    def steps(self) -> bool:
        """Is the output quantized?"""
        return self.measure == "step"


def margin(envelope: Envelope, unit: float, steps: bool) -> Array:
    """Width of the float32 representation around an envelope's ends."""
    largest = np.maximum(np.abs(envelope.low), np.abs(envelope.high))
    return np.nan_to_num(largest * RELATIVE_MARGIN, posinf=0.0) + (STEP_MARGIN * unit if steps else SMALLEST_NORMAL)


def compare(
    item: EvaluationInput, output: int, got: Array, wanted: Array, envelope: Envelope, domain: Domain | None
) -> Comparison:
    """Judge one output array against its envelope."""
    measure: Measure = "step" if domain is not None else "unit" if wanted.dtype.kind in "iub" else "float32 epsilon"
    if domain is not None:
        unit = domain.scale
    elif measure == "unit":
        unit = 1.0
    else:
        unit = float(np.max(np.abs(wanted), initial=0.0)) * 2.0**-23 or 2.0**-126
    exact, reference = got.astype(np.float64), wanted.astype(np.float64)
    allowed = margin(envelope, unit, domain is not None)
    judged = np.isfinite(envelope.low) & np.isfinite(envelope.high)
    sound = judged & (reference >= envelope.low - allowed) & (reference <= envelope.high + allowed)
    with np.errstate(invalid="ignore"):
        outside = np.maximum(envelope.low - allowed - exact, exact - envelope.high - allowed)
        excess = np.where(sound, np.maximum(np.nan_to_num(outside, nan=np.inf), 0.0), 0.0) / unit
        width = np.maximum(envelope.high - reference, reference - envelope.low)
    bound = float(np.max(np.where(sound, width, 0.0), initial=0.0)) / unit
    return Comparison(item, output, unit, measure, excess, bound, int(np.sum(judged & ~sound)), int(np.sum(~judged)))


def comparisons(
    observation: Observation, leg: str, envelopes: tuple[tuple[Envelope, ...], ...] | None = None
) -> Iterator[Comparison]:
    """Every comparison of one leg that shapes allow (``outputs`` reports the others).

    :param envelopes: instead of the observation's ``rounding`` ones.
    """
    envelopes = observation.rounding if envelopes is None else envelopes
    reference = observation.legs.get(reference_leg(observation))
    other = observation.legs[leg]
    if reference is None or not reference.ran or envelopes is None:
        return
    if not len(observation.inputs) == len(reference.outputs) == len(other.outputs) == len(envelopes):
        return
    rows = zip(observation.inputs, reference.outputs, other.outputs, envelopes, strict=True)
    for item, wanted, got, allowed in rows:
        if not len(wanted) == len(got) == len(allowed) == len(observation.lowering.outputs):
            continue
        for index, envelope in enumerate(allowed):
            if wanted[index].shape == got[index].shape and wanted[index].dtype.kind in "fiub":
                yield compare(
                    item, index, got[index], wanted[index], envelope, observation.lowering.outputs[index].domain
                )


def covering(envelope: Envelope, output: OutputType, among: Array | Literal[True] = True) -> int:
    """Number of elements, among some, that may have every code of the output."""
    low, high = (np.asarray(end).astype(np.float64) for end in (envelope.low, envelope.high))
    return int(np.sum(np.isfinite(low) & np.isfinite(high) & _covers(low, high, output) & among))


def _covers(low: Array, high: Array, output: OutputType) -> Array:
    domain = output.domain
    if domain is not None:
        ends = [(code - domain.zero_point) * domain.scale for code in (domain.qmin, domain.qmax)]
        slack = STEP_MARGIN * domain.scale
        return np.asarray((low <= ends[0] + slack) & (high >= ends[1] - slack))
    if output.dtype.removeprefix("torch.") == "bool":
        return np.asarray((low <= 0.0) & (high >= 1.0))
    return np.zeros(low.shape, dtype=bool)
