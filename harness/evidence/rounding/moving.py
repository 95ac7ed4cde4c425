"""Rules of operators that move, select, make or cast elements: the values stay, so the domain does too.

``moving`` is exact: indices are integers and known. What adds up (``index_put`` with ``accumulate``)
rounds like an addition. A constant that only takes its shape from an operand is known.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.case.traits import ATEN_MOVING
from harness.evidence.rounding.call import Call, Rule, as_interval, paired, with_slack
from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval


def moving(call: Call) -> Any:
    """Operators that only move or select elements: exact, and the domain stays."""
    operands = call.operands
    same = operands and all(item.scale == operands[0].scale for item in operands)
    return paired(call.at("low"), call.at("high"), operands[0] if same else None)


def putting(call: Call) -> Any:
    """index_put: moves, or adds up where it accumulates."""
    if not call.argument(3, "accumulate", False):
        return moving(call)
    terms = 2 + as_interval(call.args[2]).low.numel()
    result = paired(call.at("low"), call.at("high"))
    slack = call.of(lambda item: item.magnitude) * FLOAT32_EPSILON * terms
    return result.widened(slack)


def making(call: Call) -> Any:
    """full_like and its kin: known, whatever the operand is."""
    value = call.at("low")
    return paired(value, value)


def copying(call: Call) -> Interval:
    """copy_: the source in the shape of the target."""
    target, source = as_interval(call.args[0]), as_interval(call.args[1])
    low, high = source.low.expand_as(target.low), source.high.expand_as(target.low)
    return Interval(low, high, source.scale, source.bits)


def casting(call: Call) -> Any:
    """Casts: floats keep their value (float16 rounds it), integers cut off what is behind the point."""
    item = call.args[0]
    dtype = call.kwargs.get("dtype")
    if dtype is None:
        dtype = next((argument for argument in call.args[1:] if isinstance(argument, torch.dtype)), torch.float32)
    if dtype == torch.bool:
        return Interval((item.low > 0) | (item.high < 0), (item.low != 0) | (item.high != 0))
    if dtype.is_floating_point:
        if item.low.dtype == torch.bool:
            return Interval(item.low.to(torch.float64), item.high.to(torch.float64))
        wide = torch.finfo(dtype).bits >= 32
        return item if wide else with_slack(item, torch.finfo(dtype).eps / FLOAT32_EPSILON)
    return paired(item.low.to(dtype), item.high.to(dtype))


MAKING = ["full_like", "zeros_like", "ones_like", "fill", "fill_", "zero_", "new_full", "new_zeros", "new_ones"]

RULES: dict[str, Rule] = {
    **dict.fromkeys(ATEN_MOVING, moving),
    **{f"aten.{name}": making for name in MAKING},
    **{f"aten.{name}": putting for name in ("index_put", "index_put_")},
    **{f"aten.{name}": casting for name in ("to", "_to_copy")},
    "aten.copy_": copying,
    "aten.copy": copying,
    "aten.index_copy_": moving,
    "dim_order_ops._to_dim_order_copy": casting,
}
