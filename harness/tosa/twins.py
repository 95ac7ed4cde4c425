"""Equivalent twins: two programs that must return the same bits, by what TOSA says of their operators.

An entry is a rewrite of one operator: a reshape pulled through an elementwise operator, a slice of a concatenation, a
pad made by concatenation. Both programs are compiled and run on armdiff's model. Where they differ, one of them is
wrong whatever the reference model says, so twins see what the reference model gets wrong in the same way as Vela, and
what a value hides that happens to be right.

``TWINS`` has the entries. ``turn`` is any number; an entry that has several ways (which axis, which half) takes one by
it. To add a twin, add an entry: ``tests/integration/test_twins.py`` holds each against the reference model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.tosa.program import Attribute, Operator, Program, limits
from harness.tosa.rewriting import Draft, Shape, rewritten

_UNARY = ("NEGATE", "RESCALE", "TABLE", "CLAMP", "CAST", "IDENTITY", "ABS", "CLZ", "BITWISE_NOT", "LOGICAL_NOT")
_COMMUTATIVE = (
    *("ADD", "MUL", "MAXIMUM", "MINIMUM", "EQUAL"),
    *("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"),
)
_BINARY = (
    *_COMMUTATIVE,
    *("SUB", "GREATER", "GREATER_EQUAL", "INTDIV"),
    *("ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT", "LOGICAL_RIGHT_SHIFT"),
)
_OPERANDS: Mapping[str, int] = {**dict.fromkeys(_UNARY, 1), **dict.fromkeys(_BINARY, 2), "SELECT": 3}
"""Operators that work element by element: how many operands have elements."""
_BATCHED: Mapping[str, int] = {
    **_OPERANDS,
    **dict.fromkeys(("CONV2D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "AVG_POOL2D", "MAX_POOL2D", "RESIZE"), 1),
    "MATMUL": 2,
    "GATHER": 2,
}
"""Operators that take the first axis one by one, and how many operands have it."""
_REDUCTIONS = ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY")
_CONVOLUTIONS = ("CONV2D", "DEPTHWISE_CONV2D")
_WIDEST = "INT48"
_MAX_POOL, _PAD, _TILE = "MAX_POOL2D", "PAD", "TILE"
Fits = Callable[[Program, Operator], bool]
Rewrite = Callable[[Draft, Operator, int], str]


@dataclass(frozen=True)
class Twin:
    """One entry.

    :param name: unique; part of a finding's kind.
    :param fits: may this operator be rewritten?
    :param rewrite: appends what stands in its place.
    """

    name: str
    fits: Fits
    rewrite: Rewrite

    def of(self, program: Program, place: int, turn: int = 0) -> Program:
        """The program's twin."""
        return rewritten(program, place, lambda draft, step: self.rewrite(draft, step, turn))


def twins_of(program: Program) -> Iterator[tuple[Twin, int]]:
    """The twins that a program has: an entry, and the operator that it rewrites."""
    for place, step in enumerate(program.operators):
        if _WIDEST in (program.by_name[name].dtype for name in (*step.inputs, *step.outputs)):
            continue  # no operator moves them
        for twin in TWINS:
            if twin.fits(program, step):
                yield twin, place


def _computed(program: Program, step: Operator) -> bool:
    first = program.by_name[step.inputs[0]]
    return not first.constant and first.elements > 1


def _alike(program: Program, step: Operator) -> bool:
    """Does it work element by element on operands of one shape, and with one rule for all?"""
    if step.op not in _OPERANDS or step.attributes.get("PerChannel"):
        return False
    shapes = {program.by_name[name].shape for name in step.inputs[: _OPERANDS[step.op]]}
    return shapes == {program.by_name[step.outputs[0]].shape} and _computed(program, step)


def _before(make: Callable[[Draft, str, int], str]) -> Rewrite:
    """The operator reads something that is its first operand all the same."""

    def rewrite(draft: Draft, step: Operator, turn: int) -> str:
        return draft.again(step, [make(draft, step.inputs[0], turn), *step.inputs[1:]])

    return rewrite


