"""Scale records: layouts, dealing over cores, and the padding that has to be there."""

from __future__ import annotations

import pytest

from harness.ethosu.accelerator import ACCELERATORS
from harness.ethosu.records import StreamError, Unimplemented
from harness.ethosu.weights import decode_scales

Record = tuple[int, int, int]
VALUES: list[Record] = [(-5, (1 << 31) - 1, 63), (7, 1, 0), (-(1 << 31), 1 << 30, 31), ((1 << 31) - 1, 3, 5), (1, 2, 3)]


def packed(record: Record, bias: int, scale: int) -> bytes:
    """A record with a bias and a scale of so many bytes; the shift follows, and zeros."""
    values, sizes = (record[0] % (1 << 8 * bias), record[1], record[2]), (bias, scale, 1)
    return b"".join(value.to_bytes(size, "little") for value, size in zip(values, sizes, strict=True)).ljust(10, b"\0")


def u55(records: list[Record]) -> bytes:
    data = b"".join(packed(record, 5, 4) for record in records)
    return data + bytes(-len(data) % 16)


def u85(records: list[Record], bias: int, step: int) -> bytes:
    data = b"".join(packed(record, bias, 8 - bias) for record in records)
    return data + bytes(-len(records) % step * 10)


def read(streams: bytes | tuple[bytes, ...], count: int, name: str, bits: int = 40, microblock: int | None = None):
    found = decode_scales(streams, count, ACCELERATORS[name], bits, microblock)
    return list(zip(found.bias.tolist(), found.scale.tolist(), found.shift.tolist(), strict=True)), found.issues


@pytest.mark.parametrize("count", [1, 2, 5])
def test_u55(count: int) -> None:
    records = [(-(1 << 39), 1, 2), ((1 << 39) - 1, (1 << 32) - 1, 63), *VALUES][:count]
    assert read(u55(records), count, "ethos-u55-128") == (records, ())
    assert read((u55(records),), count, "ethos-u65-256") == (records, ())


@pytest.mark.parametrize("count", [1, 4, 5])
def test_two_cores_take_turns(count: int) -> None:
    streams = u55(VALUES[:count:2]), u55(VALUES[1:count:2])
    assert read(streams, count, "ethos-u65-512") == (VALUES[:count], ())


def test_one_stream_is_enough_for_one_channel_of_two_cores() -> None:
    assert read(u55(VALUES[:1]), 1, "ethos-u65-512") == (VALUES[:1], ())
    _, issues = read(u55(VALUES[:1]), 2, "ethos-u65-512")
    assert issues == (("stream-length", "scale stream 1: 0 bytes for 1 channels, which take 16"),)


@pytest.mark.parametrize(("bias", "bits"), [(4, 32), (6, 48)])
def test_u85(bias: int, bits: int) -> None:
    top = 1 << 8 * bias - 1
    records = [(-top, (1 << (31 if bits == 32 else 15)) - 1, 63), (top - 1, 1, 0), (-1, 5, 8)]
    assert read(u85(records, bias, 16), 3, "ethos-u85-256", bits, 3) == (records, ())


@pytest.mark.parametrize(
    ("name", "microblock", "step"),
    [("ethos-u85-128", 0, 16), ("ethos-u85-128", 1, 16), ("ethos-u85-1024", 2, 32), ("ethos-u85-2048", 3, 64)],
)
def test_u85_fills_up_to_the_microblock(name: str, microblock: int, step: int) -> None:
    right = u85(VALUES, 4, step)
    assert len(right) == step * 10
    assert read(right, 5, name, 32, microblock) == (VALUES, ())
    assert read(right, 5, name, 32) == (VALUES, ())
    for wrong in (u85(VALUES, 4, 2 * step), right[:-16]):
        records, issues = read(wrong, 5, name, 32, microblock)
        assert records == VALUES
        message = f"scale stream: {len(wrong)} bytes for 5 channels, which take {step * 10}"
        assert issues == (("stream-length", message),)


def test_too_short_leaves_zeros() -> None:
    records, issues = read(u55(VALUES)[:25], 5, "ethos-u55-128")
    assert records == [*VALUES[:2], *[(0, 0, 0)] * 3]
    assert issues == (("stream-length", "scale stream: 25 bytes for 5 channels, which take 64"),)


def test_padding_that_is_not_zero() -> None:
    stream = bytearray(u55(VALUES))
    stream[-1] = 1
    records, issues = read(bytes(stream), 5, "ethos-u55-128")
    assert records == VALUES
    assert issues == (("scale-padding", "scale stream: bytes behind the record of the last channel are not zero"),)


@pytest.mark.parametrize(
    ("name", "bits", "at", "flag"),
    [
        ("ethos-u55-128", 40, 19, 0x40),
        ("ethos-u85-256", 32, 17, 0x80),
        ("ethos-u85-256", 32, 19, 1),
        ("ethos-u85-256", 48, 18, 0x80),
    ],
)
def test_reserved_bits(name: str, bits: int, at: int, flag: int) -> None:
    records: list[Record] = [(1, 2, 3), (4, 5, 6)]
    stream = bytearray(u55(records) if bits == 40 else u85(records, {32: 4, 48: 6}[bits], 16))
    stream[at] |= flag
    found, issues = read(bytes(stream), 2, name, bits)
    assert found == records
    message = "reserved bits of 1 scale records are not zero, first of channel 1"
    assert issues == (("scale-padding", message),)


def test_refusals() -> None:
    with pytest.raises(StreamError, match="2 streams of scales; ethos-u85-512 has 1"):
        read((b"", b""), 1, "ethos-u85-512", 32)
    with pytest.raises(Unimplemented, match="accumulators of 40 bits"):
        read(b"", 1, "ethos-u85-512", 40)
    with pytest.raises(StreamError, match="no microblock 1"):
        read(b"", 1, "ethos-u85-512", 32, 1)
