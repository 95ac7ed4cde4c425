"""The standard (compressed) weight format: from bytes to weights in stream order.

A stream is a row of *slices* and an end marker, filled up with ones. A slice has a header and up
to 32768 *indices*, each of which is an entry of a *palette* or, past its end, a weight itself.
Where it says so, *zero runs* lie between the indices: the zeros before the first (only in a slice
that brings a palette), and after each. Indices and runs are Golomb-Rice codes: quotients in unary,
and remainders of ``divider`` bits.

Both come in *chunks* of 12 (or 8) unary positions; a chunk holds as many symbols as end in it.
The remainders of a chunk follow the unary parts of the next one, and which of the two sequences
sends a chunk depends on how far each is. So where chunks lie has to be found one after another,
which ``chunks`` does; here their symbols are taken apart on whole arrays.

Facts: mlw_codec/mlw_decode.c, regor/dependencies/mlw_codec/source/mlw_decode.cpp and mlw_encode.cpp
of ethos-u-vela 5.1.0. Where the two decoders stop or assert, this one raises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.records import StreamError
from harness.ethosu.weights.bits import BitReader, Ints
from harness.ethosu.weights.chunks import NARROW, PLAIN, RUNS, TRUNCATED, WIDE, Chunks, Coding, check_end, symbols, walk

Values = NDArray[np.int16]

MOST_ELEMENTS_PER_BYTE = 64
"""A run of zeros grows by eight with each bit of its quotient, at the largest divider."""

_BATCH = 1 << 14
"""Chunks whose symbols are read together: enough to forget what a call costs, few enough for the caches."""

_NO_RUNS, _END, _UNCOMPRESSED = 6, 7, 7
_LARGEST_INDEX = 511
_HEADER_BITS, _PALETTE_HEADER_BITS = 23, 13


@dataclass(frozen=True)
class Palette:
    """What indices mean: ``weights[index]``, and how wide an index is in an uncompressed slice."""

    weights: Values
    index_bits: int
    runs: bool


@dataclass(frozen=True)
class Slice:
    """One slice, whose symbols may not have been read yet.

    :param coding: of its weights.
    :param at: bit position of uncompressed weights without zero runs, which need no chunks; or -1.
    :param runs: how many runs of zeros it has: none, one behind each weight, or one before the first as well.
    """

    number: int
    position: int
    palette: Palette
    coding: Coding
    at: int
    runs: int


def decode_standard(stream: bytes, wanted: int) -> tuple[Values, int, list[tuple[str, str]]]:
    """The weights of one stream, in stream order.

    :param wanted: how many the operation needs; never more than that are kept.
    :returns: ``wanted`` weights (zeros where the stream has fewer), how many the stream has, and
        an issue if they are all there but bytes behind an end marker cannot be decoded.
    :raises StreamError: it cannot be decoded, or ends inside a slice; says in which one and where.
    """
    reader = BitReader(stream)
    weights = np.zeros(wanted, np.int16)
    palette: Palette | None = None
    slices: list[Slice] = []
    chunks, run_chunks = Chunks(), Chunks()
    position, count, number, end = 0, 0, 0, -1
    while True:
        left = reader.size - position
        code = reader.get(position, 3) if left >= 3 else _END
        if code == _END or len(chunks.unary) > _BATCH:
            count = _place(reader, slices, chunks, run_chunks, weights, count)
            slices, chunks, run_chunks = [], Chunks(), Chunks()
        if code == _END:
            end = position if palette else end
            position = (position + 3 + 7) & ~7
            palette = None
            if position < reader.size:
                continue
            return weights, count, []
        try:
            found, position = _slice(reader, number, position, palette, chunks, run_chunks)
        except StreamError as error:
            if end >= 0 and palette is None and count >= wanted:
                return weights, count, [_behind(reader, end)]
            raise StreamError(f"slice {number}, at bit {position}: {error.problem}") from None
        slices.append(found)
        palette, number = found.palette, number + 1


def _behind(reader: BitReader, end: int) -> tuple[str, str]:
    rest = reader.size // 8 - (end + 10 >> 3)
    return "stream-length", f"{rest} bytes behind the end marker at bit {end} are neither padding nor weights"


def _slice(
    reader: BitReader, number: int, position: int, palette: Palette | None, chunks: Chunks, run_chunks: Chunks
) -> tuple[Slice, int]:
    """Read a slice's header and find its chunks; returns the bit behind it as well."""
    start = position
    if reader.size - position < _HEADER_BITS:
        raise StreamError(f"its header is cut off: {reader.size - position} bits are left")
    header = reader.get(position, _HEADER_BITS)
    run_divider, length, divider = header & 7, (header >> 3 & 0x7FFF) + 1, header >> 18 & 7
    truncated, fresh = bool(header >> 21 & 1), bool(header >> 22 & 1)
    if 3 < run_divider != _NO_RUNS:
        raise StreamError(f"its divider of zero runs is {run_divider}, which has no meaning")
    if divider == 6:
        raise StreamError("its divider of weights is 6, which has no meaning")
    runs = run_divider != _NO_RUNS
    position += _HEADER_BITS
    if fresh:
        position, palette = _palette(reader, position, runs)
    elif palette is None:
        raise StreamError("it is the first one and brings no palette")
    elif palette.runs != runs:
        raise StreamError("it begins or ends the use of zero runs without a new palette")
    if divider == _UNCOMPRESSED:
        bits = palette.index_bits
        coding = Coding(length, bits, RUNS, NARROW if bits > 5 else WIDE, compressed=False)
        if not runs:
            end = position + length * bits
            check_end(reader, end)
            return Slice(number, start, palette, coding, position, 0), end
    else:
        coding = Coding(length, divider, TRUNCATED if truncated else PLAIN)
    run_count = length + fresh if runs else 0
    run_coding = Coding(run_count, run_divider, RUNS, NARROW if run_divider == 3 else WIDE) if runs else None
    end = walk(reader, position, coding, run_coding, chunks, run_chunks)
    return Slice(number, start, palette, coding, -1, run_count), end


