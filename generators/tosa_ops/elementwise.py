"""Operators on one, two or three operands of one shape, with broadcasting.

On int8 and int16 they come as ExecuTorch emits them: operands rescaled to int32, the operator, a RESCALE back. ADD and
SUB keep 20 (int8) or 12 (int16) more bits, as the pass InsertRescaleInt32Pass has it. Beside them are entries that
start from int32, whose ranges are kept so small that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable

from generators.tosa_graph import (
    MANTISSAS,
    ONLY_U85,
    PROPAGATE,
    Shape,
    TosaGraph,
    TosaOperator,
    Value,
    choose,
    of_kind,
    one_in,
    zero_point,
)
from harness.case.operators import Draw
from harness.tosa.program import Attribute, limits

_EXTRA_BITS = {"INT8": 20, "INT16": 12}
_MOST = (1 << 31) - 1
Drawn = Callable[[Draw, TosaGraph, Value], Value]


def _other_shape(draw: Draw, shape: Shape) -> Shape:
    """The second operand's: the same, one a channel, one element, or some axes of size one."""
    kind = choose(draw, ("same", "same", "channel", "scalar", "some"))
    if kind == "same":
        return shape
    if kind == "channel":
        return (*[1] * (len(shape) - 1), shape[-1])
    return tuple(1 if kind == "scalar" or one_in(draw, 2) else size for size in shape)


def _ordered(draw: Draw, one: Value, other: Value) -> tuple[Value, Value]:
    return (other, one) if one_in(draw, 3) else (one, other)


def _scaled(draw: Draw, graph: TosaGraph, value: Value, bits: int) -> Value:
    factor = choose(draw, MANTISSAS) / 2 * 2.0**bits
    return graph.rescale(value, "INT32", [factor], zeros=(zero_point(draw, value.dtype), 0))


def _back(draw: Draw, graph: TosaGraph, value: Value, dtype: str) -> Value:
    """RESCALE to a quantized type so that most of its range is used."""
    factor = limits(dtype)[1] / value.most * choose(draw, MANTISSAS) * choose(draw, (1.0, 2.0, 0.5))
    double = dtype == "INT8" and one_in(draw, 5)
    return graph.rescale(value, dtype, [factor], zeros=(0, zero_point(draw, dtype)), double_round=double)


def _binary(
    op: str, bits: Callable[[str], int], span: Callable[[Value, Value], tuple[int, int]], **attributes: Attribute
) -> Drawn:
    """A quantized binary operator; ``bits`` are kept beyond those of the operands."""

    def drawn(draw: Draw, graph: TosaGraph, value: Value) -> Value:
        other = graph.operand(draw, _other_shape(draw, value.shape), value.dtype)
        extra = bits(value.dtype)
        one, two = _ordered(draw, *(_scaled(draw, graph, item, extra) for item in (value, other)))
        more = [graph.scalar(0, "INT8")] if op == "MUL" else []
        result = graph.add(op, [one, two, *more], value.shape, "INT32", span(one, two), **attributes)
        return _back(draw, graph, result, value.dtype)

    return drawn


def _sum(one: Value, two: Value) -> tuple[int, int]:
    most = one.most + two.most
    return -most, most


def _larger(one: Value, two: Value) -> tuple[int, int]:
    most = max(one.most, two.most)
    return -most, most


def _product(one: Value, two: Value) -> tuple[int, int]:
    most = one.most * two.most
    return -most, most


def _binary32(op: str, span: Callable[[Value, Value], tuple[int, int]], **attributes: Attribute) -> Drawn:
    """On int32; the second operand is so small that the result fits."""

    def drawn(draw: Draw, graph: TosaGraph, value: Value) -> Value:
        room = _MOST // value.most if op == "MUL" else _MOST - value.most
        most = min(room, choose(draw, (127, 1 << 15, 1 << 20, 3)))
        other = graph.operand(draw, _other_shape(draw, value.shape), "INT32", (-most, most))
        one, two = _ordered(draw, value, other)
        more = [graph.scalar(0, "INT8")] if op == "MUL" else []
        return graph.add(op, [one, two, *more], value.shape, "INT32", span(one, two), **attributes)

    return drawn


