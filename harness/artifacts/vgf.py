"""A VGF file as data: what it takes and returns, and its constants. Arm's model converter makes it of a TOSA graph.

A header of 128 bytes has the places of four sections: modules (SPIR-V), the model's sequence, resources, constants.
Words: a *resource* is a tensor with a category and a Vulkan format; the model's inputs and outputs refer to resources
by number, in the order of the TOSA graph's.

Invariants: everything comes from the bytes of the file; a resource that is referred to is there; constants lie inside
the file.
Facts: docs/source/file_format.rst, schema/vgf.fbs and src/header.hpp of Arm's VGF library 0.11.0 (format 0.4.3);
constants are raw bytes (``CONST00``), in older files a flatbuffer; formats from vulkan_core.h.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from harness.artifacts.flatbuffer import Damage, Table, root_table
from harness.case.errors import BadInput

MAGIC = b"VGF1"
_HEADER, _SECTIONS = 128, 16
_SEQUENCE, _RESOURCES, _CONSTANTS = 1, 2, 3
_RAW, _RECORD = b"CONST00\0", 24
_FORMATS = {
    13: ("uint8", 1),
    14: ("int8", 1),
    74: ("uint16", 2),
    75: ("int16", 2),
    76: ("float16", 2),
    98: ("uint32", 4),
    99: ("int32", 4),
    100: ("float32", 4),
    110: ("uint64", 8),
    111: ("int64", 8),
    112: ("float64", 8),
    1000460000: ("bool", 1),
}
_CATEGORIES = ("input", "output", "intermediate", "constant")


@dataclass(frozen=True)
class Resource:
    """A tensor of the file.

    :param dtype: as numpy spells it; ``format N`` for a Vulkan format that is not listed here.
    :param width: bytes an element; 0 if it is not known.
    """

    category: str
    dtype: str
    width: int
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)[:8]}"


@dataclass(frozen=True)
class VgfConstant:
    """A constant: its resource and its bytes."""

    resource: Resource
    data: bytes


@dataclass(frozen=True)
class VgfPayload:
    """A whole file, inputs and outputs in the order of the model."""

    inputs: tuple[Resource, ...]
    outputs: tuple[Resource, ...]
    constants: tuple[VgfConstant, ...]


def decode_vgf(data: bytes) -> VgfPayload:
    """Read a VGF file.

    :raises BadInput: it is none, truncated, or refers to what it does not hold.
    """
    if data[:4] != MAGIC or len(data) < _HEADER:
        raise BadInput("VGF payload", f"begins with {data[:4]!r}", "give the bytes of a VGF file")
    try:
        resources = [_resource(item) for item in root_table(_section(data, _RESOURCES)).tables(0)]
        sequence = root_table(_section(data, _SEQUENCE))
        inputs, outputs = (
            tuple(_at(resources, slot.number(1, "I")) for slot in sequence.tables(field)) for field in (1, 2)
        )
        return VgfPayload(inputs, outputs, tuple(_constants(_section(data, _CONSTANTS), resources)))
    except (Damage, struct.error, UnicodeDecodeError) as error:
        raise BadInput("VGF payload", f"is damaged ({error})", "compile it again") from None


def _section(data: bytes, number: int) -> bytes:
    offset, size = struct.unpack_from("<QQ", data, _SECTIONS + 16 * number)
    if offset + size > len(data):
        raise Damage(f"section {number} ends at byte {offset + size} of {len(data)}")
    return data[offset : offset + size]


def _resource(item: Table) -> Resource:
    code, category, description = item.number(1, "I"), item.number(2, "B"), item.table(3)
    if category >= len(_CATEGORIES) or description is None:
        raise Damage(f"a resource is of category {category} or has no shape")
    dtype, width = _FORMATS.get(code, (f"format {code}", 0))
    return Resource(_CATEGORIES[category], dtype, width, description.numbers(0, "q"))


def _at(resources: list[Resource], index: int) -> Resource:
    if index >= len(resources):
        raise Damage(f"it refers to resource {index} of {len(resources)}")
    return resources[index]


def _constants(section: bytes, resources: list[Resource]) -> list[VgfConstant]:
    if not section:
        return []
    if section[: len(_RAW)] != _RAW:
        return [
            VgfConstant(_at(resources, item.number(0, "I")), section[slice(*(item.span(2) or (0, 0)))])
            for item in root_table(section).tables(0)
        ]
    [count] = struct.unpack_from("<Q", section, 8)
    start = 16 + count * _RECORD
    if start > len(section):
        raise Damage(f"it lists {count} constants in {len(section)} bytes")
    found = []
    for number in range(count):
        index, _, size, offset = struct.unpack_from("<IiQQ", section, 16 + number * _RECORD)
        if start + offset + size > len(section):
            raise Damage(f"constant {number} ends behind its section")
        found.append(VgfConstant(_at(resources, index), section[start + offset : start + offset + size]))
    return found
