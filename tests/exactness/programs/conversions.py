"""RESCALE, CAST, TABLE, RESIZE, MATMUL: changes of scale, type and size."""

from __future__ import annotations

import math

import numpy as np
import tosa_serializer as ts

from tests.exactness.building import Graph, Value, rescale, zero
from tests.exactness.program import limits
from tests.exactness.programs.family import Family, Random, chance, ints, pick, shape_of


def rescale_alone(graph: Graph, rng: Random, index: int) -> Value:
    """Any pair of int8, int16 and int32, per tensor or channel, all roundings."""
    source, target = (pick(rng, ("INT8", "INT8", "INT16", "INT32")) for _ in range(2))
    return _rescaled(graph, rng, source, target, wide=not chance(rng, 4))


def rescale_unsigned(graph: Graph, rng: Random, index: int) -> Value:
    """uint8 and uint16 on one side: what stands at the border of a graph."""
    source, target = pick(rng, ("INT8", "INT8", "INT16")), pick(rng, ("INT8", "INT8", "INT16"))
    first = bool(chance(rng, 2))
    return _rescaled(graph, rng, source, target, unsigned=(first, not first))


def _rescaled(
    graph: Graph,
    rng: Random,
    source: str,
    target: str,
    *,
    wide: bool = True,
    unsigned: tuple[bool, bool] = (False, False),
) -> Value:
    shape = shape_of(rng, int(rng.randint(1, 6)))
    bits = {"INT8": 8, "INT16": 16, "INT32": 32}
    span = int(pick(rng, (32, 32, 30, 23, 16))) if source == "INT32" else bits[source]
    low, high = -(1 << (span - 1)), (1 << (span - 1)) - 1
    x = graph.input(shape, source, low, high)
    room = bits[target] - span - (target == "INT32") - (source == "INT8")  # a zero point needs a bit more
    ratio = 2.0 ** min(room, 28 if wide else 12)  # the whole range fits, more or less
    many = shape[-1] > 1 and chance(rng, 3)
    factors = ratio * rng.uniform(0.2, 0.95 if target == "INT32" else 1.6, shape[-1] if many else 1)
    if chance(rng, 6):
        factors = np.full_like(factors, 2.0 ** math.floor(math.log2(ratio)))
    zeros = [_zero(rng, dtype, flag) for dtype, flag in ((source, unsigned[0]), (target, unsigned[1]))]
    double = wide and chance(rng, 3)
    return rescale(
        graph,
        x,
        target,
        list(factors),
        zeros=(zeros[0], zeros[1]),
        scale32=wide,
        double_round=double,
        unsigned=unsigned,
    )


def _zero(rng: Random, dtype: str, unsigned: bool) -> int:
    if dtype == "INT8":
        return int(rng.randint(0, 256) if unsigned else rng.randint(-128, 128)) if not chance(rng, 3) else 0
    if dtype == "INT16" and unsigned:
        return int(pick(rng, (0, 32768)))
    return 0


def cast(graph: Graph, rng: Random, index: int) -> Value:
    pairs = [
        ("BOOL", "INT8"), ("BOOL", "INT16"), ("BOOL", "INT32"), ("INT8", "BOOL"), ("INT8", "INT16"), ("INT8", "INT32"),
        ("INT16", "BOOL"), ("INT16", "INT8"), ("INT16", "INT32"), ("INT32", "BOOL"), ("INT32", "INT8"),
        ("INT32", "INT16"),
    ]  # fmt: skip
    source, target = pairs[index % len(pairs)]
    ends = (-2, 2) if target == "BOOL" else limits(source)
    x = graph.input(shape_of(rng, int(rng.randint(1, 6))), source, *ends if source != "BOOL" else (0, 1))
    return graph.add("CAST", [x], x.shape, target)


def table_i8(graph: Graph, rng: Random, index: int) -> Value:
    x = graph.input(shape_of(rng, int(rng.randint(1, 6))), "INT8", kind="ramp")
    kind = int(rng.randint(3))
    steps = np.linspace(-6, 6, 256)
    curve = {0: 255 / (1 + np.exp(-steps)) - 128, 1: 127 * np.tanh(steps), 2: rng.randint(-128, 128, 256)}[kind]
    return graph.add("TABLE", [x, graph.const(np.rint(curve).astype(np.int64), "INT8")], x.shape, "INT8")


def table_i16(graph: Graph, rng: Random, index: int) -> Value:
    """int16 to int32 (values times 128); every second one with the RESCALE by 1/128 that Vela fuses."""
    x = graph.input(shape_of(rng, int(rng.randint(1, 6))), "INT16", kind="ramp")
    steps = np.linspace(-6, 6, 513)
    kind = int(rng.randint(4))
    curve = {
        0: 32767 / (1 + np.exp(-steps)),
        1: 32767 * np.tanh(steps),
        2: np.cumsum(rng.randint(-300, 301, 513)).clip(-32768, 32767),
        3: rng.randint(-16384, 16384, 513),
    }[kind]
    result = graph.add("TABLE", [x, graph.const(np.rint(curve).astype(np.int64), "INT16")], x.shape, "INT32")
    if index % 2 == 0:
        return rescale(graph, result, "INT16", [1 / 128])
    return (
        result if index % 4 == 1 else rescale(graph, result, "INT8", [1 / 40000], zeros=(0, int(rng.randint(-99, 99))))
    )


