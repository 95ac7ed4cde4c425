"""Writes TOSA 1.0 flatbuffers with the serializer of tosa-tools, one operator at a time.

A *value* is a tensor of the graph: its name, shape and dtype. ``Graph`` appends operators in order
and knows nothing of what they compute; shapes are the caller's. Helpers beside it write the pairs
that TOSA graphs are made of: a RESCALE from a real factor, a constant with its zero points.

Zero points, shifts and multipliers are constants of one element, as TOSA 1.0 wants them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tosa_serializer as ts

from tests.exactness.program import InputSpec, Kind, Program, limits

_ATTRIBUTES = {
    name.removesuffix("Attribute").lower(): name for name in dir(ts.TosaSerializerAttribute) if name[0].isupper()
}


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class Graph:
    """A flatbuffer under construction."""

    def __init__(self) -> None:
        self.inputs: list[InputSpec] = []
        self.operators: list[str] = []
        self._serializer = ts.TosaSerializer("", targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
        self._count = 0

    def input(
        self, shape: Sequence[int], dtype: str, low: int | None = None, high: int | None = None, kind: Kind = "range"
    ) -> Value:
        """A graph input; the range is the dtype's unless given."""
        ends = limits(dtype)
        value = self._value("x", shape, dtype)
        spec = InputSpec(value.shape, dtype, ends[0] if low is None else low, ends[1] if high is None else high, kind)
        self.inputs.append(spec)
        self._serializer.addInputTensor(_tensor(value))
        return value

    def const(self, data: Any, dtype: str, shape: Sequence[int] | None = None) -> Value:
        """A constant of integers."""
        array = np.asarray(data, np.int64)
        value = self._value("c", array.shape if shape is None else shape, dtype)
        kind = {"BOOL": "int8", "INT4": "int8", "INT48": "int64"}.get(dtype, dtype.lower())
        self._serializer.addConst(list(value.shape), ts.DType.__members__[dtype], array.astype(kind), value.name)
        return value

    def dims(self, values: Sequence[int]) -> Value:
        """A constant shape."""
        value = self._value("s", (len(values),), "SHAPE")
        self._serializer.addConst([len(values)], ts.DType.SHAPE, list(map(int, values)), value.name)
        return value

    def add(self, op: str, inputs: Sequence[Value], shape: Sequence[int], dtype: str, **attributes: Any) -> Value:
        """Append an operator with one result."""
        value = self._value("v", shape, dtype)
        self._block.addTensor(value.name, list(value.shape), ts.DType.__members__[dtype])
        self.append(op, inputs, [value], **attributes)
        return value

    def append(self, op: str, inputs: Sequence[Value], outputs: Sequence[Value], **attributes: Any) -> None:
        """Append an operator whose results exist already."""
        holder = ts.TosaSerializerAttribute()
        getattr(holder, _ATTRIBUTES[op.replace("_", "").lower()])(**attributes)
        self._serializer.addOperator(
            ts.Op.__members__[op], [item.name for item in inputs], [item.name for item in outputs], holder
        )
        self.operators.append(op)

    def begin_block(self, name: str, inputs: Sequence[tuple[Sequence[int], str]]) -> list[Value]:
        """Start another region with one block (a body of COND_IF or WHILE_LOOP); returns its inputs."""
        self._serializer.startRegion(name)
        self._serializer.currRegion.addBasicBlock(name)
        values = [self._value("b", shape, dtype) for shape, dtype in inputs]
        for value in values:
            self._serializer.addInputTensor(_tensor(value))
        return values

    def result(self, value: Value) -> None:
        """Make a value an output of the current block."""
        self._serializer.addOutputTensor(_tensor(value))

    def tensor(self, shape: Sequence[int], dtype: str) -> Value:
        """A tensor that an operator with several results will write."""
        value = self._value("v", shape, dtype)
        self._block.addTensor(value.name, list(value.shape), ts.DType.__members__[dtype])
        return value

    def variable(self, shape: Sequence[int], dtype: str) -> Value:
        """A tensor that keeps its value from run to run."""
        value = self._value("k", shape, dtype)
        self._block.addTensor(
            value.name, list(value.shape), ts.DType.__members__[dtype], variable=True, variable_name=value.name
        )
        return value

    def finish(self, name: str, *outputs: Value) -> Program:
        """The program; ``outputs`` become results of the current block."""
        for value in outputs:
            self.result(value)
        return Program(
            name, "single-op", bytes(self._serializer.serialize()), tuple(self.inputs), tuple(self.operators)
        )

    @property
    def _block(self) -> Any:
        return self._serializer.currRegion.currBasicBlock

    def _value(self, letter: str, shape: Sequence[int], dtype: str) -> Value:
        self._count += 1
        return Value(f"{letter}{self._count}", tuple(int(size) for size in shape), dtype)


