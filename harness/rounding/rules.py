"""One rule an operator: from operand intervals to the result's interval.

A rule is ``rule(call) -> Interval | tuple``; ``Call`` has the overload, the arguments with
intervals in the place of tensors, and the scale of the quantize node that reads the result.
Families: *monotone* operators are evaluated at both ends; *moving* ones likewise but without
float error and keeping the domain; *bilinear* ones by centre and radius; *unary tables* at both
ends plus their interpolation.

To add an operator: put its name into the fitting family, or write a function and enter it in
``RULES``. ``tests/unit/test_rounding.py`` samples inside the operands' intervals and checks that
results stay inside the rule's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.rounding import freedom
from harness.rounding.interval import (
    FLOAT32_EPSILON,
    Interval,
    end,
    hull,
    intervals_in,
    ordered,
    swap,
    unbounded_like,
)


@dataclass(frozen=True)
class Call:
    """One operator call of the walk.

    :param result_scale: scale of the quantize node that reads the result, if one does.
    :param result_range: lowest and highest real that this quantize node can represent.
    """

    overload: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result_scale: float | None = None
    result_range: tuple[float, float] | None = None

    @property
    def operands(self) -> list[Interval]:
        return intervals_in([list(self.args), list(self.kwargs.values())])

    def at(self, side: str) -> Any:
        """The operator evaluated with every interval at one end."""
        return self.overload(*end(self.args, side), **end(self.kwargs, side))

    def of(self, function: Callable[[Interval], torch.Tensor]) -> Any:
        """The operator evaluated with ``function`` of every interval."""
        return self.overload(*swap(self.args, function), **swap(self.kwargs, function))


Rule = Callable[[Call], Any]


def _paired(low: Any, high: Any, operand: Interval | None = None) -> Any:
    """Intervals from the two evaluations of an operator with one or several results."""
    if isinstance(low, (list, tuple)):
        return tuple(_paired(a, b, operand) for a, b in zip(low, high, strict=True))
    if not low.dtype.is_floating_point and low.dtype != torch.bool:
        return low
    result = Interval(low, high)
    return replace(result, scale=operand.scale, bits=operand.bits) if operand is not None else result


def moving(call: Call) -> Any:
    """Operators that only move or select elements: exact, and the domain stays."""
    operands = call.operands
    same = operands and all(item.scale == operands[0].scale for item in operands)
    return _paired(call.at("low"), call.at("high"), operands[0] if same else None)


def monotone(call: Call) -> Any:
    """Operators that grow with every operand, evaluated in a few float32 operations."""
    return _with_slack(_paired(call.at("low"), call.at("high")), 4)


def _with_slack(result: Any, operations: float) -> Any:
    if isinstance(result, tuple):
        return tuple(_with_slack(item, operations) for item in result)
    if not isinstance(result, Interval) or result.low.dtype == torch.bool:
        return result
    by = torch.nan_to_num(result.magnitude * FLOAT32_EPSILON * operations, posinf=0.0)
    return result.widened(by)


def summing(call: Call) -> Interval:
    """Sums and means: monotone; n float32 additions err by n epsilons of the absolute sum."""
    result = Interval(call.at("low"), call.at("high"))
    terms = max(1, call.operands[0].low.numel() // max(1, result.low.numel()))
    slack = call.of(lambda item: item.magnitude) * FLOAT32_EPSILON * (terms + 2)
    if _base(call) == "aten.avg_pool2d":
        slack = slack.abs() + freedom.pooled_average(call.operands[0], call.result_scale)
    return result.widened(slack.abs())


def bilinear(call: Call) -> Interval:
    """Convolutions and matrix products, by centre and radius of both factors."""
    x, w = call.args[0], call.args[1]
    if _base(call) == "aten.addmm":
        return _addmm(call)
    bias = call.args[2] if len(call.args) > 2 and isinstance(call.args[2], Interval) else None
    rest = call.args[3:]

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        arguments = (a, b, None, *rest) if len(call.args) > 2 else (a, b)
        return call.overload(*arguments, **call.kwargs)

    return _product(product, x, w, bias, _bias_shape(call))


def _addmm(call: Call) -> Interval:
    """beta * bias + alpha * (x @ w); both factors are literals."""
    bias, x, w = (_as_interval(item) for item in call.args[:3])
    alpha, beta = (float(call.kwargs.get(name, 1.0)) for name in ("alpha", "beta"))
    return _product(torch.matmul, x, _scaled(w, alpha), _scaled(bias, beta), lambda value: value)


def _scaled(item: Interval, factor: float) -> Interval:
    return item if factor == 1.0 else ordered(item.low * factor, item.high * factor)


def _bias_shape(call: Call) -> Callable[[torch.Tensor], torch.Tensor]:
    spatial = {
        "aten.conv1d": 1,
        "aten.conv2d": 2,
        "aten.conv3d": 3,
        "aten.conv_transpose2d": 2,
        "aten.conv_transpose1d": 1,
    }.get(_base(call), 0)
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
    if not (x.exact and w.exact):
        radius = product(x.radius, w.magnitude) + product(x.center.abs(), w.radius)
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
    first, second = (_as_interval(item) for item in call.args[:2])
    factor = float(call.kwargs.get("alpha", 1.0))
    if _base(call) == "aten.sub":
        factor = -factor
    elif _base(call) == "aten.rsub":
        first, second, factor = second, first, -factor
    scaled = _scaled(second, factor)
    slack = (first.magnitude + scaled.magnitude) * FLOAT32_EPSILON * 4
    result = Interval(first.low + scaled.low, first.high + scaled.high)
    return result.widened(torch.nan_to_num(slack, posinf=0.0) + freedom.addition(call.operands))


def multiplying(call: Call) -> Interval:
    """Products: the extreme ones of the four corner products."""
    first, second = (_as_interval(item) for item in call.args[:2])
    corners = [a * b for a in (first.low, first.high) for b in (second.low, second.high)]
    return _with_slack(_extremes(corners), 4)  # type: ignore[no-any-return]


def dividing(call: Call) -> Interval:
    """Quotients where the divisor keeps its sign; no claim elsewhere."""
    first, second = (_as_interval(item) for item in call.args[:2])
    corners = [a / b for a in (first.low, first.high) for b in (second.low, second.high)]
    result = _with_slack(_extremes(corners), 6)
    crosses = ((second.low <= 0) & (second.high >= 0)).expand(result.low.shape)
    return Interval(torch.where(crosses, -torch.inf, result.low), torch.where(crosses, torch.inf, result.high))


def _extremes(corners: list[torch.Tensor]) -> Interval:
    stacked = torch.stack(torch.broadcast_tensors(*corners))
    low = torch.nan_to_num(stacked, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).amin(0)
    high = torch.nan_to_num(stacked, nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).amax(0)
    return Interval(low, high)


def choosing_extreme(call: Call) -> Any:
    """minimum and maximum: monotone, plus the common unit of their operands."""
    result = _paired(call.at("low"), call.at("high"))
    return result.widened(freedom.common_unit(call.operands))


def comparing(call: Call) -> Interval:
    """Comparisons: certain where the operands' intervals, with the common unit, do not overlap."""
    first, second = (_as_interval(item) for item in call.args[:2])
    unit = freedom.common_unit(call.operands) * 2
    sure = {
        "gt": first.low - unit > second.high,
        "ge": first.low - unit >= second.high,
        "lt": first.high + unit < second.low,
        "le": first.high + unit <= second.low,
    }
    maybe = {
        "gt": first.high + unit > second.low,
        "ge": first.high + unit >= second.low,
        "lt": first.low - unit < second.high,
        "le": first.low - unit <= second.high,
    }
    kind = _base(call).removeprefix("aten.")
    if kind in sure:
        return Interval(sure[kind], maybe[kind])
    equal = Interval(
        (first.low == first.high) & (second.low == second.high) & (first.low == second.low) & (unit == 0),
        (first.low - unit <= second.high) & (second.low - unit <= first.high),
    )
    return equal if kind == "eq" else Interval(~equal.high, ~equal.low)