def _copied(draft: Draft, name: str, turn: int) -> str:
    return draft.add("IDENTITY", [name], draft[name].shape, draft[name].dtype)


def _transposed_twice(draft: Draft, name: str, turn: int) -> str:
    order = _order(len(draft[name].shape), turn)
    return _transpose(draft, _transpose(draft, name, order), _inverse(order))


def _reversed_twice(draft: Draft, name: str, turn: int) -> str:
    item = draft[name]
    axis = {"Axis": turn % len(item.shape)}
    return draft.add(
        "REVERSE", [draft.add("REVERSE", [name], item.shape, item.dtype, axis)], item.shape, item.dtype, axis
    )


def _reshaped_twice(draft: Draft, name: str, turn: int) -> str:
    return _reshape(draft, _reshape(draft, name, _flat(draft[name].shape, turn)), draft[name].shape)


def _slice_of_concat(draft: Draft, name: str, turn: int) -> str:
    item = draft[name]
    axis, half = turn % len(item.shape), turn // len(item.shape) % 2
    return _slice(draft, _concat(draft, [name, name], axis), axis, half * item.shape[axis], item.shape[axis])


def _concat_of_slices(draft: Draft, name: str, turn: int) -> str:
    shape = draft[name].shape
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    axis = axes[turn % len(axes)]
    at = 1 + turn // len(axes) % (shape[axis] - 1)
    return _concat(draft, [_slice(draft, name, axis, 0, at), _slice(draft, name, axis, at, shape[axis] - at)], axis)


def _reshape_through(draft: Draft, step: Operator, turn: int) -> str:
    shape = draft[step.outputs[0]].shape
    flat = _flat(shape, turn)
    return _reshape(draft, _on(draft, step, lambda name: _reshape(draft, name, flat), flat), shape)


def _transpose_through(draft: Draft, step: Operator, turn: int) -> str:
    shape = draft[step.outputs[0]].shape
    order = _order(len(shape), turn)
    moved = tuple(shape[axis] for axis in order)
    return _transpose(draft, _on(draft, step, lambda name: _transpose(draft, name, order), moved), _inverse(order))


def _on(draft: Draft, step: Operator, change: Callable[[str], str], shape: Shape) -> str:
    """The operator on changed operands."""
    count = _OPERANDS[step.op]
    return draft.again(step, [*map(change, step.inputs[:count]), *step.inputs[count:]], shape)


def _has_batches(program: Program, step: Operator) -> bool:
    first, after = program.by_name[step.inputs[0]], program.by_name[step.outputs[0]]
    if step.op not in _BATCHED or not first.shape or after.shape[:1] != first.shape[:1] or first.shape[0] == 1:
        return False
    names = step.inputs[: _BATCHED[step.op]]
    # one axis alone is the channels, too
    apart = len(first.shape) > 1 or not step.attributes.get("PerChannel")
    same = all(program.by_name[name].shape[:1] == first.shape[:1] for name in names)
    ranks = step.op not in _OPERANDS or {len(program.by_name[name].shape) for name in names} == {len(after.shape)}
    return _computed(program, step) and apart and same and ranks


def _split_batch(draft: Draft, step: Operator, turn: int) -> str:
    count, shape = _BATCHED[step.op], draft[step.outputs[0]].shape
    at = 1 + turn % (shape[0] - 1)
    parts = []
    for start, size in ((0, at), (at, shape[0] - at)):
        cut = [_slice(draft, name, 0, start, size) for name in step.inputs[:count]]
        parts.append(draft.again(step, [*cut, *step.inputs[count:]], (size, *shape[1:])))
    return _concat(draft, parts, 0)


def _commutes(program: Program, step: Operator) -> bool:
    return step.op in _COMMUTATIVE and step.inputs[0] != step.inputs[1]


