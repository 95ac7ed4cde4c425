"""How one output of a payload differs from the reference: how much, where, and the smallest set.

Values are compared bit for bit and shown as signed integers. Indices count in the TOSA tensor's
shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.case.arrays import Array
from harness.case.wording import counted_as

SHOWN = 8
Element = tuple[tuple[int, ...], int, int]
"""Index, the model's value, the reference's."""


@dataclass(frozen=True)
class Difference:
    """One output of a delegate that differs.

    :param elements: how many differ.
    :param of: how many there are.
    :param at: the element that differs most, the first of them.
    :param model: its value as the payload computes it.
    :param reference: its value as the TOSA reference model does.
    :param largest: the absolute difference there.
    :param smallest_set: the first elements that differ, at most ``SHOWN``.
    :param where: what they have in common: "all", "all in [0, 0..7, 0..7, 16..31]", "12 of the 64 in […]".
    :param draw: name of the inputs on which it was seen: of all draws, the one with the fewest elements.
    """

    output: int
    elements: int
    of: int
    at: tuple[int, ...]
    model: int
    reference: int
    largest: int
    smallest_set: tuple[Element, ...]
    where: str
    draw: str

    def __str__(self) -> str:
        return (
            f"output {self.output}: {self.elements} of {counted_as(self.of, 'element')} differ on {self.draw} "
            f"({self.where}), by up to {self.largest}: {self.model} where the reference has {self.reference} at "
            f"{list(self.at)}"
        )


def difference(output: int, model: Array, reference: Array, draw: str) -> Difference | None:
    """Compare one output; None where both are equal.

    :param model: of the reference's shape and size of element.
    """
    got, wanted = signed(model), signed(reference)
    wrong = got != wanted
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    distance = np.abs(got - wanted)
    at = _index(int(np.argmax(distance)), wrong.shape)
    first = [_index(int(flat), wrong.shape) for flat in np.flatnonzero(wrong)[:SHOWN]]
    return Difference(
        output=output,
        elements=count,
        of=wrong.size,
        at=at,
        model=int(got[at]),
        reference=int(wanted[at]),
        largest=int(distance[at]),
        smallest_set=tuple((index, int(got[index]), int(wanted[index])) for index in first),
        where=where(wrong),
        draw=draw,
    )


def signed(values: Array) -> Array:
    """As int64 with their sign; booleans as the byte that holds them."""
    contiguous = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}")
    return contiguous.astype(np.int64).reshape(values.shape)


def where(wrong: Array) -> str:
    """What the true elements have in common.

    :param wrong: booleans, at least one of them true.
    """
    if wrong.all():
        return "all"
    axes = [np.unique(indices) for indices in np.nonzero(wrong)]
    box = int(np.prod([len(axis) for axis in axes], dtype=np.int64))
    text = "[" + ", ".join(_axis(axis) for axis in axes) + "]"
    count = int(np.count_nonzero(wrong))
    return f"all in {text}" if count == box else f"{count} of the {box} in {text}"


def _axis(indices: Array) -> str:
    """``3``, ``16..31``, ``0..30 step 2``, or some of many."""
    low, high = int(indices[0]), int(indices[-1])
    steps = np.unique(np.diff(indices))
    if low == high:
        return str(low)
    if len(steps) == 1:
        return f"{low}..{high}" if steps[0] == 1 else f"{low}..{high} step {steps[0]}"
    return f"{len(indices)} of {low}..{high}"


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(item) for item in np.unravel_index(flat, shape))