def _abs(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    scaled = _scaled(draw, graph, value, 1)
    return _back(draw, graph, graph.add("ABS", [scaled], value.shape, "INT32", (0, scaled.most)), value.dtype)


def _abs32(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    return graph.add("ABS", [value], value.shape, "INT32", (0, value.most))


def _clz(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    return graph.add("CLZ", [value], value.shape, "INT32", (0, 32))


def _negate(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    zeros = [graph.scalar(zero_point(draw, value.dtype), value.dtype) for _ in range(2)]
    span = (-value.most, value.most) if value.dtype == "INT32" else None
    return graph.add("NEGATE", [value, *zeros], value.shape, value.dtype, span)


def _clamp(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    low, high = limits(value.dtype)
    ends = {low, high, -5, 0, 3, 100, high // 2}
    bottom = choose(draw, sorted(end for end in ends if end < high))
    top = choose(draw, sorted((end for end in ends if end > bottom), reverse=True))
    size = 1 if value.dtype == "INT8" else 2
    stored = (tuple(end.to_bytes(size, "little", signed=True)) for end in (bottom, top))
    least, most = next(stored), next(stored)
    span = (bottom, top)
    return graph.add("CLAMP", [value], value.shape, value.dtype, span, MinVal=least, MaxVal=most, NanMode=PROPAGATE)


def _shift(op: str, **attributes: Attribute) -> Drawn:
    def drawn(draw: Draw, graph: TosaGraph, value: Value) -> Value:
        most = choose(draw, (1, 4, 15, 31))
        other = graph.operand(draw, _other_shape(draw, value.shape), "INT32", (0, most))
        span = (-value.most, value.most) if op == "ARITHMETIC_RIGHT_SHIFT" else None
        return graph.add(op, [value, other], value.shape, "INT32", span, **attributes)

    return drawn


def _bitwise(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    op = choose(draw, ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BITWISE_NOT"))
    if op == "BITWISE_NOT":
        return graph.add(op, [value], value.shape, value.dtype)
    other = graph.operand(draw, _other_shape(draw, value.shape), value.dtype)
    return graph.add(op, [*_ordered(draw, value, other)], value.shape, value.dtype)


def _logical(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    op = choose(draw, ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR", "LOGICAL_NOT"))
    if op == "LOGICAL_NOT":
        return graph.add(op, [value], value.shape, "BOOL")
    other = graph.operand(draw, _other_shape(draw, value.shape), "BOOL")
    return graph.add(op, [*_ordered(draw, value, other)], value.shape, "BOOL")


def _compare(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    op = choose(draw, ("EQUAL", "GREATER", "GREATER_EQUAL"))
    shape = value.shape
    other = graph.operand(draw, _other_shape(draw, shape), value.dtype)
    operands = [value, other]
    if value.dtype != "INT32":
        operands = [_scaled(draw, graph, item, 1) for item in operands]
    return graph.add(op, [*_ordered(draw, *operands)], shape, "BOOL")


def _select(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    condition = graph.operand(draw, _other_shape(draw, value.shape), "BOOL")
    other = graph.operand(draw, _other_shape(draw, value.shape), value.dtype)
    pair = _ordered(draw, value, other)
    return graph.add("SELECT", [condition, *pair], value.shape, value.dtype, _hull(value, other))


def _select_by(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    dtype = choose(draw, ("INT8", "INT16", "INT32"))
    pair = [graph.operand(draw, value.shape, dtype, (-99, 99) if dtype == "INT32" else None) for _ in range(2)]
    return graph.add("SELECT", [value, *pair], value.shape, dtype, _hull(*pair))


def _hull(one: Value, other: Value) -> tuple[int, int]:
    return min(one.low, other.low), max(one.high, other.high)


def _quantized(value: Value) -> bool:
    return value.quantized


def _is32(value: Value) -> bool:
    return value.dtype == "INT32"


def _narrow32(value: Value) -> bool:
    return value.dtype == "INT32" and value.most < 1 << 30


def _bool(value: Value) -> bool:
    return value.dtype == "BOOL"


def _extra(dtype: str) -> int:
    return _EXTRA_BITS[dtype]


def _no_bits(dtype: str) -> int:
    return 0


_NAN: dict[str, Attribute] = {"NanMode": PROPAGATE}
_OF_SEVERAL = of_kind(
    "combines",
    TosaOperator("add", _quantized, _binary("ADD", _extra, _sum)),
    TosaOperator("sub", _quantized, _binary("SUB", _extra, _sum)),
    TosaOperator("mul", _quantized, _binary("MUL", lambda dtype: 1 if dtype == "INT8" else 0, _product)),
    TosaOperator("maximum", _quantized, _binary("MAXIMUM", _extra, _larger, **_NAN)),
    TosaOperator("minimum", _quantized, _binary("MINIMUM", _extra, _larger, **_NAN)),
    TosaOperator("add-int32", _narrow32, _binary32("ADD", _sum)),
    TosaOperator("sub-int32", _narrow32, _binary32("SUB", _sum)),
    TosaOperator("mul-int32", _narrow32, _binary32("MUL", _product)),
    TosaOperator("maximum-int32", _narrow32, _binary32("MAXIMUM", _larger, **_NAN)),
    TosaOperator("minimum-int32", _narrow32, _binary32("MINIMUM", _larger, **_NAN)),
    TosaOperator("arithmetic-right-shift", _is32, _shift("ARITHMETIC_RIGHT_SHIFT", Round=True)),
    TosaOperator("arithmetic-right-shift-down", _is32, _shift("ARITHMETIC_RIGHT_SHIFT", Round=False), ONLY_U85),
    TosaOperator("logical-left-shift", _is32, _shift("LOGICAL_LEFT_SHIFT")),
    TosaOperator("logical-right-shift", _is32, _shift("LOGICAL_RIGHT_SHIFT"), ONLY_U85),
    TosaOperator("bitwise", lambda value: value.dtype in ("INT8", "INT16", "INT32"), _bitwise, ONLY_U85),
    TosaOperator("logical", _bool, _logical, ONLY_U85),
    TosaOperator("compare", lambda value: value.dtype in ("INT8", "INT16", "INT32"), _compare, ONLY_U85),
    TosaOperator("select", lambda value: value.dtype in ("INT8", "INT16", "INT32"), _select, ONLY_U85),
    TosaOperator("select-by", _bool, _select_by, ONLY_U85),
)
_OF_ONE = of_kind(
    "converts",
    TosaOperator("abs", _quantized, _abs),
    TosaOperator("abs-int32", _narrow32, _abs32),
    TosaOperator("clz", _is32, _clz),
    TosaOperator("negate", lambda value: value.quantized or _narrow32(value), _negate),
    TosaOperator("clamp", _quantized, _clamp),
)
TOSA_OPERATORS = (*_OF_SEVERAL, *_OF_ONE)
