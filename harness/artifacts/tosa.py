"""A TOSA 1.0 flatbuffer as data: regions, blocks, operators, tensors and their constants.

Read with the schema classes of tosa-tools, every count checked against the size of the file
first. A tensor's ``data`` are the bytes as stored: int4 two a byte, int48 in six bytes,
bool in one (TOSA 1.0, ``tosa.fbs``). ``spans`` say where they lie, for tools that alter a graph
in place.

Words: a *constant* is a tensor with data; a CONST operator only names one. A *shape* tensor
(``tosa.shape``) holds int64 values and stands apart from tensors in the file, not here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from harness.artifacts.flatbuffer import budget_of
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.compat.tosa import root_of, schema

IDENTIFIER = b"TOSA"
SHAPE = "SHAPE"
DAMAGE = (struct.error, IndexError, AttributeError, TypeError, UnicodeDecodeError, ValueError, OverflowError, KeyError)
"""What flatbuffers' generated accessors raise on bytes that are no such table."""
_TYPES = {
    "BOOL": "?",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "FP32": "<f4",
    "FP16": "<f2",
    "INT64": "<i8",
    SHAPE: "<i8",
}
BITS = {"BOOL": 8, "INT4": 4, "INT8": 8, "INT16": 16, "INT32": 32, "INT48": 48, "INT64": 64, "FP32": 32, "FP16": 16}


@dataclass(frozen=True)
class TosaTensor:
    """One tensor of a block.

    :param dtype: the schema's name: INT8, INT48, FP32, … or SHAPE.
    :param data: bytes of a constant, None for a value that the graph computes.
    :param span: first and last-plus-one byte of ``data`` in the file.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes | None = None
    span: tuple[int, int] = (0, 0)

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int | None:
        """Bytes of the value at run time; None for a dtype without a fixed width here."""
        bits = BITS.get(self.dtype)
        return None if bits is None else (self.elements * bits + 7) // 8

    def values(self) -> Array:
        """A constant's values in its shape (int48 and int4 widened).

        :raises BadInput: the data are missing or not as long as shape and dtype say.
        """
        if self.data is None:
            raise BadInput(f"TOSA tensor {self.name}", "has no data", "ask for a constant's values only")
        try:
            flat = _decoded(self.data, self.dtype, self.elements)
            return flat[: self.elements].reshape(self.shape)
        except (ValueError, KeyError) as error:
            raise BadInput(
                f"TOSA tensor {self.name}",
                f"has {len(self.data)} bytes of data for {self.dtype} {list(self.shape)} ({error})",
                "compile it again",
            ) from None


@dataclass(frozen=True)
class TosaOperator:
    """One operator; ``attributes`` holds the fields of its attribute table by the schema's names."""

    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TosaBlock:
    """One basic block: everything that an operator of it names is in ``tensors``."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operators: tuple[TosaOperator, ...]
    tensors: Mapping[str, TosaTensor]

    @cached_property
    def producers(self) -> Mapping[str, TosaOperator]:
        """The operator that writes each tensor."""
        return {name: operator for operator in self.operators for name in operator.outputs}

    def readers(self, name: str) -> tuple[TosaOperator, ...]:
        """Operators that read a tensor, in order."""
        return self._readers.get(name, ())

    @cached_property
    def _readers(self) -> Mapping[str, tuple[TosaOperator, ...]]:
        table: dict[str, list[TosaOperator]] = {}
        for operator in self.operators:
            for name in dict.fromkeys(operator.inputs):
                table.setdefault(name, []).append(operator)
        return {name: tuple(operators) for name, operators in table.items()}


@dataclass(frozen=True)
class TosaGraph:
    """A whole flatbuffer; ``main`` is the block that runs first."""

    version: tuple[int, int, int]
    blocks: tuple[TosaBlock, ...]

    @property
    def main(self) -> TosaBlock:
        return self.blocks[0]


def decode_tosa(data: bytes) -> TosaGraph:
    """Read a flatbuffer.

    :raises BadInput: it is empty, no TOSA flatbuffer, truncated, or refers to what it does not hold.
    """
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise BadInput("TOSA flatbuffer", f"begins with {data[:8]!r}", "give the bytes of a .tosa file")
    try:
        return _graph(_Reader(data))
    except DAMAGE as error:
        raise BadInput("TOSA flatbuffer", f"is damaged ({type(error).__name__}: {error})", "compile it again") from None


def grows_unlike(scale: Array) -> bool:
    """Do rows and columns of a RESIZE grow by different factors?

    :param scale: numerator and denominator of the rows, then of the columns.
    """
    up, down, across, back = (int(item) for item in scale.ravel())
    return up * back != across * down


class _Reader:
    """Counts are checked here before anything loops over them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.budget = budget_of(data)

    def many(self, owner: Any, name: str) -> list[Any]:
        count = getattr(owner, f"{name}Length")()
        self.budget.take(count, name)
        entries = [getattr(owner, name)(index) for index in range(count)]
        if any(entry is None for entry in entries):
            raise ValueError(f"an entry of {name} is missing")
        return entries

    def span(self, owner: Any) -> tuple[int, int] | None:
        """Where a table's data vector lies in the file (slot 10 of TosaTensor, 8 of TosaShape)."""
        if owner.DataIsNone():
            return None
        slot = 10 if type(owner).__name__ == "TosaTensor" else 8
        start, count = owner._tab.Vector(owner._tab.Offset(slot)), owner.DataLength()
        if start < 0 or start + count > len(self.data):
            raise ValueError(f"data of {owner.Name()!r} end at byte {start + count} of {len(self.data)}")
        self.budget.take(count, "data")
        return start, start + count


