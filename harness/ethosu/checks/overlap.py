"""Overlap: an operation that writes where it still has to read.

An OFM may lie on an IFM only if no element is overwritten before the last block that needs it is
read. A block is read as a whole before it is written, and blocks follow each other depth first,
then by width, then by height. So:

* *In place*: every OFM element is written where the one IFM element lies that it is computed from
  (same addresses, strides, format and element size; one tap, stride 1, no padding, upscaling,
  transposition, reversal or sum over channels). Allowed; this is how the allocator reuses memory
  (IsOp1To1, ReusableIFM in live_range.cpp). An IFM2 that is not broadcast may be in place too.
* A block that writes bytes that a later block reads: forbidden, whatever the reason.
* Any other overlap (each byte is read by the blocks before the one that writes it, or by that one)
  would need an order and a buffering that no public text promises: not certain.

The kernels of a chain (Ethos-U85) write once, at its end, what all of them read.

DMA copies in an order and in bursts that are not documented, so a DMA whose destination overlaps
its source elsewhere than in place is certain as well; one onto itself is harmless.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import KERNEL_KINDS, Input, Operation, Unknown, operation_of, units
from harness.ethosu.checks.hazard_ranges import Area, Footprint, Span, common, footprint, same_layout, shares_bytes
from harness.ethosu.featuremap import BRICK
from harness.ethosu.records import Step, StreamIssue

_MOST_RUNS, _MOST_PAIRS, _FEWEST_PAIRS = 1_000_000, 3_000, 16


def overlaps(step: Step, accelerator: Accelerator) -> list[StreamIssue]:
    """What one step writes onto its own operands.

    :returns: issues of kind ``overlap``, at most one for each operand.
    """
    if step.kind == "DMA_START":
        return _copies(step)
    if step.kind not in KERNEL_KINDS or common(footprint(step.reads), footprint(step.writes)) is None:
        return []
    return list(_overlaps((step,), accelerator))


def chain_overlaps(steps: Sequence[Step], accelerator: Accelerator) -> list[StreamIssue]:
    """What the last kernel of a chain writes onto operands of the kernels before it (Ethos-U85)."""
    found: list[StreamIssue] = []
    for unit in units(steps):
        if len(unit) > 1 and common(_reads(unit[:-1]), footprint(unit[-1].writes)):
            found += _overlaps(unit, accelerator)
    return found


def _reads(steps: Sequence[Step]) -> Footprint:
    return footprint(access for step in steps for access in step.reads)


def _copies(step: Step) -> list[StreamIssue]:
    """A DMA between two ranges that share bytes without being the same."""
    sources = footprint(access for access in step.reads if access.role == "SOURCE")
    found = common(sources, footprint(step.writes))
    if found is None:
        return []
    source, written = found
    if len(source.accesses) == len(written.accesses) == 1 and (source.start, source.end) == (
        written.start,
        written.end,
    ):
        return []
    return [_issue(step, f"copies {source} onto {written}: they overlap", True)]


def _overlaps(steps: Sequence[Step], accelerator: Accelerator) -> Iterator[StreamIssue]:
    try:
        operations = [operation_of(step, accelerator) for step in steps]
    except Unknown:
        return
    last = operations[-1]
    for operation in operations:
        for item in operation.inputs:
            if last.ofm is not None and not _in_place(item, last):
                yield from _judged(operation, item, last)
    streams = [group for group in _reads(steps) if group.role in ("WEIGHT", "SCALE")]
    found = common(tuple(streams), footprint(last.step.writes))
    if found is not None:
        yield _issue(last.step, f"overwrites its own {found[0]} by {found[1]}", True)


def _in_place(item: Input, last: Operation) -> bool:
    """Whether every element that this operand gives is overwritten by the element computed from it alone."""
    if last.ofm is None or last.reverse or last.transpose != (0, 1, 2) or item.weights:
        return False
    if item.channels == "one" or (item.channels == "all" and item.map.depth > 1):
        return False
    if item.rows is None or item.columns is None or item.map.shape != last.ofm.shape:
        return False
    windows = (item.rows, item.columns)
    if any((w.stride, w.reach, w.before, w.scale, w.step) != (1, 1, 0, 1, None) for w in windows):
        return False
    return same_layout(item.map, last.ofm)


def _judged(operation: Operation, item: Input, last: Operation) -> Iterator[StreamIssue]:
    """The first later block that reads what an earlier one has written, or the overlap as such."""
    read = footprint(access for access in operation.step.reads if access.role == item.map.role)
    if common(read, footprint(last.step.writes)) is None:
        return
    most = _most_pairs(operation, item, last)
    for pairs, certain in ((_later(last.blocks), True), (_earlier(last.blocks), False)):
        for writer, reader in itertools.islice(pairs, most):
            written = last.written(writer)
            area = None if written is None else _shared(operation, item, reader, written)
            if area is None:
                continue
            if certain:
                message = f"block {writer} writes {written} onto {area}, which block {reader} reads after it"
            else:
                message = (
                    f"writes {written} onto {area} and is not in place; no later block that was looked at reads it"
                )
            yield _issue(last.step, message, certain)
            return


def _later(count: int) -> Iterator[tuple[int, int]]:
    """Blocks that write and later ones that read, neighbours first."""
    return ((index, index + gap) for gap in range(1, count) for index in range(count - gap))


def _earlier(count: int) -> Iterator[tuple[int, int]]:
    """Blocks that write and earlier ones that read, the block itself first."""
    return ((index, index - gap) for gap in range(count) for index in range(gap, count))


def _most_pairs(operation: Operation, item: Input, last: Operation) -> int:
    """How many pairs of blocks to compare: few where each is large, so that the work is bounded."""
    rows, columns, channels = item.area(operation.block_box(0), Span(0, operation.input_depth)).box
    pixels = max(last.block[0] * last.block[1], (rows.end - rows.start) * (columns.end - columns.start))
    bricks = 1 + max(last.block[2], channels.end - channels.start) // BRICK
    return min(_MOST_PAIRS, max(_FEWEST_PAIRS, _MOST_RUNS // (pixels * bricks)))


def _shared(operation: Operation, item: Input, block: int, written: Area) -> Area | None:
    """What a block reads of an operand, if ``written`` is there too."""
    area = item.area(operation.block_box(block), Span(0, operation.input_depth))
    return area if shares_bytes(area, written) else None


def _issue(step: Step, message: str, certain: bool) -> StreamIssue:
    return StreamIssue("overlap", message, step.kind, step.index, step.command.offset, certain)