def _commuted(draft: Draft, step: Operator, turn: int) -> str:
    one, other, *more = step.inputs
    return draft.again(step, [other, one, *more])


def _clamped_twice(draft: Draft, step: Operator, turn: int) -> str:
    return draft.again(step, [draft.again(step, step.inputs)])


def _pad_by_concat(draft: Draft, step: Operator, turn: int) -> str:
    """Axis by axis, a constant before and one behind."""
    name, filler = step.inputs[0], int(draft[step.inputs[2]].values().ravel()[0])
    amounts = [int(item) for item in draft[step.inputs[1]].values()]
    for axis in range(len(draft[name].shape)):
        front, back = (_filled(draft, name, axis, amounts[2 * axis + side], filler) for side in range(2))
        if front or back:
            name = _concat(draft, [*front, name, *back], axis)
    return name


def _filled(draft: Draft, name: str, axis: int, size: int, value: int) -> list[str]:
    """A constant of so many elements along an axis; nothing if there are none."""
    item = draft[name]
    shape = tuple(size if place == axis else held for place, held in enumerate(item.shape))
    return [draft.constant(shape, item.dtype, [value] * int(np.prod(shape)))] if size else []


def _pads(program: Program, step: Operator) -> bool:
    return step.op == _PAD and _computed(program, step) and any(program.by_name[step.inputs[1]].values())


def _tile_by_concat(draft: Draft, step: Operator, turn: int) -> str:
    name = step.inputs[0]
    for axis, times in enumerate(draft[step.inputs[1]].values()):
        if times > 1:
            name = _concat(draft, [name] * int(times), axis)
    return name


def _tiles(program: Program, step: Operator) -> bool:
    return step.op == _TILE and _computed(program, step) and max(program.by_name[step.inputs[1]].values()) > 1


def _padded_window(program: Program, step: Operator) -> bool:
    return step.op in (*_CONVOLUTIONS, _MAX_POOL) and any(_numbers(step.attributes["Pad"])) and _computed(program, step)


def _padding_by_pad(draft: Draft, step: Operator, turn: int) -> str:
    """A window's padding is the zero point, or less than everything."""
    item, (top, bottom, left, right) = draft[step.inputs[0]], _numbers(step.attributes["Pad"])
    filler = limits(item.dtype)[0] if step.op == _MAX_POOL else int(draft[step.inputs[3]].values().ravel()[0])
    batch, height, width, channels = item.shape
    shape = (batch, height + top + bottom, width + left + right, channels)
    inputs = [
        step.inputs[0],
        draft.dims([0, 0, top, bottom, left, right, 0, 0]),
        draft.constant((1,), item.dtype, [filler]),
    ]
    return draft.again(step, [draft.add("PAD", inputs, shape, item.dtype), *step.inputs[1:]], Pad=(0,) * 4)


def _splits(program: Program, step: Operator) -> bool:
    constant = step.op == "CONV2D" and all(program.by_name[name].constant for name in step.inputs[1:3])
    return constant and program.by_name[step.inputs[1]].shape[0] > 1


def _split_channels(draft: Draft, step: Operator, turn: int) -> str:
    """Two convolutions with a part of the weights each."""
    weights, bias = (draft[name] for name in step.inputs[1:3])
    shape = draft[step.outputs[0]].shape
    at = 1 + turn % (shape[-1] - 1)
    parts = []
    for part in (slice(None, at), slice(at, None)):
        kernel, terms = weights.values()[part], bias.values()
        terms = terms if terms.size == 1 else terms[part]
        inputs = [
            step.inputs[0],
            draft.constant(kernel.shape, weights.dtype, kernel.ravel().tolist()),
            draft.constant(terms.shape, bias.dtype, terms.tolist()),
            *step.inputs[3:],
        ]
        parts.append(draft.again(step, inputs, (*shape[:-1], len(kernel))))
    return _concat(draft, parts, 3)


