"""The memory that a command stream sees: regions with bounds, and what has been written so far.

Region 0 holds weights and constants, 1 the scratch memory with inputs and outputs, 2 the fast
scratch of the Dedicated_Sram modes, LUT the table memory inside the NPU. Each has a shadow that
says which bytes hold something: constants and inputs from the start, the rest once it is written.

Elements are reached through *views*: arrays with strides over the region's bytes. Every view is
checked against the bounds first; a view of the shadow with the same shape tells of bytes that
nothing wrote. The size of the fast scratch is not in the payload of a delegate, so it is bounded
by ``FAST_SCRATCH_LIMIT`` alone where it is unknown.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.case.arrays import Array
from harness.ethosu.records import FAST_SCRATCH, LUT, REGION_NAMES, SCRATCH, WEIGHTS

Bytes = NDArray[np.uint8]

SCRATCH_LIMIT = 1 << 29
FILL = 0xA5
"""What memory holds that nothing wrote: not zero, so that a result that depends on it shows."""
FAST_SCRATCH_LIMIT = 1 << 23
"""Bytes; more than the SRAM of any system configuration that comes with Vela (4 MiB)."""

_SHADOWS = {size: np.dtype(f"<i{size}") for size in (1, 2, 4, 8)}
_READ_ONLY = "is constant and was written to"


class OutOfBounds(Exception):
    """An access leaves its region, or writes where nothing may be written.

    :param why: what the region is or has, after "which".
    """

    def __init__(self, region: int, start: int, end: int, why: str) -> None:
        self.region, self.start, self.end = region, start, end
        name = REGION_NAMES.get(region, f"region {region}")
        super().__init__(f"bytes {start:#x} to {end:#x} of {name}, which {why}")


@dataclass
class Region:
    """Bytes and shadow (255 where something was written)."""

    data: Bytes
    written: Bytes


@dataclass(frozen=True)
class Window:
    """An array of elements in memory, by byte strides.

    :param offset: byte address of element [0, 0, …].
    :param strides: bytes, any sign, one for each axis of ``shape``.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    itemsize: int

    @cached_property
    def span(self) -> tuple[int, int]:
        """First byte, and the byte after the last."""
        low = high = self.offset
        for size, stride in zip(self.shape, self.strides, strict=True):
            reach = (size - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high + self.itemsize


class Memory:
    """All regions of one execution.

    :param fast_scratch_size: 0 where the payload does not say.
    """

    def __init__(self, weights: bytes, scratch_size: int, fast_scratch_size: int, lut_size: int) -> None:
        constants = np.frombuffer(weights, np.uint8)
        self._regions = {
            WEIGHTS: Region(constants, np.full(len(constants), 255, np.uint8)),
            SCRATCH: _empty(scratch_size),
            LUT: _empty(lut_size),
        }
        self._fast_scratch_size = fast_scratch_size

    def duplicate(self) -> Memory:
        """The same with bytes of its own; the constants are shared."""
        other = copy.copy(self)
        other._regions = {
            number: held if number == WEIGHTS else Region(held.data.copy(), held.written.copy())
            for number, held in self._regions.items()
        }
        return other

    def region(self, number: int) -> Region:
        """:raises OutOfBounds: there is no such region."""
        if number == FAST_SCRATCH and number not in self._regions:
            self._regions[number] = _empty(self._fast_scratch_size or FAST_SCRATCH_LIMIT)
        if number not in self._regions:
            raise OutOfBounds(number, 0, 0, "does not exist")
        return self._regions[number]

    def read(self, region: int, window: Window, dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """A copy-free view of elements, and whether every byte of it was written before."""
        data, written = self._views(region, window, dtype)
        return data, bool((written == -1).all())

    def write(self, region: int, window: Window, values: Array) -> None:
        """Store elements; ``values`` has the window's shape, and the dtype that memory shall hold."""
        if region == WEIGHTS:
            raise OutOfBounds(region, *window.span, _READ_ONLY)
        data, written = self._views(region, window, values.dtype)
        data[...] = values
        written[...] = -1

    def read_bytes(self, region: int, start: int, end: int) -> tuple[bytes, bool]:
        """Bytes ``start`` up to ``end``, and whether all were written before."""
        held = self._checked(region, start, end)
        return held.data[start:end].tobytes(), bool((held.written[start:end] == 255).all())

    def write_bytes(self, region: int, start: int, data: bytes | Bytes) -> None:
        """Store bytes from ``start`` on."""
        held = self._checked(region, start, start + len(data))
        held.data[start : start + len(data)] = np.frombuffer(data, np.uint8)
        held.written[start : start + len(data)] = 255

    def copy(self, source: int, start: int, target: int, at: int, length: int) -> None:
        """Copy bytes; those that nothing wrote stay unwritten at the target."""
        origin = self._checked(source, start, start + length)
        if target == WEIGHTS:
            raise OutOfBounds(target, at, at + length, _READ_ONLY)
        held = self._checked(target, at, at + length)
        held.data[at : at + length] = origin.data[start : start + length].copy()
        held.written[at : at + length] = origin.written[start : start + length].copy()

    def forget(self, region: int) -> None:
        """Make every byte of a region unwritten: something else uses that memory."""
        self.region(region).written[:] = 0

    def unwritten(self, region: int, ranges: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """How many bytes of these ranges nothing wrote, and the first of them; None if all are written."""
        count, first = 0, -1
        for start, end in ranges:
            (missing,) = np.nonzero(self._checked(region, start, end).written[start:end] == 0)
            if len(missing) and first < 0:
                first = start + int(missing[0])
            count += len(missing)
        return (count, first) if count else None

    def _checked(self, region: int, start: int, end: int) -> Region:
        held = self.region(region)
        if not 0 <= start <= end <= len(held.data):
            raise OutOfBounds(region, start, end, f"has {len(held.data)} bytes")
        return held

    def _views(self, region: int, window: Window, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        held = self._checked(region, *window.span)
        shape, strides, offset = window.shape, window.strides, window.offset
        return (
            np.ndarray(shape, dtype, held.data.data, offset, strides),
            np.ndarray(shape, _SHADOWS[window.itemsize], held.written.data, offset, strides),
        )


def _empty(size: int) -> Region:
    return Region(np.full(size, FILL, np.uint8), np.zeros(size, np.uint8))
