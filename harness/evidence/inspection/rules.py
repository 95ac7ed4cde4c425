"""What each TOSA operator does to the unit, the zero point and the range of codes: one rule an operator.

A rule gets the walk, which knows what the operands stand for, and returns what the result does; on the way it reports
operands that cannot be. An operator without a rule is one of whose result nothing is known
(``harness.evidence.inspection.units`` has the words, TOSA 1.0 the arithmetic).

To add one: a function here and its line in ``RULES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harness.artifacts.tosa import BITS, TosaOperator
from harness.case.arrays import Array
from harness.case.traits import TOSA_PICKING
from harness.evidence.inspection.units import FLOAT32, Meaning, Rule, Walk, as_unsigned, type_range

_SUMS, _EXTREMES, _COMPARISONS = ("ADD", "SUB"), ("MAXIMUM", "MINIMUM"), ("GREATER", "GREATER_EQUAL", "EQUAL")
JOINS = (*_SUMS, *_EXTREMES, *_COMPARISONS, "CONCAT")
"""Operators whose operands stand for one unit."""
SINGLE_ROUND = 1
"""TOSA 1.0, RoundingMode: every RESCALE of ExecuTorch's integer programs rounds once."""


def _rescale(walk: Walk, operator: TosaOperator) -> Meaning:
    operand = walk.meaning(operator.inputs[0])
    multipliers, shifts, zero_points = (walk.constant(operator, position) for position in (1, 2, 4))
    if multipliers is None or shifts is None or zero_points is None:
        return Meaning()
    ratio = multipliers.astype(np.float64) * np.exp2(-shifts.astype(np.float64))
    flagged, unsigned = (bool(operator.attributes.get(name, False)) for name in ("InputUnsigned", "OutputUnsigned"))
    zero_point = as_unsigned(int(zero_points[0]), walk.block.tensors[operator.inputs[4]].dtype, unsigned)
    renamed = 0 if flagged == unsigned else _renamed_by(walk, operator, ratio, zero_point, unsigned)
    if renamed and operand.zero_point is not None:
        zero_point = operand.zero_point + renamed
    else:
        walk.expect_zero_point(operator, 0, 3, "input")
    dtype = walk.block.tensors[operator.inputs[0]].dtype
    if operand.scale is not None and operand.zero_point is not None and flagged != operand.unsigned(dtype):
        walk.report(
            "signedness differs",
            operator,
            f"RESCALE {operator.outputs[0]} reads {operator.inputs[0]} as {'un' * flagged}signed, "
            f"its codes are {operand.low:g} to {operand.high:g}",
        )
    if operator.attributes.get("RoundingMode") != SINGLE_ROUND:
        walk.report(
            "round mode",
            operator,
            f"RESCALE {operator.outputs[0]} has rounding mode {operator.attributes.get('RoundingMode')}, "
            f"not {SINGLE_ROUND} (SINGLE_ROUND)",
        )
    dtype = walk.block.tensors[operator.outputs[0]].dtype
    low, high = type_range("uint8" if unsigned and dtype == "INT8" else dtype)
    low, high = _rescaled_range(operand, ratio, zero_point, low, high)
    if operand.scale is None or np.any(ratio == 0):
        return Meaning(None, zero_point, low, high, bytes_unsigned=unsigned)
    scale = np.asarray(operand.scale) / (ratio if ratio.size > 1 else ratio[0])
    error = float(np.max(0.5 / np.abs(multipliers.astype(np.float64))))
    return Meaning(scale, zero_point, low, high, operand.tolerance + error, unsigned)


def _renamed_by(walk: Walk, operator: TosaOperator, ratio: Array, zero_point: int, unsigned: bool) -> int:
    """By how much a RESCALE to the other sign moves codes of int8 or uint8; 0 if it does more than rename them.

    It adds what it subtracts again, 128 off, so it may subtract another zero point than the operand's.
    """
    subtracted = walk.constant(operator, 3)
    if subtracted is None or np.any(ratio != 1):
        return 0
    moved = zero_point - as_unsigned(int(subtracted[0]), walk.block.tensors[operator.inputs[3]].dtype, not unsigned)
    return moved if moved == (128 if unsigned else -128) else 0


