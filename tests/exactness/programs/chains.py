"""Two and more operators that Vela fuses into one, chains of elementwise operators, control flow, variables."""

from __future__ import annotations

import numpy as np
import tosa_serializer as ts

from tests.exactness.building import Graph, Value, clamp, rescale, zero
from tests.exactness.programs.convolutions import conv2d, depthwise
from tests.exactness.programs.family import Built, Family, Random, chance, ints, pick, shape_of
from tests.exactness.programs.movement import PERMUTATIONS

_NAN = {"nan_mode": ts.NanPropagationMode.PROPAGATE}


def _moved(graph: Graph, rng: Random, value: Value) -> Value:
    """TRANSPOSE, REVERSE, RESHAPE or SLICE of a value."""
    rank = len(value.shape)
    kind = int(rng.randint(4))
    if kind == 0:
        order = pick(rng, [item for item in PERMUTATIONS if len(item) == rank])
        return graph.add("TRANSPOSE", [value], [value.shape[axis] for axis in order], value.dtype, perms=list(order))
    if kind == 1:
        return graph.add("REVERSE", [value], value.shape, value.dtype, axis=int(rng.randint(rank)))
    if kind == 2:
        flat = [int(np.prod(value.shape[:-1])), value.shape[-1]]
        return graph.add("RESHAPE", [value, graph.dims(flat)], flat, value.dtype)
    size = [max(1, extent - 1) for extent in value.shape]
    start = [extent - part for extent, part in zip(value.shape, size, strict=True)]
    return graph.add("SLICE", [value, graph.dims(start), graph.dims(size)], size, value.dtype)


def conv_moved(graph: Graph, rng: Random, index: int) -> Value:
    return _moved(graph, rng, pick(rng, (conv2d, depthwise))(graph, rng, index))


def conv_table(graph: Graph, rng: Random, index: int) -> Value:
    value = conv2d(graph, rng, index)
    if value.dtype == "INT32":
        value = rescale(graph, value, "INT8", [2.0**-17])
    if value.dtype == "INT8":
        return graph.add("TABLE", [value, graph.const(ints(rng, -128, 127, (256,)), "INT8")], value.shape, "INT8")
    curve = np.cumsum(ints(rng, -120, 120, (513,))).clip(-32768, 32767)
    wide = graph.add("TABLE", [value, graph.const(curve, "INT16")], value.shape, "INT32")
    return rescale(graph, wide, "INT16", [1 / 128])


def conv_conv(graph: Graph, rng: Random, index: int) -> Value:
    """Two convolutions in a row: what Vela cascades."""
    value = conv2d(graph, rng, index)
    if value.dtype != "INT8":
        value = rescale(graph, value, "INT8", [2.0**-17 if value.dtype == "INT32" else 2.0**-9])
    outputs, k = int(pick(rng, (4, 9, 16))), min(3, *value.shape[1:3])
    w = graph.const(ints(rng, -127, 127, (outputs, k, k, value.shape[-1])), "INT8")
    b = graph.const(ints(rng, -9999, 9999, (outputs,)), "INT32")
    shape = (value.shape[0], value.shape[1] - k + 1, value.shape[2] - k + 1, outputs)
    result = graph.add(
        "CONV2D", [value, w, b, zero(graph, "INT8"), zero(graph, "INT8")], shape, "INT32", pad=[0] * 4, stride=[1, 1],
        dilation=[1, 1], local_bound=False, acc_type=ts.DType.INT32,
    )  # fmt: skip
    return rescale(graph, result, "INT8", [0.004 / np.sqrt(k * k * value.shape[-1])] * outputs)


def _widened(graph: Graph, rng: Random, shape: tuple[int, ...], dtype: str) -> Value:
    """A quantized input as int32, the way ExecuTorch writes quantized ADD, SUB, MAXIMUM…"""
    zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" else 0
    bits = 20 if dtype == "INT8" else 12
    return rescale(graph, graph.input(shape, dtype), "INT32", [2.0 ** (bits * rng.rand())], zeros=(zero_point, 0))