def selecting(call: Call) -> Interval:
    """where: one branch where the condition is certain, the hull of both elsewhere."""
    condition, first, second = call.args
    first, second = _as_interval(first), _as_interval(second)
    both = hull(*_broadcast(first, second))
    if not isinstance(condition, Interval):
        condition = Interval(condition, condition)
    low = torch.where(condition.low, first.low, torch.where(condition.high, both.low, second.low))
    high = torch.where(condition.low, first.high, torch.where(condition.high, both.high, second.high))
    return Interval(low, high)


def _broadcast(first: Interval, second: Interval) -> tuple[Interval, Interval]:
    a, b, c, d = torch.broadcast_tensors(first.low, first.high, second.low, second.high)
    return Interval(a, b), Interval(c, d)


def absolute(call: Call) -> Interval:
    """abs: zero where the interval holds zero."""
    item = call.args[0]
    corners = ordered(item.low.abs(), item.high.abs())
    crosses = (item.low <= 0) & (item.high >= 0)
    return Interval(torch.where(crosses, 0.0, corners.low), corners.high)


def normalizing(call: Call) -> Interval:
    """softmax kept in float: an element grows with itself and falls with the others."""
    item, dim = call.args[0], int(call.args[1])
    top = item.high.amax(dim, keepdim=True)
    low, high = (item.low - top).exp(), (item.high - top).exp()
    lowest = low / (high.sum(dim, keepdim=True) - high + low)
    highest = high / (low.sum(dim, keepdim=True) - low + high)
    return _with_slack(Interval(lowest, highest), item.low.shape[dim] + 8)  # type: ignore[no-any-return]


