"""The order of weights: every traversal of every accelerator against loops that go weight by weight."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from harness.ethosu.accelerator import ACCELERATORS, Accelerator
from harness.ethosu.records import StreamError, Unimplemented
from harness.ethosu.weights import WeightGeometry, decode_weights
from harness.ethosu.weights.geometry import MICROBLOCK_DEPTHS
from tests.unit.ethosu.weight_streams import Place, fast, folded, plain, stream_order

SMALL = WeightGeometry(
    ofm_depth=21,
    ifm_depth=19,
    kernel_height=3,
    kernel_width=2,
    dilation_y=1,
    dilation_x=1,
    stride_y=1,
    stride_x=1,
    depthwise=False,
    part_kernel=False,
    ofm_block_depth=16,
    ifm_bits=8,
)
KINDS = ("depth first", "part kernel", "depthwise")
SHAPES = (
    {},
    {"ofm_depth": 1, "ifm_depth": 1, "kernel_height": 1, "kernel_width": 1},
    {"ofm_depth": 40, "ifm_depth": 70, "kernel_height": 1, "kernel_width": 1},
    {"ofm_depth": 8, "ifm_depth": 3, "kernel_height": 9, "kernel_width": 2},
    {"ofm_depth": 5, "ifm_depth": 9, "kernel_height": 2, "kernel_width": 5, "dilation_y": 1, "dilation_x": 2},
    {"ofm_depth": 6, "kernel_height": 5, "kernel_width": 4, "stride_y": 2, "stride_x": 3},
)


def _cases() -> Iterator[tuple[str, int, str, int, int]]:
    """Each accelerator, microblock, traversal and IFM width, with two of the shapes in turn."""
    number = 0
    for name, accelerator in ACCELERATORS.items():
        for microblock in MICROBLOCK_DEPTHS[accelerator.macs] if accelerator.u85 else (0,):
            for kind, bits in itertools.product(KINDS, (8, 16)):
                number += 1
                yield name, microblock, kind, bits, number % 6
                yield name, microblock, kind, bits, (number + number // 6 + 3) % 6


def microblock_of(geometry: WeightGeometry, accelerator: Accelerator) -> int:
    if accelerator.u85:
        return MICROBLOCK_DEPTHS[accelerator.macs][geometry.microblock]
    return accelerator.ofm_ublock_depth


def tensor_of(geometry: WeightGeometry) -> np.ndarray:
    """Weights that tell their place, as far as 255 numbers can, and are never zero."""
    weights = np.arange(geometry.elements) % 251 - 125
    weights[weights == 0] = 200
    return weights.reshape(geometry.shape)


def orders_of(geometry: WeightGeometry, accelerator: Accelerator) -> list[list[Place]]:
    microblock = microblock_of(geometry, accelerator)
    return [stream_order(geometry, accelerator, core, microblock) for core in range(accelerator.cores)]


def in_order(tensor: np.ndarray, order: list[Place]) -> list[int]:
    return [0 if place is None else int(tensor[place]) for place in order]


def check(geometry: WeightGeometry, accelerator: Accelerator) -> None:
    tensor = tensor_of(geometry)
    orders = orders_of(geometry, accelerator)
    streams = tuple(plain(in_order(tensor, order)) if order else b"" for order in orders)
    weights = decode_weights(streams, geometry, accelerator)
    assert np.array_equal(weights.values, tensor)
    assert weights.issues == ()
    assert weights.statistics.elements == sum(map(len, orders))


def with_blocks(geometry: WeightGeometry, accelerator: Accelerator) -> WeightGeometry:
    """The smallest OFM block that does not cut microblocks."""
    smallest = microblock_of(geometry, accelerator) * (1 if accelerator.u85 else accelerator.cores)
    return dataclasses.replace(geometry, ofm_block_depth=max(16, smallest))


@pytest.mark.parametrize(("name", "microblock", "kind", "bits", "shape"), sorted(set(_cases())))
def test_order(name: str, microblock: int, kind: str, bits: int, shape: int) -> None:
    accelerator = ACCELERATORS[name]
    geometry = dataclasses.replace(
        SMALL,
        ifm_bits=bits,
        part_kernel=kind == "part kernel",
        depthwise=kind == "depthwise",
        microblock=microblock,
        **SHAPES[shape],
    )
    check(with_blocks(geometry, accelerator), accelerator)


@pytest.mark.parametrize(("name", "microblock"), [("ethos-u85-128", 1), ("ethos-u85-256", 1), ("ethos-u85-2048", 5)])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("part_kernel", [False, True])
def test_u85_sparse(name: str, microblock: int, bits: int, part_kernel: bool) -> None:
    geometry = dataclasses.replace(
        SMALL, ifm_depth=150, ifm_bits=bits, part_kernel=part_kernel, sparse=True, microblock=microblock
    )
    check(geometry, ACCELERATORS[name])


def test_u85_goes_back_and_forth_over_many_blocks() -> None:
    geometry = dataclasses.replace(SMALL, ofm_depth=77, ifm_depth=150, kernel_height=1, kernel_width=1, microblock=3)
    check(geometry, ACCELERATORS["ethos-u85-256"])


@pytest.mark.parametrize(("name", "microblock"), [("ethos-u85-128", 1), ("ethos-u85-512", 3), ("ethos-u85-1024", 3)])
@pytest.mark.parametrize("part_kernel", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
def test_fast_streams_deal_in_turns(name: str, microblock: int, part_kernel: bool, bits: int) -> None:
    accelerator = ACCELERATORS[name]
    geometry = dataclasses.replace(
        SMALL, part_kernel=part_kernel, ifm_bits=bits, fast=True, microblock=microblock, ofm_block_depth=32
    )
    depth = microblock_of(geometry, accelerator)
    ifm = (8 if bits == 16 else 16) if part_kernel else 64
    turn = depth * ifm * ({8: 5, 16: 10}[bits] if part_kernel else 1) // accelerator.cores
    tensor = tensor_of(geometry) // 2
    streams = [in_order(tensor, order) for order in orders_of(geometry, accelerator)]
    dealt = [weight for at in range(0, len(streams[0]), turn) for item in streams for weight in item[at : at + turn]]
    weights = decode_weights((fast([weight & 0xFF for weight in dealt], 8),), geometry, accelerator)
    assert np.array_equal(weights.values, tensor)
    assert weights.issues == ()


def test_weights_where_padding_should_be() -> None:
    geometry, accelerator = SMALL, ACCELERATORS["ethos-u55-128"]
    (order,) = orders_of(geometry, accelerator)
    weights = in_order(tensor_of(geometry), order)
    for position in (order.index(None), len(order) - 1):
        assert order[position] is None
        weights[position] = 9
    found = decode_weights((plain(weights),), geometry, accelerator)
    assert found.issues == (("weight-padding", "2 weights that are not zero lie outside the tensor of (21, 3, 2, 19)"),)
    assert np.array_equal(found.values, tensor_of(geometry))


def test_streams_that_are_too_short_or_too_long() -> None:
    geometry, accelerator = SMALL, ACCELERATORS["ethos-u65-512"]
    first, second = (in_order(tensor_of(geometry), order) for order in orders_of(geometry, accelerator))
    found = decode_weights((plain(first[:-7]), plain([*second, 5, 5])), geometry, accelerator)
    assert found.issues == (
        (
            "stream-length",
            f"weight stream 0 ends early: it has {len(first) - 7} weights, the operation takes {len(first)}",
        ),
        (
            "stream-length",
            f"weight stream 1 goes on: it has {len(second) + 2} weights, the operation takes {len(second)}",
        ),
    )
    assert found.statistics.elements == len(first) + len(second) - 5


def test_a_single_channel_leaves_the_second_core_without_a_stream() -> None:
    geometry, accelerator = dataclasses.replace(SMALL, ofm_depth=1), ACCELERATORS["ethos-u65-512"]
    first, second = (in_order(tensor_of(geometry), order) for order in orders_of(geometry, accelerator))
    assert second == []
    for streams in ((plain(first),), (plain(first), b"")):
        found = decode_weights(streams, geometry, accelerator)
        assert np.array_equal(found.values, tensor_of(geometry))
        assert found.issues == ()
    assert decode_weights((plain(first), plain([3])), geometry, accelerator).issues[0][0] == "stream-length"


def test_values_are_read_only_and_statistics_count_the_tensor() -> None:
    geometry = dataclasses.replace(SMALL, ofm_depth=1, ifm_depth=3, kernel_height=1, kernel_width=1)
    stream = plain([0, -9, 4] + [0] * (8 * 32 - 3))
    weights = decode_weights((stream,), geometry, ACCELERATORS["ethos-u55-128"])
    assert dataclasses.astuple(weights.statistics) == (len(stream), 256, 1, -9, 4)
    assert not weights.values.flags.writeable


@pytest.mark.parametrize(
    ("change", "name", "streams", "kind", "problem"),
    [
        ({}, "ethos-u55-128", (b"",), StreamError, "0 bytes of weight streams cannot hold the 2394 weights"),
        ({}, "ethos-u55-128", (b"\xff" * 48,), StreamError, "48 bytes cannot hold the 4608 weights"),
        ({}, "ethos-u55-128", (b"\xff" * 99, b"\xff"), StreamError, "2 weight streams for 1 cores"),
        (
            {},
            "ethos-u65-512",
            (b"\xff" * 99, b"\x00" * 99),
            StreamError,
            "weight stream 1: slice 0, at bit 0: it is the first",
        ),
        ({"microblock": 5}, "ethos-u85-256", (b"\xff" * 99,), StreamError, r"no microblock 5; it has \[1, 2, 3\]"),
        ({"fast": True}, "ethos-u55-128", (b"\xff" * 99,), StreamError, "neither the fast weight format"),
        ({"dilation_x": 3}, "ethos-u55-128", (b"\xff" * 99,), StreamError, "dilation 1x3"),
        ({"ofm_depth": 0}, "ethos-u55-128", (b"\xff" * 99,), StreamError, "sizes begin at 1"),
        ({"ifm_bits": 32}, "ethos-u55-128", (b"\xff" * 99,), Unimplemented, "IFM of 32 bits"),
        ({"ofm_block_depth": 12}, "ethos-u55-128", (b"\xff" * 99,), Unimplemented, "12 channels cut microblocks of 8"),
        ({"ofm_block_depth": 1}, "ethos-u65-512", (b"\xff" * 99,), Unimplemented, "1 channels cut microblocks of 8"),
        ({"fast": True, "depthwise": True}, "ethos-u85-256", (b"\xff" * 99,), Unimplemented, "in a depthwise"),
        ({"kernel_height": 1 << 16}, "ethos-u85-256", (b"\xff" * 99,), Unimplemented, "a kernel of 65536x2 taps"),
    ],
)
def test_refusals(
    change: dict[str, int], name: str, streams: tuple[bytes, ...], kind: type[StreamError], problem: str
) -> None:
    with pytest.raises(kind, match=problem) as caught:
        decode_weights(streams, dataclasses.replace(SMALL, **change), ACCELERATORS[name])
    assert caught.type is kind


ONE_BLOCK = dataclasses.replace(SMALL, ofm_depth=8, ifm_depth=64, kernel_height=1, kernel_width=1, microblock=2)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_fast_widths(bits: int) -> None:
    geometry = dataclasses.replace(ONE_BLOCK, fast=True)
    codes = [index % (1 << min(bits, 4)) for index in range(512)]
    table = [folded(weight) for weight in (0, -3, 255, 17, -255, *range(20, 31))]
    stream = fast(codes, bits, table, adjustment=0)
    weights = decode_weights((stream,), geometry, ACCELERATORS["ethos-u85-256"])
    expected = codes if bits == 8 else [(0, -3, 255, 17, -255, *range(20, 31))[code] for code in codes]
    order = stream_order(geometry, ACCELERATORS["ethos-u85-256"], 0, 8)
    assert in_order(weights.values, order) == expected
    assert weights.issues == ()


@pytest.mark.parametrize(("adjustment", "expected"), [(-10, (10, 137, -118, 9)), (10, (-10, 117, -138, -11))])
def test_fast_raw_weights_are_moved_by_the_adjustment(adjustment: int, expected: tuple[int, ...]) -> None:
    stream = fast([0, 127, 128, 255] * 128, 8, adjustment=adjustment)
    weights = decode_weights((stream,), dataclasses.replace(ONE_BLOCK, fast=True), ACCELERATORS["ethos-u85-256"])
    assert tuple(weights.values[0, 0, 0, :4].tolist()) == expected


@pytest.mark.parametrize(
    ("stream", "kind", "message"),
    [
        (fast([1] * 508, 8), "stream-length", "ends early: it has 480|it has 508|it has 512"),
        (fast([1] * 544, 8), "stream-length", "it has 544 weights, the operation takes 512"),
        (fast([0] * 513, 2, [2, 4]) + bytes(32), "stream-length", "goes on"),
        (fast([1] * 512, 4, [0, 2])[:-32], "stream-length", "ends early: it has 448 weights"),
    ],
)
def test_fast_lengths(stream: bytes, kind: str, message: str) -> None:
    geometry = dataclasses.replace(ONE_BLOCK, fast=True)
    found = decode_weights((stream,), geometry, ACCELERATORS["ethos-u85-256"])
    if len(stream) == 32 + 512:  # padding of the format fills up
        assert found.issues == ()
    else:
        assert found.issues[0][0] == kind
        assert message in found.issues[0][1]


@pytest.mark.parametrize(
    ("streams", "problem"),
    [
        ((b"\x02" + bytes(98),), "cannot hold the 512"),
        ((b"\x03" + bytes(300),), "raw and small table at once"),
        ((bytes(300), b"\x01"), "more than one weight stream"),
        ((b"", bytes(300)), "more than one weight stream"),
    ],
)
def test_fast_refusals(streams: tuple[bytes, ...], problem: str) -> None:
    with pytest.raises(StreamError, match=problem):
        decode_weights(streams, dataclasses.replace(ONE_BLOCK, fast=True), ACCELERATORS["ethos-u85-256"])


def test_fast_header_and_padding_bits() -> None:
    geometry = dataclasses.replace(ONE_BLOCK, ofm_depth=1, ifm_depth=1, part_kernel=True, fast=True)
    count = 8 * 16 * 5
    clean = fast([0] * count, 2, [0, 2, 4, 6])
    assert len(clean) == 32 + 160
    reserved = bytearray(clean)
    reserved[5] |= 1
    found = decode_weights((bytes(reserved),), geometry, ACCELERATORS["ethos-u85-256"])
    assert [kind for kind, _ in found.issues] == ["weight-padding"]
    assert "header" in found.issues[0][1]
