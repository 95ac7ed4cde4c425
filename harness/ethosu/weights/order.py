"""The order in which an operation's weights lie in its streams, as data.

Both families order weights by the same nest of loops, from the outside in:

    OFM block > IFM block > sub-kernel > IFM microblock (*outer*) > OFM microblock > *slot*
    > IFM part (*inner*) > OFM channel of the microblock > IFM channel of the part

and differ in sizes. A *sub-kernel* is a piece of at most 8 by 8 taps (4 where the kernel is
dilated); a *slot* is the place of one of its taps, or padding. A core gets every other OFM channel
(Ethos-U65) or every other four (U85) in a stream of its own; *local* channels count within it.
Ethos-U85 goes through the IFM blocks forward and backward in turn.

Facts: EthosUWeightOrdering in ethosu55/ethos_u55_weight_encoder.cpp and EthosU85WeightOrdering in
ethosu85/ethos_u85_weight_encoder.cpp, the IFM block's depth from ArchEthosU85::GetOpConfig
(ethos_u85.cpp) of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.records import Unimplemented
from harness.ethosu.weights.geometry import WeightGeometry, microblock_depth

Indices = NDArray[np.int64]

_SUB_KERNEL = 8
_DEALT = 4
"""OFM channels that Ethos-U85 gives to a core in turn."""


@dataclass(frozen=True, eq=False)
class SubKernel:
    """A piece of the kernel.

    :param slots: how many there are, padding included.
    :param filled: slots that hold a tap, in stream order.
    :param rows: the taps' rows in the whole kernel; ``columns`` likewise.
    """

    slots: int
    filled: Indices
    rows: Indices
    columns: Indices


@dataclass(frozen=True, eq=False)
class CoreOrder:
    """What one core's stream holds.

    :param channels: the OFM channel of each local channel; those from the OFM's depth on are padding.
    :param microblocks: OFM microblocks in all.
    :param block: OFM microblocks of a whole OFM block.
    """

    channels: Indices
    microblocks: int
    block: int


@dataclass(frozen=True, eq=False)
class Order:
    """Sizes of the loops.

    :param ifm_blocks: how many there are.
    :param ifm_block: IFM channels of a block: ``outer * inner * part``.
    :param last_outer: ``outer`` in the last IFM block.
    :param microblock: local OFM channels of a microblock.
    :param alternating: every other OFM block has its IFM blocks backward.
    :param round: slots between which the fast format changes from core to core.
    """

    cores: tuple[CoreOrder, ...]
    sub_kernels: tuple[SubKernel, ...]
    ifm_blocks: int
    outer: int
    last_outer: int
    inner: int
    microblock: int
    part: int
    alternating: bool
    round: int

    @property
    def ifm_block(self) -> int:
        return self.outer * self.inner * self.part

    @property
    def slot(self) -> int:
        """Elements of a slot."""
        return self.inner * self.microblock * self.part

    def elements(self, core: int) -> int:
        """Weights in the stream of a core, padding included."""
        outer = (self.ifm_blocks - 1) * self.outer + self.last_outer
        return self.cores[core].microblocks * outer * sum(sub.slots for sub in self.sub_kernels) * self.slot


@lru_cache(maxsize=64)
def order_of(geometry: WeightGeometry, accelerator: Accelerator) -> Order:
    """The order of an operation's weights.

    :param geometry: checked; its sizes bound the memory that is needed here.
    :raises StreamError: the accelerator has no such microblock.
    :raises Unimplemented: OFM blocks that cut microblocks in two, which no encoder writes.
    """
    return _order_u85(geometry, accelerator) if accelerator.u85 else _order_u55(geometry, accelerator)


def _order_u55(geometry: WeightGeometry, accelerator: Accelerator) -> Order:
    wide = geometry.ifm_bits == 16
    microblock, part, cores = accelerator.ofm_ublock_depth, accelerator.ifm_ublock_depth, accelerator.cores
    outer = inner = last_outer = blocks = 1
    round_to = 1
    if geometry.depthwise:
        part, round_to = 1, 4
    else:
        depth = 16 if geometry.part_kernel or wide else 32
        blocks = -(-geometry.ifm_depth // depth)
        if geometry.part_kernel:
            round_to = 2 if wide else 4
            outer = depth // part
            last_outer = -(-min(depth, geometry.ifm_depth - (blocks - 1) * depth) // part)
        else:
            inner = depth // part
    pieces = tuple(
        _sub_kernel(rows, columns, round_to)
        for rows in _pieces(geometry.kernel_height, geometry.dilation_y)
        for columns in _pieces(geometry.kernel_width, geometry.dilation_x)
    )
    dealt = tuple(
        _core(
            np.arange(core, geometry.ofm_depth, cores),
            -(-(geometry.ofm_block_depth - core) // cores),
            microblock,
            geometry,
        )
        for core in range(cores)
    )
    return Order(dealt, pieces, blocks, outer, last_outer, inner, microblock, part, False, round_to)


def _core(channels: Indices, block: int, microblock: int, geometry: WeightGeometry) -> CoreOrder:
    count = -(-len(channels) // microblock)
    if block < len(channels) and (block % microblock or not block):
        raise Unimplemented(f"OFM blocks of {geometry.ofm_block_depth} channels cut microblocks of {microblock}")
    padding = np.full(count * microblock - len(channels), geometry.ofm_depth)
    return CoreOrder(np.concatenate([channels, padding]), count, -(-block // microblock))


def _sub_kernel(rows: range, columns: range, round_to: int) -> SubKernel:
    """Taps row by row, and padding behind them."""
    count = len(rows) * len(columns)
    slots = -(-count // round_to) * round_to
    return SubKernel(slots, np.arange(count), np.repeat(rows, len(columns)), np.tile(columns, len(rows)))


def _pieces(size: int, dilation: int) -> list[range]:
    """The rows (or columns) of each sub-kernel."""
    step = _SUB_KERNEL // dilation
    return [range(start, min(start + step, size)) for start in range(0, size, step)]


def _order_u85(geometry: WeightGeometry, accelerator: Accelerator) -> Order:
    wide = geometry.ifm_bits == 16
    depth = microblock_depth(geometry, accelerator)
    cores = accelerator.cores
    if geometry.depthwise:
        ifm_block, ifm_microblock, part, round_to = 1, 1, 1, 10
    else:
        ifm_block, ifm_microblock = _ifm_block(geometry, accelerator, depth)
        part = 16 if geometry.sparse else 8
        round_to = (10 if wide or geometry.sparse else 5) if geometry.part_kernel else 1
    channels_in = 1 if geometry.depthwise else geometry.ifm_depth
    blocks = -(-channels_in // ifm_block)
    last = channels_in - (blocks - 1) * ifm_block
    by_phase = geometry.depthwise or geometry.part_kernel
    strides = (geometry.stride_y, geometry.stride_x) if by_phase else (1, 1)
    extra = _depthwise_padding(geometry, accelerator)
    pieces = tuple(
        _serpentine(rows, columns, strides, round_to, extra)
        for columns in _pieces(geometry.kernel_width, geometry.dilation_x)
        for rows in _pieces(geometry.kernel_height, geometry.dilation_y)
    )
    if geometry.ofm_block_depth % depth and geometry.ofm_block_depth < geometry.ofm_depth:
        raise Unimplemented(f"OFM blocks of {geometry.ofm_block_depth} channels cut microblocks of {depth}")
    microblocks = -(-geometry.ofm_depth // depth)
    block = -(-geometry.ofm_block_depth // depth)
    groups = np.arange(microblocks * depth).reshape(-1, cores, _DEALT)
    dealt = tuple(CoreOrder(groups[:, core].ravel(), microblocks, block) for core in range(cores))
    return Order(
        cores=dealt,
        sub_kernels=pieces,
        ifm_blocks=blocks,
        outer=ifm_block // ifm_microblock,
        last_outer=-(-last // ifm_microblock),
        inner=ifm_microblock // part,
        microblock=depth // cores,
        part=part,
        alternating=True,
        round=round_to,
    )


def _ifm_block(geometry: WeightGeometry, accelerator: Accelerator, microblock: int) -> tuple[int, int]:
    """IFM channels of a block, and of a microblock."""
    wide = geometry.ifm_bits == 16
    if geometry.part_kernel:
        return 16, 8 if wide and not geometry.sparse else 16
    if geometry.sparse:
        return (64, 64) if wide else (128, 128)
    return (32, 32) if accelerator.macs <= 256 and microblock == 16 else (64, 64)


def _depthwise_padding(geometry: WeightGeometry, accelerator: Accelerator) -> int:
    """Slots of padding behind every ten of a depthwise convolution."""
    if not geometry.depthwise or (accelerator.macs <= 256 and geometry.ifm_bits == 8):
        return 0
    return 2 if accelerator.macs <= 512 else 6


def _serpentine(rows: range, columns: range, strides: tuple[int, int], round_to: int, extra: int) -> SubKernel:
    """Taps by stride phase; within a phase row by row, every other row backward; padding behind.

    :param extra: slots of padding behind every ``round_to``.
    """
    step_y, step_x = strides
    taps = [
        (y, x)
        for phase_y in range(step_y)
        for phase_x in range(step_x)
        for number, y in enumerate(rows[phase_y::step_y])
        for x in columns[phase_x::step_x][:: -1 if number % 2 else 1]
    ]
    filled = np.arange(len(taps))
    places = np.array(taps, np.int64)
    slots = -(-len(taps) // round_to) * (round_to + extra)
    return SubKernel(slots, filled + filled // round_to * extra, places[:, 0], places[:, 1])