def resize(graph: Graph, rng: Random, index: int) -> Value:
    """Any scale, offset and border that TOSA allows."""
    nearest, dtype = bool(chance(rng, 2)), pick(rng, ("INT8", "INT8", "INT16"))
    axes: list[tuple[int, ...]] = []
    while len(axes) < 2:
        numerator, denominator = int(pick(rng, (1, 2, 3, 4, 8, 16, 20))), int(pick(rng, (1, 1, 2, 3, 4, 6, 8)))
        size = int(pick(rng, (1, 2, 3, 5, 8)))
        offset = int(rng.randint(-numerator + 1, numerator)) if chance(rng, 2) else 0
        span = (size - 1) * numerator - offset
        border = -(span % denominator) + denominator * int(rng.randint(0, 3))
        if border >= numerator or border < -16 * numerator or span + border < 0:
            continue
        axes.append((numerator, denominator, size, offset, border, (span + border) // denominator + 1))
    value = _resized(graph, rng, nearest, dtype, axes)
    if value.dtype != "INT48" and chance(rng, 2):
        return value
    return rescale(graph, value, dtype, [0.9 if nearest else 0.9 / (axes[0][0] * axes[1][0])])


def resize_power(graph: Graph, rng: Random, index: int) -> Value:
    """Upscaling by 2, 4 or 8: corners aligned, asymmetric, or half pixel; bilinear with the RESCALE that Vela fuses."""
    nearest, dtype = bool(chance(rng, 2)), pick(rng, ("INT8", "INT8", "INT16"))
    factors = [int(pick(rng, (2, 2, 4, 8)))] * 2
    kind = int(rng.randint(3))
    axes: list[tuple[int, ...]] = []
    for factor in factors:
        size = int(pick(rng, (2, 3, 5)))
        numerator, denominator = (2 * factor, 2) if kind == 2 else (factor, 1)
        offset = 1 - factor if kind == 2 else 0
        border = factor - 1 if kind else 0
        out = ((size - 1) * numerator - offset + border) // denominator + 1
        axes.append((numerator, denominator, size, offset, border, out))
    value = _resized(graph, rng, nearest, dtype, axes)
    if nearest:
        return value
    return rescale(graph, value, dtype, [1 / (axes[0][0] * axes[1][0])], scale32=value.dtype == "INT32")


def _resized(graph: Graph, rng: Random, nearest: bool, dtype: str, axes: list[tuple[int, ...]]) -> Value:
    y, x = axes
    batch, channels = pick(rng, (1, 1, 2)), int(pick(rng, (1, 3, 8, 17)))
    source = graph.input((batch, y[2], x[2], channels), dtype)
    scale, offset, border = (y[0], y[1], x[0], x[1]), (y[3], x[3]), (y[4], x[4])
    target = dtype if nearest else {"INT8": "INT32", "INT16": "INT48"}[dtype]
    mode = ts.ResizeMode.NEAREST if nearest else ts.ResizeMode.BILINEAR
    inputs = [source, graph.dims(scale), graph.dims(offset), graph.dims(border)]
    return graph.add("RESIZE", inputs, (batch, y[5], x[5], channels), target, mode=mode)


def matmul(graph: Graph, rng: Random, index: int) -> Value:
    return _matmul(graph, rng, "INT8")


def matmul_i16(graph: Graph, rng: Random, index: int) -> Value:
    return _matmul(graph, rng, "INT16")


def _matmul(graph: Graph, rng: Random, dtype: str) -> Value:
    batch, rows, depth, columns = (
        int(pick(rng, choice)) for choice in ((1, 1, 2, 4), (1, 3, 8, 17), (1, 5, 16, 33, 64), (1, 4, 9, 16, 30))
    )
    a, b = (batch, rows, depth), (batch, depth, columns)
    constant = pick(rng, (None, None, None, 0, 1))
    values = [
        graph.const(ints(rng, *limits(dtype), shape), dtype) if constant == place else graph.input(shape, dtype)
        for place, shape in enumerate((a, b))
    ]
    zeros = [
        zero(graph, dtype, int(rng.randint(-128, 128)) if dtype == "INT8" and chance(rng, 2) else 0) for _ in (a, b)
    ]
    accumulator = "INT32" if dtype == "INT8" else "INT48"
    result = graph.add("MATMUL", [*values, *zeros], (batch, rows, columns), accumulator)
    if dtype == "INT8" and chance(rng, 3):
        return result
    spread = np.sqrt(depth) * (73 * 73 if dtype == "INT8" else 18000.0 * 18000)
    target = pick(rng, ("INT8", "INT16"))
    factor = (90 if target == "INT8" else 20000) / spread
    return rescale(graph, result, target, [min(factor * rng.uniform(0.3, 2), 1.0)])


FAMILIES = (
    Family("rescale", 60, rescale_alone),
    Family("rescale-unsigned", 20, rescale_unsigned),
    Family("cast", 36, cast),
    Family("table", 16, table_i8),
    Family("table-i16", 20, table_i16),
    Family("resize", 40, resize),
    Family("resize-power", 24, resize_power),
    Family("matmul", 30, matmul),
    Family("matmul-i16", 16, matmul_i16),
)
