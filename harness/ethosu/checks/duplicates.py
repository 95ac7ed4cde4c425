"""Duplicates: work that is done twice although nothing has changed.

Two steps are the same operation if their command and every register that decides what they compute
are equal, and so are the bytes they read and write. The later one is redundant if since the
earlier one nobody wrote to what it reads or to what it writes: that follows from the accesses
alone, so it is certain. Three cases are information: an operation in place, whose repetition
computes on its own result (a graph may want that: CLZ of CLZ); a DMA, because the compiler loads the
weights of each operation anew without looking at what the buffer holds; and a result that was read
in between, because the repetition may be meant for another tensor that took its place (``cat([y, x])``
where the last copy of ``x.repeat(1, 2)`` was: no compiler looks for such luck).

Legitimate repetitions differ in this: a weight buffer or table slot that was overwritten in between
is written again; on Ethos-U55-32 and -64, whose accumulators use the SHRAM of the tables, every
kernel without a table overwrites them (see ``hazards``). Kernels that add to kept accumulators, that
leave their result there, or that belong to a chain (Ethos-U85) depend on more than memory, and are
left alone.

One case is known in the compiler: GenerateOpGroup in ethos_u85_register_cs_generator.cpp emits the
main operation again for a second fused sub-operation (an activation and a transposition).
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import KERNEL_KINDS, NO_ACCUMULATOR_OUTPUT, table_overwrites
from harness.ethosu.checks.hazard_ranges import Footprint, common, footprint
from harness.ethosu.records import Step, StreamIssue
from harness.ethosu.state import CHAINED, KEEP, NORMAL

_OPERANDS = ("IFM", "IFM2", "OFM")
_WEIGHTS = ("WEIGHT", "SCALE")
_KERNEL_ADDRESSES = ("IFM_BASE0", "OFM_BASE0", "WEIGHT_BASE", "OFM_HEIGHT_M1", "OFM_DEPTH_M1")
_DMA_ADDRESSES = ("DMA0_SRC", "DMA0_DST", "DMA0_LEN")
_MOST_BETWEEN = 1000
"""Steps that a repetition is looked for across."""
_Key = tuple[object, ...]


def duplicates(steps: Sequence[Step], accelerator: Accelerator) -> list[StreamIssue]:
    """Every step that repeats an earlier one with nothing changed in between.

    :param steps: all steps of a stream in order.
    :returns: issues of kind ``duplicate``.
    """
    found: list[StreamIssue] = []
    latest: dict[_Key, int] = {}
    written: dict[int, Footprint] = {}
    for place, step in enumerate(steps):
        if not _depends_on_memory_alone(step):
            continue
        key = _addresses(step)
        before = latest.get(key)
        latest[key] = place
        if before is None or place - before > _MOST_BETWEEN or not _same(step, steps[before]):
            continue
        mine = footprint((*step.reads, *step.writes))
        for between in range(before + 1, place):
            if between not in written:
                written[between] = _writes(steps[between], accelerator)
        if not any(common(mine, written[between]) for between in range(before + 1, place)):
            found.append(_issue(step, steps[before], _reader(step, steps[before + 1 : place])))
    return found


def _addresses(step: Step) -> _Key:
    """What two equal steps have in common at least, and few others."""
    names = _DMA_ADDRESSES if step.kind == "DMA_START" else _KERNEL_ADDRESSES
    command = step.command.name, tuple(sorted(step.command.fields.items()))
    return *command, *(step.registers.get(name, {}).get("value") for name in names)


def _depends_on_memory_alone(step: Step) -> bool:
    if step.kind == "DMA_START":
        return True
    if step.kind not in KERNEL_KINDS or not step.writes:
        return False
    registers = step.registers
    accumulators = registers.get("ACC_FORMAT", {})
    if accumulators.get("input") == KEEP or accumulators.get("output") == NO_ACCUMULATOR_OUTPUT:
        return False
    return all(registers.get(f"{role}_PRECISION", {}).get("storage", NORMAL) != CHAINED for role in _OPERANDS)


def _same(step: Step, other: Step) -> bool:
    """Whether accesses and the registers that matter to this kind of step are equal."""
    if (step.reads, step.writes) != (other.reads, other.writes):
        return False
    mine, theirs = step.registers, other.registers
    return all(mine.get(name) == theirs.get(name) for name in mine.keys() | theirs.keys() if _matters(name, step))


def _matters(name: str, step: Step) -> bool:
    if step.kind == "DMA_START":
        return name.startswith("DMA0_")
    if name.startswith("DMA0_") or name == "BLOCKDEP":
        return False
    if name.startswith("IFM2_") and not any(access.role == "IFM2" for access in step.reads):
        return step.kind == "ELEMENTWISE"
    if name.startswith(_WEIGHTS):
        return any(access.role in _WEIGHTS for access in step.reads)
    if name.startswith("RESIZE_"):
        return step.kind == "RESIZE"
    if name.startswith(("KERNEL_", "IFM_PAD_")):
        return step.kind != "ELEMENTWISE"
    return True


def _writes(step: Step, accelerator: Accelerator) -> Footprint:
    hidden = table_overwrites(step.reads, accelerator) if step.kind in KERNEL_KINDS else ()
    return footprint((*step.writes, *hidden))


def _reader(step: Step, between: Sequence[Step]) -> Step | None:
    """The first of some steps that reads what a step writes."""
    result = footprint(step.writes)
    return next((other for other in between if common(result, footprint(other.reads))), None)


def _issue(step: Step, earlier: Step, reader: Step | None) -> StreamIssue:
    what, certain = "same command, registers, inputs and outputs, and nothing was written in between", True
    if common(footprint(step.reads), footprint(step.writes)):
        what, certain = f"{what} except by step {earlier.index} onto its own input", False
    elif step.kind == "DMA_START":
        certain = False
    elif reader is not None:
        what, certain = f"{what}; step {reader.index} reads the result before, so it may be another tensor's", False
    message = f"repeats step {earlier.index}: {what}"
    return StreamIssue("duplicate", message, step.kind, step.index, step.command.offset, certain)
