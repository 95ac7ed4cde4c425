"""Bytes of boxes, and which boxes share some; blocks and jobs of operations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from harness.ethosu.checks.hazard_blocks import Unknown, Window, operation_of, units
from harness.ethosu.checks.hazard_ranges import (
    Area,
    Box,
    Span,
    area_bytes,
    common,
    footprint,
    intersects,
    merged_ranges,
    shares_bytes,
    whole,
)
from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.records import Access
from tests.unit.ethosu.stream_steps import U55, U85, Map, elementwise, kernel, pool, stream


def feature_map(base: int = 0, shape: tuple[int, int, int] = (4, 5, 24), **changes: object) -> FeatureMap:
    height, width, depth = shape
    fields: dict[str, object] = {
        "role": "IFM", "region": 1, "bases": (base, 0, 0, 0), "height": height, "width": width, "depth": depth,
        "height0": height, "height1": height, "width0": width, "stride_y": width * depth, "stride_x": depth,
        "stride_c": 1, "bits": 8, "signed": True, "bricks": False, **changes,
    }  # fmt: skip
    return FeatureMap(**fields)  # type: ignore[arg-type]


def brute(area: Area) -> set[int]:
    """Every byte of an area, element by element."""
    item, (rows, columns, channels) = area
    found: set[int] = set()
    for y, x, c in itertools.product(range(*rows), range(*columns), range(*channels)):
        tile = (1 if x >= item.width0 else 0) + (2 if y >= (item.height1 if x >= item.width0 else item.height0) else 0)
        top = (item.height1 if tile == 3 else item.height0) if tile >= 2 else 0
        at = item.bases[tile] + (y - top) * item.stride_y
        left = x - (item.width0 if tile % 2 else 0)
        if item.bricks:
            at += c // 16 * item.stride_c + left * 16 * item.size + c % 16 * item.size
        else:
            at += left * item.stride_x + c * item.size
        found.update(range(at, at + item.size))
    return found


MAPS = {
    "dense": feature_map(),
    "wide elements": feature_map(bits=32, stride_y=480, stride_x=96),
    "slice of channels": feature_map(stride_x=40, stride_y=200),
    "bricks": feature_map(bricks=True, stride_y=160, stride_c=80),
    "backwards": feature_map(2000, stride_y=-120, stride_x=24),
    "transposed": feature_map(stride_y=24, stride_x=96),
    "four tiles": feature_map(
        bases=(0x1000, 0x2000, 0x3000, 0x4000), height0=3, height1=2, width0=2, stride_y=48, stride_x=24
    ),
}
BOXES = [
    Box(Span(0, 4), Span(0, 5), Span(0, 24)),
    Box(Span(1, 3), Span(2, 5), Span(3, 20)),
    Box(Span(3, 4), Span(0, 1), Span(16, 24)),
]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("box", BOXES)
def test_bytes_of_a_box(name: str, box: Box) -> None:
    area = Area(MAPS[name], box)
    ranges = merged_ranges(area_bytes(area))
    assert {at for start, end in ranges for at in range(start, end)} == brute(area)


@pytest.mark.parametrize(("first", "second"), itertools.combinations(MAPS, 2))
def test_sharing_is_what_the_bytes_say(first: str, second: str) -> None:
    for mine, theirs in itertools.product(BOXES, repeat=2):
        one, other = Area(MAPS[first], mine), Area(MAPS[second], theirs)
        assert shares_bytes(one, other) == bool(brute(one) & brute(other))


def test_neighbouring_slices_of_channels_share_nothing() -> None:
    left = feature_map(0, (4, 5, 8), stride_x=16, stride_y=80)
    right = feature_map(8, (4, 5, 8), stride_x=16, stride_y=80)
    assert not shares_bytes(Area(left, whole(left)), Area(right, whole(right)))
    assert shares_bytes(Area(left, whole(left)), Area(left, whole(left)))


def test_other_regions_and_empty_boxes_share_nothing() -> None:
    item, elsewhere = feature_map(), feature_map(region=2)
    assert not shares_bytes(Area(item, whole(item)), Area(elsewhere, whole(elsewhere)))
    assert not shares_bytes(Area(item, Box(Span(2, 2), Span(0, 5), Span(0, 24))), Area(item, whole(item)))


def test_merged_and_intersecting_ranges() -> None:
    ranges = np.array([(30, 40), (0, 10), (10, 12), (5, 8), (35, 50)])
    assert merged_ranges(ranges).tolist() == [[0, 12], [30, 50]]
    assert intersects(ranges, np.array([(12, 31)]))
    assert not intersects(ranges, np.array([(12, 30), (50, 60)]))
    assert not intersects(ranges, np.empty((0, 2), np.int64))


def test_footprints_by_role() -> None:
    mine = footprint([Access("IFM", 1, 0, 8), Access("IFM", 1, 16, 24), Access("WEIGHT", 0, 0, 99)])
    assert [str(group) for group in mine] == ["IFM scratch[0x0:0x18]", "WEIGHT weights[0x0:0x63]"]
    assert common(mine, footprint([Access("OFM", 1, 8, 16)])) is None  # in the gap
    pair = common(mine, footprint([Access("OFM", 1, 8, 17)]))
    assert pair is not None
    assert pair[0].role == "IFM"


# ---- windows, blocks, jobs ----


@pytest.mark.parametrize(
    ("window", "written", "read"),
    [
        (Window(8), (2, 4), (2, 4)),
        (Window(16, stride=2, reach=3, before=1), (0, 2), (0, 4)),
        (Window(16, stride=2, reach=3, before=1), (7, 8), (13, 16)),
        (Window(8, reach=3, before=1, scale=2), (0, 4), (0, 3)),  # rows -1 to 4 of 16
        (Window(4, step=(2, 1, 0)), (1, 2), (0, 2)),
        (Window(4, step=(2, 1, 0)), (2, 3), (1, 2)),
        (Window(4, step=(1, 3, 0)), (1, 2), (3, 4)),
        (Window(4, step=(2, 1, -1)), (0, 1), (0, 1)),
    ],
)
def test_what_rows_are_read(window: Window, written: tuple[int, int], read: tuple[int, int]) -> None:
    assert window.reads(Span(*written)) == read


def test_blocks_go_depth_first_then_width_then_height() -> None:
    operation = operation_of(pool(Map(0, (4, 10, 20)), Map(0x1000, (4, 10, 20)), block=(2, 8, 16)), U55)
    boxes = [operation.block_box(index) for index in range(operation.blocks)]
    assert [tuple(span.start for span in box) for box in boxes] == [
        (0, 0, 0), (0, 0, 16), (0, 8, 0), (0, 8, 16), (2, 0, 0), (2, 0, 16), (2, 8, 0), (2, 8, 16)
    ]  # fmt: skip
    assert boxes[-1] == Box(Span(2, 4), Span(8, 10), Span(16, 20))


def test_transposed_and_reversed_blocks() -> None:
    source = Map(0, (4, 6, 16))
    moved = operation_of(
        pool(source, Map(0x1000, (4, 6, 16)), U85, block=(2, 6, 16), OFM_PRECISION={"transpose": 1}), U85
    )
    assert moved.ofm is not None
    assert moved.ofm.shape == (6, 4, 16)
    area = moved.written(1)
    assert area is not None
    assert area.box == Box(Span(0, 6), Span(2, 4), Span(0, 16))
    turned = operation_of(
        pool(source, Map(0x1000, (4, 6, 16)), U85, block=(2, 6, 16), OFM_PRECISION={"reverse": 1}), U85
    )
    area = turned.written(0)
    assert area is not None
    assert area.box.rows == Span(2, 4)


@pytest.mark.parametrize(
    ("bits", "part_kernel", "depth", "slices"),
    [(8, 0, 70, 3), (8, 1, 70, 5), (16, 0, 70, 5), (8, 0, 20, 1)],
)
def test_slices_of_a_convolution_on_u55(bits: int, part_kernel: int, depth: int, slices: int) -> None:
    step = kernel(
        "CONV", U55, Map(0, (4, 8, depth), bits), Map(0x4000, (4, 8, 8)), block=(2, 8, 8),
        KERNEL_STRIDE={"weight_order": part_kernel},
    )  # fmt: skip
    operation = operation_of(step, U55)
    assert operation.slices == slices
    (area,) = operation.reads(0, slices - 1)
    assert area.box.channels.end == depth


@pytest.mark.parametrize(
    ("settings", "bits", "expected"),
    [
        ({}, 8, 64),
        ({"ACC_FORMAT": {"microblock": 1}}, 8, 32),
        ({"KERNEL_STRIDE": {"weight_order": 1}}, 8, 16),
        ({"WEIGHT_FORMAT": {"sparsity": 1}}, 8, 128),
        ({"WEIGHT_FORMAT": {"sparsity": 1}}, 16, 64),
    ],
)
def test_slice_depth_on_u85(settings: dict[str, Any], bits: int, expected: int) -> None:
    step = kernel(
        "CONV", U85, Map(0, (4, 8, 200), bits), Map(0x8000, (4, 8, 16)), block=(2, 8, 16), value=0, **settings
    )
    assert operation_of(step, U85).slice_depth == expected


def test_scalars_chained_operands_and_unary_operations_read_no_memory() -> None:
    maps = Map(0, (4, 8, 8)), Map(0x1000, (4, 8, 8)), Map(0x2000, (4, 8, 8))
    binary = elementwise(maps[0], maps[1], second=maps[2])
    assert [item.map.role for item in operation_of(binary, U55).inputs] == ["IFM", "IFM2"]
    constant = elementwise(maps[0], maps[1], second=maps[2], IFM2_BROADCAST={"constant": 1})
    unary = elementwise(maps[0], maps[1], second=maps[2], value=7)
    for step in (constant, unary):
        assert [item.map.role for item in operation_of(step, U55).inputs] == ["IFM"]
    for storage in (2, 3):
        step = elementwise(maps[0], maps[1], U85, second=maps[2], IFM_PRECISION={"storage": storage})
        assert [item.map.role for item in operation_of(step, U85).inputs] == ["IFM2"]


def test_accumulators_from_ifm2_and_pool_without_ifm() -> None:
    maps = Map(0, (4, 8, 16)), Map(0x1000, (4, 8, 16)), Map(0x2000, (4, 8, 16), 32)
    step = pool(maps[0], maps[1], U85, second=maps[2], value=4, ACC_FORMAT={"input": 2})
    assert [item.map.role for item in operation_of(step, U85).inputs] == ["IFM2"]
    step = pool(maps[0], maps[1], U85, second=maps[2], ACC_FORMAT={"input": 2})
    assert [item.map.role for item in operation_of(step, U85).inputs] == ["IFM", "IFM2"]


def test_units_join_chains() -> None:
    maps = Map(0, (4, 8, 16)), Map(0x1000, (4, 8, 16))
    link = pool(*maps, U85, OFM_PRECISION={"storage": 2})
    steps = stream(pool(*maps, U85), link, link, pool(*maps, U85), pool(*maps, U85))
    assert [[step.index for step in unit] for unit in units(steps)] == [[0], [1, 2, 3], [4]]


def test_registers_that_say_nothing() -> None:
    step = pool(Map(0, (4, 8, 8)), Map(0x1000, (4, 8, 8)))
    bare = {name: fields for name, fields in step.registers.items() if name != "OFM_BASE0"}
    with pytest.raises(Unknown):
        operation_of(type(step)(0, step.command, bare), U55)
    padded = {**step.registers, "IFM_PAD_TOP": {"value": 9}}
    with pytest.raises(Unknown, match="padding"):
        operation_of(type(step)(0, step.command, padded), U55)
