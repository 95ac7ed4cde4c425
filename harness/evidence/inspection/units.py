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
from harness.evidence.inspection.decisions import RANGES

FLOAT32 = 8 * 2.0**-24
"""Relative error of the few float32 operations between PT2E's scales and a RESCALE's ratio."""


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


Rule = Callable[["Walk", TosaOperator], Meaning]
"""What an operator's result stands for, given what is known of its operands."""


@dataclass
class Walk:
    """The walk over one block.

    :param known: meaning of graph inputs and constants.
    :param decided: meaning that PT2E gave to the result of an operator, or None.
    :param weights: scales of a convolution's weights, one a channel or one for all, or None.
    :param homogeneous: may a result's scale be inferred from its operands for this operator?
    :param rules: what an operator's result stands for, by the operator's name (``harness.evidence.inspection.rules``).
    """

    block: TosaBlock
    known: Mapping[str, Meaning]
    decided: Callable[[TosaOperator], Meaning | None]
    weights: Callable[[TosaOperator], Array | None]
    homogeneous: Callable[[TosaOperator], bool]
    rules: Mapping[str, Rule]
    meanings: dict[str, Meaning] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def run(self) -> Mapping[str, Meaning]:
        """Meaning of every tensor that an operator writes or the caller gave."""
        self.meanings.update(self.known)
        for operator in self.block.operators:
            if operator.op in ("CONST", "CONST_SHAPE"):
                continue
            rule = self.rules.get(operator.op)
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
        low, high = type_range("uint8" if implied.unsigned(dtype) else dtype)
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
            as_unsigned(int(value), self.block.tensors[operator.inputs[position]].dtype, unsigned) for value in values
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


def as_unsigned(value: int, dtype: str, unsigned: bool) -> int:
    """A code of a TOSA tensor as PT2E has it."""
    return value + (1 << BITS[dtype]) if unsigned and value < 0 else value


def type_range(dtype: str) -> tuple[float, float]:
    """Lowest and highest code of an integer type; infinite for any other."""
    return RANGES.get(dtype.lower(), (-np.inf, np.inf))


def _shown(scale: Array | float) -> str:
    flat = np.asarray(scale).reshape(-1)
    return f"{flat[0]:.9g}" if flat.size == 1 else f"[{flat[0]:.9g}, … {flat.size} channels]"