def _reduced_elsewhere(draft: Draft, step: Operator, turn: int) -> str:
    """The axis changes places with a neighbour before and behind."""
    name = step.inputs[0]
    rank, axis = len(draft[name].shape), _numbers(step.attributes["Axis"])[0]
    other = axis - 1 if axis and (turn % 2 or axis == rank - 1) else axis + 1
    order = [*range(rank)]
    order[axis], order[other] = other, axis
    moved = _transpose(draft, name, tuple(order))
    shape = tuple(1 if place == other else size for place, size in enumerate(draft[moved].shape))
    return _transpose(draft, draft.again(step, [moved], shape, Axis=other), tuple(order))


def _transpose(draft: Draft, name: str, order: Shape) -> str:
    shape = tuple(draft[name].shape[axis] for axis in order)
    return draft.add("TRANSPOSE", [name], shape, draft[name].dtype, {"Perms": order})


def _order(rank: int, turn: int) -> Shape:
    """Two neighbouring axes change places, or all of them turn by one."""
    at = turn % rank
    if at == rank - 1:
        return (*range(1, rank), 0)
    return (*range(at), at + 1, at, *range(at + 2, rank))


def _inverse(order: Shape) -> Shape:
    return tuple(int(axis) for axis in np.argsort(order))


def _reshape(draft: Draft, name: str, shape: Shape) -> str:
    return draft.add("RESHAPE", [name, draft.dims(shape)], shape, draft[name].dtype)


def _flat(shape: Shape, turn: int) -> Shape:
    """One axis, one behind four of one element, or the first two in one."""
    count = int(np.prod(shape))
    joined = (shape[0] * shape[1], *shape[2:]) if len(shape) > 1 else (1, *shape)
    return ((count,), (1, 1, 1, count), joined)[turn % 3]


def _slice(draft: Draft, name: str, axis: int, start: int, size: int) -> str:
    shape = draft[name].shape
    starts = [start if place == axis else 0 for place in range(len(shape))]
    sizes = tuple(size if place == axis else held for place, held in enumerate(shape))
    return draft.add("SLICE", [name, draft.dims(starts), draft.dims(sizes)], sizes, draft[name].dtype)


def _concat(draft: Draft, names: Sequence[str], axis: int) -> str:
    shape = list(draft[names[0]].shape)
    shape[axis] = sum(draft[name].shape[axis] for name in names)
    return draft.add("CONCAT", names, tuple(shape), draft[names[0]].dtype, {"Axis": axis})


def _numbers(value: Attribute) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (int(value),)


def _of_rank(least: int) -> Fits:
    return lambda program, step: _computed(program, step) and len(program.by_name[step.inputs[0]].shape) >= least


TWINS: tuple[Twin, ...] = (
    Twin("copied", _computed, _before(_copied)),
    Twin("transposed twice", _of_rank(2), _before(_transposed_twice)),
    Twin("reversed twice", _of_rank(1), _before(_reversed_twice)),
    Twin("reshaped twice", _of_rank(1), _before(_reshaped_twice)),
    Twin("slice of concat", _of_rank(1), _before(_slice_of_concat)),
    Twin("concat of slices", _of_rank(1), _before(_concat_of_slices)),
    Twin("reshape pulled through", _alike, _reshape_through),
    Twin("transpose pulled through", lambda *pair: _alike(*pair) and _of_rank(2)(*pair), _transpose_through),
    Twin("split batch", _has_batches, _split_batch),
    Twin("operands exchanged", _commutes, _commuted),
    Twin("pad by concat", _pads, _pad_by_concat),
    Twin("tile by concat", _tiles, _tile_by_concat),
    Twin("padding by pad", _padded_window, _padding_by_pad),
    Twin("split output channels", _splits, _split_channels),
    Twin(
        "reduced along another axis",
        lambda *pair: pair[1].op in _REDUCTIONS and _of_rank(2)(*pair),
        _reduced_elsewhere,
    ),
    Twin("clamped twice", lambda program, step: step.op == "CLAMP", _clamped_twice),
)
