"""The chunks of the standard weight format: where they lie, and the symbols in them.

Each step of a slice is: 12 bits that say which unary positions of the weights are not 0, the
unary positions of the zero runs (12 bits, or 8 at divider 3), one bit (1 or 2) for each of the
weights' that is not 0; then the remainders of the previous step's weights, and of its runs. The
runs pause while they are ahead of the weights, the weights while they are eight or more ahead.

A symbol's quotient is the sum of its positions. The last one is below a *threshold*: 2 for
weights, 1 for runs; if the coding is truncated, a position is a quotient of its own, 0 to 2.
Uncompressed indices have no unary part: a chunk is 12 of them, or 8 of more than 5 bits.

``walk`` finds the chunks of a slice, in a Python loop over steps (half a microsecond for some ten
weights). ``symbols`` takes those of many slices apart at once, on whole arrays.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.records import StreamError
from harness.ethosu.weights.bits import BitReader, Ints

WIDE, NARROW = 12, 8
RUNS, PLAIN, TRUNCATED = 1, 2, 3

_MOST_AHEAD = 8
_BITS = ((np.arange(1 << WIDE)[:, None] >> np.arange(WIDE)) & 1).astype(np.uint8)
_ONES = _BITS.sum(axis=1, dtype=np.uint8)
_FIRST = np.arange(WIDE) < np.arange(WIDE + 1)[:, None]
_COUNT = _ONES.tobytes()
_MASK = tuple((1 << bits) - 1 for bits in range(WIDE + 1))
_window = struct.Struct("<Q").unpack_from


@dataclass(frozen=True)
class Coding:
    """How one of the two sequences of a slice is coded.

    :param length: symbols.
    :param divider: bits of a remainder.
    :param threshold: a unary position below it is the last of its symbol.
    :param width: unary positions of a chunk; symbols if there is no unary part.
    :param compressed: there is a unary part.
    """

    length: int
    divider: int
    threshold: int
    width: int = WIDE
    compressed: bool = True


@dataclass
class Chunks:
    """Chunks of some sequences of one kind, weights or runs: bit positions and counts of symbols.

    :param second: of the bits that make a position 1 or 2; empty for runs.
    :param ends: how many chunks there are up to the end of each sequence.
    """

    unary: array[int] = field(default_factory=lambda: array("q"))
    second: array[int] = field(default_factory=lambda: array("q"))
    remainders: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    codings: list[Coding] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def finish(self, coding: Coding) -> None:
        """The chunks that came last are a sequence with this coding."""
        self.codings.append(coding)
        self.ends.append(len(self.unary))


def walk(
    reader: BitReader, position: int, weights: Coding, runs: Coding | None, chunks: Chunks, run_chunks: Chunks
) -> int:
    """Add the chunks of a slice whose header ends at ``position``; returns the bit behind the slice.

    :raises StreamError: the stream ends before the slice.
    """
    try:
        if runs is None:
            end = _walk_weights(reader.padded, position, weights, chunks)
        else:
            end = _walk_both(reader.padded, position, weights, runs, chunks, run_chunks)
            run_chunks.finish(runs)
        chunks.finish(weights)
    except struct.error:
        end = reader.size + 1
    check_end(reader, end)
    return end


def check_end(reader: BitReader, end: int) -> None:
    """:raises StreamError: a slice ends behind the stream's end."""
    if end > reader.size:
        raise StreamError(f"the stream ends after {reader.size // 8} bytes, inside the slice")


def _walk_weights(data: bytes, position: int, weights: Coding, chunks: Chunks) -> int:
    """A slice without zero runs."""
    divider, left, truncated = weights.divider, weights.length, weights.threshold == TRUNCATED
    unary, second, remainders, counts = chunks.unary, chunks.second, chunks.remainders, chunks.counts
    start, size = len(remainders), 0
    while left > 0:
        bits = _window(data, position >> 3)[0] >> (position & 7)
        ones = _COUNT[bits & 0xFFF]
        unary.append(position)
        position += WIDE
        second.append(position)
        position += ones
        remainders.append(position)
        position += size * divider
        size = WIDE if truncated else WIDE - _COUNT[bits >> WIDE & _MASK[ones]]
        counts.append(size)
        left -= size
    # Remainders come one step late: those of the step before the first are none, those of the last are at the end.
    del remainders[start]
    remainders.append(position)
    counts[-1] += left
    return position + counts[-1] * divider


