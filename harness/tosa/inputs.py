"""The arrays on which a program is judged: random, end points, and structured.

*Structured* arrays count up in row-major order, or are one value but for a few elements: what a copy that takes the
wrong element, a wrong stride or a missing part of a sum shows on. All lie in the range that the program says for the
input, so that TOSA defines the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harness.case.arrays import Array
from harness.locate.divergence.draws import Draw
from harness.tosa.program import Program, Tensor

_NUMPY = {"BOOL": "?", "INT8": "i1", "INT16": "i2", "INT32": "i4", "INT48": "i8"}
INPUT_TYPES = frozenset(_NUMPY)
"""What an input may have: int4 is for weights alone."""
Values = NDArray[np.int64]


def draws(program: Program, seed: int, rounds: int = 1) -> tuple[Draw, ...]:
    """Three sets of inputs a round."""
    generator = np.random.default_rng(seed)
    tensors = [program.by_name[name] for name in program.inputs]
    return tuple(
        Draw(f"{name} {number}", tuple(_array(generator, tensor, make) for tensor in tensors))
        for number in range(rounds)
        for name, make in _KINDS.items()
    )


def _array(
    generator: np.random.Generator, tensor: Tensor, make: Callable[[np.random.Generator, Tensor], Values]
) -> Array:
    if tensor.distinct:
        make = _distinct
    return make(generator, tensor).astype(_NUMPY[tensor.dtype]).reshape(tensor.shape)


def _random(generator: np.random.Generator, tensor: Tensor) -> Values:
    """Uniform; one element in eight is an end of the range."""
    low, high = tensor.limits
    values = generator.integers(low, high, tensor.elements, dtype=np.int64, endpoint=True)
    choice = generator.integers(0, 16, tensor.elements)
    values[choice == 0], values[choice == 1] = low, high
    return values


def _ends(generator: np.random.Generator, tensor: Tensor) -> Values:
    low, high = tensor.limits
    near = [value for value in (low, low, low + 1, -1, 0, 1, high - 1, high, high) if low <= value <= high]
    return np.array(near, np.int64)[generator.integers(0, len(near), tensor.elements)]


def _structured(generator: np.random.Generator, tensor: Tensor) -> Values:
    """Counting up through the range; or one value with a few others."""
    low, high = tensor.limits
    if generator.integers(0, 3):
        return low + (np.arange(tensor.elements) + generator.integers(0, 8)) % (high - low + 1)
    values = np.full(tensor.elements, generator.integers(low, high, endpoint=True))
    places = generator.integers(0, tensor.elements, max(1, tensor.elements // 16))
    values[places] = generator.integers(low, high, len(places), endpoint=True)
    return values


def _distinct(generator: np.random.Generator, tensor: Tensor) -> Values:
    low, high = tensor.limits
    width = tensor.shape[-1]
    rows = [generator.permutation(high - low + 1)[:width] + low for _ in range(tensor.elements // width)]
    return np.array(rows, np.int64)


_KINDS = {"random integers": _random, "end points": _ends, "structured integers": _structured}
