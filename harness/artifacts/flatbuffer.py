"""A flatbuffer's tables without generated code, every position checked before it is read.

Used where the schema has no Python classes outside executorch (``program.fbs``). A *table* is a
position in the file; its fields are numbered from 0 in the order of the schema, a union counting
as two (its type, then its value); a field that is absent has the schema's default.

Invariant: one ``Budget`` is shared by all tables of a file, and every entry that is read is taken
from it. An honest file is about as large as what it lists, so whoever loops over a damaged one ends.
Facts: https://flatbuffers.dev/internals (vtables, vectors and strings, all little-endian).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8}


class Damage(ValueError):
    """The bytes are no such table; readers turn it into ``BadInput``."""


@dataclass
class Budget:
    """How many more entries (and bytes of strings) a file of this size may list; some may be shared."""

    left: int

    def take(self, count: int, what: str) -> None:
        if count > self.left:
            raise Damage(f"{what} has {count} entries, more than the file can hold")
        self.left -= count


@dataclass(frozen=True)
class Table:
    """One table of a flatbuffer."""

    data: bytes
    position: int
    budget: Budget

    def number(self, field: int, code: str, default: int = 0) -> int:
        """A scalar field; ``code`` as in ``struct``."""
        at = self._field(field)
        return default if at is None else _number(self.data, at, code)

    def numbers(self, field: int, code: str) -> tuple[int, ...]:
        """A vector of scalars; empty if absent."""
        start, count = self._vector(field, _SIZES[code])
        return struct.unpack_from(f"<{count}{code}", self.data, start)

    def span(self, field: int) -> tuple[int, int] | None:
        """First and last-plus-one byte of a vector of bytes; None if absent."""
        if self._field(field) is None:
            return None
        start, count = self._vector(field, 1, charge=False)
        return start, start + count

    def text(self, field: int) -> str:
        """A string; empty if absent."""
        start, count = self._vector(field, 1)
        return self.data[start : start + count].decode()

    def table(self, field: int) -> Table | None:
        """A table, or the value of a union; None if absent."""
        at = self._field(field)
        return None if at is None else self._at(at)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty if absent."""
        start, count = self._vector(field, 4)
        return [self._at(start + 4 * index) for index in range(count)]

    def place(self, field: int) -> int:
        """Position of a field in the file."""
        at = self._field(field)
        if at is None:
            raise Damage(f"field {field} of the table at byte {self.position} is absent")
        return at

    def _at(self, place: int) -> Table:
        return Table(self.data, place + _number(self.data, place, "I"), self.budget)

    def _field(self, field: int) -> int | None:
        """Position of a field, from the table's vtable."""
        vtable = self.position - _number(self.data, self.position, "i")
        slot = 4 + 2 * field
        if slot + 2 > _number(self.data, vtable, "H"):
            return None
        offset = _number(self.data, vtable + slot, "H")
        return self.position + offset if offset else None

    def _vector(self, field: int, size: int, *, charge: bool = True) -> tuple[int, int]:
        at = self._field(field)
        if at is None:
            return 0, 0
        start = at + _number(self.data, at, "I")
        count = _number(self.data, start, "I")
        if start + 4 + count * size > len(self.data):
            raise Damage(f"field {field} of the table at byte {self.position} has {count} entries past the end")
        if charge:
            self.budget.take(count, f"field {field} of the table at byte {self.position}")
        return start + 4, count


def root_table(data: bytes) -> Table:
    """The table that a file begins with."""
    return Table(data, _number(data, 0, "I"), budget_of(data))


def budget_of(data: bytes) -> Budget:
    """What a file of this size may list: vectors may be shared, but not by all."""
    return Budget(4 * len(data))


def _number(data: bytes, at: int, code: str) -> int:
    if at < 0 or at + _SIZES[code] > len(data):
        raise Damage(f"it refers to byte {at} of {len(data)}")
    [value] = struct.unpack_from(f"<{code}", data, at)
    return int(value)
