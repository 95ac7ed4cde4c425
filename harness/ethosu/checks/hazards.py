"""Hazards: operations that may touch the same bytes at the same time.

The NPU runs kernels (CONV, DEPTHWISE, POOL, ELEMENTWISE, RESIZE) and DMA side by side with the
reading of the command stream. Commands are issued in order; an operation that has been issued is
*outstanding* until it is known to have ended. What is known, in our words:

* KERNEL_WAIT n: at most n kernels are outstanding from here on, DMA_WAIT n: at most n DMAs; the
  oldest end first. (CalcCommandWaits and GenerateWaits: a wait's n is the number of operations
  issued after the newest one that conflicts, and afterwards that one and all older ones count as
  ended.)
* At most two kernels are outstanding after one was issued, and at most 1, 2 or 4 DMAs on Ethos-U55,
  U65, U85: issuing another one waits for the oldest (MaxOutstandingKernelOps, MaxOutstandingDMAOps;
  max_outstanding_kernels and max_outstanding_dma in architecture_features.py).
* Kernel and DMA: any conflict (read after write, write after read, write after write on common
  bytes) with an outstanding operation of the other kind is a hazard. Accesses are the feature maps,
  weights, scales, table and source, destination and index of DMA (with an index: every row that one
  can select). On Ethos-U55-32 and -64, which reserve no SHRAM for tables, a kernel without a table
  also writes the table memory: its accumulators are there (GenerateCommon, get_op_memory_accesses).
* DMA and DMA: the compiler of Ethos-U55, U65 and U85 waits on conflicts here too, the older one for
  Ethos-U55 and U65 never does (get_wait_dependency). So it is certain on Ethos-U85 alone.
* Kernel and kernel: kernels share one pipeline, in which blocks are read, computed and written in
  order, so only read after write can go wrong: a block's IFM may be read before an earlier kernel
  has written it. BLOCKDEP limits that. With jobs and blocks as in ``hazard_blocks``: when job i of
  a kernel is read, the previous kernel's blocks are written except possibly its last BLOCKDEP - i.
  So BLOCKDEP is safe if no job i reads bytes of the block j before the end for which
  i + j < BLOCKDEP (CalcBlockDep; calc_blockdep). BLOCKDEP 0 makes a kernel wait for the one before
  it. (0 to 3 on Ethos-U55 and U65, 0 to 7 on U85: MaxBlockdep.)
* On Ethos-U55-32 and -64 a kernel without a table right after one with a table needs BLOCKDEP 0,
  or its accumulators overwrite the table (CalcBlockDep, calc_blockdep).
* The kernels of a chain (U85: an OFM in a chain buffer) go block by block through all of them. The
  compiler gives a chain BLOCKDEP 0 and counts it as one kernel; hardware may count its parts. Of
  the two, a hazard is certain only if it is one either way.

Not certain, so information: a kernel that could, by the same count of blocks, overtake the kernel
before the previous one, where that one has fewer blocks than BLOCKDEP; both compilers look at the
previous kernel only.

Sources, all of ethos-u-vela 5.1.0: ethos_u55_register_cs_generator.cpp,
ethos_u65_register_cs_generator.cpp, ethos_u85_register_cs_generator.cpp, ethos_u55.hpp,
ethos_u65.hpp, ethos_u85.hpp; vela/register_command_stream_util.py (an independent description).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import (
    KERNEL_KINDS,
    Operation,
    Unknown,
    chained_output,
    operation_of,
    table_overwrites,
    uses_table,
)
from harness.ethosu.checks.hazard_ranges import Area, Footprint, common, footprint, shares_bytes
from harness.ethosu.records import Access, Step, StreamIssue

MOST_KERNELS = 2
MOST_DMAS = {"u55": 1, "u65": 2, "u85": 4}
_THREE_DIMENSIONS = 2
_OLDER = "older"


@dataclass(frozen=True)
class Unit:
    """A DMA, a kernel, or the kernels of a chain, as one issued operation.

    :param operations: of its kernels; empty where the registers do not tell (then unchecked).
    :param table: whether a kernel of it looks up a table.
    """

    steps: tuple[Step, ...]
    reads: Footprint
    writes: Footprint
    operations: tuple[Operation, ...] = ()
    table: bool = False

    @property
    def first(self) -> Step:
        return self.steps[0]

    @property
    def name(self) -> str:
        last = "" if len(self.steps) == 1 else f" to {self.steps[-1].index}"
        return f"{self.first.kind} (step {self.first.index}{last})"

    @property
    def blocks(self) -> int:
        """OFM blocks; a unit whose blocks are unknown counts as one."""
        return self.operations[0].blocks if self.operations else 1

    @property
    def jobs(self) -> int:
        return self.blocks * self.operations[0].slices if self.operations else 1

    @property
    def dependency(self) -> int:
        """Its BLOCKDEP."""
        return self.first.registers.get("BLOCKDEP", {}).get("value", 0)


@dataclass(frozen=True)
class Overtaking:
    """A job that may be read before a block is written.

    :param distance: the smallest BLOCKDEP that lets it happen, minus one: what is safe.
    """

    distance: int
    read: Area
    written: Area


def hazards(steps: Sequence[Step], accelerator: Accelerator) -> list[StreamIssue]:
    """Every operation that may conflict with one that is still outstanding.

    :param steps: all steps of a stream in order, waits included.
    :returns: issues of kind ``hazard``, at most one for each pair of operations and reason; of those
        about the kernel before the previous one only the first, with their number.
    """
    found = _conflicts(steps, accelerator, chains_are_one=True)
    if any(chained_output(step) for step in steps):
        parts = _conflicts(steps, accelerator, chains_are_one=False)
        found = {key: issue if key in parts else replace(issue, certain=False) for key, issue in found.items()}
    older = [key for key in found if key[2] == _OLDER]
    if len(older) > 1:
        first = found[older[0]]
        found[older[0]] = replace(first, message=f"{first.message} ({len(older) - 1} more in this stream)")
    return [issue for key, issue in found.items() if key[2] != _OLDER or key == older[0]]


_Key = tuple[int, int, str]
_T = TypeVar("_T")


def _conflicts(steps: Sequence[Step], accelerator: Accelerator, *, chains_are_one: bool) -> dict[_Key, StreamIssue]:
    """Issues by (step, the other unit's first step, what it is)."""
    kernels: list[Unit] = []
    dmas: list[Unit] = []
    counted: list[int] = []  # kernels that hardware counts, by the first step of their unit
    found: dict[_Key, StreamIssue] = {}
    most_dmas = MOST_DMAS[accelerator.family]
    chain: list[Step] = []
    for step in steps:
        if step.kind == "KERNEL_WAIT":
            counted = _newest(counted, step.command.fields["value"])
        elif step.kind == "DMA_WAIT":
            dmas = _newest(dmas, step.command.fields["value"])
        elif step.kind == "DMA_START":
            unit = Unit((step,), footprint(_reachable(step, "SOURCE")), footprint(_reachable(step, "DESTINATION")))
            found.update(_direct(unit, [item for item in kernels if item.first.index in counted], "kernel", True))
            found.update(_direct(unit, _newest(dmas, most_dmas - 1), "DMA", accelerator.u85))
            dmas = _newest([*dmas, unit], most_dmas)
        elif step.kind in KERNEL_KINDS:
            unit = _kernel_unit((step,), accelerator)
            found.update(_direct(unit, dmas, "DMA", True))
            chain.append(step)
            if chained_output(step):
                continue
            unit = unit if len(chain) == 1 else _kernel_unit(tuple(chain), accelerator)
            kernels = [item for item in kernels if item.first.index in counted]
            found.update(_pipeline(unit, kernels, accelerator))
            kernels.append(unit)
            counted = _newest([*counted, *_counts(unit, chains_are_one)], MOST_KERNELS)
            chain = []
    return found


def _counts(unit: Unit, chains_are_one: bool) -> list[int]:
    return [unit.first.index] * (1 if chains_are_one else len(unit.steps))


def _newest(items: list[_T], count: int) -> list[_T]:
    return items[max(len(items) - count, 0) :]


def _reachable(step: Step, role: str) -> tuple[Access, ...]:
    """What a DMA may read or write: the rows that any index selects, not only those of this run.

    :param role: ``SOURCE`` for what it reads, ``DESTINATION`` for what it writes.
    """
    accesses = step.reads if role == "SOURCE" else step.writes
    end = "SRC" if role == "SOURCE" else "DST"
    if not step.registers.get(f"DMA0_{end}_REGION", {}).get("idx_mode"):
        return accesses
    region = next((access.region for access in accesses if access.role == role), 0)
    numbers = [
        step.registers.get(f"DMA0_{name}", {}).get("value", 0) for name in (end, "LEN", f"{end}_STRIDE0", "IDX_MAX")
    ]
    start, length, stride, last = numbers
    reach = last * stride
    if step.registers["DMA0_SRC_REGION"].get("stride_mode") == _THREE_DIMENSIONS:
        rows = step.registers.get("DMA0_SIZE1", {}).get("value", 1)
        reach += max(rows - 1, 0) * step.registers.get(f"DMA0_{end}_STRIDE1", {}).get("value", 0)
    whole = Access(role, region, start, start + max(reach, 0) + length)
    return (*(access for access in accesses if access.role != role), whole)


def _kernel_unit(steps: tuple[Step, ...], accelerator: Accelerator) -> Unit:
    reads = [access for step in steps for access in step.reads]
    writes = [access for step in steps for access in step.writes]
    try:
        operations = tuple(operation_of(step, accelerator) for step in steps)
    except Unknown:
        operations = ()
    writes += table_overwrites(reads, accelerator)
    return Unit(steps, footprint(reads), footprint(writes), operations, uses_table(reads))


def _direct(unit: Unit, others: Sequence[Unit], kind: str, certain: bool) -> Iterator[tuple[_Key, StreamIssue]]:
    """Conflicts with outstanding operations of which nothing but a wait is known to end them."""
    for other in others:
        for reason, mine, theirs in (
            ("reads what it writes", unit.reads, other.writes),
            ("writes what it reads", unit.writes, other.reads),
            ("writes what it writes too", unit.writes, other.writes),
        ):
            shared = common(mine, theirs)
            if shared is not None:
                wait = "KERNEL_WAIT" if kind == "kernel" else "DMA_WAIT"
                what = f"{reason}: {shared[0]} and {shared[1]}"
                message = f"may run while {other.name} is outstanding, and {what}; a {wait} is missing"
                seen = {"missing": wait, "conflict": reason.replace(" ", "-"), "theirs": shared[1].role}
                yield (unit.first.index, other.first.index, kind), _issue(unit.first, message, certain, other, **seen)
                break


def _pipeline(unit: Unit, kernels: Sequence[Unit], accelerator: Accelerator) -> Iterator[tuple[_Key, StreamIssue]]:
    """Conflicts with kernels that are still in the pipeline."""
    if not kernels:
        return
    previous, dependency = kernels[-1], unit.dependency
    key = unit.first.index, previous.first.index
    overtaking = overtaken(previous, unit, dependency)
    if overtaking is not None:
        seen: dict[str, int | str] = {
            "safe": overtaking.distance,
            "conflict": "overtakes",
        }
        yield (
            (*key, "pipeline"),
            _issue(unit.first, _overtakes(overtaking, previous, dependency), True, previous, **seen),
        )
    shared = bool(table_overwrites((), accelerator))
    if shared and dependency and previous.table and not unit.table:
        message = f"has BLOCKDEP {dependency} after {previous.name}, whose table its accumulators overwrite; 0 is safe"
        yield (*key, "table"), _issue(unit.first, message, True, previous, safe=0, conflict="table")
    if len(kernels) > 1:
        yield from _overtakes_two(unit, previous, kernels[-2], dependency)


def _overtakes_two(unit: Unit, previous: Unit, older: Unit, dependency: int) -> Iterator[tuple[_Key, StreamIssue]]:
    """Conflicts with the kernel before the previous one, if blocks of the one between count.

    When the last job of the previous kernel is read, no more blocks of the older one are
    outstanding than the previous kernel's own BLOCKDEP allows.
    """
    left = previous.dependency - (previous.jobs - 1)
    found = overtaken(older, unit, dependency - previous.blocks, left)
    if found is not None:
        found = replace(found, distance=found.distance + previous.blocks)
        message = f"{_overtakes(found, older, dependency)}, if the blocks of {previous.name} count"
        yield (unit.first.index, older.first.index, _OLDER), _issue(unit.first, message, False, older)


def overtaken(previous: Unit, unit: Unit, dependency: int, outstanding: int = 1 << 30) -> Overtaking | None:
    """The closest job and block of two kernels that conflict although BLOCKDEP lets them run together.

    :param dependency: the value of BLOCKDEP; None is returned if it is safe.
    :param outstanding: how many of the last blocks may not have been written, at most.
    """
    closest: Overtaking | None = None
    if dependency < 1 or common(unit.reads, previous.writes) is None:
        return None
    blocks = list(_last_blocks(previous, min(dependency, outstanding)))
    for job, area in _first_jobs(unit, dependency):
        for place, written in blocks:
            distance = job + place
            if distance < (dependency if closest is None else closest.distance) and shares_bytes(area, written):
                closest = Overtaking(distance, area, written)
    return closest


def _last_blocks(unit: Unit, count: int) -> Iterator[tuple[int, Area]]:
    """What the last blocks write, with their places counted from the end."""
    for operation in unit.operations:
        for place in range(min(count, operation.blocks)):
            written = operation.written(operation.blocks - 1 - place)
            if written is not None:
                yield place, written


def _first_jobs(unit: Unit, count: int) -> Iterator[tuple[int, Area]]:
    """What the first jobs read, with their numbers.

    From the second block on, slices count as read with the last one of their block: which comes
    first differs (Ethos-U85 goes through them in alternating direction), and the last is the
    latest that any can be. So do the operands of the later kernels of a chain.
    """
    if not unit.operations:
        return
    primary = unit.operations[0]
    for operation in unit.operations:
        for block in range(min(-(-count // primary.slices), operation.blocks)):
            for part in range(operation.slices):
                early = block == 0 and operation is primary
                job = block * primary.slices + (part if early else primary.slices - 1)
                if job >= count:
                    break
                yield from ((job, area) for area in operation.reads(block, part))


def _overtakes(found: Overtaking, previous: Unit, dependency: int) -> str:
    return (
        f"has BLOCKDEP {dependency}: {found.read} may be read before {previous.name} has written "
        f"{found.written}; at most {found.distance} is safe"
    )


def _issue(step: Step, message: str, certain: bool, other: Unit, **seen: int | str) -> StreamIssue:
    told = (*seen.items(), ("after", other.first.kind), ("other", other.steps[-1].index))
    return StreamIssue("hazard", message, step.kind, step.index, step.command.offset, certain, told)
