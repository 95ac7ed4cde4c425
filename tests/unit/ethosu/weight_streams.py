"""Writes weight streams for tests, one bit and one weight at a time, as the formats are described.

Nothing here is fast or clever, so that it can be compared with descriptions by eye: ``standard`` and
``fast`` write the two formats, ``stream_order`` walks the loops of the encoders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.weights import WeightGeometry

Place = tuple[int, int, int, int] | None
NO_RUNS, END, UNCOMPRESSED = 6, 7, 7


class Bits:
    """Bits, lowest first."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def put(self, value: int, width: int) -> None:
        assert 0 <= value < 1 << width
        self.bits += [value >> bit & 1 for bit in range(width)]

    def align(self, width: int, filler: int) -> None:
        self.bits += [filler] * (-len(self.bits) % width)

    def bytes(self) -> bytes:
        self.align(8, 0)
        octets = range(0, len(self.bits), 8)
        return bytes(sum(bit << at for at, bit in enumerate(self.bits[start : start + 8])) for start in octets)


def folded(weight: int) -> int:
    """Sign in the lowest bit."""
    return abs(weight) << 1 | (weight < 0)


@dataclass
class Slice:
    """One slice of the standard format.

    :param indices: of weights; without a palette ``folded`` weights.
    :param runs: zeros before the first weight (if there is a palette) and behind each; None for none.
    :param palette: folded weights, with ``palette_bits`` each; None keeps the last palette.
    """

    indices: Sequence[int]
    runs: Sequence[int] | None = None
    divider: int = 0
    truncated: bool = False
    run_divider: int = 0
    palette: Sequence[int] | None = field(default_factory=list)
    palette_bits: int = 9
    offset: int = 0


def standard(*slices: Slice | None) -> bytes:
    """A stream; None is an end marker between slices."""
    bits = Bits()
    for item in slices:
        if item is None:
            bits.put(END, 3)
            bits.align(8, 1)
        else:
            _slice(bits, item)
    bits.put(END, 3)
    bits.align(128, 1)
    return bits.bytes()


def plain(weights: Sequence[int]) -> bytes:
    """A stream of uncompressed weights of 9 bits, the one thing here that is fast."""
    most = 1 << 15
    bits: list[int] = []
    for start in range(0, len(weights), most):
        part = np.asarray(weights[start : start + most])
        header = Bits()
        for value, width in ((NO_RUNS, 3), (len(part) - 1, 15), (UNCOMPRESSED, 3), (2, 2), (0, 10), (7, 3)):
            header.put(value, width)
        indices = np.abs(part) << 1 | (part < 0)
        bits += [*header.bits, *(indices[:, None] >> np.arange(9) & 1).ravel().tolist()]
    bits += [1] * (-len(bits) % 128 or 128)
    return np.packbits(bits, bitorder="little").tobytes()


def _slice(bits: Bits, item: Slice) -> None:
    bits.put(NO_RUNS if item.runs is None else item.run_divider, 3)
    bits.put(len(item.indices) - 1, 15)
    bits.put(item.divider, 3)
    bits.put(item.truncated, 1)
    bits.put(item.palette is not None, 1)
    width = item.palette_bits
    if item.palette is not None:
        bits.put(item.offset, 5)
        bits.put(max(len(item.palette) - 1, 0), 5)
        bits.put(item.palette_bits - 2, 3)
        for entry in item.palette:
            bits.put(entry, item.palette_bits)
        if item.palette:
            width = (len(item.palette) - 1).bit_length()
    _steps(bits, item, width)


