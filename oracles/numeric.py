"""``numeric``: the compiled program's values against what rounding allows, element by element.

The reference is quantized eager (float eager for ``TOSA-1.0+FP``); the tolerance is the envelope
that ``harness.evidence.rounding`` derived for exactly this graph and input, so most elements must agree
exactly and the report prints how wide the envelope was.

Trust: an element whose *reference* value lies outside its own envelope shows a flaw of the
envelope, not of upstream; it is not judged, and counted as ``unsound``. An element with an
infinite envelope (an operator without a rule) is not judged either.

A mismatch that vanishes once codes below qmin (-127, -32767) are forgiven is a kind of its own,
"qmin lost": the compiled program saturates at the integer type's end instead.

A mismatch shows "in range" if it occurs on an input within what calibration saw; otherwise its
kind says that it needs out-of-range input.

Legs that executed the same compiled program must agree with each other bit for bit
(``harness.evidence.agreement``); of legs that are compared so, only the first is held against envelopes.
The legs ``executorch`` and ``vgf`` share a part of what they run with ``tosa-reference``, so they are told only of
outputs that are right on that leg; the runtime, or what was made for it, is to blame then.
Where a single delegate differs from its TOSA graph (``harness.locate.divergence``), that is told instead:
with integers, on inputs from the whole range, and with the first operation that differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.case.arrays import Array
from harness.case.case import Case
from harness.case.place import Fact, Place
from harness.case.wording import counted_as
from harness.evidence.agreement import DIFFERS_FROM_TOSA, Difference, differences, legs_to_judge
from harness.evidence.comparing import Comparison, compare, comparisons
from harness.evidence.inspection.surroundings import case_place, seen_place
from harness.evidence.observation import Envelope, Mismatch, Observation, Oracle
from harness.evidence.references import RUNTIMES, TOSA, place, reference_leg
from harness.locate.delegate_mismatches import wrong_values
from harness.locate.divergence import DelegateComparison
from harness.triage.buckets import OUT_OF_RANGE
from harness.triage.unjudged.envelopes import of_rounding

QMIN_LOST = "qmin lost"
FEW_CODES = 8


def judge(observation: Observation) -> list[Mismatch]:
    """Every output by itself: at most one mismatch a leg that envelopes judge, and one a kind of difference between
    compiled legs; and one for every output of a delegate.

    Each is about the worst element, in-range inputs first.
    """
    delegates = list(_delegates(observation))
    found = delegates + [
        _disagreement(observation, item)
        for item in differences(observation)
        if not (delegates and item.kind == DIFFERS_FROM_TOSA)
    ]
    told: set[int] = set()
    for leg in legs_to_judge(observation):
        wrong = _by_output(comparisons(observation, leg))
        if leg in RUNTIMES:  # what is wrong on the reference as well is not its own
            wrong = {output: items for output, items in wrong.items() if output not in told}
        told.update(wrong)
        blamed = RUNTIMES.get(leg) if TOSA in observation.legs and observation.legs[TOSA].ran else None
        lenient = (
            {} if observation.saturation is None else _by_output(comparisons(observation, leg, observation.saturation))
        )
        for output, items in wrong.items():
            if observation.saturation is not None and output not in lenient:
                found.append(
                    replace(_mismatch(observation, leg, items, QMIN_LOST, observation.rounding), pass_name=blamed)
                )
            else:
                allowed = observation.rounding if observation.saturation is None else observation.saturation
                outside = _mismatch(observation, leg, lenient.get(output, items), "outside rounding", allowed)
                found.append(replace(outside, pass_name=blamed))
    return found


def _by_output(compared: Iterable[Comparison]) -> dict[int, list[Comparison]]:
    """Comparisons in which an element is outside, by output."""
    found: dict[int, list[Comparison]] = {}
    for item in compared:
        if np.any(item.excess > 0):
            found.setdefault(item.output, []).append(item)
    return found


def _mismatch(
    observation: Observation,
    leg: str,
    wrong: list[Comparison],
    kind: str,
    allowed: tuple[tuple[Envelope, ...], ...] | None,
) -> Mismatch:
    reference = reference_leg(observation)
    in_range = [item for item in wrong if item.item.in_range]
    worst = max(in_range or wrong, key=lambda item: float(item.excess.max()))
    at = int(np.argmax(worst.excess))
    run = observation.inputs.index(worst.item)
    wanted = observation.legs[reference].outputs[run][worst.output]
    got = observation.legs[leg].outputs[run][worst.output]
    assert allowed is not None
    envelope = allowed[run][worst.output]
    everywhere = np.abs(got.astype(np.float64) - wanted) / worst.unit
    distance = abs(float(got.flat[at]) - float(wanted.flat[at])) / worst.unit
    apart = counted_as(f"{distance:.4g}", worst.measure)
    largest = " of the largest value" if worst.measure == "float32 epsilon" else ""
    size = "" if worst.measure == "unit" else f" (one {worst.measure.removeprefix('float32 ')} is {worst.unit:.6g})"
    elements = int(np.sum(worst.excess > 0))
    kind = kind if in_range else f"{kind}{OUT_OF_RANGE}"
    message = (
        f"output {worst.output} {list(wanted.shape)}, {worst.item.origin} input {run}: "
        f"{elements} of {counted_as(wanted.size, 'element')} outside what rounding allows; "
        f"worst at {place(wanted, at)}: {leg} {float(got.flat[at]):.6g}, {reference} {float(wanted.flat[at]):.6g}, "
        f"{apart}{largest} apart (mean over the output {np.mean(everywhere):.4g}), "
        f"allowed {float(envelope.low.flat[at]):.6g} to {float(envelope.high.flat[at]):.6g}{size}"
        f"{_codes(worst, got, wanted, observation)}"
    )
    return Mismatch(
        oracle="numeric",
        kind=kind,
        legs=(reference, leg),
        message=message,
        measured={
            **_finite(distance=distance, mean=float(np.mean(everywhere)), bound=worst.bound),
            "unit": f"{worst.measure.removeprefix('float32 ')}s",
            "step": worst.unit,
            "elements": elements,
            "of": int(wanted.size),
            "output": worst.output,
            "at": at,
            **_finite(allowed=distance - float(worst.excess.flat[at])),
            "input": run,
            "origin": worst.item.origin,
            "in_range": bool(in_range),
        },
        place=_place_of(
            leg, observation.case, {**_finite(steps=distance), **_saturated(worst, got, wanted, observation)}
        ),
    )


def _place_of(leg: str, case: Case, seen: Mapping[str, Fact]) -> Place | None:
    """What was seen; of a runtime's own wrong values with the whole graph, any operator of which may be the one."""
    return case_place(case.graph, {**seen, "leg": leg}) if leg in RUNTIMES else seen_place(seen)


