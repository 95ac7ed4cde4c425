"""``unit-slice-keeps-order``: every view behind a one-element slice, of small shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from harness.campaign.certify.whole import Domain, Judge

MOST_AXES = 6
MOST_ELEMENTS = 24
SIZES = (1, 2, 3, 4)
SLICED = (2, 3)
"""Sizes of the axis that the slice takes one element of."""

Shape = tuple[int, ...]
Point = tuple[Shape, Shape, int]
"""What the slice leaves, what the view makes of it, and the axis that was sliced."""


@cache
def _views(elements: int, rank: int) -> tuple[Shape, ...]:
    """The shapes of this rank that hold so many elements."""
    if rank == 1:
        return ((elements,),)
    parts = [size for size in range(1, elements + 1) if elements % size == 0]
    return tuple((size, *rest) for size in parts for rest in _views(elements // size, rank - 1))


def points() -> Iterator[Point]:
    for rank in range(1, MOST_AXES + 1):
        for sliced in product(SIZES, repeat=rank):
            if (elements := math.prod(sliced)) > MOST_ELEMENTS:
                continue
            axes = [axis for axis, size in enumerate(sliced) if size == 1]
            for width in range(1, MOST_AXES + 1) if axes else ():
                for view in _views(elements, width):
                    for axis in axes:
                        yield sliced, view, axis


def judge() -> Judge:
    """Is ``view(slice(x))`` the ``slice(view(x))`` that ``ViewMap.remap_unit_slice`` makes of it, for every start?"""
    view_map = import_module("executorch.backends.transforms.dim_maps").ViewMap
    mapped = lru_cache(1)(view_map.from_shapes)

    def judged(point: Point) -> bool | None:
        sliced, view, _ = point
        map_of_view: Any = mapped(sliced, view)
        answers = [_is_right(map_of_view, point, size, start) for size in SLICED for start in range(size)]
        return None if all(item is None for item in answers) else all(item is not False for item in answers)

    return judged


def _is_right(map_of_view: Any, point: Point, size: int, start: int) -> bool | None:
    sliced, view, axis = point
    whole = (*sliced[:axis], size, *sliced[axis + 1 :])
    moved = map_of_view.remap_unit_slice(whole, axis, start, start + 1)
    if moved is None:
        return None
    shape, dim, first, last = moved
    if math.prod(shape) != math.prod(whole):
        return False
    values = np.arange(math.prod(whole))
    expected = values.reshape(whole).take(range(start, start + 1), axis).reshape(view)
    made = values.reshape(shape).take(range(first, last), dim)
    return made.shape == expected.shape and bool((made == expected).all())


DOMAIN = Domain(
    name="unit-slice-keeps-order",
    says=(
        f"every view behind a one-element slice: shapes of up to {MOST_AXES} axes of sizes up to {SIZES[-1]} and "
        f"{MOST_ELEMENTS} elements, seen as any shape of up to {MOST_AXES} axes, the sliced axis being each of size "
        f"{' or '.join(map(str, SLICED))}, from every start; the elements are compared"
    ),
    points=points,
    judge=judge,
)