def _steps(bits: Bits, item: Slice, width: int) -> None:
    """Unary parts of each step, then the remainders of the step before."""
    coded = item.divider != UNCOMPRESSED
    divider = item.divider if coded else width
    positions = [position for index in item.indices for position in _weight(index, divider, item.truncated)]
    run_positions = [position for run in item.runs or () for position in _run(run, item.run_divider)]
    most, run_most = (12 if coded or width <= 5 else 8), (8 if item.run_divider == 3 else 12)
    done = runs_done = 0
    before: list[int] = []
    runs_before: list[int] = []
    while True:
        ahead = done - runs_done if item.runs is not None else 0
        now = positions[:most] if ahead < 8 else []
        runs_now = run_positions[:run_most] if ahead >= 0 else []
        positions, run_positions = positions[len(now) :], run_positions[len(runs_now) :]
        codes = [code for code, _ in now] + [0] * (most - len(now))
        if now and coded:
            bits.put(sum((code > 0) << at for at, code in enumerate(codes)), 12)
        if runs_now:
            bits.put(sum(code << at for at, (code, _) in enumerate(runs_now)), run_most)
        if now and coded:
            for code in codes:
                if code:
                    bits.put(code - 1, 1)
        for remainder in before:
            bits.put(remainder, divider)
        for remainder in runs_before:
            bits.put(remainder, item.run_divider)
        before = [remainder for _, remainder in now if remainder is not None]
        runs_before = [remainder for _, remainder in runs_now if remainder is not None]
        done, runs_done = done + len(before), runs_done + len(runs_before)
        if not (now or runs_now):
            return


def _weight(index: int, divider: int, truncated: bool) -> Iterator[tuple[int, int | None]]:
    """Unary positions, the last of a weight with its remainder."""
    quotient, remainder = index >> divider, index & ((1 << divider) - 1)
    while quotient > 1 and not truncated:
        yield 2, None
        quotient -= 2
    yield quotient, remainder


def _run(run: int, divider: int) -> Iterator[tuple[int, int | None]]:
    for _ in range(run >> divider):
        yield 1, None
    yield 0, run & ((1 << divider) - 1)


def fast(codes: Sequence[int], bits_each: int, table: Sequence[int] = (), adjustment: int = 0) -> bytes:
    """A fast stream: raw bytes (``bits_each`` 8) or indices of a table of folded weights."""
    bits = Bits()
    bits.put(bits_each == 8, 1)
    bits.put(bits_each == 2, 1)
    bits.put(0, 102)
    bits.put(adjustment & 0xFF, 8)
    for entry in [*table, *[0] * (16 - len(table))]:
        bits.put(entry, 9)
    for code in codes:
        bits.put(code, bits_each)
    bits.align(256, 0)
    return bits.bytes()


def stream_order(geometry: WeightGeometry, accelerator: Accelerator, core: int, microblock: int) -> list[Place]:
    """Places (OFM channel, row, column, IFM channel) in the order of a core's stream; None is padding."""
    walk = _order_u85 if accelerator.u85 else _order_u55
    return list(walk(geometry, accelerator, core, microblock))


def _inside(geometry: WeightGeometry, ofm: int, y: int, x: int, ifm: int) -> Place:
    depth = 1 if geometry.depthwise else geometry.ifm_depth
    return (ofm, y, x, ifm) if ofm < geometry.ofm_depth and ifm < depth else None


