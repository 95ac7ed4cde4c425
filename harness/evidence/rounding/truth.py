"""Rules of comparisons, of logic, and of what chooses by them.

A truth value is an ``Interval`` of bool: ``low`` is "certainly", ``high`` is "possibly". Bitwise
operators are logic where their operands are truth values; of integers they are known or raise,
and what raises is unjudged.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.evidence.rounding import freedom
from harness.evidence.rounding.call import Call, Rule, as_interval, broadcast, paired
from harness.evidence.rounding.interval import Interval, hull


def comparing(call: Call) -> Interval:
    """Comparisons: certain where the operands' intervals, with the common unit, do not overlap."""
    first, second = (as_interval(item) for item in call.args[:2])
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
    kind = call.name
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
    return _chosen(truth(condition), as_interval(first), as_interval(second))


def masking(call: Call) -> Interval:
    """masked_fill: the value where the mask is certain, either where it is possible."""
    item, mask, value = call.args
    return _chosen(truth(mask), as_interval(value), as_interval(item))


def _chosen(condition: Interval, first: Interval, second: Interval) -> Interval:
    both = hull(*broadcast(first, second))
    low = torch.where(condition.low, first.low, torch.where(condition.high, both.low, second.low))
    high = torch.where(condition.low, first.high, torch.where(condition.high, both.high, second.high))
    return Interval(low, high)


def truth(item: Any) -> Interval:
    """Is a value true (not zero)?"""
    if not isinstance(item, Interval):
        known = torch.as_tensor(item) != 0
        return Interval(known, known)
    if item.low.dtype == torch.bool:
        return item
    return Interval((item.low > 0) | (item.high < 0), (item.low != 0) | (item.high != 0))


def logical(call: Call) -> Any:
    """Logic of truth values; bitwise operators of known integers as well."""
    bitwise = call.name.startswith(("bitwise", "__"))
    if bitwise and any(not _is_truth(item) for item in call.args):
        return paired(call.at("low").clone(), call.at("high"))  # torch refuses what are no integers
    kind = call.name.removeprefix("bitwise_").removeprefix("logical_").strip("_")
    if kind == "not":
        operand = truth(call.args[0])
        return Interval(~operand.high, ~operand.low)
    first, second = (truth(item) for item in call.args[:2])
    if kind == "and":
        return Interval(first.low & second.low, first.high & second.high)
    if kind == "or":
        return Interval(first.low | second.low, first.high | second.high)
    known = (first.low == first.high) & (second.low == second.high)
    differ = first.low ^ second.low
    return Interval(known & differ, ~known | differ)


def quantified(call: Call) -> Interval:
    """any and all: they grow with every truth value."""
    item, rest = truth(call.args[0]), call.args[1:]
    low, high = (call.overload(side, *rest, **call.kwargs) for side in (item.low, item.high))
    return Interval(low, high)


def _is_truth(item: Any) -> bool:
    value = item.low if isinstance(item, Interval) else item
    return isinstance(value, bool) or (isinstance(value, torch.Tensor) and value.dtype == torch.bool)


LOGICAL = [
    *(f"logical_{kind}" for kind in ("and", "or", "xor", "not")),
    *(f"bitwise_{kind}" for kind in ("and", "or", "xor", "not")),
    *(f"__{kind}__" for kind in ("and", "or", "xor")),
]

RULES: dict[str, Rule] = {
    **{f"aten.{name}": comparing for name in ("gt", "ge", "lt", "le", "eq", "ne")},
    **{f"aten.{name}": logical for name in LOGICAL},
    **{f"aten.{name}": masking for name in ("masked_fill", "masked_fill_")},
    **{f"aten.{name}": quantified for name in ("any", "all")},
    "aten.where": selecting,
}
