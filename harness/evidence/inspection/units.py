"""Dimensional analysis of a TOSA graph: what each integer tensor stands for.

An integer tensor stands for ``scale * (code - zero point)``. Walking the operators in order, the
scale of every result follows from its operands: RESCALE divides by ``multiplier * 2**-shift``,
products multiply, sums and joins need equal scales (TOSA 1.0, chapters on each operator). The
walk starts from what PT2E decided for the graph's inputs and constants, checks operands as it
goes, and compares what leaves each group of operators with what PT2E decided there.

Tolerance: a RESCALE encodes its ratio in ``multiplier * 2**-shift``; half a unit of the very
multiplier in the file is its relative error. Errors add up along a path. Scales are float32
numbers whose products and ratios err by a few epsilons (``FLOAT32``). Nothing is tuned.

Words: a *meaning* is scale, zero point and range of codes of one tensor; an unknown scale is
None, and nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from harness.artifacts.tosa import BITS, TosaBlock, TosaOperator
from harness.case.arrays import Array
from harness.case.traits import TOSA_PICKING
from harness.evidence.inspection.decisions import RANGES

FLOAT32 = 8 * 2.0**-24
"""Relative error of the few float32 operations between PT2E's scales and a RESCALE's ratio."""
_SUMS, _EXTREMES, _COMPARISONS = ("ADD", "SUB"), ("MAXIMUM", "MINIMUM"), ("GREATER", "GREATER_EQUAL", "EQUAL")
JOINS = (*_SUMS, *_EXTREMES, *_COMPARISONS, "CONCAT")
"""Operators whose operands stand for one unit."""
SINGLE_ROUND = 1
"""TOSA 1.0, RoundingMode: every RESCALE of ExecuTorch's integer programs rounds once."""


@dataclass(frozen=True)
class Meaning:
    """What a tensor's codes stand for.

    :param scale: one number, or one a channel of the last axis; None if unknown.
    :param zero_point: None if unknown.
    :param low: lowest code that it can hold.
    :param tolerance: relative error of ``scale`` that encodings explain.
    :param bytes_unsigned: its codes are uint8's; their range alone cannot tell, since few may occur.
    """

    scale: Array | None = None
    zero_point: int | None = None
    low: float = -np.inf
    high: float = np.inf
    tolerance: float = FLOAT32
    bytes_unsigned: bool = False

    def unsigned(self, dtype: str) -> bool:
        """TOSA has no unsigned tensors: uint8 codes travel as INT8 and RESCALE is told."""
        return dtype == "INT8" and self.bytes_unsigned


@dataclass(frozen=True)
class Problem:
    """One place where the graph contradicts itself or what was decided.

    :param kind: stable words for the bucket.
    :param tensor: the TOSA tensor that the operator writes.
    """

    kind: str
    operator: TosaOperator
    tensor: str
    message: str
    measured: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass
class Walk:
    """The walk over one block.

    :param known: meaning of graph inputs and constants.
    :param decided: meaning that PT2E gave to the result of an operator, or None.
    :param weights: scales of a convolution's weights, one a channel or one for all, or None.
    :param homogeneous: may a result's scale be inferred from its operands for this operator?
    """

    block: TosaBlock
    known: Mapping[str, Meaning]
    decided: Callable[[TosaOperator], Meaning | None]
    weights: Callable[[TosaOperator], Array | None]
    homogeneous: Callable[[TosaOperator], bool]
    meanings: dict[str, Meaning] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def run(self) -> Mapping[str, Meaning]:
        """Meaning of every tensor that an operator writes or the caller gave."""
        self.meanings.update(self.known)
        for operator in self.block.operators:
            if operator.op in ("CONST", "CONST_SHAPE"):
                continue
            rule = _RULES.get(operator.op)
            result = rule(self, operator) if rule else Meaning()
            for name in operator.outputs:
                self.meanings[name] = self._settled(operator, name, result)
        return self.meanings

    def meaning(self, name: str) -> Meaning:
        return self.meanings.get(name, Meaning())

    def constant(self, operator: TosaOperator, position: int) -> Array | None:
        """Values of a constant operand, flat; None if it is no constant."""
        if position >= len(operator.inputs):
            return None
        tensor = self.block.tensors[operator.inputs[position]]
        return tensor.values().reshape(-1) if tensor.data is not None else None

    def report(self, kind: str, operator: TosaOperator, message: str, **measured: float | int | str) -> None:
        name = operator.outputs[0] if operator.outputs else ""
        self.problems.append(Problem(kind, operator, name, message, measured))

    def _settled(self, operator: TosaOperator, name: str, implied: Meaning) -> Meaning:
        """Compare with the decision where there is one, and go on from the decision."""
        dtype = self.block.tensors[name].dtype
        low, high = _type_range("uint8" if implied.unsigned(dtype) else dtype)
        bounded = replace(implied, low=max(implied.low, low), high=min(implied.high, high))
        wanted = self.decided(operator)
        if wanted is None or wanted.scale is None:
            return bounded
        if self.homogeneous(operator):
            self._compare(operator, name, bounded, wanted)
        return replace(wanted, low=bounded.low, high=bounded.high)

    def _compare(self, operator: TosaOperator, name: str, implied: Meaning, wanted: Meaning) -> None:
        assert wanted.scale is not None
        dtype = self.block.tensors[name].dtype
        if operator.op == "RESCALE" and implied.unsigned(dtype) != wanted.unsigned(dtype):
            self.report(
                "signedness differs",
                operator,
                f"RESCALE {name} saturates to codes {implied.low:g} to {implied.high:g}, PT2E chose "
                f"{'un' * wanted.unsigned(dtype)}signed ones",
            )
        if implied.scale is not None:
            ratio = np.asarray(implied.scale) / wanted.scale
            worst = float(ratio.reshape(-1)[np.argmax(np.abs(np.log2(np.abs(ratio) + 1e-300)))])
            if not abs(worst - 1.0) <= implied.tolerance + wanted.tolerance:
                self.report(
                    "scale differs",
                    operator,
                    f"the graph gives {name} the scale {_shown(implied.scale)}, PT2E chose {_shown(wanted.scale)} "
                    f"(ratio {worst:.9g}, encoding explains {implied.tolerance + wanted.tolerance:.2g})",
                    ratio=worst,
                )
        if implied.zero_point is not None and implied.zero_point != wanted.zero_point:
            self.report(
                "zero point differs",
                operator,
                f"{name} has zero point {implied.zero_point}, PT2E chose {wanted.zero_point}",
                zero_point=implied.zero_point,
                expected=int(wanted.zero_point or 0),
            )

    def expect_zero_point(self, operator: TosaOperator, operand: int, position: int, what: str) -> None:
        """The zero point that an operator subtracts from an operand is that operand's own."""
        values, meaning = self.constant(operator, position), self.meaning(operator.inputs[operand])
        if values is None or meaning.zero_point is None:
            return
        unsigned = what == "input" and operator.attributes.get("InputUnsigned", False)
        seen = {
            _unsigned(int(value), self.block.tensors[operator.inputs[position]].dtype, unsigned) for value in values
        }
        if seen != {meaning.zero_point}:
            self.report(
                "zero point differs",
                operator,
                f"{operator.op} subtracts {sorted(seen)} from {operator.inputs[operand]}, "
                f"whose zero point is {meaning.zero_point}",
                zero_point=min(seen),
                expected=meaning.zero_point,
            )

    def same_units(self, operator: TosaOperator, names: tuple[str, ...]) -> Meaning:
        """Operands of a sum, comparison or join stand for the same unit."""
        parts = [self.meaning(name) for name in names]
        known = [(name, part) for name, part in zip(names, parts, strict=True) if part.scale is not None]
        for name, part in known[1:]:
            first_name, first = known[0]
            assert part.scale is not None
            assert first.scale is not None
            ratio = float(np.max(np.asarray(part.scale) / np.asarray(first.scale)))
            if abs(ratio - 1.0) > part.tolerance + first.tolerance:
                self.report(
                    "operand scales differ",
                    operator,
                    f"{operator.op} joins {first_name} (scale {_shown(first.scale)}) with {name} "
                    f"(scale {_shown(part.scale)}): ratio {ratio:.9g}, encoding explains "
                    f"{part.tolerance + first.tolerance:.2g}",
                    ratio=ratio,
                )
        zero_points = {part.zero_point for part in parts if part.zero_point is not None}
        if len(zero_points) > 1 and len(known) == len(parts):
            self.report(
                "operand zero points differ",
                operator,
                f"{operator.op} joins values with zero points "
                + ", ".join(f"{name} {part.zero_point}" for name, part in zip(names, parts, strict=True)),
            )
        scale = known[0][1].scale if len(known) == len(parts) else None
        return Meaning(
            scale,
            zero_points.pop() if len(zero_points) == 1 else None,
            min(part.low for part in parts),
            max(part.high for part in parts),
            max((part.tolerance for part in parts), default=FLOAT32),
        )