def _order_u55(geometry: WeightGeometry, accelerator: Accelerator, core: int, microblock: int) -> Iterator[Place]:
    cores, depth = accelerator.cores, 1 if geometry.depthwise else geometry.ifm_depth
    part_kernel = geometry.part_kernel and not geometry.depthwise
    mine = list(range(core, geometry.ofm_depth, cores))
    block = (geometry.ofm_block_depth + cores - 1 - core) // cores
    ifm_block = 16 if part_kernel or geometry.ifm_bits == 16 else 32
    multiple = 4 if geometry.depthwise else {8: 4, 16: 2}[geometry.ifm_bits] if part_kernel else 1
    high, wide = 8 // geometry.dilation_y, 8 // geometry.dilation_x
    for first in range(0, len(mine), block):
        channels = mine[first : first + block]
        for ifm_first in range(0, depth, ifm_block):
            for top in range(0, geometry.kernel_height, high):
                for left in range(0, geometry.kernel_width, wide):
                    rows = min(high, geometry.kernel_height - top)
                    columns = min(wide, geometry.kernel_width - left)
                    taps = -(-rows * columns // multiple) * multiple
                    if geometry.depthwise:
                        outer, inner = [0], [0]
                    elif part_kernel:
                        outer, inner = list(range(0, min(16, depth - ifm_first), 8)), [0]
                    else:
                        outer, inner = [0], list(range(0, ifm_block, 8))
                    for ifm_outer in outer:
                        for start in range(0, len(channels), microblock):
                            for tap in range(taps):
                                y, x = top + tap // columns, left + tap % columns
                                for ifm_inner in inner:
                                    for number in range(start, start + microblock):
                                        for at in range(1 if geometry.depthwise else 8):
                                            ofm = channels[number] if number < len(channels) else geometry.ofm_depth
                                            ifm = ifm_first + ifm_outer + ifm_inner + at
                                            place = _inside(geometry, ofm, y, x, ifm)
                                            yield place if tap < rows * columns else None


def _order_u85(geometry: WeightGeometry, accelerator: Accelerator, core: int, microblock: int) -> Iterator[Place]:
    cores, macs, wide = accelerator.cores, accelerator.macs, geometry.ifm_bits == 16
    depth = 1 if geometry.depthwise else geometry.ifm_depth
    part_kernel = geometry.part_kernel and not geometry.depthwise
    if geometry.depthwise:
        ifm_block = ifm_microblock = step = 1
        multiple, padding = 10, 0 if macs <= 256 and not wide else 2 if macs <= 512 else 6
    else:
        step, padding = 16 if geometry.sparse else 8, 0
        if part_kernel:
            ifm_block, ifm_microblock = 16, 8 if wide and not geometry.sparse else 16
            multiple = 10 if wide or geometry.sparse else 5
        else:
            small = macs <= 256 and microblock == 16
            ifm_block = (64 if wide else 128) if geometry.sparse else 32 if small else 64
            ifm_microblock, multiple = ifm_block, 1
    stride_y, stride_x = (geometry.stride_y, geometry.stride_x) if geometry.depthwise or part_kernel else (1, 1)
    high, broad = 8 // geometry.dilation_y, 8 // geometry.dilation_x
    slot = ifm_microblock * microblock // cores
    for number, first in enumerate(range(0, geometry.ofm_depth, geometry.ofm_block_depth)):
        last = min(first + geometry.ofm_block_depth, geometry.ofm_depth)
        ifm_firsts = range(0, depth, ifm_block)
        for ifm_first in reversed(ifm_firsts) if number % 2 else ifm_firsts:
            for left in range(0, geometry.kernel_width, broad):
                for top in range(0, geometry.kernel_height, high):
                    rows = range(top, min(top + high, geometry.kernel_height))
                    columns = range(left, min(left + broad, geometry.kernel_width))
                    for ifm_outer in range(ifm_first, min(ifm_first + ifm_block, depth), ifm_microblock):
                        for start in range(first, last, microblock):
                            count = 0
                            for y, x in _taps(rows, columns, stride_y, stride_x):
                                for ifm_inner in range(ifm_outer, ifm_outer + ifm_microblock, step):
                                    for group in range(start + 4 * core, start + microblock, 4 * cores):
                                        for ofm in range(group, group + 4):
                                            for ifm in range(ifm_inner, ifm_inner + step):
                                                yield _inside(geometry, ofm, y, x, ifm)
                                count += 1
                                if count % multiple == 0:
                                    yield from [None] * (padding * slot)
                            if count % multiple:
                                yield from [None] * ((multiple - count % multiple + padding) * slot)


def _taps(rows: range, columns: range, stride_y: int, stride_x: int) -> Iterator[tuple[int, int]]:
    for phase_y in range(stride_y):
        for phase_x in range(stride_x):
            for number, y in enumerate(rows[phase_y::stride_y]):
                row = list(columns[phase_x::stride_x])
                for x in reversed(row) if number % 2 else row:
                    yield y, x
