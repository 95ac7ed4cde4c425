"""Writes TOSA 1.0 flatbuffers with the classes of the schema (package ``tosa`` of tosa-tools).

The serializer of tosa-tools builds objects first and wants a file a constant; this writes one block straight from
plain data, in a millisecond or two. Attributes go by the names that the schema's accessors have (``Pad``, ``Stride``,
``AccType``), which are the names under which ``harness.artifacts.tosa`` reads them.

Layout facts: ``tosa.fbs`` of TOSA 1.0; data vectors are aligned to eight bytes there (``force_align: 8``).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from harness.compat.tosa import schema

SHAPE = "SHAPE"
_WIDTHS = {"Pad": 4, "Stride": 4, "Dilation": 4, "Kernel": 4, "OutPad": 4, "Perms": 4, "MinVal": 1, "MaxVal": 1}
"""Bytes of an entry of each vector attribute."""
_VERSION = (1, 0, 0)


class WrittenTensor(NamedTuple):
    """A tensor, or with dtype SHAPE a shape.

    :param data: bytes as the schema stores them (int4 two a byte, int48 in six bytes); None for computed values.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes | None


class WrittenOperator(NamedTuple):
    """An operator; a CONST or CONST_SHAPE for each constant is written without being asked for."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


def write_tosa(
    tensors: Iterable[WrittenTensor],
    operators: Iterable[WrittenOperator],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> bytes:
    """One region with one block, ``main``.

    :raises KeyError: an operator, dtype or attribute that the schema does not have.
    """
    import flatbuffers

    builder = flatbuffers.Builder(4096)
    written = list(tensors)
    constants = [
        WrittenOperator("CONST_SHAPE" if item.dtype == SHAPE else "CONST", (), (item.name,), {})
        for item in written
        if item.data is not None
    ]
    plain = [_tensor(builder, item) for item in written if item.dtype != SHAPE]
    shapes = [_shape(builder, item) for item in written if item.dtype == SHAPE]
    steps = [_operator(builder, item) for item in (*constants, *operators)]
    block = _table(
        builder,
        "TosaBasicBlock",
        Name=builder.CreateString("main"),
        Operators=_offsets(builder, steps),
        Tensors=_offsets(builder, plain),
        Inputs=_names(builder, inputs),
        Outputs=_names(builder, outputs),
        Shapes=_offsets(builder, shapes),
    )
    blocks = _offsets(builder, [block])
    region = _table(builder, "TosaRegion", Name=builder.CreateString("main"), Blocks=blocks)
    regions = _offsets(builder, [region])
    version = _table(builder, "Version", _Major=_VERSION[0], _Minor=_VERSION[1], _Patch=_VERSION[2], _Draft=False)
    builder.Finish(_table(builder, "TosaGraph", Version=version, Regions=regions), file_identifier=b"TOSA")
    return bytes(builder.Output())


def _tensor(builder: Any, item: WrittenTensor) -> int:
    data = None if item.data is None else _bytes(builder, item.data)
    shape = _numbers(builder, item.shape, 4)
    fields: dict[str, Any] = {
        "Name": builder.CreateString(item.name),
        "Shape": shape,
        "Type": _enum("DType")[item.dtype],
    }
    return _table(builder, "TosaTensor", **fields, **({} if data is None else {"Data": data}))


def _shape(builder: Any, item: WrittenTensor) -> int:
    data = _bytes(builder, item.data or b"")
    rank = len(item.data or b"") // 8
    return _table(builder, "TosaShape", Name=builder.CreateString(item.name), Rank=rank, Data=data)


def _operator(builder: Any, item: WrittenOperator) -> int:
    table = _attribute_table(item.op)
    fields = {
        name: _numbers(builder, value, _WIDTHS[name]) if isinstance(value, (tuple, list)) else value
        for name, value in item.attributes.items()
    }
    attribute = _table(builder, table, **fields)
    inputs, outputs = _names(builder, item.inputs), _names(builder, item.outputs)
    return _table(
        builder,
        "TosaOperator",
        Op=_enum("Op")[item.op],
        AttributeType=_enum("Attribute")[table],
        Attribute=attribute,
        Inputs=inputs,
        Outputs=outputs,
    )


def _table(builder: Any, name: str, **fields: Any) -> int:
    start, add, end = _functions(name)
    start(builder)
    for field, value in fields.items():
        add[field](builder, value)
    return int(end(builder))


@cache
def _functions(name: str) -> tuple[Any, Mapping[str, Any], Any]:
    """How to begin a table, add each field, and end it."""
    module = importlib.import_module(f"tosa.{name}")
    prefix = f"{name}Add"
    adding = {key.removeprefix(prefix): value for key, value in vars(module).items() if key.startswith(prefix)}
    return getattr(module, f"{name}Start"), adding, getattr(module, f"{name}End")


@cache
def _enum(name: str) -> Mapping[str, int]:
    return {key: value for key, value in vars(schema(name)).items() if isinstance(value, int)}


@cache
def _attribute_table(op: str) -> str:
    """CONV2D -> Conv2dAttribute."""
    wanted = op.replace("_", "").lower() + "attribute"
    return next(name for name in _enum("Attribute") if name.lower() == wanted)


def _bytes(builder: Any, data: bytes) -> int:
    """A vector of bytes; ``CreateByteVector`` aligns to one byte only."""
    builder.StartVector(1, len(data), 8)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


def _numbers(builder: Any, values: Sequence[int], width: int) -> int:
    return _raw(builder, b"".join(int(value).to_bytes(width, "little", signed=value < 0) for value in values), width)


def _raw(builder: Any, data: bytes, width: int) -> int:
    builder.StartVector(width, len(data) // width, width)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


def _names(builder: Any, names: Sequence[str]) -> int:
    return _offsets(builder, [builder.CreateString(name) for name in names])


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
