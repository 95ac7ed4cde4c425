"""Rules of the unary functions that an integer target looks up in a TABLE.

8-bit tables hold one entry a code and are exact up to a tie. 16-bit tables hold one entry every
128 codes and interpolate linearly (TOSA 1.0, TABLE); their result may lie anywhere between the
function and the chord, plus the rounding of the entries.

Functions are monotone, or fall and then rise around one known minimum (gelu, silu, hardswish):
both ends, and the minimum where it lies inside, bound them.
"""

from __future__ import annotations

import torch

from harness.rounding import freedom
from harness.rounding.interval import FLOAT32_EPSILON, Interval, hull, ordered
from harness.rounding.rules import RULES, Call, base_name

RISING = [
    "sigmoid",
    "tanh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "erf",
    "elu",
    "leaky_relu",
    "celu",
    "softplus",
    "sinh",
    "asinh",
    "atan",
    "hardsigmoid",
]
FALLING_BY_SIGN = ("reciprocal", "rsqrt")
MINIMUM_AT = {"gelu": -0.7517915606498718, "silu": -1.2784645557403564, "hardswish": -1.5}
TRANSCENDENTAL_OPERATIONS = 64
"""Float32 error of one transcendental function and of its usual decompositions, in epsilons."""
CANCELLING_OPERATIONS = 2
"""The same in epsilons of the argument: gelu(x) = x / 2 (1 + erf(x / sqrt 2)) is what is left of x / 2 and -x / 2."""


def table(call: Call) -> Interval:
    """Interval of a unary function of one activation."""
    operand = call.operands[0]
    low, high = call.at("low"), call.at("high")
    result = ordered(low, high)
    name = base_name(call.overload).removeprefix("aten.").rstrip("_")
    if name in MINIMUM_AT:
        bottom = _apply(call, torch.full_like(operand.low, MINIMUM_AT[name]))
        inside = (operand.low < MINIMUM_AT[name]) & (operand.high > MINIMUM_AT[name])
        result = Interval(torch.where(inside, torch.minimum(bottom, result.low), result.low), result.high)
    elif name in FALLING_BY_SIGN:
        crosses = (operand.low <= 0) & (operand.high >= 0) & (operand.low != operand.high)
        result = Interval(torch.where(crosses, -torch.inf, result.low), torch.where(crosses, torch.inf, result.high))
    if operand.bits == 16 and operand.scale is not None and call.result_scale is not None:
        chords = [_chord(call, operand.low), _chord(call, operand.high)]
        result = hull(result, ordered(*chords)).widened(freedom.table_entry(call.result_scale))
    slack = result.magnitude * TRANSCENDENTAL_OPERATIONS + operand.magnitude * CANCELLING_OPERATIONS
    return result.widened(torch.nan_to_num(slack * FLOAT32_EPSILON, posinf=0.0))


def _apply(call: Call, value: torch.Tensor) -> torch.Tensor:
    return call.overload(value, *call.args[1:], **call.kwargs)


def _chord(call: Call, value: torch.Tensor) -> torch.Tensor:
    """What linear interpolation between the neighbouring table entries gives."""
    operand = call.operands[0]
    assert operand.scale is not None
    pitch = operand.scale * freedom.TABLE_SEGMENT
    left = torch.floor(value / pitch) * pitch
    first, second = _entry(call, left), _entry(call, left + pitch)
    return first + (second - first) * (value - left) / pitch


def _entry(call: Call, value: torch.Tensor) -> torch.Tensor:
    """A table entry: the function, saturated to what the result's codes can hold."""
    entry = torch.nan_to_num(_apply(call, value), nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    if call.result_range is not None:
        entry = entry.clamp(*call.result_range)
    return entry


RULES.update(
    {f"aten.{name}{suffix}": table for name in (*RISING, *FALLING_BY_SIGN, *MINIMUM_AT) for suffix in ("", "_")}
)
