"""An ExecuTorch program (``.pte``) as data: values, instructions, delegates and their payloads.

Words: a *value* is an entry of a plan's table, named by its index; a *pool* is a memory that the
plan sizes beforehand (``non_const_buffer_sizes``; number 0 is reserved), and a *place* is where a
tensor lies in one; a *call* runs a kernel or a delegate on values. A *segment* is data behind the
flatbuffer, found through the extended header.

Invariants: everything comes from the bytes of the file; every index into another table has been
checked; payloads lie inside the file. What a kernel writes is its last argument: the emitter
appends the return value, which of an out-variant is the out argument again (exir/emit/_emitter.py,
``_emit_operator``).

Facts: exir/_serialize/program.fbs and scalar_type.fbs of executorch 1.5.1 (field numbers in the
order of the tables there; releases only append), ``_ExtendedHeader`` in _serialize/_program.py,
and ``memory_id - 1`` in runtime/executor/tensor_parser_exec_aten.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from harness.artifacts.flatbuffer import Damage, Table, root_table
from harness.case.errors import BadInput

IDENTIFIER = b"ET12"
MOST_AXES = 16  # kTensorDimensionLimit of runtime/core/exec_aten/util/tensor_dimension_limit.h
HEADER_MAGIC, HEADER_AT, _HEADER_LENGTH = b"eh00", 8, 24
SCALARS = {
    0: ("uint8", 1),
    1: ("int8", 1),
    2: ("int16", 2),
    3: ("int32", 4),
    4: ("int64", 8),
    5: ("float16", 2),
    6: ("float32", 4),
    7: ("float64", 8),
    11: ("bool", 1),
    12: ("qint8", 1),
    13: ("quint8", 1),
    14: ("qint32", 4),
    15: ("bfloat16", 2),
    22: ("bits16", 2),
    23: ("float8_e5m2", 1),
    24: ("float8_e4m3fn", 1),
    25: ("float8_e5m2fnuz", 1),
    26: ("float8_e4m3fnuz", 1),
    27: ("uint16", 2),
    28: ("uint32", 4),
    29: ("uint64", 8),
}
_KINDS = ("none", "null", "int", "bool", "double", "tensor", "string", "ints", "doubles", "bools", "tensors", "options")
_TENSOR, _TENSORS, _OPTIONS = 5, 10, 11
_CALLS: tuple[CallKind, ...] = ("nothing", "kernel", "delegate", "move", "jump", "free")

CallKind = Literal["nothing", "kernel", "delegate", "move", "jump", "free"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Place:
    """Where the plan puts a tensor: a pool and an offset in bytes."""

    pool: int
    offset: int


@dataclass(frozen=True)
class ProgramTensor:
    """A tensor value.

    :param dtype: torch's word for it.
    :param element: bytes an element.
    :param dim_order: axes from the slowest to the fastest in memory.
    :param initialized: it has data in the file: a constant, or, with a place, an initial state.
    :param place: None if the plan gives it no memory.
    """

    shape: tuple[int, ...]
    dtype: str
    element: int
    dim_order: tuple[int, ...] = ()
    initialized: bool = False
    place: Place | None = None

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.element

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """Its sizes from the slowest to the fastest axis."""
        return tuple(self.shape[axis] for axis in self.dim_order)

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True)
class ProgramValue:
    """One value.

    :param items: of a list of tensors: the values it holds, without the absent ones.
    """

    kind: str
    tensor: ProgramTensor | None = None
    items: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """One instruction.

    :param name: of a kernel: operator and overload.
    :param delegate: of a delegate call: index into the plan's delegates.
    :param values: its arguments, in order.
    """

    kind: CallKind
    name: str = ""
    delegate: int = -1
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProgramDelegate:
    """One delegate: its backend's name, its payload and the payload's first byte in the file."""

    backend: str
    payload: bytes
    start: int


@dataclass(frozen=True)
class Plan:
    """One method.

    :param pools: bytes of each pool, by number.
    """

    name: str
    values: tuple[ProgramValue, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[Call, ...]
    delegates: tuple[ProgramDelegate, ...]
    pools: tuple[int, ...]

    def tensors(self, indices: Sequence[int]) -> tuple[int, ...]:
        """The tensor values among ``indices``, lists of tensors opened."""
        found: list[int] = []
        for index in indices:
            value = self.values[index]
            members = value.items if value.items else (index,)
            found += [member for member in members if self.values[member].tensor is not None]
        return tuple(found)


@dataclass(frozen=True)
class Program:
    """A whole file; ``named`` holds the data that payloads may refer to by key."""

    plans: tuple[Plan, ...]
    named: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def main(self) -> Plan:
        return self.plans[0]


def decode_program(data: bytes) -> Program:
    """Read a ``.pte``.

    :raises BadInput: it is empty, no program, truncated, or refers to what it does not hold.
    """
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise BadInput("ExecuTorch program", f"begins with {data[:8]!r}", "give the bytes of a .pte file")
    try:
        return _Reader(data).program()
    except (Damage, UnicodeDecodeError) as error:
        raise BadInput("ExecuTorch program", f"is damaged ({error})", "compile it again") from None


class _Reader:
    """Holds what tables refer to: the segments, and bytes already copied out of the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.root = root_table(data)
        self.base = self._segment_base()
        self.segments = [(item.number(0, "Q"), item.number(1, "Q")) for item in self.root.tables(4)]
        self.inline = self.root.tables(3)
        self._copied: dict[tuple[int, int], bytes] = {}
        self._room = len(data)

    def program(self) -> Program:
        plans = tuple(self._plan(item) for item in self.root.tables(1))
        if not plans:
            raise Damage("it holds no method")
        named = {item.text(0): self._slice(self._segment(item.number(1, "I"))) for item in self.root.tables(7)}
        return Program(plans, named)

    def _segment_base(self) -> int:
        header = self.data[HEADER_AT : HEADER_AT + _HEADER_LENGTH]
        if header[:4] != HEADER_MAGIC or len(header) < _HEADER_LENGTH:
            return 0
        return int.from_bytes(header[16:24], "little")

    def _segment(self, index: int) -> tuple[int, int]:
        if not self.base:
            raise Damage("it refers to a segment and has no header that says where segments begin")
        offset, size = _entry(self.segments, index, "segment")
        return self.base + offset, self.base + offset + size

    def _slice(self, span: tuple[int, int]) -> bytes:
        """Bytes of the file; copied once, and all copies together no more than the file."""
        if span not in self._copied:
            if span[1] > len(self.data):
                raise Damage(f"data end at byte {span[1]} of {len(self.data)}")
            self._room -= span[1] - span[0]
            if self._room < 0:
                raise Damage("its pieces of data overlap")
            self._copied[span] = self.data[span[0] : span[1]]
        return self._copied[span]

    def _plan(self, item: Table) -> Plan:
        values = tuple(_value(entry) for entry in item.tables(2))
        operators = [
            entry.text(0) + (f".{overload}" if (overload := entry.text(1)) else "") for entry in item.tables(6)
        ]
        delegates = tuple(self._delegate(entry) for entry in item.tables(7))
        chains = item.tables(5)
        calls = tuple(_call(entry, operators, delegates) for chain in chains for entry in chain.tables(2))
        plan = Plan(
            item.text(0), values, item.numbers(3, "i"), item.numbers(4, "i"), calls, delegates, item.numbers(8, "q")
        )
        _check_indices(plan)
        return plan

    def _delegate(self, item: Table) -> ProgramDelegate:
        reference = item.table(1)
        if reference is None:
            raise Damage("a delegate has no payload")
        location, index = reference.number(0, "b"), reference.number(1, "I")
        if location == 0:
            span = _entry(self.inline, index, "inline payload").span(0) or (0, 0)
        elif location == 1:
            span = self._segment(index)
        else:
            raise Damage(f"a delegate's payload is at location {location}, which is neither inline nor a segment")
        return ProgramDelegate(item.text(0), self._slice(span), span[0])


