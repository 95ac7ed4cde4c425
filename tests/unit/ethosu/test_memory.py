"""Regions, bounds, what was written, and feature maps in them."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.featuremap import FeatureMap, merged, read, write
from harness.ethosu.memory import Memory, OutOfBounds, Window
from harness.ethosu.records import FAST_SCRATCH, LUT, SCRATCH, WEIGHTS


def _memory(scratch: int = 1024) -> Memory:
    return Memory(bytes(range(16)), scratch, 0, 2048)


def _map(shape: tuple[int, int, int], **changes: object) -> FeatureMap:
    height, width, depth = shape
    values: dict[str, object] = {
        "role": "OFM",
        "region": SCRATCH,
        "bases": (64, 0, 0, 0),
        "height": height,
        "width": width,
        "depth": depth,
        "height0": height,
        "height1": height,
        "width0": width,
        "stride_y": width * depth * 2,
        "stride_x": depth * 2,
        "stride_c": 0,
        "bits": 16,
        "signed": True,
        "bricks": False,
    }
    return FeatureMap(**{**values, **changes})  # type: ignore[arg-type]


def _counting(shape: tuple[int, int, int]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) - 5


def _element(memory: Memory, address: int) -> int:
    data, _ = memory.read_bytes(SCRATCH, address, address + 2)
    return int(np.frombuffer(data, "<i2")[0])


def test_constants_are_written_and_cannot_be_changed() -> None:
    memory = _memory()
    assert memory.read_bytes(WEIGHTS, 4, 6) == (b"\x04\x05", True)
    with pytest.raises(OutOfBounds, match="weights, which is constant and was written to"):
        memory.write(WEIGHTS, Window((1,), (1,), 0, 1), np.zeros(1, np.int8))
    with pytest.raises(OutOfBounds, match="weights, which is constant and was written to"):
        memory.copy(WEIGHTS, 0, WEIGHTS, 4, 2)


@pytest.mark.parametrize("window", [Window((2, 4), (-8, 2), 4, 2), Window((2, 600), (8, 2), 0, 2)])
def test_windows_outside_are_refused_at_both_ends(window: Window) -> None:
    with pytest.raises(OutOfBounds, match="which has 1024 bytes"):
        _memory().read(SCRATCH, window, np.dtype("<i2"))


def test_a_region_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OutOfBounds, match="region 5, which does not exist"):
        _memory().read_bytes(5, 0, 1)


def test_reading_tells_of_bytes_that_nothing_wrote() -> None:
    memory = _memory()
    memory.write_bytes(SCRATCH, 8, b"\1\2\3")
    assert memory.read_bytes(SCRATCH, 8, 11)[1]
    assert not memory.read_bytes(SCRATCH, 8, 12)[1]
    assert memory.unwritten(SCRATCH, [(0, 4), (8, 13)]) == (6, 0)
    assert memory.unwritten(SCRATCH, [(8, 11)]) is None
    memory.forget(SCRATCH)
    assert memory.unwritten(SCRATCH, [(8, 11)]) == (3, 8)


def test_a_copy_carries_what_was_never_written() -> None:
    memory = _memory()
    memory.write_bytes(SCRATCH, 0, b"\7")
    memory.copy(SCRATCH, 0, LUT, 100, 2)
    assert memory.read_bytes(LUT, 100, 101) == (b"\7", True)
    assert memory.unwritten(LUT, [(100, 102)]) == (1, 101)


def test_fast_scratch_is_there_when_it_is_used() -> None:
    memory = _memory()
    memory.write_bytes(FAST_SCRATCH, 4096, b"\1")
    assert memory.read_bytes(FAST_SCRATCH, 4096, 4097) == (b"\1", True)


def test_nhwc_addresses() -> None:
    memory, shape = _memory(), (2, 3, 4)
    write(memory, _map(shape), _counting(shape))
    for y, x, c in np.ndindex(shape):
        assert _element(memory, 64 + y * 24 + x * 8 + c * 2) == _counting(shape)[y, x, c]
    values, complete = read(memory, _map(shape))
    assert complete
    assert np.array_equal(values, _counting(shape))


@pytest.mark.parametrize("depth", [5, 16, 37])
def test_brick_addresses(depth: int) -> None:
    memory, shape = _memory(), (2, 3, depth)
    bricks = -(-depth // 16)
    item = _map(shape, bricks=True, stride_y=bricks * 96, stride_c=96, stride_x=32)
    write(memory, item, _counting(shape))
    for y, x, c in np.ndindex(shape):
        assert _element(memory, 64 + y * bricks * 96 + c // 16 * 96 + x * 32 + c % 16 * 2) == _counting(shape)[y, x, c]
    values, complete = read(memory, item)
    assert complete
    assert np.array_equal(values, _counting(shape))


def test_tiles_restart_coordinates() -> None:
    memory, shape = _memory(), (4, 3, 2)
    item = _map(shape, bases=(64, 512, 256, 768), height0=1, height1=3, width0=2, stride_y=16, stride_x=4)
    write(memory, item, _counting(shape))
    assert _element(memory, 64) == _counting(shape)[0, 0, 0]
    assert _element(memory, 512 + 2 * 16 + 2) == _counting(shape)[2, 2, 1]
    assert _element(memory, 256) == _counting(shape)[1, 0, 0]
    assert _element(memory, 768) == _counting(shape)[3, 2, 0]
    assert np.array_equal(read(memory, item)[0], _counting(shape))


def test_negative_strides_reverse() -> None:
    memory, shape = _memory(), (1, 3, 1)
    write(memory, _map(shape, bases=(68, 0, 0, 0), stride_x=-2), _counting(shape))
    assert [_element(memory, address) for address in (64, 66, 68)] == [-3, -4, -5]
    assert [(item.start, item.end) for item in _map(shape, bases=(68, 0, 0, 0), stride_x=-2).accesses] == [(64, 70)]


def test_accesses_leave_out_gaps() -> None:
    channels = _map((2, 3, 4), stride_y=48, stride_x=16)  # four of eight channels
    spans = [(item.start, item.end) for item in channels.accesses]
    assert spans == [(64 + y * 48 + x * 16, 64 + y * 48 + x * 16 + 8) for y in range(2) for x in range(3)]
    assert [(item.start, item.end) for item in _map((2, 3, 4)).accesses] == [(64, 112)]


def test_merged_joins_touching_ranges() -> None:
    assert merged([(8, 9), (0, 4), (4, 6), (5, 7)]) == [(0, 7), (8, 9)]


def test_values_wrap_to_the_element_size() -> None:
    memory = _memory()
    write(memory, _map((1, 1, 1)), np.full((1, 1, 1), 40000, np.int64))
    assert _element(memory, 64) == 40000 - 65536
