"""Strategies for shapes, sizes and dims, and the budget that keeps tensors small.

The stock histogram observer takes time in proportion to the elements it sees, so a generated
tensor holds about ``BUDGET`` elements at most. Sizes are drawn one after the other within what is
left of the budget: bounds are computed, nothing is filtered away afterwards.

Everything is drawn from short lists or ranges below 100: Hypothesis mixes numbers found in local
source files into wider ranges, and a block of cases must not depend on what else is imported.
Sizes shrink towards 1, dims towards 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hypothesis import strategies as st

from generators.rules import Shape
from harness.operators import Draw

BUDGET = 2048

CHANNELS = (1, 4, 3, 2, 8, 5, 6, 4, 8, 16)
SPATIAL = (1, 4, 5, 6, 7, 8, 3, 2, 8, 9, 12)
PLAIN = (1, 4, 2, 3, 5, 8, 6, 7, 16)
BATCH = (1, 1, 1, 2, 3)
RANKS = (4, 4, 4, 4, 3, 3, 2, 2, 1, 5)


def within(sizes: Iterable[int], most: int) -> tuple[int, ...]:
    """Those of ``sizes`` that are at most ``most`` (never nothing: 1 is always possible)."""
    return tuple(size for size in sizes if size <= most) or (1,)


def room(shape: Shape) -> int:
    """How many times a tensor of this shape fits into the budget, at least once."""
    return max(1, BUDGET // max(1, math.prod(shape)))


def draw_shape(draw: Draw, rank: int) -> Shape:
    """A shape of this rank: batch, channels and space where the rank has them."""
    kinds = {1: (PLAIN,), 2: (BATCH + (4,), PLAIN), 3: (BATCH, CHANNELS, SPATIAL),
             4: (BATCH, CHANNELS, SPATIAL, SPATIAL), 5: (BATCH, CHANNELS, (1, 2, 3), SPATIAL, SPATIAL)}[rank]
    shape: Shape = ()
    for sizes in kinds:
        shape += (draw(st.sampled_from(within(sizes, room(shape)))),)
    return shape


def draw_any_shape(draw: Draw) -> Shape:
    """A shape of rank 1 to 5, most often 4 (images)."""
    return draw_shape(draw, draw(st.sampled_from(RANKS)))


def draw_dim(draw: Draw, rank: int) -> int:
    """Any dim of a value of this rank, counted from either end; shrinks to 0."""
    dim: int = draw(st.sampled_from((*range(rank), *range(-1, -rank - 1, -1))))
    return dim


def either_end(draw: Draw, axis: int, rank: int) -> int:
    """``axis`` as a dim, sometimes counted from the end."""
    return axis - rank if draw(st.integers(0, 3)) == 3 else axis


def one_in(draw: Draw, times: int) -> bool:
    """True about once in ``times``; shrinks to False."""
    return bool(draw(st.integers(1, times)) == times)
