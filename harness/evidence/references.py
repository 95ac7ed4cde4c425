"""Small shared facts for oracles: which leg is the reference, and how to name a place.

``reference_leg`` is the leg that a compiled program must agree with: quantized eager where the
target quantizes, float eager elsewhere. ``compiled_legs`` are the legs that executed the
compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from harness.case.arrays import Array
from harness.case.target import parse_target
from harness.evidence.observation import LegResult, Mismatch, Observation

EAGER, QUANTIZED, TOSA = "eager", "quantized-eager", "tosa-reference"
MODEL, FVP = "ethos-u-model", "ethos-u-fvp"
RUNTIME, VGF = "executorch", "vgf"
RUNTIMES = {RUNTIME: "ExecuTorch runtime", VGF: "VGF"}
"""Legs that run what the reference leg runs, and who is to blame where they alone are wrong.

For ``executorch``: kernels, memory plan or constants of the ``.pte``; for ``vgf``: converter or layers.
"""


def reference_leg(observation: Observation) -> str:
    """Name of the leg that the compiled program must agree with."""
    return QUANTIZED if parse_target(observation.case.target).quantized else EAGER


def compiled_legs(observation: Observation) -> dict[str, LegResult]:
    """Legs that executed the compiled program and returned something."""
    return {name: leg for name, leg in observation.legs.items() if name not in (EAGER, QUANTIZED) and leg.ran}


def first_of_each(found: Iterable[Mismatch], key: Callable[[Mismatch], object]) -> list[Mismatch]:
    """The first mismatch of every key, saying how many more there are."""
    groups: dict[object, list[Mismatch]] = {}
    for mismatch in found:
        groups.setdefault(key(mismatch), []).append(mismatch)
    return [
        replace(first, message=f"{first.message}; and {len(rest)} more like it") if rest else first
        for first, *rest in groups.values()
    ]


def place(array: Array, flat_index: int) -> list[int]:
    """Multi-dimensional index of a flat one."""
    index: list[int] = []
    for size in reversed(array.shape):
        flat_index, rest = divmod(flat_index, size)
        index.insert(0, int(rest))
    return index
