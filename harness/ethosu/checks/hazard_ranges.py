"""Boxes of a feature map, the bytes they occupy, and whether two of them share any.

A *box* is a range of rows, columns and channels of a feature map as it lies in memory (after a
transposition, on Ethos-U85). Bytes are pairs of first address and the address after the last; they
are exact: a box of some channels of an NHWC map is one pair for each pixel (up to a number that no
block of Vela's comes near). Two boxes of one and the same map share bytes where their coordinates do,
which is quick to tell; otherwise their addresses are compared, so that slices, rolling buffers and
reshaped tensors need no special care.

Facts: AddressForCoordinate and GetTiles in the register command stream generators of
ethos-u-vela 5.1.0 (see ``featuremap``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.featuremap import BRICK, FeatureMap, tiles
from harness.ethosu.records import Access

_MOST_RUNS = 1 << 17

Ranges = NDArray[np.int64]
"""Byte ranges [n, 2]: start and end, in no order."""


class Span(NamedTuple):
    """From ``start`` up to but without ``end``."""

    start: int
    end: int

    def within(self, low: int, high: int) -> Span:
        """The part that is not below ``low`` nor from ``high`` on."""
        return Span(max(self.start, low), min(self.end, high))

    def shifted(self, offset: int) -> Span:
        return Span(self.start + offset, self.end + offset)

    @property
    def empty(self) -> bool:
        return self.end <= self.start

    def meets(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


class Box(NamedTuple):
    """A part of a feature map as it lies in memory."""

    rows: Span
    columns: Span
    channels: Span

    @property
    def empty(self) -> bool:
        return self.rows.empty or self.columns.empty or self.channels.empty

    def meets(self, other: Box) -> bool:
        return all(mine.meets(theirs) for mine, theirs in zip(self, other, strict=True))


class Area(NamedTuple):
    """A box of a feature map in memory."""

    map: FeatureMap
    box: Box

    def __str__(self) -> str:
        rows, columns, channels = self.box
        return (
            f"{self.map.role}[{rows.start}:{rows.end}, {columns.start}:{columns.end}, {channels.start}:{channels.end}]"
        )


def whole(item: FeatureMap) -> Box:
    """All of a feature map."""
    return Box(Span(0, item.height), Span(0, item.width), Span(0, item.depth))


def shares_bytes(first: Area, second: Area) -> bool:
    """Whether two areas have a byte in common."""
    if first.map.region != second.map.region or first.box.empty or second.box.empty:
        return False
    if same_layout(first.map, second.map):
        return first.box.meets(second.box)
    return intersects(area_bytes(first), area_bytes(second))


def same_layout(first: FeatureMap, second: FeatureMap) -> bool:
    """Whether equal coordinates are at equal addresses in both."""
    if _layout(first) != _layout(second):
        return False
    tiled = [item for item in (first, second) if item.height > item.height0 or item.width > item.width0]
    return not tiled or (first.height0, first.height1, first.width0) == (second.height0, second.height1, second.width0)


def _layout(item: FeatureMap) -> tuple[object, ...]:
    tiled = item.height > item.height0 or item.width > item.width0
    stride_x = 0 if item.bricks else item.stride_x
    stride_c = item.stride_c if item.bricks else 0
    bases = item.bases if tiled else item.bases[:1]
    return item.region, item.bricks, item.bits, item.stride_y, stride_x, stride_c, bases


def area_bytes(area: Area) -> Ranges:
    """The bytes of an area [n, 2]."""
    found = [piece for piece in _pieces(area) if len(piece)]
    return np.concatenate(found) if found else np.empty((0, 2), np.int64)


@dataclass(frozen=True)
class Group:
    """Accesses of one role to one region.

    :param start: first byte of all of them.
    :param end: the byte after the last.
    """

    role: str
    region: int
    start: int
    end: int
    accesses: Sequence[Access]

    @cached_property
    def bytes(self) -> Ranges:
        """Merged and sorted [n, 2]."""
        return merged_ranges(np.array([(item.start, item.end) for item in self.accesses], np.int64).reshape(-1, 2))

    def meets(self, other: Group) -> bool:
        """Whether both have a byte in common."""
        if self.region != other.region or self.end <= other.start or other.end <= self.start:
            return False
        if len(self.accesses) == 1 and len(other.accesses) == 1:
            return True
        return _meet(self.bytes, other.bytes)

    def __str__(self) -> str:
        return str(Access(self.role, self.region, self.start, self.end))


Footprint = tuple[Group, ...]
"""All that a step reads, or all that it writes."""


def footprint(accesses: Iterable[Access]) -> Footprint:
    """Accesses by role and region."""
    found: dict[tuple[str, int], list[Access]] = {}
    for access in accesses:
        found.setdefault((access.role, access.region), []).append(access)
    return tuple(
        Group(role, region, min(item.start for item in items), max(item.end for item in items), items)
        for (role, region), items in found.items()
    )


def common(mine: Footprint, theirs: Footprint) -> tuple[Group, Group] | None:
    """The first groups that have a byte in common."""
    for ours in mine:
        for other in theirs:
            if ours.meets(other):
                return ours, other
    return None


def merged_ranges(ranges: Ranges) -> Ranges:
    """Sorted, with touching and overlapping ranges joined."""
    if len(ranges) < 2:
        return ranges
    ordered = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ordered[:, 1])
    first = np.concatenate(([True], ordered[1:, 0] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.stack((ordered[first, 0], reach[last]), axis=1)


def intersects(first: Ranges, second: Ranges) -> bool:
    """Whether any range of one overlaps any of the other."""
    if not len(first) or not len(second):
        return False
    if first[:, 1].max() <= second[:, 0].min() or second[:, 1].max() <= first[:, 0].min():
        return False
    return _meet(merged_ranges(first), second)


def _meet(joined: Ranges, others: Ranges) -> bool:
    """:param joined: merged ranges."""
    after = np.searchsorted(joined[:, 1], others[:, 0], side="right")
    inside = after < len(joined)
    return bool((joined[after[inside], 0] < others[inside, 1]).any())


def _pieces(area: Area) -> Iterator[Ranges]:
    item, (rows, columns, channels) = area
    channels = channels.within(0, item.depth)
    for tile_rows, tile_columns, base in tiles(item):
        part = Box(
            rows.within(tile_rows.start, tile_rows.stop).shifted(-tile_rows.start),
            columns.within(tile_columns.start, tile_columns.stop).shifted(-tile_columns.start),
            channels,
        )
        if not part.empty:
            yield from _tile_pieces(item, base, part)


def _tile_pieces(item: FeatureMap, base: int, part: Box) -> Iterator[Ranges]:
    size, channels = item.size, part.channels
    if not item.bricks:
        run = (channels.end - channels.start) * size
        yield _spread(base + channels.start * size, run, part, (item.stride_y, item.stride_x), _MOST_RUNS)
        return
    bricks = range(channels.start // BRICK, -(-channels.end // BRICK))
    for brick in bricks:
        inside = channels.shifted(-brick * BRICK).within(0, BRICK)
        start, run = base + brick * item.stride_c + inside.start * size, (inside.end - inside.start) * size
        yield _spread(start, run, part, (item.stride_y, BRICK * size), _MOST_RUNS // len(bricks))


def _spread(start: int, run: int, part: Box, strides: tuple[int, int], most: int) -> Ranges:
    """Runs of ``run`` bytes at every row and column of a part of a tile.

    Where they are more than ``most``, the columns of a row, or all rows, become one run with gaps.

    :param strides: bytes between rows and between columns.
    """
    starts = np.array([start], np.int64)
    for span, stride in ((part.columns, strides[1]), (part.rows, strides[0])):
        count = span.end - span.start
        starts = starts + span.start * stride
        if len(starts) == 1 and abs(stride) == run:  # contiguous
            starts, run = starts + min(0, (count - 1) * stride), run * count
        elif len(starts) * count > most:
            first, last = int(starts.min()), int(starts.max())
            reach = (count - 1) * stride
            starts, run = np.array([first + min(0, reach)], np.int64), last - first + abs(reach) + run
        elif count > 1:
            starts = (starts[None, :] + np.arange(count, dtype=np.int64)[:, None] * stride).reshape(-1)
    return np.stack((starts, starts + run), axis=1)
