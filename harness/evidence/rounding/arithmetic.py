"""Rules of arithmetic: sums, products, convolutions, averages, and what is composed of them.

Families: *monotone* operators are evaluated at both ends; *summing* ones likewise, with the error
of their additions; *bilinear* ones by centre and radius of both factors. A composite operator
that a recipe leaves in float (a normalization, softmax) is bounded by bounding its pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from harness.evidence.rounding import freedom
from harness.evidence.rounding.call import (
    Call,
    Rule,
    as_interval,
    extremes,
    numbers,
    paired,
    unclaimed_where,
    with_slack,
)
from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval, ordered, unbounded_like


def monotone(call: Call) -> Any:
    """Operators that grow with every operand, evaluated in a few float32 operations."""
    return with_slack(paired(call.at("low"), call.at("high")), 4)


def summing(call: Call) -> Interval:
    """Sums and means: monotone; n float32 additions err by n epsilons of the absolute sum."""
    result = Interval(call.at("low"), call.at("high"))
    operand = call.operands[0]
    cumulative = call.name == "cumsum"
    counted = operand.low.shape[int(call.args[1])] if cumulative and operand.low.dim() else 0
    terms = counted or max(_window(call), operand.low.numel() // max(1, result.low.numel()))
    slack = call.of(lambda item: item.magnitude).abs() * FLOAT32_EPSILON * (terms + 2)
    if call.name == "avg_pool2d":
        slack = slack + freedom.pooled_average(operand, call.result_scale)
    if cumulative:  # lowered to a convolution with ones
        slack = slack + freedom.wide_accumulator(result.magnitude, call.operands)
    return result.widened(slack)


def _window(call: Call) -> int:
    """Elements that one average of a pool with a kernel is of; windows may overlap."""
    if not call.name.startswith("avg_pool"):
        return 1
    given = call.args[1]
    axes = 2 if call.name == "avg_pool2d" else 1
    kernel = [given] if isinstance(given, int) else [*given]
    return int(math.prod(kernel if len(kernel) == axes else kernel * axes))


def resizing(call: Call) -> Interval:
    """upsample_bilinear2d: averages of four neighbours, whose weights err by epsilons of a coordinate.

    RESIZE has a wide accumulator for int16, as convolutions have.
    """
    item = call.args[0]
    result = Interval(call.at("low"), call.at("high"))
    largest = item.magnitude.amax((-2, -1), keepdim=True)
    coordinate = max(item.low.shape[-2:])
    slack = largest * FLOAT32_EPSILON * (2 * coordinate + 8)
    return result.widened(slack + freedom.wide_accumulator(result.magnitude, [item]))


def bilinear(call: Call) -> Interval:
    """Convolutions and matrix products, by centre and radius of both factors."""
    x, w = as_interval(call.args[0]), as_interval(call.args[1])
    bias = call.args[2] if len(call.args) > 2 and isinstance(call.args[2], Interval) else None
    rest = call.args[3:]

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        arguments = (a, b, None, *rest) if len(call.args) > 2 else (a, b)
        result: torch.Tensor = call.overload(*arguments, **call.kwargs)
        return result

    return _product(product, x, w, bias, _bias_shape(call))


def affine(call: Call) -> Interval:
    """addmm: beta * bias + alpha * (x @ w); both factors are literals."""
    bias, x, w = (as_interval(item) for item in call.args[:3])
    alpha, beta = (float(call.kwargs.get(name, 1.0)) for name in ("alpha", "beta"))
    return _product(torch.matmul, x, _scaled(w, alpha), _scaled(bias, beta), lambda value: value)


def _scaled(item: Interval, factor: float) -> Interval:
    return item if factor == 1.0 else ordered(item.low * factor, item.high * factor)


def _bias_shape(call: Call) -> Callable[[torch.Tensor], torch.Tensor]:
    spatial = {"conv1d": 1, "conv2d": 2, "conv3d": 3, "conv_transpose1d": 1, "conv_transpose2d": 2}.get(call.name, 0)
    return lambda value: value.reshape(value.shape + (1,) * spatial)


def _product(
    product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    x: Interval,
    w: Interval,
    bias: Interval | None,
    shaped: Callable[[torch.Tensor], torch.Tensor],
) -> Interval:
    center = product(x.center, w.center)
    if not (x.finite and w.finite):
        return unbounded_like(center)
    absolute = product(x.magnitude, w.magnitude)
    radius = torch.zeros_like(center)
    if not x.exact:
        radius = radius + product(x.radius, w.magnitude)
    if not w.exact:
        radius = radius + product(x.center.abs(), w.radius)
    if bias is not None:
        center = center + shaped(bias.center)
        radius = radius + shaped(bias.radius)
        absolute = absolute + shaped(bias.magnitude)
    terms = product(torch.ones_like(x.low), torch.ones_like(w.low)).abs()
    slack = absolute * FLOAT32_EPSILON * (terms + 4)
    result = Interval(center - radius, center + radius)
    return result.widened(slack + freedom.wide_accumulator(result.magnitude, [x, w]))


def adding(call: Call) -> Interval:
    """add and sub, with a scalar factor on the second operand."""
    first, second = numbers(*call.args[:2])
    factor = float(call.kwargs.get("alpha", 1.0))
    if call.name == "sub":
        factor = -factor
    elif call.name == "rsub":
        first, second, factor = second, first, -factor
    return _sum(first, _scaled(second, factor)).widened(freedom.addition(call.operands))


def _sum(first: Interval, second: Interval) -> Interval:
    slack = (first.magnitude + second.magnitude) * FLOAT32_EPSILON * 4
    result = Interval(first.low + second.low, first.high + second.high)
    return result.widened(torch.nan_to_num(slack, posinf=0.0))


def multiplying(call: Call) -> Interval:
    """Products of two operands; an operand with itself is a square."""
    first, second = call.args[:2]
    return _square(first) if first is second else _times(*numbers(first, second))


def _times(first: Interval, second: Interval) -> Interval:
    """The extreme ones of the four corner products."""
    corners = [a * b for a in (first.low, first.high) for b in (second.low, second.high)]
    return with_slack(extremes(corners), 4)  # type: ignore[no-any-return]


def factoring(call: Call) -> Interval:
    """prod along one dimension."""
    item, dim = call.args[0], call.argument(1, "dim", None)
    keep = bool(call.argument(2, "keepdim", False))
    if dim is None:
        item, dim = Interval(item.low.reshape(-1), item.high.reshape(-1)), 0
    parts = [Interval(low, high) for low, high in zip(item.low.unbind(dim), item.high.unbind(dim), strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = _times(result, part)
    return Interval(result.low.unsqueeze(dim), result.high.unsqueeze(dim)) if keep else result


def _square(item: Interval) -> Interval:
    least = torch.where((item.low <= 0) & (item.high >= 0), 0.0, torch.minimum(item.low.abs(), item.high.abs()))
    result = Interval(least * least, item.magnitude * item.magnitude)
    widened: Interval = with_slack(result, 4)
    return replace(widened, low=widened.low.clamp(min=0.0))


def dividing(call: Call) -> Interval:
    """Quotients, rounded or not, where the divisor keeps its sign; no claim elsewhere."""
    first, second = numbers(*call.args[:2])
    corners = [a / b for a in (first.low, first.high) for b in (second.low, second.high)]
    result: Interval = with_slack(extremes(corners), 6)
    rounded = {"floor": torch.floor, "trunc": torch.trunc}.get(call.kwargs.get("rounding_mode") or "")
    if rounded is not None:
        result = Interval(rounded(result.low), rounded(result.high))
    return unclaimed_where(((second.low <= 0) & (second.high >= 0)).expand(result.low.shape), result)


def choosing_extreme(call: Call) -> Any:
    """minimum and maximum: monotone, plus the common unit of their operands."""
    result = paired(call.at("low"), call.at("high"))
    return result.widened(freedom.common_unit(call.operands))


def placing(call: Call) -> Any:
    """argmax and argmin: every place whose element may be the extreme one; of equal ones the first."""
    item, dim, keep = call.args[0], call.argument(1, "dim", None), bool(call.argument(2, "keepdim", False))
    low, high = (item.low, item.high) if call.name == "argmax" else (-item.high, -item.low)
    if dim is None:
        low, high, dim, keep = low.reshape(-1), high.reshape(-1), 0, False
    shape = [1] * low.dim()
    shape[dim] = -1
    places = torch.arange(low.shape[dim]).reshape(shape)
    top = low.amax(dim, keepdim=True)
    sure = torch.where(low == top, places, low.shape[dim]).amin(dim, keepdim=True)
    possible = (high > top) | ((high >= top) & (places <= sure))
    first = torch.where(possible, places, low.shape[dim]).amin(dim, keepdim=keep)
    return paired(first, torch.where(possible, places, -1).amax(dim, keepdim=keep))


def extreme(call: Call) -> Any:
    """max and min: of two operands, of all elements, or along a dimension with the place of the chosen one."""
    if len(call.operands) > 1:
        return choosing_extreme(call)
    if call.argument(1, "dim", None) is None:
        return paired(call.at("low"), call.at("high"), call.args[0])
    overload = torch.ops.aten.argmax.default if call.name == "max" else torch.ops.aten.argmin.default
    return paired(call.at("low")[0], call.at("high")[0], call.args[0]), placing(replace(call, overload=overload))


def absolute(call: Call) -> Interval:
    """abs: zero where the interval holds zero."""
    item = call.args[0]
    corners = ordered(item.low.abs(), item.high.abs())
    crosses = (item.low <= 0) & (item.high >= 0)
    return Interval(torch.where(crosses, 0.0, corners.low), corners.high)


def softmaxing(call: Call) -> Interval:
    """softmax kept in float."""
    return _softmax(call.args[0], int(call.args[1]))


def _softmax(item: Interval, dim: int) -> Interval:
    """An element grows with itself and falls with the others."""
    top = item.high.amax(dim, keepdim=True)
    low, high = (item.low - top).exp(), (item.high - top).exp()
    lowest = low / (high.sum(dim, keepdim=True) - high + low)
    highest = high / (low.sum(dim, keepdim=True) - low + high)
    return with_slack(Interval(lowest, highest), item.low.shape[dim] + 8)  # type: ignore[no-any-return]


def normalizing(call: Call) -> Interval:
    """layer_norm and group_norm kept in float: the pieces of (x - E[x]) / sqrt(Var[x] + eps)."""
    item = call.args[0]
    weight, bias = call.argument(2, "weight", None), call.argument(3, "bias", None)
    epsilon = float(call.argument(4, "eps", 1e-5))
    if call.name == "layer_norm":
        result = _standardized(item, len(call.args[1]), epsilon)
        shape: tuple[int, ...] = tuple(call.args[1])
    else:
        batch, groups = item.low.shape[0], int(call.args[1])
        grouped = Interval(*(side.reshape(batch, groups, -1) for side in (item.low, item.high)))
        flat = _standardized(grouped, 1, epsilon)
        result = Interval(*(side.reshape(item.low.shape) for side in (flat.low, flat.high)))
        shape = (-1, *(1,) * (item.low.dim() - 2))
    if weight is not None:
        result = _times(result, _shaped(as_interval(weight), shape))
    return result if bias is None else _sum(result, _shaped(as_interval(bias), shape))


def spreading(call: Call) -> Interval:
    """var and std: the mean square of what lies around the mean, over fewer elements than there are by a correction."""
    item, dims, correction = call.args[0], call.argument(1, "dim", None), call.kwargs.get("correction", 1)
    if isinstance(dims, bool):  # the overload over all elements has `unbiased` here
        correction, dims = int(dims), None
    elif len(call.args) > 2:  # that of `dim`, there
        correction = int(call.args[2])
    dims = list(range(item.low.dim())) if dims is None or dims == [] else dims
    _, result = _around_the_mean(item, dims, 1 if correction is None else correction)
    if not call.argument(3, "keepdim", False):
        result = Interval(*(side.sum(dims) for side in (result.low, result.high)))
    if call.name == "var":
        return result
    return with_slack(Interval(*(side.clamp(min=0.0).sqrt() for side in (result.low, result.high))), 4)  # type: ignore[no-any-return]


def _around_the_mean(item: Interval, dims: list[int], correction: float = 0.0) -> tuple[Interval, Interval]:
    """x - E[x] and Var[x], which keeps its dimensions."""
    terms = item.low.numel() // max(1, item.low.sum(dims).numel())
    slack = item.magnitude.mean(dims, keepdim=True) * FLOAT32_EPSILON * (terms + 2)
    mean = Interval(*(side.mean(dims, keepdim=True) for side in (item.low, item.high))).widened(slack)
    centered = _sum(item, Interval(-mean.high, -mean.low))
    squares = _square(centered)
    sums = (side.sum(dims, keepdim=True) for side in (squares.low, squares.high))
    return centered, with_slack(Interval(*(side / (terms - correction) for side in sums)), terms + 8)


def _standardized(item: Interval, last: int, epsilon: float) -> Interval:
    """(x - E[x]) / sqrt(Var[x] + eps) over the last dimensions."""
    centered, variance = _around_the_mean(item, list(range(-last, 0)))
    inverse = Interval(*(1 / (side.clamp(min=0.0) + epsilon).sqrt() for side in (variance.high, variance.low)))
    return with_slack(_times(centered, with_slack(inverse, 4)), 4)  # type: ignore[no-any-return]


def _shaped(item: Interval, shape: tuple[int, ...]) -> Interval:
    return Interval(item.low.reshape(shape), item.high.reshape(shape))


def composed(call: Call) -> Any:
    """lstm, gru, rnn, attention and grid_sampler kept whole: known, if the operands are, where a quantize node rounds.

    :raises ValueError: the result stays float, where it is judged by what the operator is made of, or the operands are
        not known.
    """
    if call.result_scale is None or not all(item.exact for item in call.operands):
        raise ValueError(f"{call.name} has no rule")
    return paired(call.at("low"), call.at("high"))


def batch_normalizing(call: Call) -> Interval:
    """batch_norm of known statistics: one factor and one summand a channel.

    :raises ValueError: it is in training mode, where nothing is known (unjudged).
    """
    item, weight, bias, mean, variance, training, _, epsilon = call.args[:8]
    if training:
        raise ValueError("a batch norm in training has no rule")
    shape = (1, -1, *(1,) * (item.low.dim() - 2))
    inverse = Interval(*(1 / (side + epsilon).sqrt() for side in (variance.high, variance.low)))
    factor = _shaped(inverse if weight is None else _times(weight, inverse), shape)
    centered = _sum(item, Interval(*(-side.reshape(shape) for side in (mean.high, mean.low))))
    result: Interval = with_slack(_times(centered, factor), 8)
    return result if bias is None else _sum(result, _shaped(bias, shape))


MONOTONE = ["relu6", "relu6_", "hardtanh", "hardtanh_", "clamp", "clamp_", "clamp_min", "clamp_min_", "clamp_max"]
SUMMING = ["sum", "mean", "avg_pool2d", "avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "cumsum"]
BILINEAR = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "linear", "matmul", "mm", "bmm"]

RULES: dict[str, Rule] = {
    **{f"aten.{name}": monotone for name in MONOTONE},
    **{f"aten.{name}": summing for name in SUMMING},
    **{f"aten.{name}": bilinear for name in BILINEAR},
    **{f"aten.{name}": adding for name in ("add", "add_", "sub", "sub_", "rsub")},
    **{f"aten.{name}": multiplying for name in ("mul", "mul_")},
    **{f"aten.{name}": dividing for name in ("div", "div_")},
    **{f"aten.{name}": choosing_extreme for name in ("minimum", "maximum")},
    **{f"aten.{name}": extreme for name in ("max", "min")},
    **{f"aten.{name}": softmaxing for name in ("softmax", "_softmax")},
    **{f"aten.{name}": spreading for name in ("var", "std")},
    **{f"aten.{name}": normalizing for name in ("layer_norm", "group_norm")},
    **{
        f"aten.{name}": composed
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu", "grid_sampler", "scaled_dot_product_attention")
    },
    "aten.upsample_bilinear2d": resizing,
    "aten.batch_norm": batch_normalizing,
    "aten.addmm": affine,
    "aten.argmax": placing,
    "aten.argmin": placing,
    "aten.prod": factoring,
    "aten.abs": absolute,
    "aten.neg": lambda call: Interval(call.at("high"), call.at("low")),
}
