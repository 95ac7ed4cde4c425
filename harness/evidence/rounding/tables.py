"""Rules of the unary functions that an integer target looks up in a TABLE.

8-bit tables hold one entry a code and are exact up to a tie. 16-bit tables hold one entry every
128 codes and interpolate linearly (TOSA 1.0, TABLE); their result may lie anywhere between the
function and the chords, plus the rounding of the entries.

A function is bounded by its values at both ends and at the *turns* (minima and maxima) between
them; around a *pole* or a jump nothing, or only its range, is claimed. Its argument is a
dequantized code in float32, so that the ends are moved outward by the rounding of that product;
a jump (floor, round) is met by that as well. Outside its domain a function is NaN: no claim.
"""

from __future__ import annotations

import math

import torch

from harness.evidence.rounding import freedom
from harness.evidence.rounding.call import Call, Rule, as_interval, extremes, unclaimed_where
from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval, hull

MONOTONE = [
    "sigmoid",
    "tanh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "erf",
    "erfinv",
    "elu",
    "selu",
    "leaky_relu",
    "celu",
    "softplus",
    "sinh",
    "asinh",
    "asin",
    "acos",
    "acosh",
    "atan",
    "atanh",
    "hardsigmoid",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "reciprocal",
    "rsqrt",
]
TURNS = {"gelu": -0.7517915606498718, "silu": -1.2784645557403564, "hardswish": -1.5, "cosh": 0.0}
"""Where a function that falls and then rises has its minimum."""
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
BENDS = ("elu", "selu", "celu", "leaky_relu")
"""These turn at zero if their slope below it is negative."""
GELU_BY_TANH = -0.7524614220710162
PERIODIC = {"sin": math.pi / 2, "cos": 0.0}
"""A turn; the others are half a period apart."""
DOMAIN = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), (0.0, math.inf)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (-1.0, 1.0)),
    "log1p": (-1.0, math.inf),
    "acosh": (1.0, math.inf),
}
POLES = ("reciprocal", "rsqrt")
STEPS = ("floor", "ceil", "round", "trunc", "sign")
TRANSCENDENTAL_OPERATIONS = 64
"""Float32 error of one transcendental function and of its usual decompositions, in epsilons."""
CANCELLING_OPERATIONS = 2
"""The same in epsilons of the argument: gelu(x) = x / 2 (1 + erf(x / sqrt 2)) is what is left of x / 2 and -x / 2."""
ARGUMENT_EPSILONS = 2
"""Rounding of a dequantized argument: one product."""


def table(call: Call) -> Interval:
    """Interval of a unary function of one activation."""
    operand = call.operands[0]
    argument = _rounded(call, operand)
    points = [argument.low, argument.high, *_turns(call, argument)]
    result = extremes([_apply(call, point) for point in points])
    result = unclaimed_where(_has_pole(call, argument) & ~_from_the_right(call, operand), result)
    if call.name == "remainder":
        result = _remainder(call, argument, result)
    if operand.bits == 16 and operand.scale is not None and call.result_scale is not None:
        result = hull(result, _interpolated(call, operand)).widened(freedom.table_entry(call.result_scale))
    largest = torch.where(
        result.magnitude.isinf(), torch.minimum(result.low.abs(), result.high.abs()), result.magnitude
    )
    slack = largest * TRANSCENDENTAL_OPERATIONS + operand.magnitude * CANCELLING_OPERATIONS
    result = result.widened(torch.nan_to_num(slack * FLOAT32_EPSILON, posinf=0.0))
    if call.result_scale is None:
        result = result.widened(_float_form(call, operand))
    return result if call.result_range is None else _anything_outside(call, operand, result)


def _float_form(call: Call, operand: Interval) -> torch.Tensor:
    """How far the float lowering of the function may be off: the least argument decides which part of it applies."""
    least = torch.minimum(operand.low.abs(), operand.high.abs())
    if call.name == "selu":
        return freedom.float_exponential_unit(least, SELU_ALPHA, SELU_SCALE, 1.0)
    if call.name == "celu":
        alpha = float(call.argument(1, "alpha", 1.0))
        return freedom.float_exponential_unit(least, alpha, 1.0, 1.0 / alpha)
    if call.name == "elu":
        names = ("alpha", "scale", "input_scale")
        return freedom.float_exponential_unit(
            least, *(float(call.argument(place, name, 1.0)) for place, name in enumerate(names, 1))
        )
    return freedom.float_form(call.name, least)


def _from_the_right(call: Call, operand: Interval) -> torch.Tensor:
    """Does rsqrt meet its pole from above only? A dequantized code is never a negative zero."""
    return (operand.low >= 0) & (call.name == "rsqrt" and operand.scale is not None)


def _anything_outside(call: Call, operand: Interval, result: Interval) -> Interval:
    """The whole range of the result's codes where a function has no value at all: a bound, unlike that of no rule."""
    least, most = DOMAIN.get(call.name, (-math.inf, math.inf))
    outside = (operand.high < least) | (operand.low > most)
    assert call.result_range is not None
    low, high = (torch.full_like(result.low, end) for end in call.result_range)
    return Interval(torch.where(outside, low, result.low), torch.where(outside, high, result.high))


