"""``quality``: does the quantized graph still stand for the float model? On calibration data.

Quantization always loses something, and its loss is no defect: half a step at every quantize node,
clipping, half a step of every constant. What must not change is the function. So the quantized graph
is walked without its rounding: quantize nodes pass values on as they are, constants are their float
originals, as they were when the graph was prepared (``harness.evidence.rounding``, policy ``quantization``).
Only float32 error and half a step of the output's own domain are free. Float eager outside of that
means that the annotator, a transform before it or the conversion changed the function: a lost clamp,
a wrong axis, a mean over too many elements, a constant whose codes stand for something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.evidence.comparing import margin
from harness.evidence.inspection.surroundings import seen_place
from harness.evidence.observation import Domain, Envelope, Mismatch, Observation, Oracle
from harness.evidence.references import EAGER, QUANTIZED, place
from harness.triage.unjudged.envelopes import of_quantization

LAST_ROUNDING = 0.5
"""Steps: a smaller difference is lost in the output's own quantize node."""


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch an output: its worst element over all calibration inputs."""
    eager, quantized = observation.legs.get(EAGER), observation.legs.get(QUANTIZED)
    if not eager or not quantized or not eager.ran or not quantized.ran or observation.quantization is None:
        return []
    if not len(eager.outputs) == len(quantized.outputs) == len(observation.quantization) == len(observation.inputs):
        return []
    worst: dict[int, tuple[float, Mismatch]] = {}
    for run, allowed in enumerate(observation.quantization):
        if allowed is None or not len(allowed) == len(eager.outputs[run]) == len(quantized.outputs[run]):
            continue
        for index, envelope in enumerate(allowed):
            floats, codes = eager.outputs[run][index], quantized.outputs[run][index]
            if floats.shape != codes.shape or floats.dtype.kind != "f":
                continue
            domain = observation.lowering.outputs[index].domain
            excess = _excess(floats, codes, envelope, domain)
            largest = float(excess.max(initial=0.0))
            if largest > worst.get(index, (0.0,))[0]:
                worst[index] = largest, _mismatch(floats, codes, envelope, excess, (run, index), domain)
    return [found for _, (_, found) in sorted(worst.items())]


def _excess(floats: Array, codes: Array, envelope: Envelope, domain: Domain | None) -> Array:
    """How far float eager lies outside, in steps (or epsilons of the largest value); 0 where nothing is claimed."""
    unit = _unit(codes, domain)
    free = margin(envelope, unit, domain is not None) + (LAST_ROUNDING * unit if domain else 0.0)
    judged = np.isfinite(envelope.low) & np.isfinite(envelope.high)
    with np.errstate(invalid="ignore"):
        outside = np.maximum(envelope.low - free - floats, floats - envelope.high - free)
    excess: Array = np.where(judged, np.maximum(np.nan_to_num(outside, nan=np.inf), 0.0), 0.0) / unit
    return excess


@dataclass(frozen=True)
class _Held:
    """What was not judged of an output: quantized eager need not lie inside here, since its rounding is left out."""

    unjudged: int
    unsound: int = 0


def _held(_: EvaluationInput, __: int, ___: Array, ____: Array, envelope: Envelope, _____: Domain | None) -> _Held:
    return _Held(int(np.sum(~(np.isfinite(envelope.low) & np.isfinite(envelope.high)))))


def _unit(codes: Array, domain: Domain | None) -> float:
    return domain.scale if domain else float(np.max(np.abs(codes), initial=0.0)) * 2.0**-23 or 2.0**-126


def _mismatch(
    floats: Array, codes: Array, envelope: Envelope, excess: Array, where: tuple[int, int], domain: Domain | None
) -> Mismatch:
    """:ivar bound: in ``measured``, how far rounding itself takes any element of the output from the float function.

    At its place, ``float_zero`` says whether the float model gives exactly 0 for every element that is wrong.
    """
    run, index = where
    at = int(np.argmax(excess))
    lost = np.maximum(np.maximum(envelope.low - codes, codes - envelope.high), 0.0)
    claimed = np.isfinite(envelope.low) & np.isfinite(envelope.high)
    bound = float(np.max(np.where(claimed, lost, 0.0), initial=0.0)) / _unit(codes, domain) + LAST_ROUNDING
    return Mismatch(
        oracle="quality",
        kind="loss beyond quantization",
        stage="convert",
        legs=(EAGER, QUANTIZED),
        message=(
            f"output {index} {list(floats.shape)}, calibration input {run}, element {place(floats, at)}: "
            f"float {float(floats.flat[at]):.6g}, quantized {float(codes.flat[at]):.6g}; without its rounding the "
            f"quantized graph gives {float(envelope.low.flat[at]):.6g} to {float(envelope.high.flat[at]):.6g}"
        ),
        measured={
            "excess": round(float(excess.flat[at]), 4),
            "unit": "steps" if domain else "epsilons",
            "elements": int(np.sum(excess > 0)),
            "of": int(floats.size),
            "output": index,
            "input": run,
            "bound": round(bound, 4),
        },
        place=seen_place({"float_zero": int(np.all(floats[excess > 0] == 0))}),
    )


ORACLE = Oracle(
    "quality",
    judge,
    lambda observation, _: of_quantization(observation, _held),
    values=True,
    coarse=True,
    rank=3,
    form="quality",
    expected="The quantized module approximates the float module as closely as its scales allow.",
)
