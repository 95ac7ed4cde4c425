"""Is a plan's memory sound: every tensor inside its pool, and nothing written over before it is read?

Words: a tensor's *range* are its bytes in a pool; its *source* is the write that a read of it has
to see. A *view* is a value that no instruction writes, because the emitter left the view out (or
made it an ``et_view``): its source is the latest earlier write whose range holds it. A *clobber*
is a write of another value into a range between its source and a read of it, both ends included.

Judging reads instead of lifetimes makes no claim about memory that nobody reads again, nor about
aliases, so that what it reports is wrong whatever the planner's own rules are. It claims nothing
of plans with control flow. In-place kernels may write where they read.

Facts: exir/memory_planning.py (graph inputs are written before the first instruction; outputs
are read after the last), ``_emit_view`` and ``_emit_operator`` in exir/emit/_emitter.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.artifacts.program import Call, Plan

VIEW = "executorch_prim::et_view"
MOST_STEPS = 5_000_000
"""Writes looked at before the search ends; an honest program needs a few for each read."""


@dataclass(frozen=True)
class Range:
    """Bytes of a pool: first and last plus one."""

    pool: int
    start: int
    end: int

    def overlaps(self, other: Range) -> bool:
        return self.pool == other.pool and max(self.start, other.start) < min(self.end, other.end)

    def holds(self, other: Range) -> bool:
        return self.pool == other.pool and self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"bytes {self.start} to {self.end} of pool {self.pool}"


@dataclass(frozen=True)
class Write:
    """One value written at one time (-1: before the first instruction)."""

    time: int
    value: int


@dataclass(frozen=True)
class Clobber:
    """A range that is written over: whose source was ``source``, read at ``read``."""

    value: int
    source: Write
    by: Write
    read: int


@dataclass(frozen=True)
class PlanFault:
    """One way in which a plan is wrong, how many values or reads it is about, and the first of them."""

    kind: str
    text: str
    count: int


def plan_faults(plan: Plan, inputs: Sequence[int]) -> Iterator[PlanFault]:
    """Everything that is wrong with a plan, one fault a kind.

    :param inputs: number of inputs of each delegate call, in instruction order.
    """
    places = ranges(plan)
    beyond, crooked, over = outside(plan), misaligned(plan), clobbers(plan, inputs)

    def told(index: int) -> str:
        return f"value {index} ({plan.values[index].tensor}, {places[index]})"

    if beyond:
        pools = f"the pools (number 0 is reserved) have {list(plan.pools)[:8]} bytes"
        text = f"{len(beyond)} of {len(places)} planned tensors lie outside: {told(beyond[0])}; {pools}"
        yield PlanFault("plan outside pool", text, len(beyond))
    if crooked:
        text = f"{len(crooked)} of {len(places)} planned tensors begin inside an element: {told(crooked[0])}"
        yield PlanFault("misaligned", text, len(crooked))
    if over:
        first = over[0]
        text = (
            f"{len(over)} reads see memory that was written over: {told(first.value)}, written by "
            f"{_when(plan, first.source.time)} and read by {_when(plan, first.read)}; {told(first.by.value)} "
            f"is written over it by {_when(plan, first.by.time)}"
        )
        yield PlanFault("plan overlap", text, len(over))


def _when(plan: Plan, time: int) -> str:
    if time < 0:
        return "the caller"
    calls = [call for call in plan.calls if call.kind != "free"]
    if time == len(calls):
        return "the caller at the end"
    return f"instruction {time} ({calls[time].name or calls[time].kind})"


def ranges(plan: Plan) -> dict[int, Range]:
    """Range of every planned tensor that has bytes."""
    return {
        index: Range(tensor.place.pool, tensor.place.offset, tensor.place.offset + tensor.bytes)
        for index, value in enumerate(plan.values)
        if (tensor := value.tensor) is not None and tensor.place is not None and tensor.bytes
    }


def outside(plan: Plan) -> list[int]:
    """Values whose range is not inside a pool that the plan has."""
    return [
        index
        for index, place in ranges(plan).items()
        if not (0 < place.pool < len(plan.pools) and place.end <= plan.pools[place.pool])
    ]


def misaligned(plan: Plan) -> list[int]:
    """Values whose offset is no multiple of their element's size."""
    found = []
    for index, place in ranges(plan).items():
        tensor = plan.values[index].tensor
        if tensor is not None and place.start % tensor.element:
            found.append(index)
    return found


