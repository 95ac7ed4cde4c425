"""A TOSA program while it is drawn: values with the range that they can have, and entries that add to it.

``TosaGraph`` appends operators in order and keeps programs valid: it knows the smallest and largest value that every
tensor can have, and chooses RESCALE factors for which TOSA defines the result. An *entry* is a ``TosaOperator``: what
it starts from and how it goes on. ``generators/tosa_ops`` has them, and a registry finds them there.

Draw numbers below 100 from ranges, and everything else from short lists: Hypothesis mixes larger numbers that it finds
in local source files into ranges that hold them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeVar

from hypothesis import strategies as st

from harness.case.operators import Draw
from harness.tosa.program import SHAPE, Attribute, Fill, Operator, Program, Rule, Tensor, limits, pruned

Item = TypeVar("Item")
Shape = tuple[int, ...]
Kind = Literal["moves", "multiplies", "combines", "reduces", "converts"]
"""What an operator does with elements: move them, multiply them with weights (or pool a window), combine those of
several operands, bring an axis down to one, give each another value or type.
"""
U55, U65, U85 = "u55", "u65", "u85"
EVERY = frozenset({U55, U65, U85})
ONLY_U85 = frozenset({U85})
NOT_U85 = EVERY - ONLY_U85
NUMBER = {"BOOL": 1, "INT4": 2, "INT8": 3, "INT16": 4, "INT32": 5, "INT48": 6}
"""The schema's numbers of its dtypes, for ``AccType``."""
SINGLE, DOUBLE = 1, 3
"""Numbers of RESCALE's rounding modes SINGLE_ROUND and DOUBLE_ROUND."""
PROPAGATE = 1
ROOM = 1 << 30
"""A RESCALE's result before its zero point stays below this."""
MOST_ELEMENTS = 4096
CHANNELS_LAST, CHANNELS_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Orders of TRANSPOSE that ExecuTorch writes around what works on channels-last."""
ZERO_POINTS = (0, -128, 127, -3, 5, 17, -64, 99)
RULES: tuple[Rule, ...] = ("uniform", "normal", "ends", "sparse", "same")
MOVED = ("INT8", "INT16", "INT32")
"""What SLICE, TRANSPOSE and RESHAPE move on every Ethos-U."""
MANTISSAS = (1.0, 0.5, 0.73, 0.9, 0.618, 1.0 - 2.0**-12, 0.51)


@cache
def _one_of(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


@cache
def _whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def choose(draw: Draw, options: Sequence[Item]) -> Item:
    """One of a few options; shrinks towards the first."""
    chosen: Item = draw(_one_of(tuple(options)))
    return chosen


def between(draw: Draw, low: int, high: int) -> int:
    """An integer below 100; shrinks towards ``low``."""
    return int(draw(_whole(low, high)))


def one_in(draw: Draw, count: int) -> bool:
    """True once in so many times; shrinks to False."""
    return int(draw(_whole(1, count))) == count


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    :param low: the smallest value that it can have; ``high``: the largest.
    """

    name: str
    shape: Shape
    dtype: str
    low: int
    high: int

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def small(self) -> bool:
        """May an operator make more of it?"""
        return self.elements <= MOST_ELEMENTS // 4

    @property
    def quantized(self) -> bool:
        return self.dtype in ("INT8", "INT16")

    @property
    def most(self) -> int:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high), 1)


