"""Feature maps: how IFM, IFM2 and OFM lie in memory, and how their elements are read and written.

A feature map is height x width x depth. It may consist of up to four *tiles*: rows below HEIGHT0
and columns below WIDTH0 are at BASE0, the columns to the right at BASE1 (their rows end at
HEIGHT1), what is below at BASE2 and BASE3; coordinates restart at each tile. (Vela uses tiles for
rolling buffers.) In NHWC an element is at ``base + y*stride_y + x*stride_x + c*size``; the stride
of C is not used. In NHCWB16 it is at ``base + y*stride_y + (c//16)*stride_c + x*16*size +
(c%16)*size``. Strides are signed. Elements of 48 bits are stored in 8 bytes.

Facts: GetTiles and AddressForCoordinate in the register command stream generators of
ethos-u-vela 5.1.0; ETHOS_U_FACTS section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.ethosu.arithmetic import Ints
from harness.ethosu.memory import Memory, Window
from harness.ethosu.records import Access

BRICK = 16
_MOST_RANGES = 512


@dataclass(frozen=True)
class FeatureMap:
    """One operand as the registers describe it; where it lies is worked out once.

    :param role: IFM, IFM2 or OFM.
    :param bases: byte addresses of the four tiles.
    :param stride_c: bytes between bricks (NHCWB16 only).
    :param bits: 8, 16, 32 or 64 for each element.
    :param bricks: True for NHCWB16.
    """

    role: str
    region: int
    bases: tuple[int, int, int, int]
    height: int
    width: int
    depth: int
    height0: int
    height1: int
    width0: int
    stride_y: int
    stride_x: int
    stride_c: int
    bits: int
    signed: bool
    bricks: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.depth

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.bits // 8

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<{'i' if self.signed else 'u'}{self.size}")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The windows onto memory that it consists of."""
        return tuple(
            Part(window, rows, columns, channels)
            for rows, columns, base in tiles(self)
            for channels, window in _windows(self, rows, columns, base)
        )

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """The bytes that it occupies, merged and sorted.

        Where they are in more than some hundreds of pieces, pieces are joined: row by row first, then
        tile by tile, so that a range may hold gaps.
        """
        pieces = [piece for part in self.parts for piece in _pieces(part.window)]
        return tuple(Access(self.role, self.region, start, end) for start, end in merged(pieces))

    def __str__(self) -> str:
        kind = f"{'int' if self.signed else 'uint'}{self.bits}"
        return f"{self.role} {kind} {self.height}x{self.width}x{self.depth} {'NHCWB16' if self.bricks else 'NHWC'}"


@dataclass(frozen=True)
class Part:
    """A window onto one tile and the slice of the feature map that it holds."""

    window: Window
    rows: slice
    columns: slice
    channels: slice


def read(memory: Memory, feature_map: FeatureMap) -> tuple[Ints, bool]:
    """All elements as int64 [height, width, depth], zero point included, and whether all were written."""
    whole = np.empty(feature_map.shape, np.int64)
    complete = True
    for part in feature_map.parts:
        values, written = memory.read(feature_map.region, part.window, feature_map.dtype)
        whole[part.rows, part.columns, part.channels] = values.reshape(_extent(part))
        complete &= written
    return whole, complete


def write(memory: Memory, feature_map: FeatureMap, values: Ints) -> None:
    """Store int64 values [height, width, depth]; the low bits of each are kept."""
    kept = values.astype(feature_map.dtype)
    for part in feature_map.parts:
        block = kept[part.rows, part.columns, part.channels]
        memory.write(feature_map.region, part.window, block.reshape(part.window.shape))


def addresses(feature_map: FeatureMap) -> Ints:
    """Byte address of every element [height, width, depth]."""
    whole = np.empty(feature_map.shape, np.int64)
    for part in feature_map.parts:
        places = np.full((1,) * len(part.window.shape), part.window.offset, np.int64)
        for axis, (size, stride) in enumerate(zip(part.window.shape, part.window.strides, strict=True)):
            along = [1] * len(part.window.shape)
            along[axis] = size
            places = places + (np.arange(size, dtype=np.int64) * stride).reshape(along)
        whole[part.rows, part.columns, part.channels] = places.reshape(_extent(part))
    return whole


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges with touching and overlapping ones joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def tiles(item: FeatureMap) -> Iterator[tuple[slice, slice, int]]:
    """Rows, columns and base address of each tile that has elements; coordinates restart there."""
    left = slice(0, min(item.width0, item.width))
    right = slice(left.stop, item.width)
    top0, top1 = min(item.height0, item.height), min(item.height1, item.height)
    found = (
        (slice(0, top0), left, item.bases[0]),
        (slice(0, top1), right, item.bases[1]),
        (slice(top0, item.height), left, item.bases[2]),
        (slice(top1, item.height), right, item.bases[3]),
    )
    return (
        (rows, columns, base)
        for rows, columns, base in found
        if rows.start < rows.stop and columns.start < columns.stop
    )


def _windows(item: FeatureMap, rows: slice, columns: slice, base: int) -> Iterator[tuple[slice, Window]]:
    height, width, size = rows.stop - rows.start, columns.stop - columns.start, item.size
    if not item.bricks:
        dense = (item.stride_y, item.stride_x, size)
        yield slice(0, item.depth), Window((height, width, item.depth), dense, base, size)
        return
    full, rest = divmod(item.depth, BRICK)
    strides = (item.stride_y, BRICK * size, item.stride_c, size)
    if full:
        yield slice(0, full * BRICK), Window((height, width, full, BRICK), strides, base, size)
    if rest:
        yield (
            slice(full * BRICK, item.depth),
            Window((height, width, 1, rest), strides, base + full * item.stride_c, size),
        )


def _extent(part: Part) -> tuple[int, int, int]:
    return (
        part.rows.stop - part.rows.start,
        part.columns.stop - part.columns.start,
        part.channels.stop - part.channels.start,
    )


def _pieces(window: Window) -> list[tuple[int, int]]:
    """Contiguous pieces of a window; whole rows, or the whole, where there are too many."""
    if len(window.shape) == 4:
        height, width, bricks, depth = window.shape
        step_y, step_x, step_c, size = window.strides
        if bricks > _MOST_RANGES:
            return [window.span]
        one = (
            Window((height, width, depth), (step_y, step_x, size), window.offset + n * step_c, size)
            for n in range(bricks)
        )
        return [piece for brick in one for piece in _pieces(brick)]
    height, width, depth = window.shape
    step_y, step_x, size = window.strides
    low, run = min(0, (width - 1) * step_x), depth * size
    if abs(step_x) == run or width * height > _MOST_RANGES:
        starts, run = [window.offset + low], abs(step_x) * (width - 1) + run
    else:
        starts = [window.offset + x * step_x for x in range(width)]
    if height > _MOST_RANGES or (abs(step_y) == run and len(starts) == 1):
        return [window.span]
    return [(start + y * step_y, start + y * step_y + run) for y in range(height) for start in starts]
