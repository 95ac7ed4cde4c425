"""Operators that move elements: RESHAPE, TRANSPOSE, SLICE, PAD, CONCAT, TILE, REVERSE, GATHER, SCATTER."""

from __future__ import annotations

import itertools
import math

from generators.tosa_graph import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    MOST_ELEMENTS,
    MOVED,
    ONLY_U85,
    Shape,
    TosaGraph,
    TosaOperator,
    Value,
    axis_of,
    between,
    choose,
    fill,
    of_kind,
    one_in,
    replaced,
)
from harness.case.operators import Draw
from harness.tosa.program import limits

_U55_INT32_ORDERS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2))
"""What Ethos-U55 and U65 turn in int32, of four axes with one batch (NHWC, NWHC, NCWH)."""


def _kept(value: Value) -> tuple[int, int]:
    return value.low, value.high


def _moves(value: Value) -> bool:
    return value.dtype in MOVED


def _reshape(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    return graph.reshape(value, _regrouped(draw, value.shape))


def _regrouped(draw: Draw, shape: Shape) -> Shape:
    """Axes merged, split, added or taken away."""
    kind = choose(draw, ("merge", "ones", "ones", "flat", "split", "any"))
    if kind == "merge" and len(shape) > 1:
        at = between(draw, 0, len(shape) - 2)
        return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    if kind == "ones":
        if 1 in shape and len(shape) > 1 and not one_in(draw, 2):
            at = choose(draw, [axis for axis, size in enumerate(shape) if size == 1])
            return (*shape[:at], *shape[at + 1 :])
        if len(shape) < 6:
            at = between(draw, 0, len(shape))
            return (*shape[:at], 1, *shape[at:])
    if kind == "flat":
        return (1, math.prod(shape)) if one_in(draw, 2) else (math.prod(shape),)
    if kind == "split" and len(shape) < 6:
        parts = [
            (axis, part) for axis, size in enumerate(shape) for part in (2, 3, 4) if size % part == 0 < size - part
        ]
        if parts:
            axis, part = choose(draw, parts)
            return (*shape[:axis], part, shape[axis] // part, *shape[axis + 1 :])
    out = [1] * between(draw, 1, 6)
    for prime in [prime for size in shape for prime in _primes(size)]:
        out[between(draw, 0, len(out) - 1)] *= prime
    return tuple(out)


def _primes(size: int) -> list[int]:
    found, divisor = [], 2
    while size > 1:
        while size % divisor == 0:
            found.append(divisor)
            size //= divisor
        divisor += 1
    return found


def _transpose(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    if value.dtype == "INT32" and not graph.u85:
        orders = _U55_INT32_ORDERS if value.rank == 4 and value.shape[0] == 1 else (tuple(range(value.rank)),)
        order = choose(draw, orders[::-1])
    elif value.rank <= 4:
        order = choose(draw, _orders(value.rank))
    else:
        order = tuple(range(value.rank))
        for _ in range(between(draw, 1, 3)):
            one, other = between(draw, 0, value.rank - 1), between(draw, 0, value.rank - 1)
            swapped = list(order)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            order = tuple(swapped)
    return graph.transpose(value, order)


def _orders(rank: int) -> tuple[Shape, ...]:
    """Every order, the one that changes nothing last; what ExecuTorch emits (NHWC and NCHW) first."""
    found = sorted(itertools.permutations(range(rank)), key=lambda order: (order == tuple(range(rank)), order))
    first = [CHANNELS_LAST, CHANNELS_FIRST] if rank == 4 else []
    return (*first, *found)


def _slice(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    start, size = [0] * value.rank, list(value.shape)
    for _ in range(choose(draw, (1, 1, 2, 3))):
        axis = axis_of(draw, value)
        start[axis] = choose(
            draw, sorted({0, 1, value.shape[axis] // 2, value.shape[axis] - 1} & {*range(value.shape[axis])})
        )
        left = value.shape[axis] - start[axis]
        size[axis] = choose(draw, sorted({left, max(left - 1, 1), max(left // 2, 1), 1}, reverse=True))
    return graph.slice(value, start, tuple(size))


def _pad(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    amounts = [0] * (2 * value.rank)
    for _ in range(choose(draw, (1, 2, 3))):
        amounts[2 * axis_of(draw, value) + between(draw, 0, 1)] = choose(draw, (1, 2, 3, 5))
    low, high = limits(value.dtype) if value.quantized else _kept(value)
    number = choose(draw, sorted({0, low, high, min(5, high)} & {low, high, *range(max(low, 0), min(high, 5) + 1)}))
    shape = tuple(size + amounts[2 * axis] + amounts[2 * axis + 1] for axis, size in enumerate(value.shape))
    inputs = [value, graph.dims(amounts), graph.scalar(number, value.dtype)]
    return graph.add("PAD", inputs, shape, value.dtype, (min(low, number), max(high, number)))


def _concat(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    axis, values = axis_of(draw, value), [value]
    for _ in range(choose(draw, (1, 1, 2, 3))):
        if one_in(draw, 4):
            values.append(choose(draw, values))
            continue
        size = choose(draw, (value.shape[axis], 1, 2, 3, 5, 8, 16))
        span = _kept(value) if value.dtype == "INT32" else None
        values.append(graph.operand(draw, replaced(value.shape, axis, size), value.dtype, span))
    if one_in(draw, 2):
        values.reverse()
    total = sum(item.shape[axis] for item in values)
    ends = min(item.low for item in values), max(item.high for item in values)
    return graph.add("CONCAT", values, replaced(value.shape, axis, total), value.dtype, ends, Axis=axis)


def _tile(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    times = [1] * value.rank
    room = MOST_ELEMENTS // value.elements
    for _ in range(choose(draw, (1, 1, 2))):
        times[axis_of(draw, value)] = choose(
            draw, [count for count in (2, 3, 4, 1) if count * math.prod(times) <= room]
        )
    shape = tuple(size * count for size, count in zip(value.shape, times, strict=True))
    return graph.add("TILE", [value, graph.dims(times)], shape, value.dtype, _kept(value))


def _reverse(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    axis = axis_of(draw, value) if graph.u85 else max(value.rank - 2 - between(draw, 0, 1), 0)
    return graph.add("REVERSE", [value], value.shape, value.dtype, _kept(value), Axis=axis)


def _gather(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, rows, columns = value.shape
    width = choose(draw, (1, 4, 9, rows))
    span = (0, rows - 1)
    constant = one_in(draw, 4)
    shape = (batch, width)
    indices = graph.constant(shape, "INT32", fill(draw, *span)) if constant else graph.input(shape, "INT32", span)
    return graph.add("GATHER", [value, indices], (batch, width, columns), value.dtype, _kept(value))


def _scatter(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, rows, columns = value.shape
    width = choose(draw, sorted({1, max(rows // 2, 1), rows}))
    indices = graph.input((batch, width), "INT32", (0, rows - 1), distinct=True)
    span = _kept(value) if value.dtype == "INT32" else None
    new = graph.operand(draw, (batch, width, columns), value.dtype, span)
    return graph.add("SCATTER", [value, indices, new], value.shape, value.dtype, _kept(value))


TOSA_OPERATORS = of_kind(
    "moves",
    TosaOperator("reshape", _moves, _reshape),
    TosaOperator("transpose", lambda value: _moves(value) and value.rank > 1, _transpose),
    TosaOperator("slice", lambda value: _moves(value) and value.elements > 1, _slice),
    TosaOperator("pad", lambda value: _moves(value) and value.small, _pad),
    TosaOperator("concat", lambda value: _moves(value) and value.small, _concat),
    TosaOperator("tile", lambda value: _moves(value) and value.small, _tile),
    TosaOperator("reverse", lambda value: value.quantized and value.rank in (3, 4), _reverse),
    TosaOperator("reverse-any", _moves, _reverse, ONLY_U85),
    TosaOperator("gather", lambda value: _moves(value) and value.rank == 3, _gather, ONLY_U85),
    TosaOperator("scatter", lambda value: _moves(value) and value.rank == 3, _scatter, ONLY_U85),
)