def _graph(reader: _Reader) -> TosaGraph:
    root = root_of(reader.data)
    version = root.Version()
    blocks = [
        _block(reader, block) for region in reader.many(root, "Regions") for block in reader.many(region, "Blocks")
    ]
    if not blocks:
        raise ValueError("it holds no block")
    return TosaGraph((version._Major(), version._Minor(), version._Patch()), tuple(blocks))


def _block(reader: _Reader, block: Any) -> TosaBlock:
    types = _names_of("DType")
    tensors: dict[str, TosaTensor] = {}
    for item in reader.many(block, "Tensors"):
        span = reader.span(item)
        stored = reader.data[span[0] : span[1]] if span and span[1] > span[0] else None
        shape = tuple(int(size) for size in reader.many(item, "Shape"))
        tensor = TosaTensor(_text(item.Name()), shape, types[item.Type()], stored, span or (0, 0))
        tensors[tensor.name] = tensor
    for item in reader.many(block, "Shapes"):
        span = reader.span(item)
        stored = reader.data[span[0] : span[1]] if span else b""
        name = _text(item.Name())
        tensors[name] = TosaTensor(name, (len(stored) // 8,), SHAPE, stored, span or (0, 0))
    operators = tuple(_operator(reader, index, item) for index, item in enumerate(reader.many(block, "Operators")))
    inputs, outputs = (tuple(map(_text, reader.many(block, field))) for field in ("Inputs", "Outputs"))
    named = {name for item in operators for name in (*item.inputs, *item.outputs)} | set(inputs) | set(outputs)
    if not named <= set(tensors):
        raise ValueError(f"it names tensors that it does not hold: {sorted(named - set(tensors))[:3]}")
    return TosaBlock(_text(block.Name() or b""), inputs, outputs, operators, tensors)


def _operator(reader: _Reader, index: int, item: Any) -> TosaOperator:
    kind = _names_of("Attribute")[item.AttributeType()]
    attributes: dict[str, Any] = {}
    if kind != "NONE" and item.Attribute() is not None:
        table, accessors = _attribute_class(kind)
        holder = table()
        holder.Init(reader.data, item.Attribute().Pos)
        for accessor, vector in accessors:
            attributes[accessor] = (
                tuple(reader.many(holder, accessor)) if vector else _plain(getattr(holder, accessor)())
            )
    inputs, outputs = (tuple(map(_text, reader.many(item, field))) for field in ("Inputs", "Outputs"))
    return TosaOperator(index, _names_of("Op")[item.Op()], inputs, outputs, attributes)


@cache
def _names_of(enumeration: str) -> Mapping[int, str]:
    return {value: name for name, value in vars(schema(enumeration)).items() if isinstance(value, int)}


@cache
def _attribute_class(kind: str) -> tuple[Callable[[], Any], tuple[tuple[str, bool], ...]]:
    """A schema class with its fields: (name, is it a vector)."""
    table = schema(kind)
    names = [name for name in vars(table) if name[0].isupper() and callable(getattr(table, name))]
    skipped = ("GetRootAs", "BufferHasIdentifier", "AsNumpy", "IsNone", "Length", "Init")
    fields = [name for name in names if not any(word in name for word in skipped)]
    return table, tuple((name, f"{name}Length" in names) for name in fields)


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _text(name: bytes) -> str:
    return name.decode()


def _decoded(data: bytes, dtype: str, elements: int) -> Array:
    if dtype == "INT48":
        words = np.frombuffer(data, np.uint8).reshape(-1, 6)
        wide = np.zeros((len(words), 8), np.uint8)
        wide[:, :6] = words
        wide[:, 6:] = np.where(words[:, 5:6] >= 0x80, 0xFF, 0)
        return wide.view("<i8").reshape(-1)
    if dtype == "INT4":
        packed = np.frombuffer(data, np.uint8)
        pairs = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[:elements]
        return np.where(pairs > 7, pairs.astype(np.int16) - 16, pairs).astype(np.int8)
    return np.frombuffer(data, _TYPES[dtype])
