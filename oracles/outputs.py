"""``outputs``: the compiled program returns as many outputs as the module, of the same shape,
dtype and order.

Nothing is zipped before its length is known to agree. Order: if output i carries what the
reference returned as output j and the other way round, on every evaluation input, the outputs
were swapped; equal outputs cannot tell and are left alone.
"""

from __future__ import annotations

import numpy as np

from harness.distributions import Array
from harness.judging import compiled_legs, reference_leg
from harness.observation import Mismatch, Observation, Oracle


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch a leg: the first of count, shape, dtype, order that is wrong."""
    name = reference_leg(observation)
    reference = observation.legs.get(name)
    if reference is None or not reference.ran:
        return []
    found = []
    for leg_name, leg in compiled_legs(observation).items():
        if len(leg.outputs) != len(reference.outputs):
            found.append(
                _mismatch(
                    leg_name, name, "runs", f"ran {len(leg.outputs)} of the {len(reference.outputs)} evaluation inputs"
                )
            )
            continue
        wrong = None
        for got, wanted in zip(leg.outputs, reference.outputs, strict=True):
            wrong = wrong or _difference(got, wanted)
        wrong = wrong or _swapped(leg.outputs, reference.outputs)
        if wrong is not None:
            found.append(_mismatch(leg_name, name, *wrong))
    return found


def _difference(got: tuple[Array, ...], wanted: tuple[Array, ...]) -> tuple[str, str] | None:
    if len(got) != len(wanted):
        return "count", f"returned {len(got)} outputs, the module returns {len(wanted)}"
    for index, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if one.shape != other.shape:
            return "shape", f"output {index} has shape {list(one.shape)}, expected {list(other.shape)}"
        if one.dtype != other.dtype:
            return "dtype", (
                f"output {index} is {one.dtype} ({one.nbytes} bytes), expected {other.dtype} ({other.nbytes} bytes)"
            )
    return None


def _swapped(got: tuple[tuple[Array, ...], ...], wanted: tuple[tuple[Array, ...], ...]) -> tuple[str, str] | None:
    count = len(wanted[0]) if wanted else 0
    for i in range(count):
        for j in range(i + 1, count):
            if _all_equal(got, i, wanted, j) and _all_equal(got, j, wanted, i) and not _all_equal(wanted, i, wanted, j):
                return "order", f"outputs {i} and {j} are swapped: each carries the other's values on every input"
    return None


def _all_equal(one: tuple[tuple[Array, ...], ...], i: int, other: tuple[tuple[Array, ...], ...], j: int) -> bool:
    return all(np.array_equal(a[i], b[j]) for a, b in zip(one, other, strict=True))


def _mismatch(leg: str, reference: str, kind: str, what: str) -> Mismatch:
    return Mismatch(oracle="outputs", kind=kind, legs=(reference, leg), message=f"{leg} {what}")


ORACLE = Oracle("outputs", judge)