def _saturated(worst: Comparison, got: Array, wanted: Array, observation: Observation) -> dict[str, int]:
    """``below``: how far below qmin every wrong element lies, in codes, where all that should hold qmin hold less."""
    domain = observation.lowering.outputs[worst.output].domain
    if domain is None:
        return {}
    wrong = worst.excess > 0
    codes, expected = (
        np.round(np.nan_to_num(values[wrong].astype(np.float64)) / domain.scale).astype(np.int64) + domain.zero_point
        for values in (got, wanted)
    )
    if np.any(expected != domain.qmin) or np.any(codes >= domain.qmin):
        return {}
    return {"below": int(domain.qmin - codes.min())}


def _finite(**values: float) -> dict[str, float]:
    """Those that JSON can hold: a NaN in an output has no distance."""
    return {name: round(value, 4) for name, value in values.items() if math.isfinite(value)}


def _disagreement(observation: Observation, found: Difference) -> Mismatch:
    item = observation.inputs[found.run]
    wanted, got = (observation.legs[name].outputs[found.run][found.output] for name in found.legs)
    finite = math.isfinite(found.distance)
    unit = "unit" if found.unit is None else "step"
    apart = f", {counted_as(f'{found.distance:.4g}', unit)} apart" if finite else ""
    step = "" if found.unit is None else f" (one step is {found.unit:.6g})"
    message = (
        f"output {found.output} {list(wanted.shape)}, {item.origin} input {found.run}: "
        f"{found.elements} of {counted_as(wanted.size, 'element')} differ between legs that ran the same program "
        f"(on {found.runs} of {counted_as(len(observation.inputs), 'input')}); worst at {place(wanted, found.at)}: "
        f"{found.legs[1]} {got.flat[found.at]:.6g}, {found.legs[0]} {wanted.flat[found.at]:.6g}{apart}{step}"
    )
    return Mismatch(
        oracle="numeric",
        kind=found.kind,
        pass_name=RUNTIMES.get(found.legs[1]),
        legs=found.legs,
        message=message,
        measured={
            **_finite(distance=found.distance),
            "unit": f"{unit}s",
            **({"step": found.unit} if found.unit is not None else {}),
            "elements": found.elements,
            "of": int(wanted.size),
            "output": found.output,
            "input": found.run,
            "inputs": found.runs,
            "origin": item.origin,
            "in_range": bool(item.in_range),
        },
    )


def _delegates(observation: Observation) -> Iterator[Mismatch]:
    """Delegates whose payload does not compute what its TOSA graph says."""
    compared: dict[str, DelegateComparison] = observation.probes.get("streams", {})
    records = {record.name: record for record in observation.lowering.delegates}
    for name, comparison in compared.items():
        yield from wrong_values(name, comparison, records.get(name))


def _codes(worst: Comparison, got: Array, wanted: Array, observation: Observation) -> str:
    """The distinct codes of the wrong elements, where they are few enough to tell a story."""
    domain = observation.lowering.outputs[worst.output].domain
    if domain is None:
        return ""
    wrong = worst.excess > 0
    seen, expected = (
        np.unique(np.round(values[wrong].astype(np.float64) / domain.scale).astype(np.int64) + domain.zero_point)
        for values in (np.nan_to_num(got), wanted)
    )
    if max(seen.size, expected.size) > FEW_CODES:
        return ""
    return f"; codes {seen.tolist()} where {expected.tolist()} were expected"


ORACLE = Oracle(
    "numeric",
    judge,
    lambda observation, _: of_rounding(observation, compare),
    values=True,
    coarse=True,
    replayed=True,
    rank=0,
    expected="The compiled program returns what the quantized module returns, up to the rounding that TOSA allows.",
)
