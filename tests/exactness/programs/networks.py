"""Small networks: convolutions that Vela cascades through rolling buffers, several tables, quantized sums.

A cascade comes about where an intermediate value is much larger than what goes in and out, and
the compiler is short of memory (``configurations`` sees to that for programs of this name).
"""

from __future__ import annotations

import numpy as np
import tosa_serializer as ts

from tests.exactness.building import Graph, Value, clamp, rescale, zero
from tests.exactness.programs import conversions, convolutions, movement, pooling
from tests.exactness.programs.family import Family, Random, chance, ints, pick, shape_of


def _convolution(graph: Graph, rng: Random, value: Value, outputs: int, kernel: int, stride: int) -> Value:
    """CONV2D or DEPTHWISE_CONV2D with padding that keeps the size (but for the stride), and RESCALE."""
    _, height, width, channels = value.shape
    accumulator = "INT32" if value.dtype == "INT8" else "INT48"
    pad: list[int] = []
    out: list[int] = []
    for size in (height, width):
        count = -(-size // stride)
        total = max((count - 1) * stride + kernel - size, 0)
        pad += [total // 2, total - total // 2]
        out.append((size + total - kernel) // stride + 1)
        if (size + total - kernel) % stride:
            raise ValueError(f"size {size} does not suit stride {stride}")
    depthwise = outputs == channels and chance(rng, 3)
    shape = (kernel, kernel, channels, 1) if depthwise else (outputs, kernel, kernel, channels)
    bias = graph.const(ints(rng, -(1 << 12), 1 << 12, (outputs,)), accumulator)
    inputs = [
        value,
        graph.const(ints(rng, -127, 127, shape), "INT8"),
        bias,
        zero(graph, value.dtype),
        zero(graph, "INT8"),
    ]
    result = graph.add(
        "DEPTHWISE_CONV2D" if depthwise else "CONV2D",
        inputs,
        (1, *out, outputs),
        accumulator,
        pad=pad,
        stride=[stride, stride],
        dilation=[1, 1],
        local_bound=False,
        acc_type=ts.DType.__members__[accumulator],
    )
    fan_in = kernel * kernel * (1 if depthwise else channels)
    factor = 1.2 / (73 * np.sqrt(fan_in))
    count = outputs if chance(rng, 2) else 1
    return rescale(graph, result, value.dtype, list(factor * rng.uniform(0.7, 1.4, count)))


def cascade(graph: Graph, rng: Random, index: int) -> Value:
    """Three or four layers whose middle is eight times as deep as the ends; sometimes a residual sum."""
    dtype = pick(rng, ("INT8", "INT8", "INT8", "INT16"))
    channels, size = int(pick(rng, (2, 3, 4, 8))), int(pick(rng, (24, 31, 40)))
    first = graph.input((1, size, int(pick(rng, (16, 25, 40))), channels), dtype)
    value = _convolution(graph, rng, first, 8 * channels, int(pick(rng, (1, 3, 5))), 1)
    if chance(rng, 2):
        value = _convolution(graph, rng, value, 8 * channels, 3, 1)
    if chance(rng, 3):
        value = clamp(graph, value, -90, 100)
    if chance(rng, 3) and dtype == "INT8":
        value = graph.add("TABLE", [value, graph.const(ints(rng, -128, 127, (256,)), "INT8")], value.shape, dtype)
    value = _convolution(graph, rng, value, channels, 3, 1)
    if chance(rng, 2) and dtype == "INT8":
        wide = [rescale(graph, item, "INT32", [2.0**18]) for item in (first, value)]
        value = rescale(graph, graph.add("ADD", wide, value.shape, "INT32"), "INT8", [2.0**-19])
    return value


def tables(graph: Graph, rng: Random, index: int) -> Value:
    """Several tables, more than the NPU holds at once: each behind the RESCALE of the one before."""
    value = graph.input(shape_of(rng, int(pick(rng, (2, 4))), 1024), "INT8")
    for _ in range(int(rng.randint(2, 12))):
        if value.dtype == "INT8":
            value = graph.add("TABLE", [value, graph.const(ints(rng, -128, 127, (256,)), "INT8")], value.shape, "INT8")
        else:
            curve = np.cumsum(ints(rng, -120, 120, (513,))).clip(-32768, 32767)
            wide = graph.add("TABLE", [value, graph.const(curve, "INT16")], value.shape, "INT32")
            value = rescale(graph, wide, "INT16", [1 / 128])
        target = pick(rng, ("INT8", "INT8", value.dtype, "INT16"))
        factor = {("INT8", "INT16"): 200.0, ("INT16", "INT8"): 0.004}.get((value.dtype, target), 0.9)
        if target != value.dtype or chance(rng, 2):
            value = rescale(graph, value, target, [factor], zeros=(0, 0))
    return value


def sum_of_scaled(graph: Graph, rng: Random, index: int) -> Value:
    """ADD or SUB with the larger factor a power of two that the hardware applies by itself (2**19, 2**14 for int16)."""
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    top = 2.0**19 if dtype == "INT8" else 2.0**14
    shape = shape_of(rng, int(pick(rng, (2, 3, 4, 4))))
    factors = [top, top * rng.uniform(0.01, 1.0)]
    if chance(rng, 2):
        factors.reverse()
    values: list[Value] = []
    for factor in factors:
        zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" else 0
        size = tuple(1 if chance(rng, 5) else extent for extent in shape)
        source = graph.input(size if values else shape, dtype)
        values.append(rescale(graph, source, "INT32", [factor], zeros=(zero_point, 0)))
    op = pick(rng, ("ADD", "ADD", "SUB"))
    total = graph.add(op, values, shape, "INT32")
    zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" else 0
    result = rescale(graph, total, dtype, [rng.uniform(0.2, 0.9) / top], zeros=(0, zero_point))
    return clamp(graph, result, -77, 100) if chance(rng, 3) else result


_SOURCES = (
    convolutions.conv2d,
    convolutions.fully_connected,
    convolutions.depthwise,
    convolutions.transpose_conv,
    pooling.avg_pool,
    pooling.max_pool,
    pooling.reduce_max,
    pooling.reduce_min,
    pooling.reduce_sum_i8,
    movement.concat,
    movement.pad,
    movement.reshape,
    movement.reverse,
    movement.slice_,
    movement.tile,
    movement.transpose,
    movement.gather,
    conversions.rescale_alone,
    conversions.resize_power,
    conversions.matmul,
)


def _activated(graph: Graph, rng: Random, value: Value) -> Value:
    """TABLE or CLAMP, whichever the dtype allows; nothing for int32 and bool."""
    if value.dtype == "INT8" and chance(rng, 2):
        return graph.add("TABLE", [value, graph.const(ints(rng, -128, 127, (256,)), "INT8")], value.shape, "INT8")
    if value.dtype in ("INT8", "INT16"):
        return clamp(graph, value, -70, 90)
    return value


def activated(graph: Graph, rng: Random, index: int) -> Value:
    """Any operator with TABLE or CLAMP behind it; a third has RESHAPE in between."""
    value = _SOURCES[index % len(_SOURCES)](graph, rng, index)
    if chance(rng, 3):
        flat = [*value.shape[:-2], int(np.prod(value.shape[-2:]))] if len(value.shape) > 1 else [1, *value.shape]
        value = graph.add("RESHAPE", [value, graph.dims(flat)], flat, value.dtype)
    return _activated(graph, rng, value)


def joined(graph: Graph, rng: Random, index: int) -> Value:
    """Any operator, sometimes with TABLE or CLAMP, as a part of CONCAT: written into a slice of a larger tensor."""
    value = _SOURCES[index % len(_SOURCES)](graph, rng, index)
    if chance(rng, 2):
        value = _activated(graph, rng, value)
    axis = int(rng.randint(len(value.shape)))
    other = graph.input(value.shape, value.dtype)
    out = [size * (2 if place == axis else 1) for place, size in enumerate(value.shape)]
    pair = [value, other] if chance(rng, 2) else [other, value]
    return graph.add("CONCAT", pair, out, value.dtype, axis=axis)


FAMILIES = (
    Family("chain-activated", 3 * len(_SOURCES), activated),
    Family("chain-joined", 3 * len(_SOURCES), joined),
    Family("cascade", 24, cascade),
    Family("chain-tables", 24, tables),
    Family("chain-sum", 36, sum_of_scaled),
)
