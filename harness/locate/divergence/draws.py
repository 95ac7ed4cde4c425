"""Inputs on which a payload and its TOSA graph are compared.

A *draw* is one set of inputs with a name that goes into reports: "calibration 0", "random integers
1". Calibration samples show what a user would see; integers from the whole range of the dtype show
what saturates, wraps or overflows, which no calibration does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator, TosaTensor, decode_tosa
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.case.traits import TOSA_MOVING

_INDEXING = ("GATHER", "SCATTER")
_SHIFTING = ("ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT")
_NO_LARGER = {*TOSA_MOVING, "MAXIMUM", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN", "SELECT", "ABS", "ARITHMETIC_RIGHT_SHIFT"}
"""Operators whose result is no larger than an operand."""
_FEWER_BITS = 18
_SMALL = 1 << (_FEWER_BITS + 1)
_LIMITS = {"INT8": ("i1", 8), "INT16": ("i2", 16), "INT32": ("i4", 32), "INT48": ("i8", 48)}


class Draw(NamedTuple):
    """One set of inputs.

    :param arrays: in the order, shape and dtype of the TOSA graph's inputs, those included that
        nothing reads.
    :param free: is it drawn at random, so that another may take its place?
    """

    name: str
    arrays: tuple[Array, ...]
    free: bool = False


def smaller(draw: Draw) -> Draw | None:
    """A draw without large numbers, for a graph in which TOSA does not define what large ones give (a sum may
    overflow); None if it has none, or was not drawn at random. What a graph divides by does not become 0 or -1."""
    if not draw.free or all(np.abs(item, dtype=np.int64).max(initial=0) < _SMALL for item in draw.arrays):
        return None
    arrays = tuple(
        item if item.dtype == np.bool_ else np.where(np.abs(item, dtype=np.int64) < _SMALL, item, item >> _FEWER_BITS)
        for item in draw.arrays
    )
    return draw._replace(name=f"small {draw.name}", arrays=arrays)


def random_draws(tosa: bytes, count: int, seed: int) -> tuple[Draw, ...]:
    """Integers from the full range of every input's dtype; booleans are 0 and 1, indices name a row that is there,
    and shifts are by fewer places than there are bits.

    Every second draw mixes the smallest and largest value, 0, -1 and 1 into half of its elements. An input that an
    INTDIV divides by has 1 in the place of 0 and -1, of which TOSA 1.0 says that they need not be taken (-1: for the
    lowest number). An input that a RESCALE reads has no number for which TOSA defines no product. Where a divisor, an
    index or a shift is computed, nothing is drawn: the reference model dies of one that is out of range.

    :raises BadInput: the flatbuffer is damaged, or has an input that is not of integers.
    """
    block = decode_tosa(tosa).main
    tensors = [block.tensors[name] for name in block.inputs]
    divisors, limits = _divisors(block), _rescaled(block)
    rows = indexed_rows(block)
    if divisors is None or _computes_an_index(block):
        return ()
    generator = np.random.default_rng(seed)
    draws = []
    for index in range(count):
        name, values = ("extreme", _extreme) if index % 2 else ("random", _uniform)
        arrays = tuple(
            _indices(generator, item, rows[item.name])
            if item.name in rows
            else _divisible(_within(values(generator, item), limits.get(item.name)), item.name in divisors)
            for item in tensors
        )
        draws.append(Draw(f"{name} integers {index}", arrays, free=True))
    return tuple(draws)


def _divisors(block: TosaBlock) -> set[str] | None:
    """Names of the inputs whose elements an INTDIV divides by; None if it divides by what the graph computes."""
    found: set[str] = set()
    waiting = [item.inputs[1] for item in block.operators if item.op == "INTDIV"]
    while waiting:
        name = waiting.pop()
        producer = block.producers.get(name)
        if producer is None:
            found.add(name)
        elif producer.op in TOSA_MOVING or producer.op == "CAST":
            waiting.extend(item for item in producer.inputs if item not in found)
        elif producer.op != "CONST":
            return None
    return found


def _rescaled(block: TosaBlock) -> dict[str, int]:
    """The largest magnitude of each 32-bit input that a RESCALE reads, moved or chosen from on the way.

    ``apply_scale_32`` (TOSA 1.0) is defined for numbers of fewer bits than it shifts by. The reference model says so
    of others, goes on with a number outside of the result's type, and dies where a TABLE reads it.
    """
    found: dict[str, int] = {}
    for operator in block.operators:
        if operator.op != "RESCALE" or block.tensors[operator.inputs[0]].dtype != "INT32":
            continue
        shifts = block.tensors[operator.inputs[2]]
        if shifts.data and operator.attributes["Scale32"]:
            limit = (1 << (int(shifts.values().min()) - 1)) - 1
            for name in _moved_from(block, operator.inputs[0], _NO_LARGER):
                found[name] = min(limit, found.get(name, limit))
    return found


def _within(values: Array, limit: int | None) -> Array:
    return values if limit is None else np.clip(values, -limit, limit).astype(values.dtype)


def _divisible(values: Array, divides: bool) -> Array:
    return np.where((values == 0) | (values == -1), 1, values).astype(values.dtype) if divides else values


def indexed_rows(block: TosaBlock) -> dict[str, int]:
    """How many rows each input that GATHER or SCATTER takes for indices chooses from, whatever moves it on the way.

    TOSA does not define what other indices give, and an Ethos-U85 has a limit for them in a register. Nor does it
    define shifts by as many bits as a number has, which count as rows here.
    """
    found: dict[str, int] = {}
    for operator in _choosing(block):
        operand = block.tensors[operator.inputs[0]]
        rows = operand.shape[1] if operator.op in _INDEXING else _LIMITS[operand.dtype][1]
        for name in _moved_from(block, operator.inputs[1]):
            if name in block.inputs:
                found[name] = min(rows, found.get(name, rows))
    return found


def _choosing(block: TosaBlock) -> list[TosaOperator]:
    """Operators whose second operand TOSA defines for some numbers only."""
    return [item for item in block.operators if item.op in (*_INDEXING, *_SHIFTING)]


def _moved_from(block: TosaBlock, name: str, through: Collection[str] = TOSA_MOVING) -> Iterator[str]:
    """What a value is made of by some operators alone, moving ones: inputs, constants, and results of others."""
    maker = block.producers.get(name)
    if maker is None or maker.op not in through:
        yield name
        return
    for operand in maker.inputs:
        yield from _moved_from(block, operand, through)


def _computes_an_index(block: TosaBlock) -> bool:
    sources = (name for item in _choosing(block) for name in _moved_from(block, item.inputs[1]))
    makers = (block.producers.get(name) for name in sources)
    return any(maker is not None and maker.op not in ("CONST", "CONST_SHAPE") for maker in makers)


def _indices(generator: np.random.Generator, tensor: TosaTensor, rows: int) -> Array:
    return generator.integers(0, rows, tensor.shape).astype(_range(tensor)[0])


def _uniform(generator: np.random.Generator, tensor: TosaTensor) -> Array:
    if tensor.dtype == "BOOL":
        return generator.integers(0, 2, tensor.shape).astype(np.bool_)
    dtype, low, high = _range(tensor)
    return generator.integers(low, high, tensor.shape, dtype=dtype, endpoint=True)


def _extreme(generator: np.random.Generator, tensor: TosaTensor) -> Array:
    values = _uniform(generator, tensor)
    if tensor.dtype == "BOOL":
        return values
    dtype, low, high = _range(tensor)
    choice: Callable[..., Array] = generator.choice
    special = choice(np.array([low, high, 0, -1, 1], dtype), tensor.shape)
    return np.where(generator.integers(0, 2, tensor.shape) == 1, special, values)


def _range(tensor: TosaTensor) -> tuple[np.dtype[Any], int, int]:
    if tensor.dtype not in _LIMITS:
        raise BadInput(
            f"TOSA input {tensor.name}", f"is {tensor.dtype}", "compare graphs of integers: an Ethos-U has no other"
        )
    name, bits = _LIMITS[tensor.dtype]
    return np.dtype(name), -(1 << (bits - 1)), (1 << (bits - 1)) - 1