@dataclass
class TosaGraph:
    """A program under construction.

    :param family: ``u55``, ``u65`` or ``u85``: what it is for.
    :param values: what further operators may read.
    :param _outputs: results that are outputs, read or not.
    """

    family: str
    values: list[Value] = field(default_factory=list)
    _tensors: list[Tensor] = field(default_factory=list)
    _operators: list[Operator] = field(default_factory=list)
    _inputs: list[str] = field(default_factory=list)
    _outputs: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, program: Program, family: str) -> TosaGraph:
        """A program to go on with; its results may have every value of their type."""
        graph = cls(
            family, [], list(program.tensors), list(program.operators), list(program.inputs), set(program.outputs)
        )
        for item in program.tensors:
            if not item.constant:
                graph.values.append(Value(item.name, item.shape, item.dtype, *item.limits))
        return graph

    @property
    def u85(self) -> bool:
        return self.family == U85

    def input(self, shape: Shape, dtype: str, span: tuple[int, int] | None = None, *, distinct: bool = False) -> Value:
        """An input of the program; ``span`` is its range if that is not the dtype's."""
        value = self._value("x", shape, dtype, span)
        self._tensors.append(Tensor(value.name, shape, dtype, None, span, distinct))
        self._inputs.append(value.name)
        return value

    def constant(self, shape: Shape, dtype: str, data: Sequence[int] | Fill) -> Value:
        """A constant."""
        kept = data if isinstance(data, Fill) else tuple(int(item) for item in data)
        ends = (kept.low, kept.high) if isinstance(kept, Fill) else (min(kept, default=0), max(kept, default=0))
        value = self._value("c", shape, dtype, ends)
        self._tensors.append(Tensor(value.name, shape, dtype, kept))
        return value

    def scalar(self, number: int, dtype: str) -> Value:
        """A constant of one element: a zero point, a shift."""
        return self.constant((1,), dtype, (number,))

    def dims(self, numbers: Sequence[int]) -> Value:
        """A constant shape."""
        return self.constant((len(numbers),), SHAPE, numbers)

    def add(
        self,
        op: str,
        inputs: Sequence[Value],
        shape: Shape,
        dtype: str,
        span: tuple[int, int] | None = None,
        **attributes: Attribute,
    ) -> Value:
        """Append an operator with one result.

        :param span: range of the result if it is not the dtype's.
        """
        value = self._value("v", tuple(shape), dtype, span)
        self._tensors.append(Tensor(value.name, value.shape, dtype))
        self._operators.append(Operator(op, tuple(item.name for item in inputs), (value.name,), attributes))
        return value

    def rescale(
        self,
        value: Value,
        dtype: str,
        factors: Sequence[float],
        *,
        zeros: tuple[int, int] = (0, 0),
        double_round: bool = False,
    ) -> Value:
        """RESCALE by a factor, or by one a channel of the last axis; factors too large for the range are lowered.

        :param zeros: input and output zero point; 0 where the dtype is wider than int8.
        """
        wide = value.dtype != "INT48"
        zero_in, zero_out = (zeros[0] if value.dtype == "INT8" else 0), (zeros[1] if dtype == "INT8" else 0)
        most = max(abs(value.low - zero_in), abs(value.high - zero_in), 1)
        allowed = min(ROOM / most, 2.0**28 if wide else 2.0**12)
        pairs = [multiplier_of(min(factor, allowed), wide) for factor in factors]
        inputs = [
            value,
            self.constant((len(pairs),), "INT32" if wide else "INT16", [pair[0] for pair in pairs]),
            self.constant((len(pairs),), "INT8", [pair[1] for pair in pairs]),
            self.scalar(zero_in, value.dtype),
            self.scalar(zero_out, dtype),
        ]
        largest = math.ceil(most * min(max(factors), allowed)) + 1
        span = (-largest, largest) if dtype == "INT32" else None
        return self.add(
            "RESCALE",
            inputs,
            value.shape,
            dtype,
            span,
            Scale32=wide,
            RoundingMode=DOUBLE if double_round and wide else SINGLE,
            PerChannel=len(pairs) > 1,
            InputUnsigned=False,
            OutputUnsigned=False,
        )

    def operand(self, draw: Draw, shape: Shape, dtype: str, span: tuple[int, int] | None = None) -> Value:
        """A further operand: a value of the graph that fits, or what RESHAPE or SLICE makes of one; else a new input or
        a constant, one in four of them moved first.
        """
        low, high = span or limits(dtype)
        fitting = [
            item
            for item in self.values
            if item.shape == shape and item.dtype == dtype and low <= item.low and item.high <= high
        ]
        if fitting and not one_in(draw, 3):
            return choose(draw, fitting)
        parts = [
            item
            for item in self.values
            if item.dtype == dtype and low <= item.low and item.high <= high and _has_part(item, shape)
        ]
        if parts and dtype in MOVED and one_in(draw, 3):
            return self._part(draw, choose(draw, parts), shape)
        if dtype in MOVED and one_in(draw, 4):
            return self._moved(draw, shape, dtype, span)
        return self._given(draw, shape, dtype, span)

    def reshape(self, value: Value, shape: Shape) -> Value:
        """The same elements in another shape."""
        return self.add("RESHAPE", [value, self.dims(shape)], shape, value.dtype, (value.low, value.high))

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The same elements, axis ``order[k]`` in place k."""
        shape = tuple(value.shape[axis] for axis in order)
        return self.add("TRANSPOSE", [value], shape, value.dtype, (value.low, value.high), Perms=tuple(order))

    def slice(self, value: Value, start: Sequence[int], shape: Shape) -> Value:
        """A piece of this shape, from ``start`` on."""
        inputs = [value, self.dims(start), self.dims(shape)]
        return self.add("SLICE", inputs, shape, value.dtype, (value.low, value.high))

    def _part(self, draw: Draw, value: Value, shape: Shape) -> Value:
        """A value in another shape of as many elements, or a piece of this shape out of it."""
        if value.elements == math.prod(shape):
            return self.reshape(value, shape)
        room = [have - size for have, size in zip(value.shape, shape, strict=True)]
        return self.slice(value, [choose(draw, (0, most, most // 2)) for most in room], shape)

    def _given(self, draw: Draw, shape: Shape, dtype: str, span: tuple[int, int] | None) -> Value:
        """A new input, or a constant."""
        if one_in(draw, 3):
            return self.constant(shape, dtype, fill(draw, *(span or limits(dtype))))
        return self.input(shape, dtype, span)

    def _moved(self, draw: Draw, shape: Shape, dtype: str, span: tuple[int, int] | None) -> Value:
        """A new input or constant with a SLICE, a TRANSPOSE or a RESHAPE behind it."""
        kind = choose(draw, ("SLICE", "TRANSPOSE", "RESHAPE"))
        if kind == "TRANSPOSE" and 1 < len(shape) < 5 and (self.u85 or dtype != "INT32"):
            order = choose(draw, tuple(itertools.permutations(range(len(shape)))))
            source = self._given(draw, tuple(shape[order.index(axis)] for axis in range(len(shape))), dtype, span)
            more: list[Value] = []
            words: dict[str, Attribute] = {"Perms": order}
        elif kind == "RESHAPE":
            flat = (math.prod(shape),) if one_in(draw, 2) else tuple(size for size in shape if size > 1) or (1,)
            source, more, words = self._given(draw, flat, dtype, span), [self.dims(shape)], {}
        else:
            axis, before, behind = between(draw, 0, len(shape) - 1), choose(draw, (0, 1, 2)), choose(draw, (1, 0, 2))
            source = self._given(draw, replaced(shape, axis, before + shape[axis] + behind), dtype, span)
            kind, more, words = "SLICE", [self.dims(replaced((0,) * len(shape), axis, before)), self.dims(shape)], {}
        return self.add(kind, [source, *more], shape, dtype, (source.low, source.high), **words)

    def program(self, more: Sequence[Value] = ()) -> Program:
        """What was drawn: every value that nothing reads is an output.

        :param more: further outputs.
        """
        read = {name for operator in self._operators for name in operator.inputs}
        results = [name for operator in self._operators for name in operator.outputs]
        wanted = {item.name for item in more} | self._outputs
        outputs = tuple(name for name in results if name not in read or name in wanted)
        return pruned(Program(tuple(self._tensors), tuple(self._operators), tuple(self._inputs), outputs))

    def _value(self, letter: str, shape: Shape, dtype: str, span: tuple[int, int] | None) -> Value:
        low, high = span or limits(dtype)
        return Value(f"{letter}{len(self._tensors)}", shape, dtype, low, high)


@dataclass(frozen=True)
class TosaOperator:
    """One entry: how a program goes on with an operator.

    :param name: unique; ``conv2d``.
    :param accepts: can it start from this value?
    :param draw: appends it, with what belongs to it (RESCALEs before and after), and returns the result.
    :param families: where Vela supports it.
    :param kind: what it does with elements.
    """

    name: str
    accepts: Callable[[Value], bool]
    draw: Callable[[Draw, TosaGraph, Value], Value]
    families: frozenset[str] = EVERY
    kind: Kind = "combines"


def _has_part(value: Value, shape: Shape) -> bool:
    """Can RESHAPE or SLICE make this shape of it?"""
    if value.elements == math.prod(shape):
        return True
    return value.rank == len(shape) and all(have >= size for have, size in zip(value.shape, shape, strict=True))


def of_kind(kind: Kind, *entries: TosaOperator) -> tuple[TosaOperator, ...]:
    """Entries that do the same with elements."""
    return tuple(replace(entry, kind=kind) for entry in entries)


def fill(draw: Draw, low: int, high: int) -> Fill:
    """A rule for a constant."""
    rule = choose(draw, RULES)
    return Fill(rule, low, high, between(draw, 0, 99))


def zero_point(draw: Draw, dtype: str) -> int:
    return choose(draw, ZERO_POINTS) if dtype == "INT8" else 0


def multiplier_of(factor: float, wide: bool) -> tuple[int, int]:
    """Multiplier and shift of RESCALE for a real factor: 31 or 15 significant bits, shift 2 to 62."""
    mantissa, exponent = math.frexp(factor)
    bits = 31 if wide else 15
    multiplier = min(round(mantissa * (1 << bits)), (1 << bits) - 1)
    shift = bits - exponent
    while shift > 62:
        multiplier, shift = multiplier >> 1, shift - 1
    return multiplier, max(shift, 2)


CHANNELS = (1, 8, 3, 4, 16, 17, 5, 9, 2, 33, 24)
SPACE = (1, 4, 5, 1, 3, 8, 2, 1, 7, 6, 9, 12)
"""Axes of one element are where rules about shapes break."""
BATCH = (1, 1, 1, 2, 3)
RANKS = (4, 4, 4, 4, 3, 3, 2, 1, 5, 6)


def draw_shape(draw: Draw, rank: int, most: int = 1024) -> Shape:
    """A shape of this rank with at most so many elements."""
    sizes: list[int] = []
    left = most
    for axis in range(rank - 1, -1, -1):
        back = rank - 1 - axis
        options = CHANNELS if back == 0 else SPACE if back < 3 else BATCH
        size = choose(draw, [item for item in options if item <= left])
        sizes.insert(0, size)
        left //= size
    return tuple(sizes)


def axis_of(draw: Draw, value: Value) -> int:
    """An axis; shrinks towards the last."""
    return value.rank - 1 - between(draw, 0, value.rank - 1)


def replaced(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])
