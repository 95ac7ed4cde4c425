"""REDUCE_SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL, REDUCE_ANY and ARGMAX: what brings an axis down to one element."""

from __future__ import annotations

from collections.abc import Callable

from generators.tosa_graph import (
    MANTISSAS,
    NOT_U85,
    ONLY_U85,
    PROPAGATE,
    TosaGraph,
    TosaOperator,
    Value,
    axis_of,
    choose,
    of_kind,
    replaced,
    zero_point,
)
from harness.case.operators import Draw
from harness.tosa.program import Attribute, limits

_MOST = (1 << 31) - 1


def _sum(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """RESCALE, REDUCE_SUM, RESCALE: a quantized sum or mean."""
    wide = graph.rescale(value, "INT32", [1.0], zeros=(zero_point(draw, value.dtype), 0))
    total = _summed(draw, graph, wide)
    factor = limits(value.dtype)[1] / total.most * choose(draw, MANTISSAS) * 2
    return graph.rescale(total, value.dtype, [factor], zeros=(0, zero_point(draw, value.dtype)))


def _summed(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    fitting = [axis for axis in range(value.rank - 1, -1, -1) if value.shape[axis] * value.most <= _MOST]
    axis = choose(draw, fitting)
    most = value.most * value.shape[axis]
    return graph.add("REDUCE_SUM", [value], replaced(value.shape, axis, 1), "INT32", (-most, most), Axis=axis)


def _reduced(op: str, **attributes: Attribute) -> Callable[[Draw, TosaGraph, Value], Value]:
    def drawn(draw: Draw, graph: TosaGraph, value: Value) -> Value:
        axis = axis_of(draw, value)
        ends = (value.low, value.high)
        return graph.add(op, [value], replaced(value.shape, axis, 1), value.dtype, ends, Axis=axis, **attributes)

    return drawn


def _argmax(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    axis = axis_of(draw, value) if graph.u85 else value.rank - 1
    shape = value.shape[:axis] + value.shape[axis + 1 :]
    ends = (0, value.shape[axis] - 1)
    return graph.add("ARGMAX", [value], shape, "INT32", ends, Axis=axis, NanMode=PROPAGATE)


def _summable(value: Value) -> bool:
    return value.dtype == "INT32" and min(value.shape) * value.most <= _MOST


def _last_axis(value: Value) -> bool:
    return value.quantized and 1 < value.rank < 5 and value.shape[-1] < 128 and (value.rank < 4 or value.shape[0] == 1)


_NAN: dict[str, Attribute] = {"NanMode": PROPAGATE}
TOSA_OPERATORS = of_kind(
    "reduces",
    TosaOperator("reduce-sum", lambda value: value.quantized, _sum),
    TosaOperator("reduce-sum-int32", _summable, _summed),
    TosaOperator("reduce-max", lambda value: value.quantized, _reduced("REDUCE_MAX", **_NAN)),
    TosaOperator("reduce-min", lambda value: value.quantized, _reduced("REDUCE_MIN", **_NAN)),
    TosaOperator("reduce-max-int32", lambda value: value.dtype == "INT32", _reduced("REDUCE_MAX", **_NAN), ONLY_U85),
    TosaOperator("reduce-min-int32", lambda value: value.dtype == "INT32", _reduced("REDUCE_MIN", **_NAN), ONLY_U85),
    TosaOperator("reduce-all", lambda value: value.dtype == "BOOL", _reduced("REDUCE_ALL"), ONLY_U85),
    TosaOperator("reduce-any", lambda value: value.dtype == "BOOL", _reduced("REDUCE_ANY"), ONLY_U85),
    TosaOperator("argmax", _last_axis, _argmax, ONLY_U85),
    TosaOperator("argmax-int8", lambda value: value.dtype == "INT8" and _last_axis(value), _argmax, NOT_U85),
)