def _unsigned(value: int, dtype: str, unsigned: bool) -> int:
    return value + (1 << BITS[dtype]) if unsigned and value < 0 else value


def _type_range(dtype: str) -> tuple[float, float]:
    return RANGES.get(dtype.lower(), (-np.inf, np.inf))


def _shown(scale: Array | float) -> str:
    flat = np.asarray(scale).reshape(-1)
    return f"{flat[0]:.9g}" if flat.size == 1 else f"[{flat[0]:.9g}, … {flat.size} channels]"


# ---- one rule an operator -------------------------------------------------------------------------------------------


def _rescale(walk: Walk, operator: TosaOperator) -> Meaning:
    operand = walk.meaning(operator.inputs[0])
    multipliers, shifts, zero_points = (walk.constant(operator, position) for position in (1, 2, 4))
    if multipliers is None or shifts is None or zero_points is None:
        return Meaning()
    walk.expect_zero_point(operator, 0, 3, "input")
    flagged = bool(operator.attributes.get("InputUnsigned", False))
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
    ratio = multipliers.astype(np.float64) * np.exp2(-shifts.astype(np.float64))
    dtype = walk.block.tensors[operator.outputs[0]].dtype
    unsigned = bool(operator.attributes.get("OutputUnsigned", False))
    zero_point = _unsigned(int(zero_points[0]), walk.block.tensors[operator.inputs[4]].dtype, unsigned)
    low, high = _type_range("uint8" if unsigned and dtype == "INT8" else dtype)
    low, high = _rescaled_range(operand, ratio, zero_point, low, high)
    if operand.scale is None or np.any(ratio == 0):
        return Meaning(None, zero_point, low, high, bytes_unsigned=unsigned)
    scale = np.asarray(operand.scale) / (ratio if ratio.size > 1 else ratio[0])
    error = float(np.max(0.5 / np.abs(multipliers.astype(np.float64))))
    return Meaning(scale, zero_point, low, high, operand.tolerance + error, unsigned)


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
    return walk.same_units(operator, operator.inputs[:2])


def _comparison(walk: Walk, operator: TosaOperator) -> Meaning:
    walk.same_units(operator, operator.inputs[:2])
    return Meaning()


def _join(walk: Walk, operator: TosaOperator) -> Meaning:
    return walk.same_units(operator, operator.inputs)


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


_RULES: Mapping[str, Callable[[Walk, TosaOperator], Meaning]] = {
    "RESCALE": _rescale,
    **dict.fromkeys(("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"), _convolution),
    "MATMUL": _matmul,
    "MUL": _product,
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_EXTREMES, _extreme),
    **dict.fromkeys(_COMPARISONS, _comparison),
    "CONCAT": _join,
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
