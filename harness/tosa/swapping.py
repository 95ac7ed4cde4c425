"""One operator in the place of another with the same data: ADD for SUB, MAX_POOL2D for AVG_POOL2D, IDENTITY for CLAMP.

Reduction puts in what does less (``harness.tosa.simplifying``), mutation any sibling (``generators.mutations``).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.tosa.program import BOUNDS, Attribute, Operator, Program, stored_bound
from harness.tosa.rewriting import Draft, rewritten

SIBLINGS = (
    ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"),
    ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT"),
    ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"),
    ("EQUAL", "GREATER", "GREATER_EQUAL"),
    ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM", "REVERSE"),
    ("REDUCE_ALL", "REDUCE_ANY"),
    ("MAX_POOL2D", "AVG_POOL2D"),
    ("CLAMP", "IDENTITY", "NEGATE", "TABLE", "REVERSE", "BITWISE_NOT", "ABS", "CLZ"),
)
"""Operators that take each other's operands. Whether the types allow it is the reference model's to say."""
_POOL = ("Kernel", "Stride", "Pad")
_KEPT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("MAX_POOL2D", "AVG_POOL2D"), _POOL),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "REDUCE_SUM", "REDUCE_ALL", "REDUCE_ANY", "REVERSE"), ("Axis",)),
}
_NAN = ("MAX_POOL2D", "REDUCE_MAX", "REDUCE_MIN", "CLAMP", "MAXIMUM", "MINIMUM")
_BINARY = {name for row in SIBLINGS[:4] for name in row}
_CLAMPED = (-100, 100)
_INT32 = 5
"""The schema's number, for ``AccType``."""
_ZERO_POINTS = ("NEGATE", "AVG_POOL2D")


def siblings(op: str) -> tuple[str, ...]:
    """What may take an operator's place."""
    return tuple(dict.fromkeys(other for row in SIBLINGS if op in row for other in row if other != op))


def swapped(program: Program, place: int, other: str) -> Program:
    """The program with another operator in a place: the same data, type and shape of the result, plain attributes."""
    return rewritten(program, place, lambda draft, step: _written(draft, step, other))


def _written(draft: Draft, step: Operator, other: str) -> str:
    before, after = draft[step.inputs[0]], draft[step.outputs[0]]
    found: dict[str, Attribute] = {name: step.attributes.get(name, 0) for name in _KEPT.get(other, ())}
    if other in _NAN:
        found["NanMode"] = 1
    if other == "CLAMP":
        found |= {name: stored_bound(end, after.dtype) for name, end in zip(BOUNDS, _CLAMPED, strict=True)}
    if other == "AVG_POOL2D":
        found["AccType"] = _INT32
    inputs = list(step.inputs[: 2 if other in _BINARY else 1])
    if other == "MUL":
        inputs.append(draft.constant((1,), "INT8", [0]))
    if other in _ZERO_POINTS:
        inputs += [draft.constant((1,), item.dtype, [0]) for item in (before, after)]
    if other == "TABLE":
        inputs.append(draft.constant((256,), "INT8", [127 - code for code in range(256)]))
    return draft.add(other, inputs, after.shape, after.dtype, found)
