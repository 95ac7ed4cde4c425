"""Do the legs that executed the same compiled program agree, bit for bit?

The TOSA reference model runs the flatbuffer that Vela or Arm's model converter compiled; the functional model, the FVP
and the ``vgf`` leg run what they made of it. Integer arithmetic leaves them no freedom, so any difference is a defect,
and values are compared as they are (NaN equals NaN; the sign of zero is nothing).

A defect is told once, output by output. If the two engines of the command stream differ, one of them is wrong about the
same bytes, and that is the difference; TOSA is the arbiter then, and differs itself only if it agrees
with neither. If they agree, or only one ran, the command stream is compared with TOSA. A leg that was
compared in this way is not judged by rounding envelopes as well (``judged``).

What operators outside delegates compute is eager PyTorch in all legs but the FVP, where ExecuTorch's
own kernels run: with such operators in the program, the FVP makes no exact claim. Nor does ``vgf`` where a delegate's
TOSA graph has a tensor of floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from harness.artifacts.tosa import decode_tosa
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.evidence.observation import Observation
from harness.evidence.references import FVP, MODEL, RUNTIME, TOSA, VGF, compiled_legs

DIFFERS_FROM_TOSA = "differs from the TOSA reference"
ENGINES_DIFFER = "functional model differs from the FVP"
KINDS = (DIFFERS_FROM_TOSA, ENGINES_DIFFER)


@dataclass(frozen=True)
class Difference:
    """Two legs that ran one program and returned different values.

    :param legs: their names, the reference first.
    :param runs: number of evaluation inputs on which anything differs.
    :param run: the evaluation input of the worst element, one inside the calibrated range if any shows it.
    :param output: the output that it is in.
    :param at: its flat index.
    :param elements: elements of that output that differ, on that input.
    :param unit: value of one step of the output's domain; None for an output without one.
    :param distance: how far the worst element is off, in steps (without a domain: as it is); infinite
        if one of the two is no number.
    """

    kind: str
    legs: tuple[str, str]
    runs: int
    run: int
    output: int
    at: int
    elements: int
    unit: float | None
    distance: float


def legs_to_judge(observation: Observation) -> list[str]:
    """Compiled legs that the reference's envelopes judge: those that no exact comparison speaks for."""
    ran = compiled_legs(observation)
    exact = [name for name in (TOSA, MODEL, FVP, VGF) if name in ran and _exact(observation, name)]
    return [name for name in ran if name not in exact[1:]]


def differences(observation: Observation) -> list[Difference]:
    """What differs between legs that must be equal: for every output at most one difference of each kind."""
    ran = [name for name in compiled_legs(observation) if _exact(observation, name)]
    engines = [name for name in (MODEL, FVP, VGF) if name in ran]  # a program is for Ethos-U or for VGF
    split = _differences(observation, ENGINES_DIFFER, (FVP, MODEL)) if {MODEL, FVP} <= set(engines) else {}
    if TOSA not in ran or not engines:
        return [*split.values()]
    wrong = [_differences(observation, DIFFERS_FROM_TOSA, (TOSA, name)) for name in engines]
    agreed = [item for output, item in wrong[0].items() if output not in split]
    neither = [item for output, item in wrong[-1].items() if output in split and all(output in one for one in wrong)]
    return [*split.values(), *agreed, *neither]


def _exact(observation: Observation, leg: str) -> bool:
    if leg == VGF:
        return all(
            delegate.tosa is not None and integers_only(delegate.tosa) for delegate in observation.lowering.delegates
        )
    return leg != RUNTIME and (leg != FVP or not observation.lowering.fallback)


def integers_only(tosa: bytes) -> bool:
    """Has a TOSA graph no tensor of floats? False if it cannot be read."""
    try:
        tensors = decode_tosa(tosa).main.tensors.values()
    except BadInput:
        return False
    return not any(tensor.dtype.startswith(("FP", "BF")) for tensor in tensors)


def _differences(observation: Observation, kind: str, legs: tuple[str, str]) -> dict[int, Difference]:
    """By output: the worst element over all inputs, over those inside the calibrated range if any shows it."""
    outputs: dict[int, list[Difference]] = {}
    for item in _outputs_that_differ(observation, kind, legs):
        outputs.setdefault(item.output, []).append(item)
    worst: dict[int, Difference] = {}
    for output, found in sorted(outputs.items()):
        inside = [item for item in found if observation.inputs[item.run].in_range]
        one = max(inside or found, key=lambda item: item.distance)
        worst[output] = replace(one, runs=len({item.run for item in found}))
    return worst


def _outputs_that_differ(observation: Observation, kind: str, legs: tuple[str, str]) -> Iterator[Difference]:
    """Every output on every input whose shapes allow a comparison (``outputs`` reports the others)."""
    one, other = (observation.legs[name].outputs for name in legs)
    if not len(one) == len(other) == len(observation.inputs):
        return
    for run, pair in enumerate(zip(one, other, strict=True)):
        if len(pair[0]) != len(pair[1]):
            continue
        for output, (wanted, got) in enumerate(zip(*pair, strict=True)):
            if wanted.shape != got.shape or wanted.dtype != got.dtype:
                continue
            distances = _distances(wanted, got)
            if not np.any(distances):
                continue
            at, unit = int(np.argmax(distances)), _step(observation, output)
            distance = float(distances.flat[at]) / (unit or 1.0)
            yield Difference(kind, legs, 1, run, output, at, int(np.count_nonzero(distances)), unit, distance)


def _distances(one: Array, other: Array) -> Array:
    """How far each element is off; 0 only where both are the same."""
    if one.dtype.kind not in "fiub":
        return np.where(one == other, 0.0, np.inf)
    first, second = one.astype(np.float64), other.astype(np.float64)
    same = (one == other) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore"):
        apart = np.nan_to_num(np.abs(first - second), nan=np.inf, posinf=np.inf)
    return np.asarray(np.where(same, 0.0, np.maximum(apart, np.finfo(np.float64).tiny)))


def _step(observation: Observation, output: int) -> float | None:
    types = observation.lowering.outputs
    domain = types[output].domain if output < len(types) else None
    return None if domain is None else domain.scale
