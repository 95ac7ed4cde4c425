"""Facts about TOSA's forms: how far a correct lowering may be from the exact value.

Each function states one fact with its source and returns it in real units (not steps). They say
what the *form* of the lowering allows, not what one release happens to do, and are the only
numbers in this package besides float32's epsilon.
"""

from __future__ import annotations

import torch

from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval


def addition(operands: list[Interval]) -> float:
    """add and sub of two activations.

    Both operands are rescaled to int32 in the unit 2 * max(scale) / 2**20 (int8) or / 2**12
    (int16), each rounding by half a unit (executorch InsertRescaleInt32Pass).
    """
    scales = [operand.scale for operand in operands]
    if len(scales) != 2 or None in scales:
        return 0.0
    shift = 12 if any(operand.bits == 16 for operand in operands) else 20
    return 2.0 * max(scale for scale in scales if scale is not None) / (1 << shift)


def common_unit(operands: list[Interval]) -> float:
    """minimum, maximum and comparisons of two activations of different scales.

    Operands are rescaled to int32 in the unit of the smallest scale: half a unit of rounding
    each; none where the scales agree (executorch InsertRescaleInt32Pass).
    """
    scales = {operand.scale for operand in operands}
    if None in scales or len(scales) < 2:
        return 0.0
    return 0.5 * min(scale for scale in scales if scale is not None)


def wide_accumulator(result: torch.Tensor, operands: list[Interval]) -> torch.Tensor:
    """convolutions and matrix products of int16 activations.

    Their int48 accumulator takes a RESCALE with a 16-bit multiplier, whose mantissa has a
    relative error of at most 2**-15 (TOSA 1.0, RESCALE: scale32 is false for int48).
    """
    if any(operand.bits == 16 for operand in operands if operand.scale is not None):
        return result.abs() * 2.0**-15
    return torch.zeros_like(result)


def pooled_average(operand: Interval, result_scale: float | None) -> float:
    """avg_pool2d: TOSA rounds to a code of the *input's* scale before any RESCALE.

    (TOSA 1.0, AVG_POOL2D.) Where the scales agree the quantize node's own rounding is that one.
    """
    if operand.scale is None or operand.scale == result_scale:
        return 0.0
    return 0.5 * operand.scale


TABLE_SEGMENT = 128
"""Codes between two entries of a 16-bit TABLE (TOSA 1.0, TABLE: 513 entries, 7 fractional bits)."""
TABLE_SEGMENTS = 512


def table_entry(result_scale: float) -> float:
    """16-bit TABLE: entries are themselves rounded to half a step of the result."""
    return 0.5 * result_scale


_BELOW_ONE = ("tanh", "sigmoid")
_BESIDE_ONE = ("asinh", "atanh", "sinh", "log1p", "logit", "softplus")
_SERIES_END = 0.35


def float_form(name: str, argument: torch.Tensor) -> torch.Tensor:
    """Functions of float models, by the absolute value of the argument.

    A float TANH or SIGMOID may err by 5 units in the last place of 0.5, however small the result is (TOSA 1.0).
    Functions that executorch makes of sums with 1, and of exponentials near 1, err by a few epsilons of that
    (DecomposeSinhPass, DecomposeLog1pPass and others). Its atan is a rational function whose relative error is 1.7e-4
    at most (DecomposeAtanPass), and its expm1 a series of four terms as far as 0.35 (DecomposeExpm1Pass).
    """
    if name in _BELOW_ONE:
        return torch.full_like(argument, 5 * 0.5 * FLOAT32_EPSILON)
    if name in _BESIDE_ONE:
        return torch.full_like(argument, 8 * FLOAT32_EPSILON)
    if name == "atan":
        return 1.7e-4 * argument.clamp(max=1.0)
    if name == "expm1":
        return 1.1 / 120 * torch.where(argument <= _SERIES_END * 1.001, argument, 0.0) ** 5
    return torch.zeros_like(argument)


def float_exponential_unit(argument: torch.Tensor, alpha: float, scale: float, input_scale: float) -> torch.Tensor:
    """elu, celu and selu of float models: the error of their expm1 (DecomposeEluPass)."""
    return abs(alpha * scale) * float_form("expm1", argument * abs(input_scale))
