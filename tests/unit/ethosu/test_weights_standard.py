"""The standard weight format: every coding, every way to cut a stream, against a writer that works bit by bit."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from ethosu import mlw_codec

from harness.ethosu.records import StreamError
from harness.ethosu.weights.standard import decode_standard
from tests.unit.ethosu.weight_streams import END, UNCOMPRESSED, Bits, Slice, folded, plain, standard

CODINGS = [(divider, truncated) for divider in range(6) for truncated in (False, True)] + [(UNCOMPRESSED, False)]


def decoded(stream: bytes, wanted: int) -> list[int]:
    weights, held, issues = decode_standard(stream, wanted)
    assert held == wanted
    assert issues == []
    return weights.tolist()


def drawn(rng: random.Random, count: int, divider: int, truncated: bool) -> list[int]:
    largest = 511 if divider == UNCOMPRESSED else min(511, (3 if truncated else 32) * (1 << divider) - 1)
    return [rng.randint(0, largest) for _ in range(count)]


def unfolded(index: int) -> int:
    return -(index >> 1) if index & 1 else index >> 1


@pytest.mark.parametrize(("divider", "truncated"), CODINGS)
@pytest.mark.parametrize("count", [1, 11, 12, 13, 200])
def test_slice_without_runs(divider: int, truncated: bool, count: int) -> None:
    indices = drawn(random.Random(count), count, divider, truncated)
    stream = standard(Slice(indices, divider=divider, truncated=truncated))
    assert decoded(stream, count) == [unfolded(index) for index in indices]


@pytest.mark.parametrize(("divider", "truncated"), CODINGS)
@pytest.mark.parametrize("run_divider", range(4))
@pytest.mark.parametrize(("count", "longest"), [(1, 0), (30, 2), (90, 60)])
def test_slice_with_runs(divider: int, truncated: bool, run_divider: int, count: int, longest: int) -> None:
    rng = random.Random(count)
    indices = drawn(rng, count, divider, truncated)
    runs = [rng.randint(0, longest) for _ in range(count + 1)]
    stream = standard(Slice(indices, runs, divider, truncated, run_divider))
    expected = [0] * runs[0]
    for index, run in zip(indices, runs[1:], strict=True):
        expected += [unfolded(index)] + [0] * run
    assert decoded(stream, len(expected)) == expected


@pytest.mark.parametrize("bits", range(2, 10))
def test_uncompressed_weights_of_every_width_with_and_without_runs(bits: int) -> None:
    indices = [index % (1 << bits) for index in range(0, 7 * 40, 7)]
    alone = Slice(indices, divider=UNCOMPRESSED, palette_bits=bits)
    mixed = Slice(indices, [1] * 41, UNCOMPRESSED, palette_bits=bits)
    values = [unfolded(index) for index in indices]
    assert decoded(standard(alone), 40) == values
    assert decoded(standard(mixed), 81) == [0, *itertools.chain.from_iterable((value, 0) for value in values)]


def test_palette_then_weights_behind_it() -> None:
    palette = [folded(weight) for weight in (-100, 7, 0)]
    stream = standard(Slice([0, 1, 2, 3, 4, 8], divider=2, palette=palette, palette_bits=8, offset=5))
    assert decoded(stream, 6) == [-100, 7, 0, unfolded(5), unfolded(6), unfolded(10)]


@pytest.mark.parametrize("size", [2, 3, 31, 32])
def test_uncompressed_indices_of_a_palette(size: int) -> None:
    palette = [folded(weight) for weight in range(-size, 0)]
    stream = standard(Slice(list(range(size)), divider=UNCOMPRESSED, palette=palette, palette_bits=7))
    assert decoded(stream, size) == list(range(-size, 0))


def test_later_slices_keep_or_replace_the_palette_and_only_fresh_ones_begin_with_a_run() -> None:
    first = Slice([0, 1], [2, 0, 1], 1, palette=[folded(5), folded(-6)], palette_bits=4)
    kept = Slice([1, 1], [3, 0], 0, palette=None)
    fresh = Slice([0, 0], [1, 0, 0], 0, palette=[folded(9), folded(8)], palette_bits=5)
    assert decoded(standard(first, kept, fresh), 13) == [0, 0, 5, -6, 0, -6, 0, 0, 0, -6, 0, 9, 9]


def test_weights_follow_an_end_marker_in_the_middle() -> None:
    stream = standard(Slice([2, 3], divider=1), None, Slice([4], divider=1))
    assert decoded(stream, 3) == [1, -1, 2]


@pytest.mark.parametrize("kind", ["few values", "gaussian", "sparse", "very sparse", "uniform", "one value", "zeros"])
@pytest.mark.parametrize("count", [1, 17, 5000])
def test_streams_of_the_compiler_s_encoder(kind: str, count: int) -> None:
    rng = np.random.default_rng(count)
    wide = rng.integers(-255, 256, count)
    weights = {
        "few values": rng.choice([-7, 3, 100, 0], count),
        "gaussian": np.clip(rng.normal(0, 20, count), -127, 127).astype(int),
        "sparse": wide * (rng.random(count) < 0.3),
        "very sparse": wide * (rng.random(count) < 0.01),
        "uniform": wide,
        "one value": np.full(count, -255),
        "zeros": np.zeros(count, int),
    }[kind]
    assert decoded(bytes(mlw_codec.encode(weights.tolist())), count) == weights.tolist()


def test_more_chunks_than_are_read_together() -> None:
    weights = np.random.default_rng(0).integers(-20, 21, 250000)
    weights[::1000] = 255
    assert decoded(bytes(mlw_codec.encode(weights.tolist())), 250000) == weights.tolist()


def test_fewer_and_more_weights_than_wanted_are_counted() -> None:
    stream = standard(Slice([2, 4, 6], [0, 1, 2, 3], 1))
    weights, held, _ = decode_standard(stream, 12)
    assert (weights.tolist(), held) == ([1, 0, 2, 0, 0, 3] + [0] * 6, 9)
    weights, held, _ = decode_standard(stream, 2)
    assert (weights.tolist(), held) == ([1, 0], 9)


@pytest.mark.parametrize(
    "item",
    [
        Slice([1, 2, 3] * 30, divider=0),
        Slice([1, 2, 3] * 30, [4] * 91, 1),
        Slice([1, 2, 3] * 30, divider=UNCOMPRESSED),
        Slice([0, 1] * 40, divider=0, palette=[1, 2, 3], palette_bits=3),
    ],
)
def test_cut_anywhere_inside_the_slice(item: Slice) -> None:
    stream = standard(item)
    for length in range(1, len(stream) - 18):  # the end marker and its padding are in the last 16 bytes or so
        with pytest.raises(StreamError, match=r"cut off|ends after"):
            decode_standard(stream[:length], 1000)


def test_cut_between_slices_leaves_what_was_there() -> None:
    two = Slice([1] * 41, divider=UNCOMPRESSED), Slice([2] * 40, divider=UNCOMPRESSED)
    (whole,) = {(23 + 13 + 9 * 41) // 8}  # 405 bits: the next slice's header begins in byte 50
    with pytest.raises(StreamError, match="slice 1, at bit 405: its header is cut off"):
        decode_standard(standard(*two)[: whole + 2], 81)


def test_a_missing_end_marker_is_no_loss() -> None:
    stream = standard(Slice([1] * 36, divider=UNCOMPRESSED))  # ends at a byte: 23 + 13 + 324 bits
    assert decoded(stream[:45], 36) == [-0] * 36


def test_bytes_behind_the_end_marker_are_an_issue_if_the_weights_are_there() -> None:
    stream = standard(Slice([2], divider=UNCOMPRESSED)) + b"\x00\x01\x02\x03"
    weights, held, issues = decode_standard(stream, 1)
    assert (weights.tolist(), held) == ([1], 1)
    assert [kind for kind, _ in issues] == ["stream-length"]
    assert "behind the end marker at bit 45" in issues[0][1]
    with pytest.raises(StreamError):
        decode_standard(stream, 2)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([(4, 3), (0, 15), (0, 5), (0, 13)], "divider of zero runs is 4"),
        ([(6, 3), (0, 15), (6, 3), (2, 2), (0, 13)], "divider of weights is 6"),
        ([(6, 3), (0, 15), (0, 5), (0, 13)], "brings no palette"),
        ([(6, 3), (0, 15), (0, 3), (2, 2), (0, 5), (9, 5), (0, 3)], "palette is cut off"),
    ],
)
def test_headers_without_meaning(fields: list[tuple[int, int]], problem: str) -> None:
    bits = Bits()
    for value, width in fields:
        bits.put(value, width)
    with pytest.raises(StreamError, match=problem):
        decode_standard(bits.bytes(), 1)


def test_runs_cannot_begin_without_a_palette() -> None:
    with pytest.raises(StreamError, match=r"slice 1, at bit .*begins or ends the use of zero runs"):
        decode_standard(standard(Slice([1]), Slice([1], [0], palette=None)), 2)


def test_indices_have_nine_bits() -> None:
    stream = standard(Slice([511], divider=5), Slice([512], divider=5))
    with pytest.raises(StreamError, match=r"slice 1, at bit .*index of 512"):
        decode_standard(stream, 2)


def test_nothing_but_a_marker_and_nothing_at_all() -> None:
    for stream in (b"", bytes([END | 0xF8]), b"\xff" * 16):
        assert decode_standard(stream, 0)[1] == 0


def test_damage_never_raises_anything_else() -> None:
    rng = random.Random(1)
    sources = [
        standard(Slice([rng.randint(0, 200) for _ in range(300)], divider=3)),
        standard(Slice([rng.randint(0, 20) for _ in range(300)], [rng.randint(0, 9) for _ in range(301)], 2)),
        plain(range(-100, 100)),
    ]
    outcomes = set()
    for _ in range(600):
        stream = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 3)):
            stream[rng.randrange(len(stream))] ^= 1 << rng.randrange(8)
        try:
            decode_standard(bytes(stream[: rng.randint(0, len(stream))]), 300)
            outcomes.add("decoded")
        except StreamError:
            outcomes.add("refused")
    assert outcomes == {"decoded", "refused"}
