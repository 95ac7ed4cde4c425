"""The parts of a ``.pte`` between its delegate calls, each a program of its own that a runtime can load.

A runtime without a delegate's backend refuses the whole file. A *part* is the same file with four tables pointed
elsewhere: its instructions are a stretch of the plan's, it has no delegates, and its inputs and outputs are all values
that the stretch touches. Values, constants, kernels and memory plan stay byte for byte what they were, so whoever runs
the parts in turn, on one image of the planned memory, and the delegates between them, runs the program
(``Memory`` is that image).

Facts: program.fbs of executorch 1.5.1 (fields by number, as in ``harness.artifacts.program``); a reference of a
flatbuffer counts forward, so new tables go behind the old ones, before the segments; a vector of references may begin
at any of its entries, if its length stands before that entry.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from harness.artifacts.flatbuffer import Damage, Table, root_table
from harness.artifacts.program import HEADER_AT, HEADER_MAGIC, Call, Place, Plan, ProgramTensor
from harness.case.errors import BadInput

_ALIGNED = 4096
"""The new tables take up a multiple of this, so that segments stay aligned (exir's default is 128)."""
_PLANS, _SEGMENTS, _STATES = 1, 4, 6
_INPUTS, _OUTPUTS, _CHAINS, _DELEGATES, _INSTRUCTIONS = 3, 4, 5, 7, 2


@dataclass(frozen=True)
class Part:
    """Instructions of the first plan between two delegate calls.

    :param takes: values that it has to be given, in the order of its inputs.
    :param gives: values that it returns, in the order of its outputs.
    """

    takes: tuple[int, ...]
    gives: tuple[int, ...]
    data: bytes


def parts(data: bytes, plan: Plan) -> Iterator[Part | Call]:
    """The parts and delegate calls of a program, in the order in which they run.

    :param plan: the decoded ``data``'s.
    :raises BadInput: the program jumps, so that its instructions do not run in order, or is no such file.
    """
    if any(call.kind == "jump" for call in plan.calls):
        raise BadInput("ExecuTorch program", "has control flow and delegates", "run it where its backends are")
    first = 0
    for at, call in enumerate((*plan.calls, None)):
        if call is None or call.kind == "delegate":
            if at > first:
                yield _part(data, plan, first, at)
            first = at + 1
        if call is not None and call.kind == "delegate":
            yield call


def delegate_part(data: bytes, plan: Plan, call: Call, inputs: int) -> Part:
    """The program of one delegate call alone: its delegate is the only one.

    :param call: an entry of ``plan.calls``.
    :param inputs: how many of its values are inputs.
    :raises BadInput: it is no such file.
    """
    at = next(index for index, item in enumerate(plan.calls) if item is call)
    takes, gives = call.values[:inputs], call.values[inputs:]
    return Part(takes, gives, _tried(data, takes, gives, at, at + 1, call.delegate))


def _part(data: bytes, plan: Plan, first: int, end: int) -> Part:
    written: set[int] = set()
    takes: dict[int, None] = {}
    gives: dict[int, None] = {}
    for call in plan.calls[first:end]:
        touched = [index for index in plan.tensors(call.values) if not _constant(plan.values[index].tensor)]
        results = plan.tensors(call.values[-1:]) if call.kind in ("kernel", "move") else ()
        for index in touched:
            loose = (tensor := plan.values[index].tensor) is None or tensor.place is None
            if not (loose and (index in results or index in written)):
                takes[index] = None
            gives[index] = None
        written.update(results)
    return Part(tuple(takes), tuple(gives), _tried(data, tuple(takes), tuple(gives), first, end))


def _tried(data: bytes, takes: Sequence[int], gives: Sequence[int], first: int, end: int, kept: int = -1) -> bytes:
    try:
        return _cut(data, takes, gives, first, end, kept)
    except (Damage, struct.error) as error:
        raise _wrong(f"cannot be cut into parts ({error})") from None


def _constant(tensor: ProgramTensor | None) -> bool:
    return tensor is not None and tensor.initialized and tensor.place is None


def _cut(data: bytes, takes: Sequence[int], gives: Sequence[int], first: int, end: int, kept: int) -> bytes:
    """The file with instructions ``first`` to ``end``, and the delegate ``kept``, which may be none (-1)."""
    plan = root_table(data).tables(_PLANS)[0]
    chains = plan.tables(_CHAINS)
    if len(chains) != 1:
        raise Damage(f"it has {len(chains)} chains")
    split = struct.unpack_from("<Q", data, HEADER_AT + 16)[0] if data[HEADER_AT:][:4] == HEADER_MAGIC else 0
    split = split or len(data)
    head = bytearray(data[:split])
    head += bytes(-len(head) % 4)
    for number, entries in ((_INPUTS, takes), (_OUTPUTS, gives), *([] if kept >= 0 else [(_DELEGATES, ())])):
        _point(head, plan, number, len(head))
        head += struct.pack(f"<I{len(entries)}i", len(entries), *entries)
    _narrow(head, chains[0], _INSTRUCTIONS, first, end - first)
    if kept >= 0:
        _narrow(head, plan, _DELEGATES, kept, 1)
        called = chains[0].tables(_INSTRUCTIONS)[first].table(1)
        if called is None:
            raise Damage("an instruction lacks its content")
        with suppress(Damage):  # absent where it is 0 already
            struct.pack_into("<i", head, called.place(0), 0)
    head += bytes(-(len(head) - split) % _ALIGNED)
    if data[HEADER_AT:][:4] == HEADER_MAGIC:
        struct.pack_into("<Q", head, HEADER_AT + 8, len(head))
        if split != len(data) or struct.unpack_from("<Q", data, HEADER_AT + 16)[0]:
            struct.pack_into("<Q", head, HEADER_AT + 16, len(head))
    return bytes(head) + data[split:]


def initial_state(data: bytes, plan: Plan) -> dict[int, tuple[int, int]]:
    """First byte and last plus one of the data that buffers begin with, by value.

    :raises BadInput: it lies nowhere in the file.
    """
    root = root_table(data)
    values = root.tables(_PLANS)[0].tables(2)
    found = {}
    try:
        for index, value in enumerate(plan.values):
            held = values[index].table(1)
            if held is None or value.tensor is None or not value.tensor.initialized or value.tensor.place is None:
                continue
            extra = held.table(9)
            sets = root.tables(_STATES)[extra.number(0, "Q") if extra is not None else 0]
            offset = sets.numbers(1, "Q")[held.number(5, "I")]
            segment = root.tables(_SEGMENTS)[sets.number(0, "I")]
            start = struct.unpack_from("<Q", data, HEADER_AT + 16)[0] + segment.number(0, "Q") + offset
            found[index] = (start, start + value.tensor.bytes)
    except (Damage, IndexError, struct.error):
        raise _wrong("has state whose initial data is not in the file") from None
    return found


def _narrow(head: bytearray, table: Table, number: int, first: int, count: int) -> None:
    """Leave so many entries of a vector of references, from ``first`` on."""
    place = table.place(number)
    start = place + struct.unpack_from("<I", head, place)[0] + 4 * first
    _point(head, table, number, start)
    struct.pack_into("<I", head, start, count)  # over the length, or over an entry that is left out


def _point(head: bytearray, table: Table, number: int, at: int) -> None:
    place = table.place(number)
    struct.pack_into("<I", head, place, at - place)


@dataclass
class Memory:
    """An image of a plan's memory, and the bytes of values that have none. It begins with zeros and initial state."""

    data: bytes
    plan: Plan
    pools: list[bytearray] = field(init=False)
    loose: dict[int, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.pools = [bytearray(size) for size in self.plan.pools]
        for index, span in initial_state(self.data, self.plan).items():
            self.write(index, self.data[slice(*span)])

    def read(self, index: int) -> bytes:
        """Bytes of a tensor value.

        :raises BadInput: nothing gave it any, or it lies outside its pool.
        """
        tensor = self._tensor(index)
        if tensor.place is None:
            if index not in self.loose:
                raise _wrong(f"reads value {index}, which nothing wrote")
            return self.loose[index]
        return bytes(self.pools[tensor.place.pool][self._span(index, tensor, tensor.place)])

    def write(self, index: int, data: bytes) -> None:
        """Give a tensor value its bytes.

        :raises BadInput: it has room for another number of bytes, or lies outside its pool.
        """
        tensor = self._tensor(index)
        if len(data) != tensor.bytes:
            raise _wrong(f"has value {index} ({tensor}) of {tensor.bytes} bytes, which is given {len(data)}")
        if tensor.place is None:
            self.loose[index] = data
        else:
            self.pools[tensor.place.pool][self._span(index, tensor, tensor.place)] = data

    def _span(self, index: int, tensor: ProgramTensor, place: Place) -> slice:
        end = place.offset + tensor.bytes
        if place.pool >= len(self.pools) or end > len(self.pools[place.pool]):
            raise _wrong(f"plans value {index} outside its pool")
        return slice(place.offset, end)

    def _tensor(self, index: int) -> ProgramTensor:
        tensor = self.plan.values[index].tensor
        if tensor is None:
            raise _wrong(f"uses value {index} as a tensor, which is none")
        return tensor


def _wrong(what: str) -> BadInput:
    return BadInput("ExecuTorch program", what, "compile it again")
