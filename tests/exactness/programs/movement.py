"""Operators that move elements: CONCAT, PAD, RESHAPE, REVERSE, SLICE, TILE, TRANSPOSE, GATHER, SCATTER."""

from __future__ import annotations

import itertools

from tests.exactness.building import Graph, Value
from tests.exactness.program import limits
from tests.exactness.programs.family import Family, Random, chance, ints, pick, shape_of

_TYPES = ("INT8", "INT8", "INT16", "INT32", "BOOL")
PERMUTATIONS = [order for rank in range(1, 6) for order in itertools.permutations(range(rank))]


def concat(graph: Graph, rng: Random, index: int) -> Value:
    dtype, rank = pick(rng, _TYPES), int(rng.randint(1, 7))
    shape, axis, count = shape_of(rng, rank, 1024), int(rng.randint(rank)), int(pick(rng, (2, 2, 3, 5)))
    values = []
    for place in range(count):
        part = (*shape[:axis], int(rng.randint(1, 9)), *shape[axis + 1 :])
        if place and chance(rng, 4):
            values.append(graph.const(ints(rng, *limits(dtype), part), dtype))
        elif place and chance(rng, 6):
            values.append(values[0])
        else:
            values.append(graph.input(part, dtype))
    total = sum(value.shape[axis] for value in values)
    return graph.add("CONCAT", values, (*shape[:axis], total, *shape[axis + 1 :]), dtype, axis=axis)


def pad(graph: Graph, rng: Random, index: int) -> Value:
    dtype, rank = pick(rng, _TYPES), int(rng.randint(1, 7))
    x = graph.input(shape_of(rng, rank, 1024), dtype)
    amounts = [int(rng.randint(0, 4)) if chance(rng, 2) else 0 for _ in range(2 * rank)]
    value = graph.const([int(ints(rng, *limits(dtype), (1,))[0]) if chance(rng, 2) else 0], dtype)
    out = [size + amounts[2 * axis] + amounts[2 * axis + 1] for axis, size in enumerate(x.shape)]
    return graph.add("PAD", [x, graph.dims(amounts), value], out, dtype)


def reshape(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, _TYPES)
    x = graph.input(shape_of(rng, int(rng.randint(1, 7))), dtype)
    factors = [prime for size in x.shape for prime in _primes(size)]
    out = [1] * int(rng.randint(1, 7))
    for factor in factors:
        out[int(rng.randint(len(out)))] *= factor
    return graph.add("RESHAPE", [x, graph.dims(out)], out, dtype)


def _primes(size: int) -> list[int]:
    found, divisor = [], 2
    while size > 1:
        while size % divisor == 0:
            found.append(divisor)
            size //= divisor
        divisor += 1
    return found


def reverse(graph: Graph, rng: Random, index: int) -> Value:
    dtype, rank = pick(rng, _TYPES), int(rng.randint(1, 7))
    x = graph.input(shape_of(rng, rank, 1024), dtype)
    return graph.add("REVERSE", [x], x.shape, dtype, axis=int(rng.randint(rank)))


def slice_(graph: Graph, rng: Random, index: int) -> Value:
    dtype, rank = pick(rng, _TYPES), int(rng.randint(1, 7))
    x = graph.input(shape_of(rng, rank), dtype)
    start = [int(rng.randint(0, size)) if chance(rng, 2) else 0 for size in x.shape]
    size = [
        int(rng.randint(1, extent - begin + 1)) if chance(rng, 2) else extent - begin
        for extent, begin in zip(x.shape, start, strict=True)
    ]
    return graph.add("SLICE", [x, graph.dims(start), graph.dims(size)], size, dtype)


def tile(graph: Graph, rng: Random, index: int) -> Value:
    dtype, rank = pick(rng, _TYPES), int(rng.randint(1, 7))
    x = graph.input(shape_of(rng, rank, 300), dtype)
    counts = [int(pick(rng, (1, 1, 2, 3))) for _ in range(rank)]
    out = [size * count for size, count in zip(x.shape, counts, strict=True)]
    return graph.add("TILE", [x, graph.dims(counts)], out, dtype)


def transpose(graph: Graph, rng: Random, index: int) -> Value:
    """Every permutation up to rank 5 in turn, int8; then others at random."""
    ordered = index < len(PERMUTATIONS)
    dtype = "INT8" if ordered else pick(rng, ("INT16", "INT32", "INT32", "BOOL"))
    order = PERMUTATIONS[index] if ordered else pick(rng, PERMUTATIONS)
    if not ordered and chance(rng, 8):
        order = tuple(int(axis) for axis in rng.permutation(6))
    x = graph.input(shape_of(rng, len(order), 2048), dtype)
    return graph.add("TRANSPOSE", [x], [x.shape[axis] for axis in order], dtype, perms=list(order))


def gather(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16", "INT32"))
    batch, rows, width, columns = (
        int(pick(rng, choice)) for choice in ((1, 1, 2, 3), (1, 5, 20), (1, 4, 9), (1, 3, 16, 33))
    )
    values = graph.input((batch, rows, columns), dtype)
    if chance(rng, 4):
        indices = graph.const(rng.randint(0, rows, (batch, width)), "INT32")
    else:
        indices = graph.input((batch, width), "INT32", 0, rows - 1)
    return graph.add("GATHER", [values, indices], (batch, width, columns), dtype)


def scatter(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16", "INT32"))
    batch, rows, columns = (int(pick(rng, choice)) for choice in ((1, 1, 2, 3), (2, 5, 20), (1, 3, 16, 33)))
    width = int(rng.randint(1, rows + 1))
    values = graph.input((batch, rows, columns), dtype)
    if chance(rng, 4):
        indices = graph.const([rng.permutation(rows)[:width] for _ in range(batch)], "INT32")
    else:
        indices = graph.input((batch, width), "INT32", 0, rows - 1, "unique")
    new = graph.input((batch, width, columns), dtype)
    return graph.add("SCATTER", [values, indices, new], (batch, rows, columns), dtype)


FAMILIES = (
    Family("concat", 36, concat),
    Family("pad", 36, pad),
    Family("reshape", 24, reshape),
    Family("reverse", 36, reverse),
    Family("slice", 36, slice_),
    Family("tile", 30, tile),
    Family("transpose", len(PERMUTATIONS) + 60, transpose),
    Family("gather", 20, gather),
    Family("scatter", 20, scatter),
)
