"""Families of single-operator programs, and the draws that they share.

A *family* builds its k-th program from a random state that depends on the seed, the family's name
and k, so programs do not change when another family does. Shapes stay small (the reference model
and the compiler are paid for each), with a few large ones put in by ``sizes``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tests.exactness.building import Graph, Value

T = TypeVar("T")
Random = np.random.RandomState
Built = Value | Sequence[Value]


@dataclass(frozen=True)
class Family:
    """Programs of one kind.

    :param build: appends operators to a graph and returns its results; the number counts from 0.
    """

    name: str
    count: int
    build: Callable[[Graph, Random, int], Built]


def pick(rng: Random, values: Sequence[T]) -> T:
    """One of several values."""
    return values[int(rng.randint(len(values)))]


def chance(rng: Random, one_in: int) -> bool:
    """True once in ``one_in`` times."""
    return bool(rng.randint(one_in) == 0)


def shape_of(rng: Random, rank: int, most: int = 4096) -> tuple[int, ...]:
    """A shape of up to ``most`` elements: small axes, odd depths, one long axis now and then."""
    shape = [int(pick(rng, (1, 2, 3, 4, 5, 7, 8, 13))) for _ in range(rank)]
    if rank:
        shape[-1] = int(pick(rng, (1, 2, 3, 7, 8, 15, 16, 17, 32, 33, 50)))
    if rank and chance(rng, 4):
        shape[int(rng.randint(rank))] = int(pick(rng, (19, 31, 64, 100)))
    while int(np.prod(shape, dtype=np.int64)) > most:
        place = int(np.argmax(shape))
        shape[place] = (shape[place] + 1) // 2
    return tuple(shape)


def ints(rng: Random, low: int, high: int, shape: Sequence[int]) -> NDArray[np.int64]:
    """Uniform integers, both ends included, with the ends put in."""
    values = rng.randint(low, high + 1, tuple(shape), np.int64)
    flat = values.reshape(-1)
    if flat.size > 4:
        flat[int(rng.randint(flat.size))], flat[int(rng.randint(flat.size))] = low, high
    return values
