"""CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D, MATMUL with the RESCALE behind them, AVG_POOL2D, MAX_POOL2D.

int8 accumulates in int32, int16 in int48 (TOSA's EXT-INT16), which only a RESCALE may read on Ethos-U55. TOSA wants a
window to fit exactly, (output - 1) * stride + (kernel - 1) * dilation + 1 = input + padding: padding behind takes what
is missing, or a CLAMP-free SLICE is not needed because the stride is drawn to fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from generators.tosa_graph import (
    CHANNELS,
    MANTISSAS,
    NUMBER,
    ONLY_U85,
    PROPAGATE,
    TosaGraph,
    TosaOperator,
    Value,
    between,
    choose,
    fill,
    of_kind,
    one_in,
    zero_point,
)
from harness.case.operators import Draw
from harness.tosa.program import Fill, limits

_ACCUMULATOR = {"INT8": "INT32", "INT16": "INT48"}
_KERNELS = (1, 3, 2, 1, 3, 5, 4, 7)
_MOST_WEIGHTS = 6000
Axis = tuple[int, int, int, int, int, int]
"""Kernel, stride, dilation, padding before and after, output size."""


def _axis(draw: Draw, size: int, kernels: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Axis:
    """One axis of a window on an input of this size."""
    kernel = choose(draw, kernels)
    dilation = choose(draw, dilations) if kernel > 1 else 1
    reach = (kernel - 1) * dilation + 1
    before = min(choose(draw, (0, 0, 1, reach // 2, reach - 1)), max(reach - 1, 0))
    after = min(choose(draw, (0, 0, 1, reach // 2)), max(reach - 1, 0))
    if size + before + after < reach:
        before, after = reach // 2, reach - 1 - reach // 2
    if size + before + after < reach:
        kernel, dilation, reach, before, after = 1, 1, 1, 0, 0
    stride = choose(draw, strides)
    left = (size + before + after - reach) % stride
    if left:
        if after >= left:
            after -= left
        elif after + stride - left <= max(reach - 1, 0):
            after += stride - left
        elif before >= left:
            before -= left
        else:
            stride = next(item for item in (2, 1) if (size + before + after - reach) % item == 0)
    return kernel, stride, dilation, before, after, (size + before + after - reach) // stride + 1


def _strides(graph: TosaGraph) -> tuple[int, ...]:
    return (1, 1, 2, 3, 4) if graph.u85 else (1, 1, 2, 3)


def _weights(draw: Draw, top: int = 127) -> Fill:
    return fill(draw, -top, top)


def _bias(draw: Draw, graph: TosaGraph, channels: int, dtype: str) -> Value:
    if one_in(draw, 4):
        return graph.constant((1,), dtype, (0,))
    top = choose(draw, (1 << 12, 1 << 18, 100)) if dtype == "INT32" else choose(draw, (1 << 18, 1 << 30, 100))
    return graph.constant((channels,), dtype, Fill("uniform", -top, top, between(draw, 0, 99)))


def tail(draw: Draw, graph: TosaGraph, value: Value, terms: int) -> Value:
    """RESCALE of an accumulator of so many products, sometimes one factor a channel, sometimes with CLAMP."""
    wide = value.dtype == "INT48"
    dtype = choose(draw, ("INT16", "INT16", "INT8", "INT32") if wide else ("INT8", "INT8", "INT8", "INT16", "INT32"))
    spread = math.sqrt(terms) * 73 * (18000 if wide else 73)
    target = {"INT8": 90.0, "INT16": 20000.0, "INT32": 2.0**21}[dtype]
    count = value.shape[-1] if value.shape[-1] > 1 and not one_in(draw, 3) else 1
    some = [choose(draw, MANTISSAS) for _ in range(min(count, 3))]
    factors = [min(target / spread * some[channel % len(some)] * 1.5, 2.0**12) for channel in range(count)]
    double = not wide and one_in(draw, 5)
    result = graph.rescale(value, dtype, factors, zeros=(0, zero_point(draw, dtype)), double_round=double)
    if dtype == "INT32" or not one_in(draw, 3):
        return result
    return clamped(draw, graph, result)


def clamped(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """CLAMP as a fused activation leaves it: from a zero point up, or between two codes."""
    low, high = limits(value.dtype)
    bottom, top = choose(draw, ((low // 2, high), (0, high), (low + 1, high // 2), (-5, 20)))
    size = 1 if value.dtype == "INT8" else 2
    least, most = (end.to_bytes(size, "little", signed=True) for end in (bottom, top))
    return graph.add(
        "CLAMP",
        [value],
        value.shape,
        value.dtype,
        (bottom, top),
        MinVal=tuple(least),
        MaxVal=tuple(most),
        NanMode=PROPAGATE,
    )


def _accumulated(
    graph: TosaGraph, op: str, inputs: list[Value], shape: Sequence[int], terms: int, **more: object
) -> Value:
    """The operator with its accumulator's range: products of 16 or 9 bits with 8, the zero points included."""
    value = inputs[0]
    dtype = _ACCUMULATOR[value.dtype]
    weights = inputs[1]
    spread = 255 if value.dtype == "INT8" else 32768
    most = terms * spread * max(weights.most, 255 if not weights.low > -200 else 127)
    bias = inputs[2].most if len(inputs) > 4 else 0
    span = (-(most + bias), most + bias)
    return graph.add(op, inputs, tuple(shape), dtype, span, **more)  # type: ignore[arg-type]