def _tensor(value: Value) -> Any:
    return ts.TosaSerializerTensor(value.name, list(value.shape), ts.DType.__members__[value.dtype], [], "")


def zero(graph: Graph, dtype: str, value: int = 0) -> Value:
    """A constant of one element: a zero point."""
    return graph.const([value], dtype)


def multiplier_of(factor: float, scale32: bool) -> tuple[int, int]:
    """Multiplier and shift of RESCALE for a real factor: 31 or 15 significant bits, shift 2 to 62."""
    mantissa, exponent = math.frexp(factor)
    bits = 31 if scale32 else 15
    multiplier = min(round(mantissa * (1 << bits)), (1 << bits) - 1)
    shift = bits - exponent
    while shift > 62:
        multiplier, shift = multiplier >> 1, shift - 1
    if shift < 2:
        raise ValueError(f"factor {factor} is too large for RESCALE")
    return multiplier, shift


def rescale(
    graph: Graph,
    value: Value,
    dtype: str,
    factors: Sequence[float],
    *,
    zeros: tuple[int, int] = (0, 0),
    scale32: bool | None = None,
    double_round: bool = False,
    unsigned: tuple[bool, bool] = (False, False),
) -> Value:
    """RESCALE by a factor, or by one a channel of the last axis.

    :param zeros: input and output zero point, in the range of the (unsigned) type.
    :param unsigned: input and output are unsigned.
    """
    wide = value.dtype != "INT48" if scale32 is None else scale32
    pairs = [multiplier_of(factor, wide) for factor in factors]
    inputs = [
        value,
        graph.const([pair[0] for pair in pairs], "INT32" if wide else "INT16"),
        graph.const([pair[1] for pair in pairs], "INT8"),
        zero(graph, value.dtype, _signed(zeros[0], value.dtype)),
        zero(graph, dtype, _signed(zeros[1], dtype)),
    ]
    mode = ts.RoundingMode.DOUBLE_ROUND if double_round else ts.RoundingMode.SINGLE_ROUND
    return graph.add(
        "RESCALE",
        inputs,
        value.shape,
        dtype,
        scale32=wide,
        rounding_mode=mode,
        per_channel=len(factors) > 1,
        input_unsigned=unsigned[0],
        output_unsigned=unsigned[1],
    )


def clamp(graph: Graph, value: Value, low: int, high: int) -> Value:
    """CLAMP of int8 or int16."""
    kind = np.dtype(value.dtype.lower())
    ends = [list(np.array([end], kind).tobytes()) for end in (low, high)]
    return graph.add(
        "CLAMP", [value], value.shape, value.dtype, min_val=ends[0], max_val=ends[1],
        nan_mode=ts.NanPropagationMode.PROPAGATE,
    )  # fmt: skip


def _signed(value: int, dtype: str) -> int:
    """A zero point of an unsigned type as the bits that are stored."""
    low, high = limits(dtype)
    return value - (high - low + 1) if value > high else value