def clobbers(plan: Plan, inputs: Sequence[int]) -> list[Clobber]:
    """Every read that cannot see its source.

    :param inputs: number of inputs of each delegate call, in instruction order.
    """
    calls = [call for call in plan.calls if call.kind != "free"]
    delegates = sum(call.kind == "delegate" for call in calls)
    if any(call.kind not in ("kernel", "delegate") for call in calls) or delegates != len(inputs):
        return []
    return _Search(plan, calls, inputs).clobbers()


class _Search:
    """Reads and writes of one plan, ordered by time."""

    def __init__(self, plan: Plan, calls: Sequence[Call], inputs: Sequence[int]) -> None:
        self.plan, self.calls = plan, calls
        self.ranges = ranges(plan)
        self.reads: list[tuple[int, int]] = []
        self.writes = [Write(-1, index) for index in self._initial()]
        self.sources: dict[int, Write] = {}
        self.steps = 0
        split = iter(inputs)
        for time, call in enumerate(calls):
            read, written = self._uses(call, next(split) if call.kind == "delegate" else None)
            self.reads += [(time, index) for index in read]
            self.writes += [Write(time, index) for index in written]
        self.reads += [(len(calls), index) for index in plan.tensors(plan.outputs)]
        self.times = [write.time for write in self.writes]
        self.of_value: dict[int, list[Write]] = {}
        for write in self.writes:
            self.of_value.setdefault(write.value, []).append(write)

    def clobbers(self) -> list[Clobber]:
        found = []
        for time, index in self.reads:
            if index not in self.ranges or self.steps > MOST_STEPS:
                continue
            source = self._source(time, index)
            by = self._overwritten(time, index, source) if source else None
            if source and by:
                found.append(Clobber(index, source, by, time))
        return found

    def _initial(self) -> Iterator[int]:
        """What holds a value before the first instruction: inputs, and tensors with an initial state."""
        given = dict.fromkeys(self.plan.tensors(self.plan.inputs))
        for index, value in enumerate(self.plan.values):
            if value.tensor is not None and value.tensor.initialized:
                given[index] = None
        yield from (index for index in given if index in self.ranges)

    def _uses(self, call: Call, inputs: int | None) -> tuple[tuple[int, ...], list[int]]:
        """Values that an instruction reads and those that it writes."""
        if call.name.startswith(VIEW):
            return self.plan.tensors(call.values[:1]), []
        count = len(call.values) - 1 if inputs is None else inputs
        written = [index for index in self.plan.tensors(call.values[count:]) if index in self.ranges]
        read = self.plan.tensors(call.values[:count])
        if inputs is None and not in_place(call):  # the out argument comes twice
            read = tuple(index for index in read if index not in written)
        return read, list(dict.fromkeys(written))

    def _source(self, time: int, index: int) -> Write | None:
        """The write that a read has to see; None if the file does not tell."""
        own = [write for write in self.of_value.get(index, ()) if write.time < time]
        if own:
            return own[-1]
        if index not in self.sources:
            for write in reversed(self.writes[: bisect_left(self.times, time)]):
                self.steps += 1
                if self.steps > MOST_STEPS:
                    return None
                if self.ranges[write.value].holds(self.ranges[index]):
                    self.sources[index] = write
                    break
        return self.sources.get(index)

    def _overwritten(self, time: int, index: int, source: Write) -> Write | None:
        first, last = bisect_left(self.times, source.time), bisect_right(self.times, time)
        for write in self.writes[first:last]:
            self.steps += 1
            if self.steps > MOST_STEPS:
                return None
            if write.value in (index, source.value) or (write.time >= 0 and in_place(self.calls[write.time])):
                continue
            if self.ranges[write.value].overlaps(self.ranges[index]):
                return write
        return None


def in_place(call: Call) -> bool:
    """Does a kernel write its operand by its name (``aten::copy_``)?"""
    name = call.name.split("::")[-1].split(".")[0]
    return call.kind == "kernel" and name.endswith("_") and not name.endswith("__")