def _entry(entries: Sequence[Item], index: int, what: str) -> Item:
    if not 0 <= index < len(entries):
        raise Damage(f"it refers to {what} {index} of {len(entries)}")
    return entries[index]


def _value(item: Table) -> ProgramValue:
    kind, held = item.number(0, "B"), item.table(1)
    if kind >= len(_KINDS) or (held is None and kind in (_TENSOR, _TENSORS, _OPTIONS)):
        raise Damage(f"a value is of kind {kind} or lacks its content")
    if kind == _TENSOR and held is not None:
        return ProgramValue(_KINDS[kind], _tensor(held))
    if kind in (_TENSORS, _OPTIONS) and held is not None:
        return ProgramValue(_KINDS[kind], items=tuple(index for index in held.numbers(0, "i") if index != -1))
    return ProgramValue(_KINDS[kind])


def _tensor(item: Table) -> ProgramTensor:
    code = item.number(0, "b")
    if code not in SCALARS:
        raise Damage(f"a tensor's scalar type is {code}")
    dtype, element = SCALARS[code]
    shape, dim_order = item.numbers(2, "i"), item.numbers(3, "B")
    wrong = len(shape) > MOST_AXES or any(size < 0 for size in shape) or sorted(dim_order) != list(range(len(shape)))
    if wrong:
        raise Damage(f"a tensor has sizes {list(shape)[:8]} in dim order {list(dim_order)[:8]}")
    planned = item.table(6)
    place = None
    if planned is not None:
        place = Place(planned.number(0, "I"), planned.number(1, "I") + (planned.number(2, "I") << 32))
    return ProgramTensor(shape, dtype, element, dim_order, item.number(5, "I") > 0, place)


def _call(item: Table, operators: Sequence[str], delegates: Sequence[ProgramDelegate]) -> Call:
    kind, held = item.number(0, "B"), item.table(1)
    if not 0 < kind < len(_CALLS) or held is None:
        raise Damage(f"an instruction is of kind {kind} or lacks its content")
    name = _CALLS[kind]
    first = held.number(0, "i")
    if name == "kernel":
        return Call(name, _entry(operators, first, "operator"), values=held.numbers(1, "i"))
    if name == "delegate":
        _entry(delegates, first, "delegate")
        return Call(name, delegate=first, values=held.numbers(1, "i"))
    if name == "move":
        return Call(name, values=(first, held.number(1, "i")))
    return Call(name, values=(first,))


def _check_indices(plan: Plan) -> None:
    used = (plan.inputs, plan.outputs, *(call.values for call in plan.calls), *(value.items for value in plan.values))
    for indices in used:
        for index in indices:
            _entry(plan.values, index, "value")
