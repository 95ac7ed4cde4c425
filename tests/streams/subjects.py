"""Ten small programs, five for each default Ethos-U target, compiled by Vela when they are asked for.

Between them they use every kind of operation that Vela emits for int8 and int16 graphs: convolutions
with both weight formats and kernel orders, depthwise, all kinds of pooling, elementwise operations
with broadcast and scaled operands, tables of 8 and 16 bits, transposes, concatenation, reductions, matmul,
resize, argmax, gather, and a loop (BRANCH).

Weights, tables and shapes are fixed by a seed. Shapes are small enough that a run takes milliseconds,
and large enough that full-range inputs reach every entry of a table.
"""

from __future__ import annotations

import contextlib
import io
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import tosa_serializer as ts

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.vela import ALIGNMENT, FIRST, LAST, VelaIO, VelaPayload
from harness.ethosu.accelerator import ACCELERATORS, Accelerator
from tests.exactness.building import Graph, Value, clamp, rescale, zero
from tests.exactness.configurations import default
from tests.exactness.preparing import compile_tosa
from tests.exactness.program import Array, InputSpec, draw_call, random_state

_NAN = {"nan_mode": ts.NanPropagationMode.PROPAGATE}
_ACCUMULATOR = {"INT8": "INT32", "INT16": "INT48"}
Random = np.random.RandomState


@dataclass(frozen=True)
class Subject:
    """A compiled program.

    :param arrays: what Vela's raw ``.npz`` holds.
    """

    name: str
    accelerator: Accelerator
    payload: VelaPayload
    arrays: dict[str, Array]
    inputs: tuple[InputSpec, ...]
    tosa: bytes

    def draw(self, number: int) -> tuple[Array, ...]:
        """Inputs of their full range: even numbers uniform, odd ones end points and neighbours of zero."""
        return draw_call(self.name, self.inputs, number)


def compiled(names: Sequence[str] = ()) -> Iterator[Subject]:
    """All ten (or those of some names), in a fixed order; a second each."""
    for target, programs in _PROGRAMS.items():
        for name, build in programs:
            if not names or name in names:
                yield _compiled(name, target, build)


def loop() -> Subject:
    """An eleventh for Ethos-U85: a loop that runs up to five times (BRANCH)."""
    return _compiled("loop", "ethos-u85-256", _loop)


def _compiled(name: str, target: str, build: Callable[[Graph, Random], Value | None]) -> Subject:
    graph = Graph()
    value = build(graph, random_state("stream", name))
    program = graph.finish(name, *(() if value is None else (value,)))
    with contextlib.redirect_stdout(io.StringIO()):
        result = compile_tosa(program.tosa, default(target))
    assert not result.refused, result.refused
    payload = payload_of_npz(result.payload)
    assert len(payload.inputs) == len(program.inputs), f"Vela drops inputs of {name}"
    return Subject(name, ACCELERATORS[target], payload, result.payload, program.inputs, program.tosa)


def delegate_bytes(payload: VelaPayload) -> bytes:
    """A payload as ExecuTorch stores it: the inverse of ``decode_vela``."""
    blocks = (
        (FIRST, b""),
        ("cmd_data", payload.commands),
        ("weight_data", payload.weights),
        ("scratch_size", struct.pack("<I", payload.scratch_size)),
        ("inputs", _table(payload.inputs)),
        ("outputs", _table(payload.outputs)),
        (LAST, b""),
    )
    return b"".join(map(_block, *zip(*blocks, strict=True)))


def _block(name: str, data: bytes) -> bytes:
    header = struct.pack("<16sI12s", name.encode(), len(data), b"")
    return header + data + bytes(-len(data) % ALIGNMENT)


def _table(slots: tuple[VelaIO, ...]) -> bytes:
    rows = (struct.pack("<9i", *slot.shape, slot.element_size, slot.offset, slot.region) for slot in slots)
    return struct.pack("<i", len(slots)) + b"".join(rows)


