"""AVG_POOL2D, MAX_POOL2D, ARGMAX, REDUCE_*: what brings several elements down to one."""

from __future__ import annotations

import tosa_serializer as ts

from tests.exactness.building import Graph, Value, rescale, zero
from tests.exactness.programs.family import Family, Random, chance, pick, shape_of

_NAN = {"nan_mode": ts.NanPropagationMode.PROPAGATE}


def _window(rng: Random, kind: str) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Kernel, stride, padding, input size, output size; padding is smaller than the kernel."""
    choices = {"small": (1, 2, 2, 3, 4, 5, 8), "large": (1, 9, 12, 17, 40)}[kind]
    kernel = [int(pick(rng, choices)) for _ in range(2)]
    stride = [int(pick(rng, (1, 2, 2, 3, 4, 5))) for _ in range(2)]
    out = [int(pick(rng, (1, 2, 3, 6))) for _ in range(2)]
    pad, size = [], []
    for i in range(2):
        before, after = (int(rng.randint(0, kernel[i])) if chance(rng, 2) else 0 for _ in range(2))
        need = (out[i] - 1) * stride[i] + kernel[i]
        if need - before - after < 1:
            before = after = 0
        pad += [before, after]
        size.append(need - before - after)
    return kernel, stride, pad, size, out


def avg_pool(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    kernel, stride, pad, size, out = _window(rng, pick(rng, ("small", "small", "small", "large")))
    batch, channels = pick(rng, (1, 1, 2)), int(pick(rng, (1, 3, 8, 17, 40)))
    x = graph.input((batch, *size, channels), dtype)
    zeros = [int(rng.randint(-128, 128)) if dtype == "INT8" and chance(rng, 2) else 0 for _ in range(2)]
    return graph.add(
        "AVG_POOL2D", [x, *(zero(graph, dtype, value) for value in zeros)], (batch, *out, channels), dtype,
        kernel=kernel, stride=stride, pad=pad, acc_type=ts.DType.INT32,
    )  # fmt: skip


def max_pool(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    kernel, stride, pad, size, out = _window(rng, pick(rng, ("small", "small", "small", "large")))
    batch, channels = pick(rng, (1, 1, 2)), int(pick(rng, (1, 3, 8, 17, 40)))
    x = graph.input((batch, *size, channels), dtype)
    return graph.add("MAX_POOL2D", [x], (batch, *out, channels), dtype, kernel=kernel, stride=stride, pad=pad, **_NAN)


def argmax(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    rank = int(rng.randint(1, 5))
    shape = shape_of(rng, rank)
    axis = rank - 1 if chance(rng, 2) else int(rng.randint(rank))
    top = 127 if dtype == "INT8" else 32767
    low, high = (-3, 3) if chance(rng, 2) else (-top - 1, top)  # few values: ties
    x = graph.input(shape, dtype, low, high)
    return graph.add("ARGMAX", [x], shape[:axis] + shape[axis + 1 :], "INT32", axis=axis, **_NAN)


def _reduction(graph: Graph, rng: Random, op: str, dtype: str, **more: object) -> Value:
    rank = int(pick(rng, (1, 2, 3, 3, 4, 4, 5, 6)))
    shape = shape_of(rng, rank, 2048)
    axis = int(rng.randint(rank))
    bits = 31 - max(shape[axis] - 1, 1).bit_length() if op == "REDUCE_SUM" else 31
    ends = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype == "INT32" else (None, None)
    if dtype == "INT32" and op != "REDUCE_SUM":
        ends = (None, None)
    x = graph.input(shape, dtype, *ends)
    return graph.add(op, [x], (*shape[:axis], 1, *shape[axis + 1 :]), dtype, axis=axis, **more)


def reduce_sum(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_SUM", "INT32")


def reduce_sum_i8(graph: Graph, rng: Random, index: int) -> Value:
    """RESCALE, REDUCE_SUM, RESCALE: a quantized sum or mean."""
    rank = int(pick(rng, (2, 3, 4)))
    shape = shape_of(rng, rank, 2048)
    axis = int(rng.randint(rank))
    dtype = pick(rng, ("INT8", "INT16"))
    x = rescale(
        graph, graph.input(shape, dtype), "INT32", [1.0], zeros=(int(rng.randint(-9, 9)) * (dtype == "INT8"), 0)
    )
    total = graph.add("REDUCE_SUM", [x], (*shape[:axis], 1, *shape[axis + 1 :]), "INT32", axis=axis)
    return rescale(graph, total, dtype, [1.3 / shape[axis]], double_round=chance(rng, 3))


def reduce_max(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_MAX", pick(rng, ("INT8", "INT16", "INT32")), **_NAN)


def reduce_min(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_MIN", pick(rng, ("INT8", "INT16", "INT32")), **_NAN)


def reduce_all(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_ALL", "BOOL")


def reduce_any(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_ANY", "BOOL")


def reduce_product(graph: Graph, rng: Random, index: int) -> Value:
    return _reduction(graph, rng, "REDUCE_PRODUCT", "INT32")


FAMILIES = (
    Family("avg-pool", 40, avg_pool),
    Family("max-pool", 36, max_pool),
    Family("argmax", 36, argmax),
    Family("reduce-sum", 30, reduce_sum),
    Family("reduce-sum-quantized", 16, reduce_sum_i8),
    Family("reduce-max", 30, reduce_max),
    Family("reduce-min", 30, reduce_min),
    Family("reduce-all", 10, reduce_all),
    Family("reduce-any", 10, reduce_any),
    Family("reduce-product", 2, reduce_product),
)
