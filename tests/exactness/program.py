"""What the exactness table compares: programs, the calls that run them, and how inputs are drawn.

A *program* is a TOSA flatbuffer with a name and the *inputs* that it may be given: shape, dtype
and the range in which TOSA defines the result (the specification's REQUIRE lines: shift amounts,
indices, accumulators that must not overflow). A *draw* is one set of arrays for all inputs. Draw
0 is uniform over the ranges with their ends put in, draw 1 consists of end points and neighbours
of zero. Draws depend on the program's name and the draw's number only.

Invariants: nothing here imports torch, Vela or the reference model; the same seed gives the same
programs and arrays on every machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Kind = Literal["range", "unique", "ramp"]

NUMPY = {"BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT48": np.int64}
BITS = {"BOOL": 1, "INT4": 4, "INT8": 8, "INT16": 16, "INT32": 32, "INT48": 48}


@dataclass(frozen=True)
class InputSpec:
    """One input of a program.

    :param dtype: TOSA's name (``INT8``…); int48 values are passed as int64.
    :param low: the smallest value, inclusive.
    :param high: the largest value, inclusive.
    :param kind: ``range``: any values; ``unique``: along the last axis no value twice (indices of
        SCATTER); ``ramp``: as ``range``, and draw 0 holds every code of the range in turn.
    """

    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int
    kind: Kind = "range"


@dataclass(frozen=True)
class Program:
    """A TOSA flatbuffer with a name that is unique in its source.

    :param group: the row of the table: ``single-op``, ``int8`` or ``int16``, ``conformance int8`` and the like.
    :param inputs: what to draw calls from; empty if the program comes with all of its calls.
    :param operators: what the graph consists of, constants left out.
    :param calls: arrays to run beside the draws (calibration samples of a generated graph).
    """

    name: str
    group: str
    tosa: bytes
    inputs: tuple[InputSpec, ...]
    operators: tuple[str, ...]
    calls: tuple[tuple[Array, ...], ...] = ()


def random_state(*words: object) -> np.random.RandomState:
    """A generator that depends on the words only."""
    return np.random.RandomState(zlib.crc32(" ".join(map(str, words)).encode()))


def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of a TOSA integer type."""
    if dtype == "BOOL":
        return 0, 1
    half = 1 << (BITS[dtype] - 1)
    return -half, half - 1


def draw_call(name: str, inputs: Sequence[InputSpec], number: int, narrow: int = 0) -> tuple[Array, ...]:
    """Arrays for one call.

    :param number: 0, 1 or more; even draws are uniform, odd ones are made of extremes.
    :param narrow: halve int32 and int48 ranges this many times (a retry after the reference model
        said that the result is not defined).
    """
    return tuple(
        _draw(random_state(name, index, number), item, number, narrow).astype(NUMPY[item.dtype]).reshape(item.shape)
        for index, item in enumerate(inputs)
    )


def _draw(rng: np.random.RandomState, item: InputSpec, number: int, narrow: int) -> NDArray[np.int64]:
    low, high = item.low, item.high
    if narrow and item.dtype in ("INT32", "INT48") and item.kind == "range":
        low, high = -(-low >> narrow), high >> narrow
    size = int(np.prod(item.shape, dtype=np.int64))
    if item.kind == "unique":
        rows = [rng.permutation(high - low + 1)[: item.shape[-1]] + low for _ in range(size // item.shape[-1])]
        return np.array(rows, np.int64)
    if item.kind == "ramp" and number == 0:
        return np.linspace(low, high, size).astype(np.int64) if size <= high - low else _cycle(low, high, size)
    if number % 2:
        return rng.choice(_special(low, high), size)
    values = rng.randint(low, high + 1, size, np.int64)
    ends = rng.randint(0, 16, size)
    values[ends == 0], values[ends == 1] = low, high
    return values


def _cycle(low: int, high: int, size: int) -> NDArray[np.int64]:
    return low + np.arange(size, dtype=np.int64) % (high - low + 1)


def _special(low: int, high: int) -> NDArray[np.int64]:
    near = (low, low, low + 1, -2, -1, 0, 1, 2, high // 2, high - 1, high, high)
    return np.array([value for value in near if low <= value <= high], np.int64)