def _rescaled_range(operand: Meaning, ratio: Array, zero_point: int, low: float, high: float) -> tuple[float, float]:
    if operand.zero_point is None or not np.isfinite([operand.low, operand.high]).all():
        return low, high
    ends = np.outer([operand.low - operand.zero_point, operand.high - operand.zero_point], ratio) + zero_point
    # a result that is exactly a lowest code stays it: a quantize node's qmin would seem not to be enforced
    return max(low, float(np.ceil(ends.min() - 0.5))), min(high, float(np.ceil(ends.max() + 0.5)))


def _convolution(walk: Walk, operator: TosaOperator) -> Meaning:
    walk.expect_zero_point(operator, 0, 3, "input")
    operand, weights = walk.meaning(operator.inputs[0]), walk.weights(operator)
    if operand.scale is None or weights is None:
        return Meaning(None, 0)
    return Meaning(np.asarray(operand.scale) * weights, 0, tolerance=operand.tolerance + FLOAT32)


def _matmul(walk: Walk, operator: TosaOperator) -> Meaning:
    walk.expect_zero_point(operator, 0, 2, "input")
    walk.expect_zero_point(operator, 1, 3, "input")
    return _product(walk, operator)


def _product(walk: Walk, operator: TosaOperator) -> Meaning:
    first, second = (walk.meaning(name) for name in operator.inputs[:2])
    if first.scale is None or second.scale is None:
        return Meaning(None, 0)
    shift = walk.constant(operator, 2) if operator.op == "MUL" else None
    gain = float(np.exp2(float(shift[0]))) if shift is not None and shift.size else 1.0
    scale = np.asarray(first.scale) * np.asarray(second.scale) * gain
    return Meaning(scale, 0, tolerance=first.tolerance + second.tolerance)


def _sum(walk: Walk, operator: TosaOperator) -> Meaning:
    joined = walk.same_units(operator, operator.inputs[:2])
    return Meaning(joined.scale, joined.zero_point, tolerance=joined.tolerance)


def _extreme(walk: Walk, operator: TosaOperator) -> Meaning:
    """A constant operand bounds the result: int32 values, which no CLAMP takes, are clamped so."""
    lows, highs = zip(*(_codes(walk, operator, position) for position in (0, 1)), strict=True)
    farther = max if operator.op == "MAXIMUM" else min
    return replace(walk.same_units(operator, operator.inputs[:2]), low=farther(lows), high=farther(highs))


def _codes(walk: Walk, operator: TosaOperator, position: int) -> tuple[float, float]:
    """Lowest and highest code of an operand."""
    values, meaning = walk.constant(operator, position), walk.meaning(operator.inputs[position])
    return (meaning.low, meaning.high) if values is None else (float(values.min()), float(values.max()))


def _comparison(walk: Walk, operator: TosaOperator) -> Meaning:
    walk.same_units(operator, operator.inputs[:2])
    return Meaning()


def _join(walk: Walk, operator: TosaOperator) -> Meaning:
    return walk.same_units(operator, operator.inputs)


def _scatter(walk: Walk, operator: TosaOperator) -> Meaning:
    """SCATTER puts its third operand into its first."""
    return walk.same_units(operator, (operator.inputs[0], operator.inputs[2]))


def _choice(walk: Walk, operator: TosaOperator) -> Meaning:
    return walk.same_units(operator, operator.inputs[1:3])


def _same(walk: Walk, operator: TosaOperator) -> Meaning:
    return walk.meaning(operator.inputs[0])


def _pad(walk: Walk, operator: TosaOperator) -> Meaning:
    operand, value = walk.meaning(operator.inputs[0]), walk.constant(operator, 2)
    if value is None or not value.size:
        return replace(operand, low=-np.inf, high=np.inf)
    return replace(operand, low=min(operand.low, float(value[0])), high=max(operand.high, float(value[0])))


