"""``metamorphic``: a twin of the quantized graph with the same meaning gives the same bits.

The ``metamorphic`` probe lowers the twin and runs it on the TOSA reference model; what it returns
is compared with the original's run, bit for bit: the relation holds exactly in quantized eager
(the probe checked), every added operator only moves codes, and no documented liberty of the
passes touches the place. A graph that was made by hand is not what the stock quantizer makes, so
the message says so.

Quiet where ``numeric`` or ``outputs`` already reports: then the original itself is wrong.
"""

from __future__ import annotations

import numpy as np

from harness.case.arrays import Array
from harness.case.wording import counted_as
from harness.evidence.observation import Domain, Mismatch, Observation, Oracle
from harness.evidence.references import TOSA, place
from harness.pipeline.probes.results import TwinRun
from oracles.numeric import ORACLE as NUMERIC
from oracles.outputs import ORACLE as OUTPUTS

Measured = dict[str, float | int | str | bool]
LARGEST = 1e30
"""Stands for an infinite distance (JSON has none)."""


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch: the output that differs in the most elements."""
    twin = observation.probes.get("metamorphic")
    leg = observation.legs.get(TOSA)
    if not isinstance(twin, TwinRun) or leg is None or not leg.ran or observation.failure is not None:
        return []
    found = [
        mismatch
        for index, outputs in zip(twin.inputs, twin.outputs, strict=True)
        for mismatch in _compared(observation, twin, index, leg.outputs[index], outputs)
    ]
    if not found or NUMERIC.judge(observation) or OUTPUTS.judge(observation):
        return []
    return [max(found, key=lambda item: int(item.measured["elements"]))]


def _compared(
    observation: Observation, twin: TwinRun, index: int, wanted: tuple[Array, ...], got: tuple[Array, ...]
) -> list[Mismatch]:
    head = (
        f"{twin.relation}{f' at {twin.operator} ({twin.node})' if twin.operator else ''}, a twin made by hand from the "
        f"quantized graph with equal quantized eager results: "
    )
    origin = f"{observation.inputs[index].origin} input {index}"
    types = [(array.dtype, array.shape) for array in wanted], [(array.dtype, array.shape) for array in got]
    if types[0] != types[1]:
        text = f"{head}{origin}: outputs are {types[0]} in the original and {types[1]} in the twin"
        return [_mismatch(twin, text, {"elements": 1, "input": index})]
    found = []
    for number, (one, other) in enumerate(zip(wanted, got, strict=True)):
        apart = ~((one == other) | ((one != one) & (other != other)))
        if not apart.any():
            continue
        domain = observation.lowering.outputs[number].domain if number < len(observation.lowering.outputs) else None
        distance = _distance(one, other, apart)
        at = int(np.argmax(distance))
        steps, unit = _in_steps(min(float(distance.flat[at]), LARGEST), domain)
        text = (
            f"{head}output {number} {list(one.shape)}, {origin}: "
            f"{int(apart.sum())} of {counted_as(one.size, 'element')} differ; "
            f"worst at {place(one, at)}: original {one.flat[at]:g}, twin {other.flat[at]:g}, "
            f"{counted_as(steps, unit)} apart"
        )
        measured: Measured = {
            "elements": int(apart.sum()),
            "distance": steps,
            "unit": f"{unit}s",
            "output": number,
            "input": index,
        }
        found.append(_mismatch(twin, text, measured))
    return found


def _mismatch(twin: TwinRun, message: str, measured: Measured) -> Mismatch:
    return Mismatch(
        "metamorphic", twin.relation, message, legs=(TOSA, TOSA), measured=measured, signature=twin.operator
    )


def _distance(one: Array, other: Array, apart: Array) -> Array:
    wide = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return np.where(apart, np.nan_to_num(wide, nan=np.inf, posinf=np.inf), 0.0)


def _in_steps(distance: float, domain: Domain | None) -> tuple[float, str]:
    return (distance / domain.scale, "step") if domain is not None else (distance, "unit")


ORACLE = Oracle(
    "metamorphic",
    judge,
    values=True,
    coarse=True,
    probed=True,
    rank=4,
    expected="Twins of a module that mean the same return the same bits.",
)