def _walk_both(data: bytes, position: int, weights: Coding, runs: Coding, chunks: Chunks, run_chunks: Chunks) -> int:
    """A slice with zero runs."""
    done = runs_done = 0
    before = runs_before = -1  # symbols of the previous step's chunks; -1 where it had none
    while True:
        ahead = done - runs_done
        weights_on = ahead < _MOST_AHEAD and done < weights.length
        runs_on = ahead >= 0 and runs_done < runs.length
        size = runs_size = -1
        if weights_on or runs_on:
            bits = _window(data, position >> 3)[0] >> (position & 7)
            ones = 0
            if weights_on:
                chunks.unary.append(position)
                if weights.compressed:
                    ones = _COUNT[bits & 0xFFF]
                    bits >>= WIDE
                    position += WIDE
            if runs_on:
                run_chunks.unary.append(position)
                runs_size = min(runs.width - _COUNT[bits & _MASK[runs.width]], runs.length - runs_done)
                run_chunks.counts.append(runs_size)
                runs_done += runs_size
                bits >>= runs.width
                position += runs.width
            if weights_on:
                chunks.second.append(position)
                size = weights.width - (_COUNT[bits & _MASK[ones]] if weights.threshold == PLAIN else 0)
                size = min(size, weights.length - done)
                chunks.counts.append(size)
                done += size
                position += ones
        if before >= 0:
            chunks.remainders.append(position)
            position += before * weights.divider
        if runs_before >= 0:
            run_chunks.remainders.append(position)
            position += runs_before * runs.divider
        if not (weights_on or runs_on):
            return position
        before, runs_before = size, runs_size


def symbols(reader: BitReader, chunks: Chunks) -> Ints:
    """The symbols of all sequences, one after another."""
    if not chunks.codings:
        return np.zeros(0, np.int64)
    per_sequence = np.diff(np.array(chunks.ends), prepend=0)
    dividers, thresholds, widths, compressed = (
        np.repeat(np.array([getattr(coding, name) for coding in chunks.codings], np.uint8), per_sequence)
        for name in ("divider", "threshold", "width", "compressed")
    )
    nonzero = reader.take(_numbers(chunks.unary), WIDE) * compressed
    narrow = widths < WIDE
    nonzero[narrow] &= np.uint32((1 << NARROW) - 1)
    values = _BITS[nonzero]  # [chunk, unary position]
    if chunks.second:
        ones = _ONES[nonzero]
        larger = _BITS[reader.take(_numbers(chunks.second), ones)]
        values[values.view(np.bool_)] += larger[_FIRST[ones]]
    last = values < thresholds[:, None]
    last[narrow, NARROW:] = False
    counts = _numbers(chunks.counts)
    _cut(values, last, counts, np.array(chunks.ends) - 1)
    sums = np.cumsum(values.ravel(), dtype=np.int32)[np.flatnonzero(last.ravel())]
    return _with_remainders(reader, np.diff(sums, prepend=0).astype(np.int64), chunks, dividers, counts)


def _cut(values: NDArray[np.uint8], last: NDArray[np.bool_], counts: Ints, final: Ints) -> None:
    """Take out what follows the last symbol of a sequence in its final chunk.

    :param values: unary positions [chunk, position].
    :param last: those that end a symbol.
    :param final: the final chunk of each sequence.
    """
    ends = last[final]
    behind = np.cumsum(ends, axis=1) - ends >= counts[final, None]
    last[final] = ends & ~behind
    values[final] = np.where(behind, np.uint8(0), values[final])


def _with_remainders(
    reader: BitReader, quotients: Ints, chunks: Chunks, dividers: NDArray[np.uint8], counts: Ints
) -> Ints:
    """Symbols from quotients.

    :param dividers: for each chunk; ``counts`` likewise.
    """
    if not dividers.any():
        return quotients
    bits = np.repeat(dividers, counts)
    starts = np.cumsum(counts) - counts
    places = np.repeat(_numbers(chunks.remainders) - dividers * starts, counts)
    places += bits * np.arange(len(bits), dtype=np.int64)
    return (quotients << bits) + reader.take(places, bits)


def _numbers(numbers: array[int]) -> Ints:
    return np.frombuffer(numbers, np.int64)