def quantized_binary(graph: Graph, rng: Random, index: int) -> Value:
    """RESCALE of both operands, an operator on int32, RESCALE, sometimes CLAMP."""
    dtype = pick(rng, ("INT8", "INT8", "INT16"))
    shape = shape_of(rng, int(pick(rng, (2, 3, 4, 4))))
    other = tuple(1 if chance(rng, 4) else size for size in shape)
    a, b = _widened(graph, rng, shape, dtype), _widened(graph, rng, other, dtype)
    op = pick(rng, ("ADD", "ADD", "SUB", "MAXIMUM", "MINIMUM"))
    pair = [a, b] if chance(rng, 2) else [b, a]
    value = graph.add(op, pair, shape, "INT32", **(_NAN if op.startswith("M") else {}))
    factor = 2.0 ** (-20 if dtype == "INT8" else -12) * rng.uniform(0.2, 1.0)
    zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" else 0
    value = rescale(graph, value, dtype, [factor], zeros=(0, zero_point), double_round=chance(rng, 4))
    return clamp(graph, value, -100, 77) if chance(rng, 3) else value


def quantized_mul(graph: Graph, rng: Random, index: int) -> Value:
    dtype = pick(rng, ("INT8", "INT16"))
    shape = shape_of(rng, int(pick(rng, (2, 3, 4))))
    other = tuple(1 if chance(rng, 4) else size for size in shape)
    values = []
    for item in (shape, other):
        zero_point = int(rng.randint(-128, 128)) if dtype == "INT8" else 0
        values.append(rescale(graph, graph.input(item, dtype), "INT32", [1.0], zeros=(zero_point, 0)))
    product = graph.add("MUL", [*values, zero(graph, "INT8")], shape, "INT32")
    factor = (1 / 150 if dtype == "INT8" else 1 / 33000) * rng.uniform(0.2, 1.5)
    return rescale(graph, product, dtype, [factor], zeros=(0, int(rng.randint(-128, 128)) if dtype == "INT8" else 0))


def elementwise_chain(graph: Graph, rng: Random, index: int) -> Value:
    """Up to six operators on int32, small values so that nothing overflows; then a RESCALE or not."""
    shape = shape_of(rng, int(pick(rng, (2, 3, 4))))
    value = graph.input(shape, "INT32", -500, 500)
    for _ in range(int(rng.randint(2, 7))):
        op = pick(rng, ("ADD", "SUB", "MAXIMUM", "MINIMUM", "ABS", "CLZ", "ARITHMETIC_RIGHT_SHIFT", "MUL"))
        if op in ("ABS", "CLZ"):
            value = graph.add(op, [value], shape, "INT32")
            continue
        ends = {"ARITHMETIC_RIGHT_SHIFT": (0, 3), "MUL": (-9, 9)}.get(op, (-500, 500))
        other_shape = tuple(1 if chance(rng, 3) else size for size in shape)
        other = (
            graph.const(ints(rng, *ends, other_shape), "INT32")
            if chance(rng, 3)
            else graph.input(other_shape, "INT32", *ends)
        )
        swapped = op not in ("ARITHMETIC_RIGHT_SHIFT", "MUL") and chance(rng, 2)
        operands = [other, value] if swapped else [value, other]
        more = [zero(graph, "INT8")] if op == "MUL" else []
        attributes = {"ARITHMETIC_RIGHT_SHIFT": {"round": True}, "MAXIMUM": _NAN, "MINIMUM": _NAN}.get(op, {})
        value = graph.add(op, [*operands, *more], shape, "INT32", **attributes)
    return rescale(graph, value, "INT8", [0.01]) if chance(rng, 2) else value


def rescale_moved(graph: Graph, rng: Random, index: int) -> Value:
    x = graph.input(shape_of(rng, int(pick(rng, (2, 3, 4))), 2048), pick(rng, ("INT8", "INT16")))
    value = rescale(graph, x, pick(rng, ("INT8", "INT16", "INT32")), [0.7])
    value = _moved(graph, rng, value)
    return rescale(graph, value, "INT8", [0.3]) if value.dtype == "INT8" and chance(rng, 2) else value


