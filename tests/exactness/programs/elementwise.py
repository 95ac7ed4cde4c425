"""Operators on one, two or three operands of one shape, with TOSA's broadcasting.

Operands have equal rank; an axis of size 1 is repeated. Either operand of a binary operator may be
a constant (full, one a channel, or a single value), or both the same tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tosa_serializer as ts

from tests.exactness.building import Graph, Value, clamp, zero
from tests.exactness.program import limits
from tests.exactness.programs.family import Family, Random, chance, ints, pick, shape_of

_NAN = {"nan_mode": ts.NanPropagationMode.PROPAGATE}
Range = tuple[int, int]


def operand_shapes(rng: Random, count: int = 2) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Shapes of the operands and of what they broadcast to."""
    rank = int(pick(rng, (1, 2, 3, 4, 4, 4, 5, 6)))
    full = list(shape_of(rng, rank))
    if chance(rng, 30):
        full = [*[1] * (rank - 1), 66000]
    shapes = [list(full) for _ in range(count)]
    if chance(rng, 2):
        for axis in range(rank):
            if chance(rng, 3):
                shapes[int(rng.randint(count))][axis] = 1
    elif chance(rng, 4):
        shapes[int(rng.randint(count))] = [1] * rank
    result = tuple(max(shape[axis] for shape in shapes) for axis in range(rank))
    return [tuple(shape) for shape in shapes], result


def binary(
    graph: Graph, rng: Random, op: str, dtype: str, result: str, ranges: Sequence[Range], more: Sequence[Any] = (),
    **attributes: Any,
) -> Value:  # fmt: skip
    """A binary operator on inputs and constants; ``more`` are further constant operands."""
    shapes, out = operand_shapes(rng)
    constant = pick(rng, (None, None, None, 0, 1))
    same = ranges[0] == ranges[1] and chance(rng, 12)
    values: list[Value] = []
    for place in range(2):
        if same and place == 1:
            values.append(values[0])
        elif constant == place and not same:
            values.append(graph.const(ints(rng, *ranges[place], shapes[place]), dtype))
        else:
            values.append(graph.input(shapes[place], dtype, *ranges[place]))
    if same:
        out = values[0].shape
    return graph.add(op, [*values, *more], out, result, **attributes)


def _whole(bits: int) -> Range:
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _int32(op: str, bits: int, **attributes: Any) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        width = bits if chance(rng, 2) else int(pick(rng, (9, 16, 17, 24)))
        return binary(graph, rng, op, "INT32", "INT32", [_whole(min(width, bits))] * 2, **attributes)

    return build


def _any(op: str, **attributes: Any) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        dtype = pick(rng, ("INT8", "INT16", "INT32"))
        return binary(graph, rng, op, dtype, dtype, [limits(dtype)] * 2, **attributes)

    return build


def _logical(op: str) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        return binary(graph, rng, op, "BOOL", "BOOL", [(0, 1)] * 2)

    return build


def _compare(op: str) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        ends = (-4, 4) if chance(rng, 2) else limits("INT32")
        return binary(graph, rng, op, "INT32", "BOOL", [ends] * 2)

    return build


def _shift(op: str, rounded: bool = False) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        dtype = pick(rng, ("INT8", "INT16", "INT32", "INT32"))
        most = {"INT8": 7, "INT16": 15, "INT32": 31}[dtype]
        attributes: dict[str, Any] = {"round": rounded} if op == "ARITHMETIC_RIGHT_SHIFT" else {}
        return binary(graph, rng, op, dtype, dtype, [limits(dtype), (0, most)], **attributes)

    return build


