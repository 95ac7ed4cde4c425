"""Where the values of a TOSA flatbuffer's operators lie in the file, and patches on them.

A flatbuffer table finds a field through its slot (4, 6, 8, … in the schema's order of fields);
a scalar field lies in the table, a vector elsewhere. A scalar with the schema's default is not
stored at all. References are relative to their own place, so exchanging two of them means
computing both anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.artifacts.tosa import TosaOperator

_INPUTS = 10  # slot of TosaOperator.inputs


@dataclass(frozen=True)
class Patch:
    """Bytes to write at a place of the file."""

    at: int
    data: bytes


@dataclass(frozen=True)
class Change:
    """A possible change: in words, the value before and after, and the bytes that make it."""

    what: str
    before: str
    after: str
    patches: tuple[Patch, ...]


def patched(data: bytes, patches: Sequence[Patch]) -> bytes:
    """The file with the patches written."""
    altered = bytearray(data)
    for patch in patches:
        altered[patch.at : patch.at + len(patch.data)] = patch.data
    return bytes(altered)


class Fields:
    """Places of operators' fields in the main block of one flatbuffer."""

    def __init__(self, data: bytes) -> None:
        from tosa.TosaGraph import TosaGraph

        self.data = data
        block: Any = TosaGraph.GetRootAs(data).Regions(0).Blocks(0)
        self._operators = [block.Operators(index) for index in range(block.OperatorsLength())]

    def read(self, at: int, width: int) -> int:
        """The signed little-endian integer at a place."""
        return int.from_bytes(self.data[at : at + width], "little", signed=True)

    def scalar(self, operator: TosaOperator, op: str, slot: int, width: int) -> int | None:
        """Place of a scalar attribute; None for another operator, or where it is not stored."""
        table = self._attribute(operator) if operator.op == op else None
        offset = table.Offset(slot) if table is not None else 0
        return table.Pos + offset if offset and table.Pos + offset + width <= len(self.data) else None

    def vector(self, operator: TosaOperator, slot: int, width: int) -> list[int]:
        """Places of a vector attribute's entries; none where it is not stored."""
        table = self._attribute(operator)
        offset = table.Offset(slot) if table is not None else 0
        if not offset:
            return []
        start = table.Vector(offset)
        return [start + width * index for index in range(table.VectorLen(offset))]

    def swap(self, operator: TosaOperator, i: int, j: int) -> tuple[Patch, Patch]:
        """Exchange two operands: each reference is the distance from its own place to the name."""
        table = self._operators[operator.index]._tab
        start = table.Vector(table.Offset(_INPUTS))
        at_i, at_j = start + 4 * i, start + 4 * j
        name_i, name_j = at_i + self.read(at_i, 4), at_j + self.read(at_j, 4)
        return (
            Patch(at_i, (name_j - at_i).to_bytes(4, "little")),
            Patch(at_j, (name_i - at_j).to_bytes(4, "little")),
        )

    def _attribute(self, operator: TosaOperator) -> Any:
        return self._operators[operator.index].Attribute()
