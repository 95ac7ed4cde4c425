"""``outputs``: the compiled program returns as many outputs as the module, of the same shape,
dtype and order.

The compiled program is held against the quantized module, and that against the float module in number and shape: its
dtypes are the recipe's.
Nothing is zipped before its length is known to agree. Order: if output i carries what the
reference returned as output j and the other way round (as codes, where outputs are quantized), on
every evaluation input, the outputs were swapped; equal outputs cannot tell and are left alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.case.arrays import Array
from harness.case.wording import counted_as
from harness.evidence.inspection.surroundings import case_place
from harness.evidence.observation import Domain, Mismatch, Observation, Oracle
from harness.evidence.references import EAGER, QUANTIZED, RUNTIMES, compiled_legs, reference_leg

Runs = tuple[tuple[Array, ...], ...]


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch a leg: the first of count, shape, dtype, order that is wrong; of runtimes their own only."""
    return [*_of_quantization(observation), *_of_compilation(observation)]


def _of_compilation(observation: Observation) -> list[Mismatch]:
    name = reference_leg(observation)
    reference = observation.legs.get(name)
    if reference is None or not reference.ran:
        return []
    found = []
    for leg_name, leg in compiled_legs(observation).items():
        if short := _fewer_runs(leg.outputs, reference.outputs):
            found.append(_mismatch(leg_name, name, *short))
            continue
        wrong = None
        for got, wanted in zip(leg.outputs, reference.outputs, strict=True):
            wrong = wrong or _difference(got, wanted)
        wrong = wrong or _swapped(observation, leg.outputs, reference.outputs)
        if wrong is not None and not (leg_name in RUNTIMES and any(item.kind == wrong[0] for item in found)):
            found.append(_mismatch(leg_name, name, *wrong))
    return found


def _of_quantization(observation: Observation) -> list[Mismatch]:
    """What annotation and conversion made of the module's outputs."""
    eager, quantized = (observation.legs.get(name) for name in (EAGER, QUANTIZED))
    if not eager or not quantized or not eager.ran or not quantized.ran:
        return []
    wrong = _fewer_runs(quantized.outputs, eager.outputs)
    for got, wanted in zip(quantized.outputs, eager.outputs, strict=wrong is None):
        wrong = wrong or _difference(got, wanted, dtypes=False)
    if wrong is None:
        return []
    found = _mismatch(QUANTIZED, EAGER, *wrong)
    return [replace(found, stage="convert", place=case_place(observation.case.graph))]


def _fewer_runs(got: Runs, wanted: Runs) -> tuple[str, str] | None:
    if len(got) == len(wanted):
        return None
    return "runs", f"ran {len(got)} of the {len(wanted)} evaluation inputs"


def _difference(got: tuple[Array, ...], wanted: tuple[Array, ...], *, dtypes: bool = True) -> tuple[str, str] | None:
    if len(got) != len(wanted):
        return "count", f"returned {counted_as(len(got), 'output')}, the module returns {len(wanted)}"
    for index, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if one.shape != other.shape:
            return "shape", f"output {index} has shape {list(one.shape)}, expected {list(other.shape)}"
        if dtypes and one.dtype != other.dtype:
            return "dtype", (
                f"output {index} is {one.dtype} ({counted_as(one.nbytes, 'byte')}), "
                f"expected {other.dtype} ({counted_as(other.nbytes, 'byte')})"
            )
    return None


def _swapped(observation: Observation, got: Runs, wanted: Runs) -> tuple[str, str] | None:
    count = len(wanted[0]) if wanted else 0
    domains = [item.domain for item in observation.lowering.outputs]
    if len(domains) != count:
        return None
    for i in range(count):
        for j in range(i + 1, count):
            crossed = _all_equal(got, i, wanted, j, domains) and _all_equal(got, j, wanted, i, domains)
            if crossed and not _all_equal(wanted, i, wanted, j, domains):
                return "order", f"outputs {i} and {j} are swapped: each carries the other's values on every input"
    return None


def _all_equal(one: Runs, i: int, other: Runs, j: int, domains: list[Domain | None]) -> bool:
    """Do output i of one leg and output j of another carry the same codes (or values) on every input?"""
    pairs = ((_codes(a[i], domains[i]), _codes(b[j], domains[j])) for a, b in zip(one, other, strict=True))
    return all(np.array_equal(first, second) for first, second in pairs)


def _codes(values: Array, domain: Domain | None) -> Array:
    """A delegate that swaps its outputs swaps codes; each is then dequantized in the other's domain."""
    if domain is None:
        return values
    return np.asarray(np.round(values.astype(np.float64) / domain.scale) + domain.zero_point)


def _mismatch(leg: str, reference: str, kind: str, what: str) -> Mismatch:
    return Mismatch(oracle="outputs", kind=kind, legs=(reference, leg), message=f"{leg} {what}")


ORACLE = Oracle(
    "outputs",
    judge,
    values=True,
    coarse=True,
    replayed=True,
    rank=2,
    expected="As many outputs as the module has, of the same shape, dtype and order.",
)
