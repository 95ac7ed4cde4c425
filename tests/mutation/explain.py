"""Why a mutant was not seen, by measurement.

*Inside rounding freedom*: outputs change, and every changed element stays inside its envelope.
*Unjudged*: they change only where the envelope is infinite or not sound. *Not exercised*: no
evaluation input changes an output, but another input does: one of the further inputs, or a
full-range random one given straight to the delegate. *Equivalent*: no input tried shows it, which
is a measurement and no proof.

For the last two a trace of the reference model's intermediate results tells whether the altered
operator itself ever returned something else, and which operators lost the difference.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.case.arrays import Array
from harness.evidence.comparing import margin
from harness.evidence.observation import LegResult
from harness.evidence.references import TOSA, reference_leg
from tests.mutation.subject import Subject, judged, run_mutant, with_leg

ROUNDING, UNJUDGED, NOT_EXERCISED, EQUIVALENT = (
    "inside rounding freedom",
    "unjudged",
    "not exercised by the evaluation inputs",
    "equivalent: no input tried shows it",
)
UNSEEN = (ROUNDING, UNJUDGED, NOT_EXERCISED, EQUIVALENT)
RANDOM_CALLS = 64
RAMPS = 256
TRACED = 8
AFTERWARDS = "what follows the delegate"
_HEADER = re.compile(r"^Name: (\S+) DType")


def explain(subject: Subject, delegate: str, mutant: bytes, result: LegResult) -> dict[str, Any]:
    """``why`` (one of ``UNSEEN``) with the numbers behind it."""
    changes = _changes(subject, result)
    facts: dict[str, Any] = _on_further(subject, delegate, mutant)
    if changes:
        inside = [row for row in changes if row["judged"]]
        worst = max(inside or changes, key=lambda row: float(row["steps"]))
        return {"why": ROUNDING if inside else UNJUDGED, **worst, **facts}
    clean = subject.lowered.tosa[delegate]
    calls = subject.calls[delegate]
    random = list(_random_calls(calls, seed=len(clean)))
    facts["differs_on_random"] = _differs(clean, mutant, random)
    facts |= _trace_facts(clean, mutant, calls)
    if not facts["own"] and not facts["differs_on_random"]:
        facts |= _trace_facts(clean, mutant, random[:TRACED])
    # a delegate that already returns something else here says nothing about the program by doing so elsewhere
    reaches = facts["differs_on_random"] and AFTERWARDS not in facts["lost_in"]
    return {"why": NOT_EXERCISED if reaches or facts["differs_on_further"] else EQUIVALENT, **facts}


def _changes(subject: Subject, result: LegResult) -> list[dict[str, Any]]:
    """The worst changed element of each output and evaluation input, judged and unjudged ones apart."""
    seen = subject.observation
    rows = []
    clean, reference = seen.legs[TOSA].outputs, seen.legs[reference_leg(seen)].outputs
    for run, item in enumerate(seen.inputs):
        for index, type_ in enumerate(seen.lowering.outputs):
            before, after = (part[run][index].astype(np.float64) for part in (clean, result.outputs))
            unit = type_.domain.scale if type_.domain else float(np.max(np.abs(before), initial=0.0)) * 2.0**-23 or 1.0
            assert seen.rounding is not None
            envelope = seen.rounding[run][index]
            allowed = margin(envelope, unit, type_.domain is not None)
            wanted = reference[run][index].astype(np.float64)
            sound = np.isfinite(envelope.low) & np.isfinite(envelope.high)
            sound &= (wanted >= envelope.low - allowed) & (wanted <= envelope.high + allowed)
            with np.errstate(invalid="ignore"):
                steps = np.nan_to_num(np.abs(after - before) / unit, nan=np.inf)
                width = (envelope.high - envelope.low) / unit
            for flag in (True, False):
                chosen = np.where((sound == flag) & (steps > 0), steps, 0.0)
                if chosen.any():
                    at = int(np.argmax(chosen))
                    rows.append(
                        {
                            "judged": flag,
                            "steps": round(float(steps.flat[at]), 3),
                            "width": round(float(width.flat[at]), 3) if flag else None,
                            "elements": int(np.count_nonzero(chosen)),
                            "of": int(steps.size),
                            "origin": item.origin,
                        }
                    )
    return rows


def _on_further(subject: Subject, delegate: str, mutant: bytes) -> dict[str, Any]:
    """Does a further input change an output, and do the oracles see it there?"""
    if subject.further is None:
        return {"differs_on_further": False, "seen_on_further": False, "further": 0}
    result = run_mutant(subject.lowered, delegate, mutant, subject.further.inputs)
    clean = subject.further.legs[TOSA].outputs
    differing = [
        index
        for index, (one, other) in enumerate(zip(clean, result.outputs, strict=False))
        if not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    ]
    return {
        "differs_on_further": bool(differing) or not result.ran,
        "first_further": differing[0] if differing else None,
        "seen_on_further": bool(judged(with_leg(subject.further, result))),
        "further": len(subject.further.inputs),
    }


def _random_calls(calls: Sequence[tuple[Array, ...]], seed: int) -> Iterator[tuple[Array, ...]]:
    """Full-range random arrays, then ramps on which every input takes every int8 code (every 64th of int16).

    Other types than int8, int16 and bool (indices) stay as on an evaluation input.
    """
    if not calls:
        return
    rng = np.random.default_rng(seed)
    for index in range(RANDOM_CALLS):
        yield tuple(_random(rng, array) for array in calls[index % len(calls)])
    smallest = min((array.size for array in calls[0] if _coded(array)), default=0)
    widest = max((array.dtype.itemsize for array in calls[0] if _coded(array)), default=0)
    for index in range(min(-(-(256 if widest == 1 else 1024) // smallest), RAMPS) if smallest else 0):
        yield tuple(_ramp(array, index) for array in calls[index % len(calls)])


def _coded(array: Array) -> bool:
    return array.dtype.kind in "iu" and array.dtype.itemsize <= 2 and array.size > 0


def _random(rng: np.random.Generator, array: Array) -> Array:
    if _coded(array):
        ends = np.iinfo(array.dtype)
        return rng.integers(ends.min, ends.max, array.shape, array.dtype, endpoint=True)
    return rng.integers(0, 2, array.shape) > 0 if array.dtype.kind == "b" else array


def _ramp(array: Array, index: int) -> Array:
    if not _coded(array):
        return array
    ends = np.iinfo(array.dtype)
    count, stride = (256, 1) if array.dtype.itemsize == 1 else (1024, 64)
    places = (index * array.size + np.arange(array.size)) % count
    return (places * stride + ends.min).astype(array.dtype).reshape(array.shape)


def _differs(clean: bytes, mutant: bytes, calls: Sequence[tuple[Array, ...]]) -> bool:
    """Do the two flatbuffers return different values (or does one fail) on any call?"""
    return any(_outputs(clean, arrays) != _outputs(mutant, arrays) for arrays in calls)


def _outputs(tosa: bytes, arrays: Sequence[Array]) -> list[bytes] | str:
    from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer

    try:
        return [output.tobytes() for output in run_flatbuffer(tosa, arrays)]
    except (ReferenceModelError, ValueError) as error:  # ValueError: the binding's own refusals
        return str(error)


def _trace_facts(clean: bytes, mutant: bytes, calls: Sequence[tuple[Array, ...]]) -> dict[str, Any]:
    """``own``: did the altered operator return something else; ``lost_in``: what took a changed operand
    and returned the same."""
    block = decode_tosa(clean).main
    own, lost = False, set()
    for arrays in calls:
        before, after = trace(clean, arrays), trace(mutant, arrays)
        changed = {name for name in before if before[name] != after.get(name)} - set(_constants(block))
        own = own or bool(changed)
        for operator in block.operators:
            if changed & set(operator.inputs) and not changed & set(operator.outputs):
                lost.add(operator.op)
        if changed & set(block.outputs):
            lost.add(AFTERWARDS)
    return {"own": own, "lost_in": sorted(lost)}


def _constants(block: TosaBlock) -> Iterator[str]:
    yield from (name for name, tensor in block.tensors.items() if tensor.data is not None)


def trace(tosa: bytes, arrays: Sequence[Array]) -> dict[str, str]:
    """Every tensor that the reference model computes, as the text that it prints to standard error.

    For use in a child whose standard error nobody reads (``isolated``).
    """
    import tosa_reference_model

    with tempfile.TemporaryFile() as target:
        kept = os.dup(2)
        os.dup2(target.fileno(), 2)
        try:
            tosa_reference_model.run(tosa, [np.ascontiguousarray(array) for array in arrays], dump_intermediates=1)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        target.seek(0)
        text = target.read().decode(errors="replace")
    found: dict[str, str] = {}
    for part in text.split("\n\n"):
        lines = part.split("\n")
        for index, line in enumerate(lines):
            if match := _HEADER.match(line):
                found[match.group(1)] = "\n".join(lines[index:])
                break
    return found
