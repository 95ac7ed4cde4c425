"""State: what a module keeps from one call to the next, and what is written into a part of a value.

Entries of ``generators.ops`` compute something and change nothing. These steps are made of ATen overloads, as a
captured graph is (``harness.case.aten``), since those say which operator writes. A constant that is written is a
buffer of the module: a call begins with the values that the call before left.

To add one: write a function that takes the pool and a float value of rank 1 or more, and append it to ``STEPS``.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from generators.graph_pool import GraphPool
from generators.motifs import combine
from generators.rules import is_float, replaced
from generators.sizes import between, draw_dim, one_in, pick
from harness.case.case import TensorType, maker_of
from harness.case.registry import operators

MOST_NODES = 4
"""How many nodes a step adds at most."""
MOST_ROWS = 4
RATES = (0.5, 2.0, 0.9)
_WRITERS = ("aten.add_.Tensor", "aten.mul_.Tensor", "aten.sub_.Tensor", "aten.copy_.default")
_FRESH = frozenset({"elementwise", "activation", "table", "convolution", "product", "normalization"})
"""Families whose results have memory of their own, so that writing there changes no input."""


def accumulator(pool: GraphPool, source: str) -> None:
    """A running sum, a decaying mean or the last value, read in the same call."""
    type_ = pool.type_of(source)
    state = pool.buffer(type_.shape)
    if one_in(pool.draw, 3):
        state = pool.call("aten.mul_.Tensor", type_, state, pool.draw(st.sampled_from(RATES)))
        if one_in(pool.draw, 2):  # a state that goes its way whatever comes in
            combine(pool, "add", source, state)
            return
    written = pool.call(pool.draw(st.sampled_from(_WRITERS)), type_, state, source)
    if one_in(pool.draw, 2):
        written = pool.call("aten.add_.Tensor", type_, written, 1.0)
    if not one_in(pool.draw, 3):
        combine(pool, "add", source, written)


def counter(pool: GraphPool, source: str) -> None:
    """Integers that count calls, as positions do, and are added to a value."""
    type_ = TensorType(pool.shape(source)[-1:], "int64")
    state = pool.constant("literal", type_.shape, dtype="int64", values=[0] * type_.elements)
    written = pool.call("aten.copy_.default", type_, state, pool.call("aten.add.Tensor", type_, state, 1))
    real = pool.call("aten.to.dtype", TensorType(type_.shape), written, {"dtype": "float32"})
    combine(pool, "add", source, real)


def cache(pool: GraphPool, source: str) -> None:
    """Rows of a cache, of which a call writes one or more, as an attention keeps keys and values."""
    shape = pool.shape(source)
    count = shape[0]
    rows = max(count, pool.draw(st.sampled_from((2, 4, 3, 1))))
    first = between(pool.draw, 0, rows - count)
    index = pool.constant("literal", (count,), dtype="int64", values=list(range(first, first + count)))
    state = pool.buffer(replaced(shape, 0, rows))
    type_ = pool.type_of(state)
    written = pool.call("aten.index_copy_.default", type_, state, 0, index, source)
    if count == 1 and not one_in(pool.draw, 3):
        combine(pool, "add", source, written)


def part(pool: GraphPool, source: str) -> None:
    """A stretch of a computed value is written, through a view, and the value is read after that."""
    value = pool.add("relu", source) if not _is_fresh(pool, source) else source
    shape = pool.shape(value)
    axis = draw_dim(pool.draw, len(shape)) % len(shape)
    start = between(pool.draw, 0, shape[axis] - 1)
    stop = between(pool.draw, start + 1, shape[axis])
    type_ = TensorType(replaced(shape, axis, stop - start))
    stretch = pool.call("aten.slice.Tensor", type_, value, axis, start, stop)
    pool.call(pool.draw(st.sampled_from(_WRITERS)), type_, stretch, pool.operand(type_))
    pool.add("add", value, scalar=1.0, side="right", alpha=1)


STEPS: tuple[Callable[[GraphPool, str], None], ...] = (accumulator, counter, cache, part)


def step(pool: GraphPool) -> None:
    """Add one of the steps, or a single node where the value that is next fits none."""
    source = pool.source()
    type_ = pool.type_of(source)
    if is_float(type_) and 1 <= type_.rank <= 4 and type_.shape[0] <= MOST_ROWS:
        pick(pool.draw, STEPS)(pool, source)
    else:
        pool.free_node()


def _is_fresh(pool: GraphPool, name: str) -> bool:
    entry = next((operators().get(node.operator) for node in pool.nodes if node.name == maker_of(name)), None)
    return entry is not None and bool(entry.tags & _FRESH)