def two_results(graph: Graph, rng: Random, index: int) -> Built:
    """One value read twice; both results leave the graph."""
    x = graph.input(shape_of(rng, 4, 1024), "INT8")
    first = rescale(graph, x, "INT8", [0.8], zeros=(3, -5))
    table = graph.add("TABLE", [first, graph.const(ints(rng, -128, 127, (256,)), "INT8")], x.shape, "INT8")
    moved = _moved(graph, rng, table)
    return [first, moved] if chance(rng, 2) else [moved, table]


def compare_select(graph: Graph, rng: Random, index: int) -> Value:
    shape = shape_of(rng, int(pick(rng, (1, 3, 4))))
    a, b = (graph.input(shape, "INT32", -50, 50) for _ in range(2))
    condition = graph.add(pick(rng, ("EQUAL", "GREATER", "GREATER_EQUAL")), [a, b], shape, "BOOL")
    if chance(rng, 2):
        condition = graph.add("LOGICAL_NOT", [condition], shape, "BOOL")
    return graph.add("SELECT", [condition, a, b], shape, "INT32")


def cond_if(graph: Graph, rng: Random, index: int) -> Built:
    shape = shape_of(rng, 3, 500)
    condition = graph.input((1,), "BOOL")
    a, b = (graph.input(shape, "INT32", -(2**29), 2**29) for _ in range(2))
    out = graph.tensor(shape, "INT32")
    graph.append("COND_IF", [condition, a, b], [out], then_graph="then", else_graph="else")
    graph.result(out)
    for name, op in (("then", "ADD"), ("else", "SUB")):
        values = graph.begin_block(name, [(shape, "INT32"), (shape, "INT32")])
        graph.result(graph.add(op, values, shape, "INT32"))
    return ()


def while_loop(graph: Graph, rng: Random, index: int) -> Built:
    shape = shape_of(rng, 3, 500)
    counter = graph.input((1,), "INT32", 0, 4)
    total = graph.input(shape, "INT32", -1000, 1000)
    outs = [graph.tensor((1,), "INT32"), graph.tensor(shape, "INT32")]
    graph.append("WHILE_LOOP", [counter, total], outs, cond_graph="cond", body_graph="body")
    for out in outs:
        graph.result(out)
    types = [((1,), "INT32"), (shape, "INT32")]
    values = graph.begin_block("cond", types)
    graph.result(graph.add("GREATER", [graph.const([5], "INT32"), values[0]], (1,), "BOOL"))
    values = graph.begin_block("body", types)
    graph.result(graph.add("ADD", [values[0], graph.const([1], "INT32")], (1,), "INT32"))
    graph.result(graph.add("ADD", [values[1], values[1]], shape, "INT32"))
    return ()


def variable(graph: Graph, rng: Random, index: int) -> Value:
    """Write a variable, read it back."""
    x = graph.input((1, 8), "INT8")
    kept = graph.variable(x.shape, x.dtype)
    graph.append("VARIABLE", [], [kept])
    graph.append("VARIABLE_WRITE", [x], [kept])
    return graph.add("VARIABLE_READ", [kept], x.shape, x.dtype)


FAMILIES = (
    Family("chain-conv-moved", 30, conv_moved),
    Family("chain-conv-table", 20, conv_table),
    Family("chain-conv-conv", 20, conv_conv),
    Family("chain-quantized", 50, quantized_binary),
    Family("chain-quantized-mul", 24, quantized_mul),
    Family("chain-elementwise", 40, elementwise_chain),
    Family("chain-rescale-moved", 24, rescale_moved),
    Family("chain-two-results", 12, two_results),
    Family("chain-compare-select", 12, compare_select),
    Family("cond-if", 4, cond_if),
    Family("while-loop", 4, while_loop),
    Family("variable", 1, variable),
)