# ---- layers ---------------------------------------------------------------------------------------------------------


def _numbers(rng: Random, low: int, high: int, *shape: int) -> Array:
    return rng.randint(low, high + 1, shape)


def _conv(graph: Graph, rng: Random, x: Value, outputs: int, kernel: int, stride: int = 1, pad: int = 0) -> Value:
    """CONV2D and RESCALE to the type of its input, one factor a channel."""
    batch, height, width, channels = x.shape
    out = [(size + 2 * pad - kernel) // stride + 1 for size in (height, width)]
    weights = graph.const(_numbers(rng, -127, 127, outputs, kernel, kernel, channels), "INT8")
    return _sums(graph, rng, "CONV2D", x, weights, (batch, *out, outputs), stride, pad, kernel * kernel * channels)


def _depthwise(graph: Graph, rng: Random, x: Value, kernel: int, stride: int = 1, pad: int = 0) -> Value:
    """DEPTHWISE_CONV2D and RESCALE."""
    batch, height, width, channels = x.shape
    out = [(size + 2 * pad - kernel) // stride + 1 for size in (height, width)]
    weights = graph.const(_numbers(rng, -127, 127, kernel, kernel, channels, 1), "INT8")
    shape = (batch, *out, channels)
    return _sums(graph, rng, "DEPTHWISE_CONV2D", x, weights, shape, stride, pad, kernel * kernel)


def _sums(
    graph: Graph,
    rng: Random,
    op: str,
    x: Value,
    weights: Value,
    shape: tuple[int, ...],
    stride: int,
    pad: int,
    taps: int,
) -> Value:
    kind = _ACCUMULATOR[x.dtype]
    bias = graph.const(_numbers(rng, -4000, 4000, shape[-1]), kind)
    zero_point = 11 if x.dtype == "INT8" else 0
    sums = graph.add(
        op, [x, weights, bias, zero(graph, x.dtype, zero_point), zero(graph, "INT8")], shape, kind, pad=[pad] * 4,
        stride=[stride] * 2, dilation=[1, 1], local_bound=False, acc_type=ts.DType.__members__[kind],
    )  # fmt: skip
    factors = 1.0 / (90 * math.sqrt(taps)) * rng.uniform(0.5, 1.0, shape[-1])
    return rescale(graph, sums, x.dtype, list(factors), zeros=(0, -7 if x.dtype == "INT8" else 0))


def _lookup(graph: Graph, rng: Random, x: Value) -> Value:
    """A table of random entries: 256 of 8 bits, or 513 of 16 bits."""
    if x.dtype == "INT8":
        return graph.add("TABLE", [x, graph.const(_numbers(rng, -128, 127, 256), "INT8")], x.shape, "INT8")
    curve = graph.const(_numbers(rng, -16000, 16000, 513), "INT16")
    return rescale(graph, graph.add("TABLE", [x, curve], x.shape, "INT32"), "INT16", [1 / 128])


def _widened(graph: Graph, x: Value, factor: float) -> Value:
    return rescale(graph, x, "INT32", [factor], zeros=(5 if x.dtype == "INT8" else 0, 0))


def _sum_of(graph: Graph, first: Value, second: Value, shape: tuple[int, ...]) -> Value:
    """A quantized ADD of two values, as ExecuTorch writes it."""
    bits = 20 if first.dtype == "INT8" else 12
    operands = [_widened(graph, value, factor * 2.0**bits) for value, factor in ((first, 0.7), (second, 0.33))]
    total = graph.add("ADD", operands, shape, "INT32")
    return rescale(graph, total, first.dtype, [2.0**-bits], zeros=(0, 9 if first.dtype == "INT8" else 0))


def _pool(graph: Graph, op: str, x: Value, kernel: int, stride: int, pad: int = 0) -> Value:
    batch, height, width, channels = x.shape
    out = [(size + 2 * pad - kernel) // stride + 1 for size in (height, width)]
    average = op == "AVG_POOL2D"
    zeros = [zero(graph, x.dtype), zero(graph, x.dtype)] if average else []
    more = {"acc_type": ts.DType.INT32} if average else _NAN
    window = {"kernel": [kernel] * 2, "stride": [stride] * 2, "pad": [pad] * 4}
    return graph.add(op, [x, *zeros], (batch, *out, channels), x.dtype, **window, **more)


# ---- programs -------------------------------------------------------------------------------------------------------


def _convolutions(graph: Graph, rng: Random) -> Value:
    """Convolution, relu, strided depthwise, 1x1 convolution."""
    x = graph.input((1, 11, 13, 19), "INT8")
    value = clamp(graph, _conv(graph, rng, x, 24, 3, pad=1), -7, 127)
    value = clamp(graph, _depthwise(graph, rng, value, 3, stride=2, pad=1), -20, 100)
    return _conv(graph, rng, value, 13, 1)


def _softmax(graph: Graph, rng: Random) -> Value:
    """The largest element taken off, a table, and the sum over an axis."""
    x = graph.input((1, 24, 32), "INT8")
    largest = graph.add("REDUCE_MAX", [x], (1, 24, 1), "INT8", axis=2, **_NAN)
    less = graph.add("SUB", [_widened(graph, x, 1.0), _widened(graph, largest, 1.0)], x.shape, "INT32")
    powers = _lookup(graph, rng, rescale(graph, less, "INT8", [0.98], zeros=(0, 127)))
    total = graph.add("REDUCE_SUM", [_widened(graph, powers, 1.0)], (1, 24, 1), "INT32", axis=2)
    share = graph.add("MUL", [_widened(graph, powers, 1.0), total, zero(graph, "INT8")], x.shape, "INT32")
    return rescale(graph, share, "INT8", [2.0**-11], zeros=(0, 3))


def _pools(graph: Graph, rng: Random) -> Value:
    """Maximum, padded average, a global average, and their difference."""
    x = graph.input((1, 17, 15, 21), "INT8")
    value = _pool(graph, "MAX_POOL2D", x, 3, 2)
    padded = _pool(graph, "AVG_POOL2D", value, 3, 1, 1)
    operands = [_widened(graph, item, 512.0) for item in (value, padded)]
    return rescale(graph, graph.add("SUB", operands, value.shape, "INT32"), "INT8", [1 / 600])


def _elementwise_16(graph: Graph, rng: Random) -> Value:
    """int16: a broadcast sum, a product, a table, a maximum."""
    shape = (1, 9, 16, 14)
    x, y = graph.input(shape, "INT16"), graph.input((1, 1, 16, 14), "INT16")
    value = _lookup(graph, rng, _sum_of(graph, x, y, shape))
    product = graph.add(
        "MUL", [_widened(graph, value, 1.0), _widened(graph, x, 1.0), zero(graph, "INT8")], shape, "INT32"
    )
    larger = graph.add(
        "MAXIMUM", [rescale(graph, product, "INT32", [0.8]), _widened(graph, y, 30.0)], shape, "INT32", **_NAN
    )
    return rescale(graph, larger, "INT16", [1 / 20000])


def _moves(graph: Graph, rng: Random) -> Value:
    """int8: transpose, concatenation, reverse, a scaled sum and a table."""
    x, y = graph.input((1, 6, 10, 16), "INT8"), graph.input((1, 16, 4, 10), "INT8")
    turned = graph.add("TRANSPOSE", [x], (1, 16, 6, 10), "INT8", perms=[0, 3, 1, 2])
    joined = graph.add("CONCAT", [turned, y], (1, 16, 10, 10), "INT8", axis=2)
    back = graph.add("REVERSE", [joined], joined.shape, "INT8", axis=1)
    return _lookup(graph, rng, _sum_of(graph, joined, back, joined.shape))


def _matmul(graph: Graph, rng: Random) -> Value:
    """A product of two inputs, and a linear layer on the result."""
    a, b = graph.input((2, 9, 33), "INT8"), graph.input((2, 33, 20), "INT8")
    zeros = [zero(graph, "INT8", 4), zero(graph, "INT8", -9)]
    product = rescale(graph, graph.add("MATMUL", [a, b, *zeros], (2, 9, 20), "INT32"), "INT8", [1 / 800])
    flat = graph.add("RESHAPE", [product, graph.dims((1, 1, 18, 20))], (1, 1, 18, 20), "INT8")
    return _conv(graph, rng, flat, 40, 1)


def _resize(graph: Graph, rng: Random) -> Value:
    """Bilinear interpolation, depthwise, average."""
    x = graph.input((1, 6, 7, 18), "INT8")
    shape = graph.dims((4, 2, 4, 2)), graph.dims((0, 0)), graph.dims((0, 0))
    wide = graph.add("RESIZE", [x, *shape], (1, 11, 13, 18), "INT32", mode=ts.ResizeMode.BILINEAR)
    value = _depthwise(graph, rng, rescale(graph, wide, "INT8", [1 / 16]), 3, pad=1)
    return _pool(graph, "AVG_POOL2D", value, 3, 2)


def _convolutions_16(graph: Graph, rng: Random) -> Value:
    """int16: convolutions of both kinds, and a table."""
    x = graph.input((1, 9, 11, 11), "INT16")
    value = _depthwise(graph, rng, _conv(graph, rng, x, 20, 3, stride=1, pad=1), 3, stride=2, pad=1)
    return _lookup(graph, rng, value)


def _selection(graph: Graph, rng: Random) -> Value:
    """The position of the largest element chooses rows of another input."""
    x, rows = graph.input((1, 12, 5, 24), "INT8"), graph.input((1, 24, 36), "INT8")
    sharp = clamp(graph, _conv(graph, rng, x, 24, 1), -100, 100)
    where = graph.add("ARGMAX", [sharp], (1, 12, 5), "INT32", axis=3, **_NAN)
    indices = graph.add("RESHAPE", [where, graph.dims((1, 60))], (1, 60), "INT32")
    taken = graph.add("GATHER", [rows, indices], (1, 60, 36), "INT8")
    return graph.add("TRANSPOSE", [taken], (1, 36, 60), "INT8", perms=[0, 2, 1])


def _loop(graph: Graph, rng: Random) -> None:
    """Count to five; add what was there to itself each time."""
    types = [((1,), "INT32"), ((1, 5, 20), "INT32")]
    counter, total = graph.input((1,), "INT32", 0, 4), graph.input((1, 5, 20), "INT32", -(2**24), 2**24)
    results = [graph.tensor(*item) for item in types]
    graph.append("WHILE_LOOP", [counter, total], results, cond_graph="cond", body_graph="body")
    for result in results:
        graph.result(result)
    values = graph.begin_block("cond", types)
    graph.result(graph.add("GREATER", [graph.const([5], "INT32"), values[0]], (1,), "BOOL"))
    values = graph.begin_block("body", types)
    graph.result(graph.add("ADD", [values[0], graph.const([1], "INT32")], (1,), "INT32"))
    graph.result(graph.add("ADD", [values[1], values[1]], types[1][0], "INT32"))


_PROGRAMS: dict[str, tuple[tuple[str, Callable[[Graph, Random], Value | None]], ...]] = {
    "ethos-u55-128": (
        ("convolutions", _convolutions),
        ("softmax", _softmax),
        ("pools", _pools),
        ("elementwise-16", _elementwise_16),
        ("moves", _moves),
    ),
    "ethos-u85-256": (
        ("convolutions", _convolutions),
        ("resize", _resize),
        ("convolutions-16", _convolutions_16),
        ("matmul", _matmul),
        ("selection", _selection),
    ),
}
