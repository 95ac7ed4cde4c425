"""Operators of the TOSA dialect on integer tensors, as TOSA 1.0 defines them.

Shapes are as in the graph; zero points of convolutions, MATMUL and NEGATE come from the node's
qparams, as the serializer takes them. Integer sums run in float64, exact below 2**53. An operator
that is not here raises ``Unsupported``.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from harness.evidence.inspection.decisions import RANGES


class Unsupported(Exception):
    """The interpreter does not know an operator, or a form of it."""


@dataclass(frozen=True)
class Context:
    """What an operator takes from its node.

    :param input_zero_points: zero point of each tensor argument, 0 where the node names none.
    :param output_zero_point: of the result.
    """

    input_zero_points: Mapping[int, int]
    output_zero_point: int = 0

    def zero_point(self, index: int) -> int:
        return self.input_zero_points.get(index, 0)


Kernel = Callable[..., Any]
WIDE = torch.int64
"""Stands for int48, which torch has not."""


def rescale(
    _: Context,
    x: torch.Tensor,
    dtype: torch.dtype,
    scales: list[float],
    zero_in: int,
    zero_out: int,
    *,
    input_unsigned: bool = False,
    output_unsigned: bool = False,
) -> torch.Tensor:
    """RESCALE with one rounding, halves upward, saturating; ratios are encoded as TOSA has them.

    :raises Unsupported: a ratio that has no encoding.
    """
    codes = x.view(torch.uint8) if input_unsigned and x.dtype == torch.int8 else x
    pairs = [encoded_ratio(scale, 15 if x.dtype == WIDE else 31) for scale in scales]
    multiplier, shift = (torch.tensor(items, dtype=torch.int64) for items in zip(*pairs, strict=True))
    if len(scales) == 1:
        multiplier, shift = multiplier[0], shift[0]
    values = ((codes.to(torch.int64) - zero_in) * multiplier + (1 << (shift - 1))) >> shift
    low, high = _range(dtype, unsigned=output_unsigned)
    result = (values + zero_out).clamp(low, high)
    return result.to(torch.uint8).view(torch.int8) if output_unsigned and dtype == torch.int8 else result.to(dtype)


def encoded_ratio(scale: float, bits: int) -> tuple[int, int]:
    """A ratio as multiplier and right shift.

    :param bits: of the multiplier: 31, or 15 after an int48 accumulator.
    :raises Unsupported: a ratio that no multiplier and shift encode.
    """
    mantissa, exponent = math.frexp(scale)
    multiplier, shift = round(mantissa * (1 << bits)), bits - exponent
    if multiplier == 1 << bits:
        multiplier, shift = multiplier >> 1, shift - 1
    if shift > 62:
        multiplier, shift = multiplier >> min(31, shift - 62), 62
    if multiplier < 0 or shift < 2:
        raise Unsupported(f"RESCALE by {scale}")
    return multiplier, shift


def _range(dtype: torch.dtype, unsigned: bool = False) -> tuple[int, int]:
    name = str(dtype).removeprefix("torch.")
    return RANGES["uint8" if unsigned and name == "int8" else name]


def _centered(context: Context, index: int, x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64) - context.zero_point(index)


def conv2d(
    context: Context, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, stride: Any, pad: Any, dilation: Any
) -> torch.Tensor:
    """CONV2D: x NHWC, w OHWI, pad top, bottom, left, right."""
    data = _padded(_centered(context, 0, x).permute(0, 3, 1, 2), pad)
    kernel = w.to(torch.float64).permute(0, 3, 1, 2)
    result = torch.nn.functional.conv2d(data, kernel, None, list(stride), 0, list(dilation))
    return _accumulated(x, result.permute(0, 2, 3, 1), bias)


def depthwise(
    context: Context, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, stride: Any, pad: Any, dilation: Any
) -> torch.Tensor:
    """DEPTHWISE_CONV2D: w HWCM."""
    data = _padded(_centered(context, 0, x).permute(0, 3, 1, 2), pad)
    height, width, channels, multiplier = w.shape
    kernel = w.to(torch.float64).permute(2, 3, 0, 1).reshape(channels * multiplier, 1, height, width)
    result = torch.nn.functional.conv2d(data, kernel, None, list(stride), 0, list(dilation), channels)
    return _accumulated(x, result.permute(0, 2, 3, 1), bias)


def conv3d(
    context: Context, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, stride: Any, pad: Any, dilation: Any
) -> torch.Tensor:
    """CONV3D: x NDHWC, w ODHWI, pad front, back, top, bottom, left, right."""
    data = _centered(context, 0, x).permute(0, 4, 1, 2, 3)
    front, back, top, bottom, left, right = pad
    data = torch.nn.functional.pad(data, (left, right, top, bottom, front, back))
    kernel = w.to(torch.float64).permute(0, 4, 1, 2, 3)
    result = torch.nn.functional.conv3d(data, kernel, None, list(stride), 0, list(dilation))
    return _accumulated(x, result.permute(0, 2, 3, 4, 1), bias)


def transpose_conv2d(
    context: Context, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, out_pad: Any, stride: Any
) -> torch.Tensor:
    """TRANSPOSE_CONV2D: w OHWI; out_pad crops (negative) or extends the result."""
    data = _centered(context, 0, x).permute(0, 3, 1, 2)
    result = torch.nn.functional.conv_transpose2d(data, w.to(torch.float64).permute(3, 0, 1, 2), None, list(stride))
    return _accumulated(x, _padded(result, out_pad).permute(0, 2, 3, 1), bias)


def _padded(data: torch.Tensor, pad: Any) -> torch.Tensor:
    top, bottom, left, right = pad
    return torch.nn.functional.pad(data, (left, right, top, bottom))


def _accumulated(x: torch.Tensor, result: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return _accumulator(x, result + bias.to(torch.float64))


def _accumulator(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """int48 for codes of 16 bits, int32 for those of 8."""
    return result.to(WIDE if x.dtype == torch.int16 else torch.int32)


def matmul(context: Context, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _accumulator(a, torch.matmul(_centered(context, 0, a), _centered(context, 1, b)))


def table(_: Context, x: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
    """8 bits: look up; 16 bits: interpolate between neighbours, 7 fractional bits in the result."""
    values = entries.reshape(-1).to(torch.int64)
    codes = x.to(torch.int64)
    if x.dtype == torch.int8:
        return values[codes + 128].to(entries.dtype)
    index, fraction = (codes >> 7) + 256, codes & 0x7F
    return ((values[index] << 7) + (values[index + 1] - values[index]) * fraction).to(torch.int32)


def pad(_: Context, x: torch.Tensor, padding: Any, *, value: Any) -> torch.Tensor:
    pairs = [(int(padding[2 * axis]), int(padding[2 * axis + 1])) for axis in range(x.dim())]
    flat = [size for pair in reversed(pairs) for size in pair]
    return torch.nn.functional.pad(x.to(torch.float64), flat, value=float(value)).to(x.dtype)


def crop(_: Context, x: torch.Tensor, start: Any, size: Any) -> torch.Tensor:
    for axis, (first, count) in enumerate(zip(start, size, strict=True)):
        x = x.narrow(axis, int(first), int(count))
    return x


def max_pool(_: Context, x: torch.Tensor, kernel: Any, stride: Any, pad: Any) -> torch.Tensor:
    top, bottom, left, right = pad
    data = torch.nn.functional.pad(
        x.to(torch.float64).permute(0, 3, 1, 2), (left, right, top, bottom), value=-float("inf")
    )
    return torch.nn.functional.max_pool2d(data, list(kernel), list(stride)).permute(0, 2, 3, 1).to(x.dtype)


def avg_pool(
    _: Context, x: torch.Tensor, zero_in: Any, zero_out: Any, kernel: Any, stride: Any, pad: Any, acc: Any
) -> torch.Tensor:
    """AVG_POOL2D: padding does not count."""
    zero_in, zero_out = (
        int(item.reshape(-1)[0]) if isinstance(item, torch.Tensor) else int(item) for item in (zero_in, zero_out)
    )
    data = _padded(x.to(torch.float64).permute(0, 3, 1, 2) - zero_in, pad)
    count = _padded(torch.ones(1, 1, *x.shape[1:3], dtype=torch.float64), pad)
    total, taps = (
        torch.nn.functional.avg_pool2d(item, list(kernel), list(stride), divisor_override=1) for item in (data, count)
    )
    low, high = _range(x.dtype)
    return (torch.floor(total / taps + 0.5) + zero_out).clamp(low, high).permute(0, 2, 3, 1).to(x.dtype)


def negate(context: Context, x: torch.Tensor) -> torch.Tensor:
    low, high = _range(x.dtype)
    return (-_centered(context, 0, x) + context.output_zero_point).clamp(low, high).to(x.dtype)


def multiply(_: Context, a: torch.Tensor, b: torch.Tensor, *, shift: int = 0) -> torch.Tensor:
    product = a.to(torch.int64) * b.to(torch.int64)
    if shift:
        product = (product + (1 << (shift - 1))) >> shift
    return product.to(torch.int32)


def _float_or(function: Callable[..., torch.Tensor]) -> Kernel:
    return lambda _, *args, **kwargs: function(*args, **kwargs)


def _reduced(function: Callable[..., torch.Tensor]) -> Kernel:
    def kernel(_: Context, x: torch.Tensor, *, axis: int, **rest: Any) -> torch.Tensor:
        return function(x, axis).to(x.dtype)

    return kernel


def _clamped(_: Context, x: torch.Tensor, low: Any, high: Any, **rest: Any) -> torch.Tensor:
    return x.clamp(low, high)


KERNELS: Mapping[str, Kernel] = {
    "RESCALE": rescale,
    "CONV2D": conv2d,
    "DEPTHWISE_CONV2D": depthwise,
    "CONV3D": conv3d,
    "TRANSPOSE_CONV2D": transpose_conv2d,
    "MATMUL": matmul,
    "TABLE": table,
    "PAD": pad,
    "SLICE": crop,
    "MAX_POOL2D": max_pool,
    "AVG_POOL2D": avg_pool,
    "NEGATE": negate,
    "MUL": lambda _, a, b, shift=0: a * b if a.is_floating_point() else multiply(_, a, b, shift=shift),
    "ADD": _float_or(torch.add),
    "SUB": _float_or(torch.sub),
    "ABS": _float_or(torch.abs),
    "MAXIMUM": lambda _, a, b, **rest: torch.maximum(a, b),
    "MINIMUM": lambda _, a, b, **rest: torch.minimum(a, b),
    "EQUAL": _float_or(torch.eq),
    "GREATER": _float_or(torch.gt),
    "GREATER_EQUAL": _float_or(torch.ge),
    "LOGICAL_AND": _float_or(torch.logical_and),
    "LOGICAL_OR": _float_or(torch.logical_or),
    "LOGICAL_NOT": _float_or(torch.logical_not),
    "SELECT": _float_or(torch.where),
    "CLAMP": _clamped,
    "CONCAT": lambda _, parts, *, axis: torch.cat(list(parts), axis),
    "TRANSPOSE": lambda _, x, order: x.permute(list(order)),
    "RESHAPE": lambda _, x, shape: x.reshape([int(size) for size in shape]),
    "TILE": lambda _, x, times: x.repeat([int(count) for count in times]),
    "REVERSE": lambda _, x, *, axis: x.flip(axis),
    "IDENTITY": lambda _, x: x,
    "CONST_SHAPE": lambda _, shape: list(shape),
    "CAST": lambda _, x, dtype: x.to(dtype),
    "REDUCE_SUM": _reduced(lambda x, axis: x.sum(axis, keepdim=True)),
    "REDUCE_MAX": _reduced(lambda x, axis: x.amax(axis, keepdim=True)),
    "REDUCE_MIN": _reduced(lambda x, axis: x.amin(axis, keepdim=True)),
    "GATHER": lambda _, x, index: torch.gather(x, 1, index.to(torch.int64)[..., None].expand(-1, -1, x.shape[-1])),
    "FLOOR": _float_or(torch.floor),
    "CEIL": _float_or(torch.ceil),
}