def _palette(reader: BitReader, position: int, runs: bool) -> tuple[int, Palette]:
    """Read a palette: the position behind it, and what indices mean from now on."""
    if reader.size - position < _PALETTE_HEADER_BITS:
        raise StreamError("its palette is cut off")
    header = reader.get(position, _PALETTE_HEADER_BITS)
    offset, size, bits = header & 31, header >> 5 & 31, (header >> 10 & 7) + 2
    size += size > 0
    position += _PALETTE_HEADER_BITS
    if reader.size - position < size * bits:
        raise StreamError("its palette is cut off")
    entries = reader.take(position + bits * np.arange(size, dtype=np.int64), bits).astype(np.int64)
    direct = np.arange(_LARGEST_INDEX + 1 - size, dtype=np.int64) + offset
    folded = np.concatenate([entries, direct])
    weights = np.where(folded & 1, -(folded >> 1), folded >> 1).astype(np.int16)
    index_bits = (size - 1).bit_length() if size else bits
    return position + size * bits, Palette(weights, index_bits, runs)


def _place(
    reader: BitReader, slices: list[Slice], chunks: Chunks, run_chunks: Chunks, weights: Values, start: int
) -> int:
    """Read the symbols of slices and store their weights, with runs of zeros between them.

    :param start: how many elements there are before.
    :returns: how many there are now.
    :raises StreamError: an index that is too large.
    """
    indices, zeros = symbols(reader, chunks), symbols(reader, run_chunks)
    at = zeros_at = 0
    for item in slices:
        length = item.coding.length
        if item.at >= 0:
            places = item.at + item.coding.divider * np.arange(length, dtype=np.int64)
            found = reader.take(places, item.coding.divider).astype(np.int64)
        else:
            found = indices[at : at + length]
            at += length
        if found.max() > _LARGEST_INDEX:
            raise StreamError(
                f"slice {item.number}, at bit {item.position}: a weight index of {found.max()}; indices have 9 bits"
            )
        runs = zeros[zeros_at : zeros_at + item.runs]
        zeros_at += item.runs
        start += _store(item.palette.weights[found], runs, weights, start)
    return start


def _store(found: Values, runs: Ints, weights: Values, start: int) -> int:
    """Store a slice's weights; returns how many elements it has."""
    if not len(runs):
        room = max(min(len(found), len(weights) - start), 0)
        weights[start : start + room] = found[:room]
        return len(found)
    places = np.cumsum(runs[: len(found)])
    if len(runs) == len(found):
        places -= runs
    places += np.arange(start, start + len(found))
    inside = int(np.searchsorted(places, len(weights)))
    weights[places[:inside]] = found[:inside]
    return len(found) + int(runs.sum())