def _zeros(draw: Draw, graph: TosaGraph, value: Value, weight: str) -> list[Value]:
    return [graph.scalar(zero_point(draw, value.dtype), value.dtype), graph.scalar(0, weight)]


def _few(channels: int, terms: int) -> tuple[int, ...]:
    return tuple(item for item in CHANNELS if item * terms <= _MOST_WEIGHTS) or (1,)


def _conv2d(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, height, width, channels = value.shape
    y = _axis(draw, height, _KERNELS, _strides(graph), (1, 1, 2, 3))
    x = _axis(draw, width, _KERNELS, _strides(graph), (1, 1, 2, 3))
    terms = y[0] * x[0] * channels
    outputs = choose(draw, _few(channels, terms))
    four = value.dtype == "INT8" and one_in(draw, 8)
    weight = graph.constant(
        (outputs, y[0], x[0], channels), "INT4" if four else "INT8", _weights(draw, 7 if four else 127)
    )
    inputs = [
        value,
        weight,
        _bias(draw, graph, outputs, _ACCUMULATOR[value.dtype]),
        *_zeros(draw, graph, value, weight.dtype),
    ]
    result = _accumulated(
        graph,
        "CONV2D",
        inputs,
        (batch, y[5], x[5], outputs),
        terms,
        Pad=(*y[3:5], *x[3:5]),
        Stride=(y[1], x[1]),
        Dilation=(y[2], x[2]),
        LocalBound=False,
        AccType=NUMBER[_ACCUMULATOR[value.dtype]],
    )
    return tail(draw, graph, result, terms)


def _pointwise(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """A linear layer as ExecuTorch makes it: 1x1 CONV2D; now and then with a stride, of which Vela takes any here."""
    batch, *space, channels = value.shape
    strided = one_in(draw, 3)
    steps = [choose(draw, [step for step in (4, 2, 3, 1) if not (size - 1) % step]) if strided else 1 for size in space]
    outputs = choose(draw, _few(channels, channels))
    inputs = [
        value,
        graph.constant((outputs, 1, 1, channels), "INT8", _weights(draw)),
        _bias(draw, graph, outputs, _ACCUMULATOR[value.dtype]),
        *_zeros(draw, graph, value, "INT8"),
    ]
    result = _accumulated(
        graph,
        "CONV2D",
        inputs,
        (batch, *((size - 1) // step + 1 for size, step in zip(space, steps, strict=True)), outputs),
        channels,
        Pad=(0, 0, 0, 0),
        Stride=tuple(steps),
        Dilation=(1, 1),
        LocalBound=False,
        AccType=NUMBER[_ACCUMULATOR[value.dtype]],
    )
    return tail(draw, graph, result, channels)


def _depthwise(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, height, width, channels = value.shape
    y = _axis(draw, height, _KERNELS, _strides(graph), (1, 1, 2, 3))
    x = _axis(draw, width, _KERNELS, _strides(graph), (1, 1, 2, 3))
    multiplier = choose(draw, (1, 1, 1, 2, 3))
    outputs = channels * multiplier
    inputs = [
        value,
        graph.constant((y[0], x[0], channels, multiplier), "INT8", _weights(draw)),
        _bias(draw, graph, outputs, _ACCUMULATOR[value.dtype]),
        *_zeros(draw, graph, value, "INT8"),
    ]
    result = _accumulated(
        graph,
        "DEPTHWISE_CONV2D",
        inputs,
        (batch, y[5], x[5], outputs),
        y[0] * x[0],
        Pad=(*y[3:5], *x[3:5]),
        Stride=(y[1], x[1]),
        Dilation=(y[2], x[2]),
        LocalBound=False,
        AccType=NUMBER[_ACCUMULATOR[value.dtype]],
    )
    return tail(draw, graph, result, y[0] * x[0])


def _transpose_conv(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, height, width, channels = value.shape
    kernel = [choose(draw, (3, 2, 1, 4, 5)) for _ in range(2)]
    stride = choose(draw, ((2, 2), (1, 1), (3, 3), (1, 2), (2, 1), (3, 1)) if graph.u85 else ((2, 2), (1, 1)))
    pads: list[tuple[int, int]] = []
    for size, reach, step in zip((height, width), kernel, stride, strict=True):
        before, after = (choose(draw, (0, 0, -1, 1, -(reach - 1), 2)) for _ in range(2))
        after = before if one_in(draw, 2) else after  # PyTorch pads both sides alike
        # TOSA wants out_pad > -kernel; Ethos-U takes what PyTorch's padding and output_padding give
        before, after = max(before, 1 - reach), max(after, 1 - reach)
        pads.append((0, 0) if (size - 1) * step + reach + before + after < 1 else (before, after))
    out = [
        (size - 1) * step + reach + sum(pad)
        for size, reach, step, pad in zip((height, width), kernel, stride, pads, strict=True)
    ]
    terms = kernel[0] * kernel[1] * channels
    outputs = choose(draw, _few(channels, terms))
    inputs = [
        value,
        graph.constant((outputs, *kernel, channels), "INT8", _weights(draw)),
        _bias(draw, graph, outputs, _ACCUMULATOR[value.dtype]),
        *_zeros(draw, graph, value, "INT8"),
    ]
    result = _accumulated(
        graph,
        "TRANSPOSE_CONV2D",
        inputs,
        (batch, *out, outputs),
        terms,
        OutPad=(*pads[0], *pads[1]),
        Stride=stride,
        LocalBound=False,
        AccType=NUMBER[_ACCUMULATOR[value.dtype]],
    )
    return tail(draw, graph, result, terms)


def _conv3d(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, *sizes, channels = value.shape
    depths = (1, 2, 3) if graph.u85 else (1,)
    kernels = (depths, (1, 2, 3), (1, 2, 3))
    axes = [_axis(draw, size, kernels[place], (1, 1, 2), (1, 1, 2)) for place, size in enumerate(sizes)]
    terms = math.prod(axis[0] for axis in axes) * channels
    outputs = choose(draw, _few(channels, terms))
    inputs = [
        value,
        graph.constant((outputs, *(axis[0] for axis in axes), channels), "INT8", _weights(draw)),
        _bias(draw, graph, outputs, _ACCUMULATOR[value.dtype]),
        *_zeros(draw, graph, value, "INT8"),
    ]
    result = _accumulated(
        graph,
        "CONV3D",
        inputs,
        (batch, *(axis[5] for axis in axes), outputs),
        terms,
        Pad=tuple(pad for axis in axes for pad in axis[3:5]),
        Stride=tuple(axis[1] for axis in axes),
        Dilation=tuple(axis[2] for axis in axes),
        LocalBound=False,
        AccType=NUMBER[_ACCUMULATOR[value.dtype]],
    )
    return tail(draw, graph, result, terms)


def _matmul(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """MATMUL has three axes: what has others is reshaped before and behind, as ExecuTorch does."""
    *outer, rows, depth = value.shape
    batch = math.prod(outer)
    if value.rank == 3:
        return _product(draw, graph, value)
    result = _product(draw, graph, graph.reshape(value, (batch, rows, depth)))
    return graph.reshape(result, (*outer, *result.shape[1:]))


def _product(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    batch, rows, depth = value.shape
    columns = choose(draw, (4, 1, 3, 8, 16, 9))
    if one_in(draw, 3):
        other = graph.operand(draw, (batch, rows, rows), value.dtype)
        one, two, shape, terms = other, value, (batch, rows, depth), rows
    else:
        other = graph.operand(draw, (batch, depth, columns), value.dtype)
        one, two, shape, terms = value, other, (batch, rows, columns), depth
    zeros = [graph.scalar(zero_point(draw, value.dtype), value.dtype) for _ in range(2)]
    most = terms * (255 * 255 if value.dtype == "INT8" else 1 << 30)
    result = graph.add("MATMUL", [one, two, *zeros], shape, _ACCUMULATOR[value.dtype], (-most, most))
    spread = math.sqrt(terms) * (73 * 73 if value.dtype == "INT8" else 18000.0 * 18000)
    dtype = choose(draw, ("INT8", "INT16") if value.dtype == "INT8" else ("INT16", "INT8"))
    factor = (90 if dtype == "INT8" else 20000) / spread * choose(draw, MANTISSAS) * 1.5
    return graph.rescale(result, dtype, [min(factor, 1.0)], zeros=(0, zero_point(draw, dtype)))


def _pooled(draw: Draw, graph: TosaGraph, value: Value) -> tuple[Axis, Axis]:
    _, height, width, _ = value.shape
    sizes = (2, 3, 1, 4, 5, 8) if not one_in(draw, 4) else (height, width, 9)
    y, x = (_axis(draw, size, sizes, _strides(graph), (1,)) for size in (height, width))
    return y, x


def _averaged(draw: Draw, graph: TosaGraph, value: Value) -> tuple[Axis, Axis]:
    """Ethos-U55 and U65 pad an average of eight elements an axis at the most."""
    y, x = _pooled(draw, graph, value)
    padded = any((*y[3:5], *x[3:5]))
    if padded and max(y[0], x[0]) > 8 and not graph.u85:
        return _whole(value.shape[1]), _whole(value.shape[2])
    return y, x


def _whole(size: int) -> Axis:
    return size, 1, 1, 0, 0, 1


def _avg_pool(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    y, x = _averaged(draw, graph, value)
    zeros = [graph.scalar(zero_point(draw, value.dtype), value.dtype) for _ in range(2)]
    return graph.add(
        "AVG_POOL2D",
        [value, *zeros],
        (value.shape[0], y[5], x[5], value.shape[3]),
        value.dtype,
        Kernel=(y[0], x[0]),
        Stride=(y[1], x[1]),
        Pad=(*y[3:5], *x[3:5]),
        AccType=NUMBER["INT32"],
    )


def _max_pool(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    y, x = _pooled(draw, graph, value)
    return graph.add(
        "MAX_POOL2D",
        [value],
        (value.shape[0], y[5], x[5], value.shape[3]),
        value.dtype,
        Kernel=(y[0], x[0]),
        Stride=(y[1], x[1]),
        Pad=(*y[3:5], *x[3:5]),
        NanMode=PROPAGATE,
    )


def _window(value: Value) -> bool:
    return value.quantized and value.rank == 4


def _one_batch(value: Value) -> bool:
    return _window(value) and value.shape[0] == 1


TOSA_OPERATORS = of_kind(
    "multiplies",
    TosaOperator("conv2d", _window, _conv2d),
    TosaOperator("linear", _window, _pointwise),
    TosaOperator("depthwise-conv2d", _window, _depthwise),
    TosaOperator("transpose-conv2d", lambda value: _window(value) and value.small, _transpose_conv),
    TosaOperator("conv3d", lambda value: value.quantized and value.rank == 5, _conv3d),
    TosaOperator("matmul", lambda value: value.dtype == "INT8" and value.rank > 1, _matmul),
    TosaOperator("matmul-int16", lambda value: value.dtype == "INT16" and value.rank > 1, _matmul, ONLY_U85),
    TosaOperator("avg-pool2d", _one_batch, _avg_pool),
    TosaOperator("avg-pool2d-batched", _window, _avg_pool, ONLY_U85),
    TosaOperator("max-pool2d", _window, _max_pool),
)
