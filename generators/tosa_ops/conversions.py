"""RESCALE, CAST, IDENTITY, TABLE, RESIZE: changes of scale, type and size."""

from __future__ import annotations

from generators.tosa_graph import (
    MANTISSAS,
    NOT_U85,
    ONLY_U85,
    TosaGraph,
    TosaOperator,
    Value,
    between,
    choose,
    fill,
    of_kind,
    one_in,
    zero_point,
)
from harness.case.operators import Draw
from harness.tosa.program import Fill, limits

_WIDTH = {"BOOL": 1, "INT8": 8, "INT16": 16, "INT32": 32}
NEAREST, BILINEAR = 1, 2
"""Numbers of the schema's resize modes."""


def _rescale(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    dtype = (
        choose(draw, ("INT8", "INT16", "INT32"))
        if value.dtype == "INT32"
        else choose(draw, (value.dtype, "INT8", "INT16", "INT32"))
    )
    top = 1 << 24 if dtype == "INT32" else limits(dtype)[1]
    count = value.shape[-1] if value.shape[-1] > 1 and one_in(draw, 4) else 1
    some = [choose(draw, MANTISSAS) for _ in range(min(count, 3))]
    wide = choose(draw, (1.0, 2.0, 0.25))
    factors = [top / value.most * some[channel % len(some)] * wide for channel in range(count)]
    zeros = zero_point(draw, value.dtype), zero_point(draw, dtype)
    return graph.rescale(value, dtype, factors, zeros=zeros, double_round=one_in(draw, 4))


def _cast(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    wider = [name for name, width in _WIDTH.items() if width > _WIDTH[value.dtype]]
    return graph.add("CAST", [value], value.shape, choose(draw, wider), (value.low, value.high))


def _cast_down(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    narrower = [name for name, width in _WIDTH.items() if width < _WIDTH[value.dtype]]
    return graph.add("CAST", [value], value.shape, choose(draw, narrower[::-1]))


def _identity(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    return graph.add("IDENTITY", [value], value.shape, value.dtype, (value.low, value.high))


def _table(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    return graph.add("TABLE", [value, _entries(draw, graph, 256, "INT8", 127)], value.shape, "INT8")


def _entries(draw: Draw, graph: TosaGraph, count: int, dtype: str, top: int) -> Value:
    """A table's, most often all different: one of equal entries hides which elements are looked up."""
    low = -top - 1 if dtype == "INT8" else -top
    if one_in(draw, 5):
        return graph.constant((count,), dtype, fill(draw, low, top))
    return graph.constant((count,), dtype, Fill("uniform", low, top, between(draw, 0, 99)))


def _table16(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """int16 to int32, values times 128; most often with the RESCALE by 1/128 that Vela fuses.

    TOSA wants the slope between neighbours to fit in 16 bits.
    """
    top = 16383
    table = _entries(draw, graph, 513, "INT16", top)
    most = (top + 1) << 7
    result = graph.add("TABLE", [value, table], value.shape, "INT32", (-most, most))
    if one_in(draw, 4):
        return result
    if one_in(draw, 3):
        return graph.rescale(result, "INT8", [1 / 40000], zeros=(0, zero_point(draw, "INT8")))
    return graph.rescale(result, "INT16", [1 / 128])


def _resize(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """Upscaling by 2, 4 or 8: corners aligned, asymmetric, or half pixel.

    Ethos-U55 takes the nearest neighbour of these but for asymmetric; bilinear needs a RESCALE behind it that has
    the multiplier 1, which nothing emits (SUPPORTED_OPS.md of Vela 5.1.0; LegaliseResize in scheduler_decompose.cpp).
    Both axes grow alike, but for one in eight on Ethos-U55, whose documents do not ask for it; on Ethos-U85
    ``resize-any`` draws these.
    """
    nearest = one_in(draw, 2) or not graph.u85
    factor, kind = (
        choose(draw, (2, 2, 4) if value.elements > 64 else (2, 4, 8)),
        choose(draw, ("corners", "edge", "half") if graph.u85 else ("corners", "half")),
    )
    across = factor if graph.u85 or not one_in(draw, 8) else choose(draw, (2, 4, 3, 8))
    batch, height, width, channels = value.shape
    y, x = (_grown(size, times, kind) for size, times in ((height, factor), (width, across)))
    dtype = value.dtype if nearest else {"INT8": "INT32", "INT16": "INT48"}[value.dtype]
    scale = y[0] * x[0]
    most = value.most * scale
    inputs = [
        value,
        graph.dims((*y[:2], *x[:2])),
        graph.dims((y[2], x[2])),
        graph.dims((y[3], x[3])),
    ]
    span = (value.low, value.high) if nearest else (-most, most)
    mode = NEAREST if nearest else BILINEAR
    result = graph.add("RESIZE", inputs, (batch, y[4], x[4], channels), dtype, span, Mode=mode)
    return result if nearest else graph.rescale(result, value.dtype, [1 / scale])


def _grown(size: int, factor: int, kind: str) -> tuple[int, int, int, int, int]:
    """Numerator, denominator, offset, border, output size of an axis that grows by a whole factor."""
    numerator, denominator = (2 * factor, 2) if kind == "half" else (factor, 1)
    offset = 1 - factor if kind == "half" else 0
    border = 0 if kind == "corners" else factor - 1
    return numerator, denominator, offset, border, ((size - 1) * numerator - offset + border) // denominator + 1


def _resize_any(draw: Draw, graph: TosaGraph, value: Value) -> Value:
    """Any scale, offset and border that TOSA allows."""
    nearest = one_in(draw, 2)
    batch, height, width, channels = value.shape
    axes = [_resized_axis(draw, size) for size in (height, width)]
    (up_y, down_y, off_y, edge_y, out_y), (up_x, down_x, off_x, edge_x, out_x) = axes
    dtype = value.dtype if nearest else {"INT8": "INT32", "INT16": "INT48"}[value.dtype]
    most = value.most * up_y * up_x
    inputs = [
        value,
        graph.dims((up_y, down_y, up_x, down_x)),
        graph.dims((off_y, off_x)),
        graph.dims((edge_y, edge_x)),
    ]
    span = (value.low, value.high) if nearest else (-most, most)
    mode = NEAREST if nearest else BILINEAR
    result = graph.add("RESIZE", inputs, (batch, out_y, out_x, channels), dtype, span, Mode=mode)
    return result if nearest else graph.rescale(result, value.dtype, [0.9 / (up_y * up_x)])


def _resized_axis(draw: Draw, size: int) -> tuple[int, int, int, int, int]:
    """Numerator, denominator, offset, border, output size; the border makes it fit."""
    up, down = choose(draw, (2, 1, 3, 4)), choose(draw, (1, 2, 3))
    offset = between(draw, 0, up - 1) if one_in(draw, 2) else 0
    span = (size - 1) * up - offset
    border = -(span % down)
    if border + down < up and one_in(draw, 2):
        border += down
    if span + border < 0:
        up, down, offset, border, span = 1, 1, 0, 0, size - 1
    return up, down, offset, border, (span + border) // down + 1


def _picture(value: Value) -> bool:
    return value.quantized and value.rank == 4 and value.elements <= 512


TOSA_OPERATORS = of_kind(
    "converts",
    TosaOperator("rescale", lambda value: value.dtype in ("INT8", "INT16", "INT32"), _rescale),
    TosaOperator("cast", lambda value: value.dtype in ("INT8", "INT16"), _cast),
    TosaOperator("cast-bool", lambda value: value.dtype == "BOOL", _cast, ONLY_U85),
    TosaOperator("cast-down", lambda value: value.dtype in ("INT16", "INT32"), _cast_down, ONLY_U85),
    TosaOperator("identity", lambda value: value.dtype != "BOOL", _identity),
    TosaOperator("table", lambda value: value.dtype == "INT8", _table),
    TosaOperator("table-int16", lambda value: value.dtype == "INT16", _table16, ONLY_U85),
    TosaOperator("resize", _picture, _resize, ONLY_U85),
    TosaOperator("resize-nearest", lambda value: _picture(value) and value.shape[0] == 1, _resize, NOT_U85),
    TosaOperator("resize-any", _picture, _resize_any, ONLY_U85),
)
