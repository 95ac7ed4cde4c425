"""CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D: alone and with the RESCALE that Vela fuses.

int8 inputs accumulate in int32, int16 inputs in int48 (TOSA's EXT-INT16); weights are int8 or int4.
Output sizes are drawn and the input size follows, because TOSA wants it to fit exactly:
(output - 1) * stride + (kernel - 1) * dilation + 1 = input + padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tosa_serializer as ts
from numpy.typing import NDArray

from tests.exactness.building import Graph, Value, clamp, rescale, zero
from tests.exactness.programs.family import Family, Random, chance, ints, pick

_ACCUMULATOR = {"INT8": "INT32", "INT16": "INT48"}


def axis(rng: Random, out: int, kernel: int, stride: int, dilation: int) -> tuple[int, int, int]:
    """Input size and padding before and after for one axis."""
    need = (out - 1) * stride + (kernel - 1) * dilation + 1
    before, after = (int(rng.randint(0, min(kernel, 3) + chance(rng, 8))) for _ in range(2))
    while need - before - after < 1:
        before, after = before // 2, after // 2
    return need - before - after, before, after


def weights(rng: Random, shape: Sequence[int], dtype: str = "INT8") -> NDArray[np.int64]:
    """Weights of one of the kinds that compress differently."""
    top = 7 if dtype == "INT4" else 127
    kind = int(rng.randint(7))
    if kind == 0:
        return np.clip(np.rint(rng.normal(0, top / 8, shape)), -top, top).astype(np.int64)
    if kind == 1:
        return ints(rng, -top, top, shape) * (rng.rand(*shape) < 0.15)
    if kind == 2:
        return np.full(shape, pick(rng, (-top, -1, 0, 1, top)))
    if kind == 3:
        return np.array([-top, -3, 0, 1, top])[rng.randint(0, 5, tuple(shape))]
    if kind == 4 and dtype == "INT8":
        return ints(rng, -128, 127, shape)
    return ints(rng, -top, top, shape)


def bias(rng: Random, graph: Graph, channels: int, dtype: str) -> Value:
    """A bias of moderate size; sometimes one value for all channels, sometimes zero."""
    count = 1 if channels > 1 and chance(rng, 8) else channels
    top = {"INT32": 1 << 18, "INT48": 1 << pick(rng, (18, 25, 30, 34))}[dtype]
    return graph.const(ints(rng, -top, top, (count,)) * (not chance(rng, 6)), dtype)


def tail(rng: Random, graph: Graph, value: Value, fan_in: int, per_channel: bool | None = None) -> Value:
    """RESCALE of an accumulator to int8, int16 or int32, sometimes with CLAMP."""
    wide = value.dtype == "INT48"
    dtype = pick(rng, ("INT8", "INT8", "INT8", "INT16", "INT32"))
    spread = np.sqrt(fan_in) * 73 * (18000 if wide else 73) * 1.5 + 2.0 ** (31 if wide else 18)
    target = {"INT8": 90.0, "INT16": 20000.0, "INT32": 2.0**21}[dtype]
    channels = value.shape[-1]
    many = channels > 1 and (rng.randint(2) == 0 if per_channel is None else per_channel)
    factors = np.minimum(target / spread * rng.uniform(0.3, 2.0, channels if many else 1), 2.0**12)
    zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" and not chance(rng, 3) else 0
    double = not wide and chance(rng, 4)
    result = rescale(graph, value, dtype, list(factors), zeros=(0, zero_point), double_round=double)
    if dtype != "INT32" and chance(rng, 3):
        top = 127 if dtype == "INT8" else 32767
        low, high = sorted(int(end) for end in rng.randint(-top - 1, top + 1, 2))
        result = clamp(graph, result, low, high)
    return result


def _conv2d(rng: Random, graph: Graph, dtype: str, kind: str = "any", weight_type: str = "INT8") -> tuple[Value, int]:
    batch = pick(rng, (1, 1, 1, 2, 3))
    channels, outputs = (int(pick(rng, (1, 3, 4, 8, 9, 16, 17, 24, 33, 64))) for _ in range(2))
    kernel = [int(pick(rng, (1, 1, 2, 3, 3, 4, 5, 7))) for _ in range(2)]
    stride = [int(pick(rng, (1, 1, 1, 2, 3, 4))) for _ in range(2)]
    dilation = [int(pick(rng, (1, 1, 1, 2, 3))) for _ in range(2)]
    out = [int(pick(rng, (1, 2, 3, 5, 8, 11))) for _ in range(2)]
    if kind == "plain":
        dilation, batch = [1, 1], 1
    if kind == "deep":
        channels, outputs = int(pick(rng, (100, 128, 200, 260))), int(pick(rng, (65, 130, 200)))
        kernel, dilation, out = [int(pick(rng, (1, 3)))] * 2, [1, 1], [3, 4]
    if kind == "wide":
        kernel, dilation, stride = [int(pick(rng, (1, 9, 17))), int(pick(rng, (9, 15, 33, 64)))], [1, 1], [1, 1]
        channels = outputs = int(pick(rng, (2, 5, 8)))
    sizes = [axis(rng, out[i], kernel[i], stride[i], dilation[i]) for i in range(2)]
    x = graph.input((batch, sizes[0][0], sizes[1][0], channels), dtype)
    w = graph.const(weights(rng, (outputs, *kernel, channels), weight_type), weight_type)
    inputs = [x, w, bias(rng, graph, outputs, _ACCUMULATOR[dtype]), *_zeros(rng, graph, dtype, weight_type)]
    accumulator = _ACCUMULATOR[dtype]
    result = graph.add(
        "CONV2D",
        inputs,
        (batch, *out, outputs),
        accumulator,
        pad=[*sizes[0][1:], *sizes[1][1:]],
        stride=stride,
        dilation=dilation,
        local_bound=False,
        acc_type=ts.DType.__members__[accumulator],
    )
    return result, int(np.prod(kernel)) * channels


def _zeros(rng: Random, graph: Graph, dtype: str, weight_type: str = "INT8") -> list[Value]:
    input_zero = int(rng.randint(-128, 128)) if dtype == "INT8" and not chance(rng, 3) else 0
    weight_zero = int(rng.randint(-128, 128)) if dtype == "INT8" and weight_type == "INT8" and chance(rng, 12) else 0
    return [zero(graph, dtype, input_zero), zero(graph, weight_type, weight_zero)]


def conv2d_bare(graph: Graph, rng: Random, index: int) -> Value:
    return _conv2d(rng, graph, "INT8")[0]


def conv2d(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_conv2d(rng, graph, "INT8", pick(rng, ("any", "any", "plain", "deep", "wide"))))


def conv2d_i4(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_conv2d(rng, graph, "INT8", "any", "INT4"))


def conv2d_i16(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_conv2d(rng, graph, "INT16", pick(rng, ("any", "any", "plain", "deep"))))


def accumulator_i48(graph: Graph, rng: Random, index: int) -> list[Value]:
    """An int48 accumulator that two RESCALEs read, so that one of them stands alone."""
    value, fan_in = _conv2d(rng, graph, "INT16")
    return [tail(rng, graph, value, fan_in), tail(rng, graph, value, fan_in)]


def fully_connected(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    batch, channels, outputs = int(pick(rng, (1, 1, 2, 7))), int(rng.randint(1, 300)), int(rng.randint(1, 150))
    x = graph.input((batch, 1, 1, channels), dtype)
    w = graph.const(weights(rng, (outputs, 1, 1, channels)), "INT8")
    accumulator = _ACCUMULATOR[dtype]
    inputs = [x, w, bias(rng, graph, outputs, accumulator), *_zeros(rng, graph, dtype)]
    result = graph.add(
        "CONV2D", inputs, (batch, 1, 1, outputs), accumulator, pad=[0] * 4, stride=[1, 1], dilation=[1, 1],
        local_bound=False, acc_type=ts.DType.__members__[accumulator],
    )  # fmt: skip
    return tail(rng, graph, result, channels)


def conv2d_inputs(graph: Graph, rng: Random, index: int) -> Value:
    """Weights (and sometimes the bias) are inputs of the graph."""
    channels, outputs, k = int(pick(rng, (3, 8, 17))), int(pick(rng, (2, 8, 20))), int(pick(rng, (1, 1, 2, 3)))
    out = [int(pick(rng, (1, 3, 6))) for _ in range(2)]
    sizes = [axis(rng, out[i], k, 1, 1) for i in range(2)]
    x = graph.input((1, sizes[0][0], sizes[1][0], channels), "INT8")
    w = graph.input((outputs, k, k, channels), "INT8")
    b = graph.input((outputs,), "INT32", -(1 << 18), 1 << 18) if chance(rng, 2) else bias(rng, graph, outputs, "INT32")
    return graph.add(
        "CONV2D", [x, w, b, zero(graph, "INT8", int(rng.randint(-9, 9))), zero(graph, "INT8")], (1, *out, outputs),
        "INT32", pad=[*sizes[0][1:], *sizes[1][1:]], stride=[1, 1], dilation=[1, 1], local_bound=False,
        acc_type=ts.DType.INT32,
    )  # fmt: skip


def _depthwise(rng: Random, graph: Graph, dtype: str) -> tuple[Value, int]:
    batch, multiplier = pick(rng, (1, 1, 1, 2)), int(pick(rng, (1, 1, 1, 2, 3)))
    channels = int(pick(rng, (1, 3, 8, 9, 16, 17, 33, 64)))
    kernel = [int(pick(rng, (1, 2, 3, 3, 5, 7))) for _ in range(2)]
    stride = [int(pick(rng, (1, 1, 2, 3, 4))) for _ in range(2)]
    dilation = [int(pick(rng, (1, 1, 1, 2, 3))) for _ in range(2)]
    out = [int(pick(rng, (1, 2, 4, 7))) for _ in range(2)]
    sizes = [axis(rng, out[i], kernel[i], stride[i], dilation[i]) for i in range(2)]
    x = graph.input((batch, sizes[0][0], sizes[1][0], channels), dtype)
    w = graph.const(weights(rng, (*kernel, channels, multiplier)), "INT8")
    accumulator = _ACCUMULATOR[dtype]
    outputs = channels * multiplier
    inputs = [x, w, bias(rng, graph, outputs, accumulator), *_zeros(rng, graph, dtype)]
    result = graph.add(
        "DEPTHWISE_CONV2D", inputs, (batch, *out, outputs), accumulator, pad=[*sizes[0][1:], *sizes[1][1:]],
        stride=stride, dilation=dilation, local_bound=False, acc_type=ts.DType.__members__[accumulator],
    )  # fmt: skip
    return result, int(np.prod(kernel))


def depthwise(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_depthwise(rng, graph, "INT8"))


def depthwise_bare(graph: Graph, rng: Random, index: int) -> Value:
    return _depthwise(rng, graph, "INT8")[0]


def depthwise_i16(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_depthwise(rng, graph, "INT16"))


def _transpose(rng: Random, graph: Graph, dtype: str) -> tuple[Value, int]:
    batch, channels, outputs = (
        pick(rng, (1, 1, 2)),
        int(pick(rng, (1, 3, 8, 17))),
        int(pick(rng, (1, 4, 9, 16, 20))),
    )
    kernel = [int(pick(rng, (1, 2, 3, 4, 5))) for _ in range(2)]
    stride = [int(pick(rng, (1, 2, 2)))] * 2 if rng.randint(4) else [int(pick(rng, (1, 2, 3))) for _ in range(2)]
    size = [int(pick(rng, (1, 2, 3, 5, 7))) for _ in range(2)]
    pads = []
    for i in range(2):
        low = [-int(rng.randint(0, kernel[i])) if chance(rng, 2) else int(rng.randint(0, 3)) for _ in range(2)]
        if (size[i] - 1) * stride[i] + kernel[i] + sum(low) < 1:
            low = [0, 0]
        pads.append(low)
    out = [(size[i] - 1) * stride[i] + kernel[i] + sum(pads[i]) for i in range(2)]
    x = graph.input((batch, *size, channels), dtype)
    w = graph.const(weights(rng, (outputs, *kernel, channels)), "INT8")
    accumulator = _ACCUMULATOR[dtype]
    inputs = [x, w, bias(rng, graph, outputs, accumulator), *_zeros(rng, graph, dtype)]
    result = graph.add(
        "TRANSPOSE_CONV2D", inputs, (batch, *out, outputs), accumulator, out_pad=[*pads[0], *pads[1]], stride=stride,
        local_bound=False, acc_type=ts.DType.__members__[accumulator],
    )  # fmt: skip
    return result, int(np.prod(kernel)) * channels


def transpose_conv(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_transpose(rng, graph, "INT8"))


def transpose_conv_bare(graph: Graph, rng: Random, index: int) -> Value:
    return _transpose(rng, graph, "INT8")[0]


def transpose_conv_i16(graph: Graph, rng: Random, index: int) -> Value:
    return tail(rng, graph, *_transpose(rng, graph, "INT16"))


def conv3d(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    batch, channels, outputs = pick(rng, (1, 1, 2)), int(pick(rng, (1, 3, 8, 17))), int(pick(rng, (1, 4, 9, 16)))
    kernel = [int(pick(rng, (1, 1, 2, 3))) for _ in range(3)]
    stride = [int(pick(rng, (1, 1, 2, 3))) for _ in range(3)]
    dilation = [int(pick(rng, (1, 1, 2))) for _ in range(3)]
    out = [int(pick(rng, (1, 2, 3, 4))) for _ in range(3)]
    sizes = [axis(rng, out[i], kernel[i], stride[i], dilation[i]) for i in range(3)]
    x = graph.input((batch, *(item[0] for item in sizes), channels), dtype)
    w = graph.const(weights(rng, (outputs, *kernel, channels)), "INT8")
    accumulator = _ACCUMULATOR[dtype]
    inputs = [x, w, bias(rng, graph, outputs, accumulator), *_zeros(rng, graph, dtype)]
    result = graph.add(
        "CONV3D", inputs, (batch, *out, outputs), accumulator, pad=[size for item in sizes for size in item[1:]],
        stride=stride, dilation=dilation, local_bound=False, acc_type=ts.DType.__members__[accumulator],
    )  # fmt: skip
    return tail(rng, graph, result, int(np.prod(kernel)) * channels)


FAMILIES = (
    Family("conv2d", 60, conv2d),
    Family("conv2d-acc", 16, conv2d_bare),
    Family("conv2d-i4", 12, conv2d_i4),
    Family("conv2d-i16", 40, conv2d_i16),
    Family("rescale-i48", 12, accumulator_i48),
    Family("conv2d-dynamic", 12, conv2d_inputs),
    Family("linear", 24, fully_connected),
    Family("depthwise", 40, depthwise),
    Family("depthwise-acc", 8, depthwise_bare),
    Family("depthwise-i16", 24, depthwise_i16),
    Family("transpose-conv", 36, transpose_conv),
    Family("transpose-conv-acc", 8, transpose_conv_bare),
    Family("transpose-conv-i16", 16, transpose_conv_i16),
    Family("conv3d", 24, conv3d),
)