def _resize(walk: Walk, operator: TosaOperator) -> Meaning:
    """A bilinear RESIZE of integers writes weighted means, times both numerators (TOSA 1.0, RESIZE): nothing is beyond.

    Its result is read as codes without a zero point, since that takes part in the mean.
    """
    operand, scale = walk.meaning(operator.inputs[0]), walk.constant(operator, 1)
    if walk.block.tensors[operator.inputs[0]].dtype == walk.block.tensors[operator.outputs[0]].dtype:
        return operand  # nearest
    if scale is None:
        return Meaning()
    gain = float(scale[0]) * float(scale[2])
    return Meaning(None, 0, operand.low * gain, operand.high * gain)


def _wider(walk: Walk, operator: TosaOperator) -> Meaning:
    operand = walk.meaning(operator.inputs[0])
    return Meaning(operand.scale, operand.zero_point, tolerance=operand.tolerance)


def _with_zero_points(walk: Walk, operator: TosaOperator) -> Meaning:
    """NEGATE and AVG_POOL2D: zero points of operand and result are operands of their own.

    Should the operand's be wrong, the result stands for what the codes then mean.
    """
    walk.expect_zero_point(operator, 0, 1, "input")
    operand = walk.meaning(operator.inputs[0])
    subtracted, added = walk.constant(operator, 1), walk.constant(operator, 2)
    if subtracted is None or added is None:
        return Meaning(operand.scale, None, tolerance=operand.tolerance)
    sign = -1 if operator.op == "NEGATE" else 1
    off = 0 if operand.zero_point is None else sign * (operand.zero_point - int(subtracted[0]))
    return Meaning(operand.scale, int(added[0]) + off, tolerance=operand.tolerance)


def _table(walk: Walk, operator: TosaOperator) -> Meaning:
    """A TABLE returns only what it holds; a 16-bit one with 7 fractional bits, around zero."""
    entries = walk.constant(operator, 1)
    if entries is None:
        return Meaning()
    low, high = float(entries.min()), float(entries.max())
    if entries.size == 256:
        return Meaning(None, None, low, high)
    return Meaning(None, 0, low * 128, high * 128)


def _clamp(walk: Walk, operator: TosaOperator) -> Meaning:
    operand = walk.meaning(operator.inputs[0])
    dtype = walk.block.tensors[operator.inputs[0]].dtype
    low, high = (_bound(operator.attributes.get(key, ()), dtype) for key in ("MinVal", "MaxVal"))
    return replace(
        operand,
        low=operand.low if low is None else max(operand.low, low),
        high=operand.high if high is None else min(operand.high, high),
    )


def _bound(raw: tuple[int, ...], dtype: str) -> float | None:
    types = {"INT8": "<i1", "INT16": "<i2", "INT32": "<i4", "FP32": "<f4"}
    data = bytes(int(byte) & 0xFF for byte in raw)
    width = BITS.get(dtype, 0) // 8
    if dtype not in types or len(data) < width:
        return None
    return float(np.frombuffer(data[:width], types[dtype])[0])


RULES: Mapping[str, Rule] = {
    "RESCALE": _rescale,
    **dict.fromkeys(("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"), _convolution),
    "MATMUL": _matmul,
    "MUL": _product,
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_EXTREMES, _extreme),
    **dict.fromkeys(_COMPARISONS, _comparison),
    "CONCAT": _join,
    "SCATTER": _scatter,
    "SELECT": _choice,
    "PAD": _pad,
    "RESIZE": _resize,
    **dict.fromkeys((*TOSA_PICKING, "MAX_POOL2D"), _same),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), _same),
    **dict.fromkeys(("REDUCE_SUM", "ABS"), _wider),
    **dict.fromkeys(("NEGATE", "AVG_POOL2D"), _with_zero_points),
    "CLAMP": _clamp,
    "TABLE": _table,
}