def mul(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16", "INT32", "INT32"))
    shift = int(pick(rng, (0, 0, 1, 7, 15, 20, 31, 32, 40, 62))) if dtype == "INT32" else 0
    ranges = [limits(dtype)] * 2
    if dtype == "INT32":
        bits = min(31 + shift, 62)
        first = int(rng.randint(max(bits - 31, 1), min(bits, 32)))
        ranges = [_whole(first), _whole(min(bits - first, 32))]
    return binary(graph, rng, "MUL", dtype, "INT32", ranges, [zero(graph, "INT8", shift)])


def intdiv(graph: Graph, rng: Random, index: int) -> Value:
    top = int(pick(rng, (7, 1000, 2**31 - 1)))
    positive = [limits("INT32"), (1, top)]
    negative = [(-(2**31) + 1, 2**31 - 1), (-top, -1)]
    return binary(graph, rng, "INTDIV", "INT32", "INT32", pick(rng, (positive, positive, negative)))


def _unary(op: str, dtypes: Sequence[str], result: str | None = None) -> Callable[[Graph, Random, int], Value]:
    def build(graph: Graph, rng: Random, index: int) -> Value:
        dtype = pick(rng, dtypes)
        low = limits(dtype)[0] + (op == "ABS")  # |-2**31| is not defined
        x = graph.input(shape_of(rng, int(rng.randint(1, 7))), dtype, low)
        return graph.add(op, [x], x.shape, result or dtype)

    return build


def negate(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16", "INT32"))
    x = graph.input(shape_of(rng, int(rng.randint(1, 6))), dtype, limits(dtype)[0] + 1)
    zeros = [int(rng.randint(-128, 128)) if dtype == "INT8" and chance(rng, 2) else 0 for _ in range(2)]
    return graph.add("NEGATE", [x, *(zero(graph, dtype, value) for value in zeros)], x.shape, dtype)


def select(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("BOOL", "INT8", "INT16", "INT32"))
    shapes, out = operand_shapes(rng, 3)
    condition = graph.input(shapes[0], "BOOL")
    constant = pick(rng, (None, None, 1, 2))
    ends = limits(dtype)
    values = [
        graph.const(ints(rng, *ends, shapes[place]), dtype) if constant == place else graph.input(shapes[place], dtype)
        for place in (1, 2)
    ]
    return graph.add("SELECT", [condition, *values], out, dtype)


def clamp_alone(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16"))
    low, high = sorted(int(value) for value in ints(rng, *limits(dtype), (2,)))
    return clamp(graph, graph.input(shape_of(rng, int(rng.randint(1, 7))), dtype), low, high)


FAMILIES = (
    Family("add", 40, _int32("ADD", 31)),
    Family("sub", 36, _int32("SUB", 31)),
    Family("mul", 48, mul),
    Family("maximum", 24, _int32("MAXIMUM", 32, **_NAN)),
    Family("minimum", 24, _int32("MINIMUM", 32, **_NAN)),
    Family("asr-round", 16, _shift("ARITHMETIC_RIGHT_SHIFT", True)),
    Family("asr", 16, _shift("ARITHMETIC_RIGHT_SHIFT")),
    Family("shl", 16, _shift("LOGICAL_LEFT_SHIFT")),
    Family("lsr", 16, _shift("LOGICAL_RIGHT_SHIFT")),
    Family("bitwise-and", 10, _any("BITWISE_AND")),
    Family("bitwise-or", 10, _any("BITWISE_OR")),
    Family("bitwise-xor", 10, _any("BITWISE_XOR")),
    Family("logical-and", 6, _logical("LOGICAL_AND")),
    Family("logical-or", 6, _logical("LOGICAL_OR")),
    Family("logical-xor", 6, _logical("LOGICAL_XOR")),
    Family("equal", 12, _compare("EQUAL")),
    Family("greater", 12, _compare("GREATER")),
    Family("greater-equal", 12, _compare("GREATER_EQUAL")),
    Family("intdiv", 16, intdiv),
    Family("abs", 10, _unary("ABS", ("INT32",))),
    Family("clz", 10, _unary("CLZ", ("INT32",))),
    Family("bitwise-not", 8, _unary("BITWISE_NOT", ("INT8", "INT16", "INT32"))),
    Family("logical-not", 5, _unary("LOGICAL_NOT", ("BOOL",))),
    Family("identity", 10, _unary("IDENTITY", ("BOOL", "INT8", "INT16", "INT32"))),
    Family("negate", 20, negate),
    Family("select", 30, select),
    Family("clamp", 16, clamp_alone),
)