def _as_interval(item: Any) -> Interval:
    if isinstance(item, Interval):
        return item
    value = torch.as_tensor(item, dtype=torch.float64)
    return Interval(value, value)


def _base(call: Call) -> str:
    return base_name(call.overload)


def base_name(overload: Any) -> str:
    """``aten.conv2d`` for ``torch.ops.aten.conv2d.default``."""
    schema = getattr(overload, "_schema", None)
    return schema.name.replace("::", ".") if schema is not None else str(getattr(overload, "__name__", overload))


MOVING = [
    "view",
    "reshape",
    "permute",
    "transpose",
    "squeeze",
    "unsqueeze",
    "expand",
    "flatten",
    "slice",
    "select",
    "cat",
    "stack",
    "split",
    "split_with_sizes",
    "chunk",
    "clone",
    "contiguous",
    "detach",
    "alias",
    "repeat",
    "pad",
    "constant_pad_nd",
    "t",
    "unbind",
    "narrow",
    "expand_as",
    "view_as",
    "tile",
    "_unsafe_view",
    "flip",
    "roll",
    "movedim",
    "swapaxes",
    "unflatten",
    "detach_",
    "lift_fresh_copy",
    "dropout",
    "max_pool2d",
    "amax",
    "amin",
    "max_pool2d_with_indices",
    "max_pool1d",
    "relu",
    "relu_",
    "adaptive_max_pool2d",
    "upsample_nearest2d",
]
MONOTONE = [
    "relu6",
    "relu6_",
    "hardtanh",
    "hardtanh_",
    "clamp",
    "clamp_",
    "clamp_min",
    "clamp_max",
    "hardsigmoid",
    "floor",
    "ceil",
    "round",
]
SUMMING = ["sum", "mean", "avg_pool2d", "avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "cumsum"]
BILINEAR = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "linear",
    "matmul",
    "mm",
    "bmm",
    "addmm",
]

RULES: dict[str, Rule] = {
    **{f"aten.{name}": moving for name in MOVING},
    **{f"aten.{name}": monotone for name in MONOTONE},
    **{f"aten.{name}": summing for name in SUMMING},
    **{f"aten.{name}": bilinear for name in BILINEAR},
    **{f"aten.{name}": adding for name in ("add", "add_", "sub", "sub_", "rsub")},
    **{f"aten.{name}": multiplying for name in ("mul", "mul_")},
    **{f"aten.{name}": dividing for name in ("div", "div_")},
    **{f"aten.{name}": choosing_extreme for name in ("minimum", "maximum")},
    **{f"aten.{name}": comparing for name in ("gt", "ge", "lt", "le", "eq", "ne")},
    **{f"aten.{name}": normalizing for name in ("softmax", "_softmax")},
    "aten.where": selecting,
    "aten.abs": absolute,
    "aten.neg": lambda call: Interval(call.at("high"), call.at("low")),
}
