"""Strategies for shapes, sizes and dims, and the budget that keeps tensors small.

The stock histogram observer takes time in proportion to the elements it sees, so a generated
tensor holds about ``BUDGET`` elements at most. Sizes are drawn one after the other within what is
left of the budget: bounds are computed, nothing is filtered away afterwards.

Draw with ``pick`` and ``between`` wherever a list or range may be long. Hypothesis mixes numbers
of 100 and more that it finds in local source files into ranges that hold them, so that a block of
cases would depend on what else is imported. Sizes shrink towards 1, dims towards 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from generators.rules import Shape
from harness.case.operators import Draw

Item = TypeVar("Item")

DIGITS = 50
BUDGET = 2048
GROWING = 1024  # inputs leave room for cat, pad and repeat to grow

CHANNELS = (1, 4, 3, 2, 8, 5, 6, 4, 8, 16)
SPATIAL = (1, 4, 5, 6, 7, 8, 3, 2, 8, 9, 12)
PLAIN = (1, 4, 2, 3, 5, 8, 6, 7, 16)
BATCH = (1, 1, 1, 2, 3)
RANKS = (1, 2, 2, 3, 3, 4, 4, 4, 4, 5)


def pick(draw: Draw, options: Sequence[Item]) -> Item:
    """One of any number of options; shrinks towards the first."""
    rows = -(-len(options) // DIGITS)
    row = draw(st.integers(0, rows - 1))
    chosen: Item = draw(st.sampled_from(options[row::rows]))
    return chosen


def between(draw: Draw, low: int, high: int) -> int:
    """An integer from ``low`` to ``high``; shrinks towards ``low``."""
    return pick(draw, range(low, high + 1))


def within(sizes: Iterable[int], most: int) -> tuple[int, ...]:
    """Those of ``sizes`` that are at most ``most`` (never nothing: 1 is always possible)."""
    return tuple(size for size in sizes if size <= most) or (1,)


def room(shape: Shape) -> int:
    """How many times a tensor of this shape fits into the budget, at least once."""
    return max(1, BUDGET // max(1, math.prod(shape)))


def draw_shape(draw: Draw, rank: int) -> Shape:
    """A shape of this rank: batch, channels and space where the rank has them."""
    kinds = {
        1: (PLAIN,),
        2: ((*BATCH, 4), PLAIN),
        3: (BATCH, CHANNELS, SPATIAL),
        4: (BATCH, CHANNELS, SPATIAL, SPATIAL),
        5: (BATCH, CHANNELS, (1, 2, 3), SPATIAL, SPATIAL),
    }[rank]
    shape: Shape = ()
    for sizes in kinds:
        shape += (draw(st.sampled_from(within(sizes, GROWING // math.prod(shape)))),)
    return shape


def draw_any_shape(draw: Draw) -> Shape:
    """A shape of rank 1 to 5, most often 4 (images)."""
    return draw_shape(draw, draw(st.sampled_from(RANKS)))


def draw_dim(draw: Draw, rank: int) -> int:
    """Any dim of a value of this rank, counted from either end; shrinks to 0."""
    dims: tuple[int, ...] = (*range(rank), *range(-1, -rank - 1, -1))
    return pick(draw, dims)


def either_end(draw: Draw, axis: int, rank: int) -> int:
    """``axis`` as a dim, sometimes counted from the end."""
    return axis - rank if draw(st.integers(0, 3)) == 3 else axis


def one_in(draw: Draw, times: int) -> bool:
    """True about once in ``times``; shrinks to False."""
    return bool(draw(st.integers(1, times)) == times)