def raising(call: Call) -> Interval:
    """pow: of one activation to a number, or of two operands whose base is positive."""
    base, exponent = call.args[:2]
    if isinstance(exponent, (int, float)):
        return table(call)
    first, second = as_interval(base), as_interval(exponent)
    corners = [torch.pow(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
    result = unclaimed_where((first.low <= 0).expand(corners[0].shape), extremes(corners))
    relative = TRANSCENDENTAL_OPERATIONS + second.magnitude * (1 + first.magnitude.log().abs())
    return result.widened(torch.nan_to_num(result.magnitude * relative * FLOAT32_EPSILON, posinf=0.0))


def _rounded(call: Call, operand: Interval) -> Interval:
    """The operand moved outward by its rounding, but not out of the function's domain, nor off a float step.

    What a float model is given, or moves, is known to the last bit, and steps such as ``round`` have no rounding.
    """
    least, most = DOMAIN.get(call.name, (-math.inf, math.inf))
    by = FLOAT32_EPSILON * ARGUMENT_EPSILONS
    low, high = operand.low - operand.low.abs() * by, operand.high + operand.high.abs() * by
    # A number that is no dequantized code is the model's own, and was divided by a scale and multiplied again.
    first, last = (abs(end) * by if operand.scale is None else 0.0 for end in (least, most))
    low = torch.where(operand.low >= least - first, low.clamp(min=least), low)
    high = torch.where(operand.high <= most + last, high.clamp(max=most), high)
    if call.name in STEPS and operand.scale is None and call.result_scale is None:
        known = operand.low == operand.high
        low, high = torch.where(known, operand.low, low), torch.where(known, operand.high, high)
    return Interval(low, high)


def _turns(call: Call, argument: Interval) -> list[torch.Tensor]:
    """Points inside the argument's interval, among them every turn (or one of each kind)."""
    name = call.name
    if name in PERIODIC:
        first = _next(argument.low, PERIODIC[name], math.pi)
        return [torch.minimum(point, argument.high) for point in (first, first + math.pi)]
    turn: float | None
    if name == "pow":
        turn = 0.0 if _exponent(call) % 2 == 0 else None
    elif name == "gelu" and call.kwargs.get("approximate") == "tanh":
        turn = GELU_BY_TANH
    else:
        turn = 0.0 if name in BENDS else TURNS.get(name)
    if turn is None:
        return []
    return [torch.full_like(argument.low, turn).clamp(argument.low, argument.high)]


def _next(low: torch.Tensor, first: float, period: float) -> torch.Tensor:
    """The first of ``first + k * period`` that is not below ``low``."""
    return first + torch.ceil((low - first) / period) * period


def _has_pole(call: Call, argument: Interval) -> torch.Tensor:
    """Is a pole inside the interval? An argument that is exactly there has a value (an infinity)."""
    if call.name == "tan":
        return _next(argument.low, math.pi / 2, math.pi) <= argument.high
    if call.name in POLES or (call.name == "pow" and _exponent(call) < 0):
        return (argument.low <= 0) & (argument.high >= 0) & (argument.low != argument.high)
    return torch.zeros_like(argument.low, dtype=torch.bool)


def _exponent(call: Call) -> float:
    return float(call.args[1])


def _remainder(call: Call, argument: Interval, result: Interval) -> Interval:
    """remainder: its whole range where the quotient passes an integer."""
    divisor = float(call.args[1])
    jumps = torch.floor(argument.low / divisor) != torch.floor(argument.high / divisor)
    low, high = torch.full_like(result.low, min(0.0, divisor)), torch.full_like(result.low, max(0.0, divisor))
    return Interval(torch.where(jumps, low, result.low), torch.where(jumps, high, result.high))


def _apply(call: Call, value: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = call.overload(value.clone() if call.writes else value, *call.args[1:], **call.kwargs)
    return result


def _interpolated(call: Call, operand: Interval) -> Interval:
    """What interpolation may give: the chords at both ends, and every entry between them."""
    assert operand.scale is not None
    pitch = operand.scale * freedom.TABLE_SEGMENT
    first, last = torch.floor(operand.low / pitch), torch.floor(operand.high / pitch)
    chords = [_chord(call, operand.low, pitch), _chord(call, operand.high, pitch)]
    result = extremes(chords)
    between = int((last - first).nan_to_num(posinf=freedom.TABLE_SEGMENTS).max()) if first.numel() else 0
    for step in range(1, min(between, freedom.TABLE_SEGMENTS) + 1):
        inside = first + step <= last
        entry = torch.where(inside, _entry(call, (first + step) * pitch), chords[0])
        result = hull(result, extremes([entry]))
    return result


def _chord(call: Call, value: torch.Tensor, pitch: float) -> torch.Tensor:
    """What linear interpolation between the neighbouring table entries gives."""
    left = torch.floor(value / pitch) * pitch
    first, second = _entry(call, left), _entry(call, left + pitch)
    return first + (second - first) * (value - left) / pitch


def _entry(call: Call, value: torch.Tensor) -> torch.Tensor:
    """A table entry: the function, saturated to what the result's codes can hold; NaN outside its domain."""
    entry = _apply(call, value)
    return entry if call.result_range is None else entry.clamp(*call.result_range)


RULES: dict[str, Rule] = {
    **{
        f"aten.{name}{suffix}": table
        for name in (*MONOTONE, *TURNS, *PERIODIC, "tan", "remainder")
        for suffix in ("", "_")
    },
    "aten.pow": raising,
}
