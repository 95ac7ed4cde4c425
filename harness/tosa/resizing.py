"""Shapes of a program after something in it changed: results are computed anew, constants and inputs follow.

A cut changes one thing: an axis of an input, a stride, an operand. ``resized`` then walks the operators in order. A
result has the shape that TOSA gives it. What is free (an input, a constant) follows where it had to agree before the
change: the other operand of an ADD, the weights' input channels, a RESCALE's factors, the target of a RESHAPE.

Nothing here decides whether the program is valid: the reference model does. What cannot be told ends in None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from harness.tosa.program import Operator, Program, Tensor

Shape = tuple[int, ...]
_ROUNDS = 4
"""Walks until free tensors that are read in several places agree."""


def resized(
    before: Program,
    *,
    shapes: Mapping[str, Shape] | None = None,
    operators: Sequence[Operator] | None = None,
    constants: Mapping[str, Sequence[int]] | None = None,
) -> Program | None:
    """The program with a change, and everything that follows from it.

    :param shapes: new shapes of inputs and constants, of the same rank.
    :param operators: what replaces the operators, the first results first; they may read other tensors than before.
    :param constants: new values of constants of the same shape (pads, sizes).
    :returns: None if the shapes cannot be told.
    """
    walk = _Walk(before, dict(before.by_name))
    for name, shape in (shapes or {}).items():
        walk.now[name] = _fitted(walk.now[name], shape)
    for name, values in (constants or {}).items():
        walk.now[name] = msgspec.structs.replace(walk.now[name], data=tuple(int(item) for item in values))
    steps = tuple(before.operators if operators is None else operators)
    try:
        for _ in range(_ROUNDS):
            held = dict(walk.now)
            for step in steps:
                walk.through(step)
            if held == walk.now:
                break
        else:
            return None
    except (IndexError, ValueError, ZeroDivisionError, KeyError):
        return None  # operands that do not fit together
    tensors = tuple(walk.now[item.name] for item in before.tensors)
    if any(size < 1 for item in tensors for size in item.shape):
        return None
    return msgspec.structs.replace(before, tensors=tensors, operators=steps)


def _fitted(tensor: Tensor, shape: Shape) -> Tensor:
    """A free tensor in another shape: explicit values are cut, or repeated where there are too few."""
    if tensor.shape == shape:
        return tensor
    data = tensor.data
    if isinstance(data, tuple):
        values = tensor.values()
        if len(shape) == len(tensor.shape):
            for axis, size in enumerate(shape):
                values = np.take(values, np.arange(size) % values.shape[axis], axis)
        else:
            values = np.resize(values, shape)
        data = tuple(int(item) for item in values.ravel())
    return msgspec.structs.replace(tensor, shape=shape, data=data)


@dataclass
class _Walk:
    """What the tensors were, and what they are now."""

    before: Program
    now: dict[str, Tensor]

    def through(self, step: Operator) -> None:
        rule = _RULES.get(step.op, _Walk._elementwise)
        shape = rule(self, step)
        name = step.outputs[0]
        self.now[name] = msgspec.structs.replace(self.now[name], shape=tuple(int(size) for size in shape))

    def shape(self, step: Operator, index: int) -> Shape:
        return self.now[step.inputs[index]].shape

    def old(self, name: str) -> Shape:
        return self.before.by_name[name].shape

    def free(self, name: str) -> bool:
        return name not in self.before.producers

    def follow(self, name: str, shape: Sequence[int]) -> None:
        """A free tensor takes a shape."""
        if self.free(name):
            self.now[name] = _fitted(self.now[name], tuple(int(size) for size in shape))

    def values(self, name: str) -> list[int]:
        return [int(item) for item in self.now[name].values().ravel()]

    def assign(self, name: str, values: Sequence[int]) -> None:
        """New values of a constant shape."""
        numbers = tuple(int(item) for item in values)
        self.now[name] = msgspec.structs.replace(self.now[name], shape=(len(numbers),), data=numbers)

    def _elementwise(self, step: Operator) -> Shape:
        """Broadcasting; a free operand follows the axes that it agreed on with another operand."""
        names = [name for name in step.inputs if self._is_data(step, name)]
        rank = max(len(self.now[name].shape) for name in names)
        leader = self._leader(names)
        for name in names:
            mine, theirs = self.old(name), self.old(leader)
            if name != leader and len(mine) == len(theirs) == rank and self.free(name):
                sizes = zip(mine, theirs, self.now[name].shape, self.now[leader].shape, strict=True)
                self.follow(name, [new if a == b else held for a, b, held, new in sizes])
        if step.op == "RESCALE" and step.attributes.get("PerChannel"):
            for name in step.inputs[1:3]:
                self.follow(name, [self.shape(step, 0)[-1]])
        return tuple(np.broadcast_shapes(*(self.now[name].shape for name in names)))

    def _leader(self, names: Sequence[str]) -> str:
        """The operand that the others follow: computed and changed, changed, computed."""

        def rank(name: str) -> tuple[bool, bool, int]:
            changed = self.now[name].shape != self.old(name)
            return changed, not self.free(name), math.prod(self.old(name))

        return max(names, key=rank)

    def _is_data(self, step: Operator, name: str) -> bool:
        """Is the operand broadcast? Zero points, shifts, tables and factors are not."""
        if step.op in _ONE:
            return name == step.inputs[0]
        return not (step.op == "MUL" and name == step.inputs[2])

    def _conv(self, step: Operator) -> Shape:
        shape, kernel = self.shape(step, 0), list(self.shape(step, 1))
        kernel[-1] = shape[-1]
        self.follow(step.inputs[1], kernel)
        if self.shape(step, 2) != (1,):
            self.follow(step.inputs[2], kernel[:1])
        return (shape[0], *self._windows(step, shape[1:-1], kernel[1:-1]), kernel[0])

    def _depthwise(self, step: Operator) -> Shape:
        shape, kernel = self.shape(step, 0), list(self.shape(step, 1))
        kernel[2] = shape[-1]
        self.follow(step.inputs[1], kernel)
        if self.shape(step, 2) != (1,):
            self.follow(step.inputs[2], [kernel[2] * kernel[3]])
        return (shape[0], *self._windows(step, shape[1:-1], kernel[:2]), kernel[2] * kernel[3])

    def _transposed(self, step: Operator) -> Shape:
        shape, kernel = self.shape(step, 0), list(self.shape(step, 1))
        kernel[-1] = shape[-1]
        self.follow(step.inputs[1], kernel)
        if self.shape(step, 2) != (1,):
            self.follow(step.inputs[2], kernel[:1])
        pad, stride = _many(step, "OutPad"), _many(step, "Stride")
        sizes = [
            (shape[axis + 1] - 1) * stride[axis] + pad[2 * axis] + pad[2 * axis + 1] + kernel[axis + 1]
            for axis in range(2)
        ]
        return (shape[0], *sizes, kernel[0])

    def _pool(self, step: Operator) -> Shape:
        shape = self.shape(step, 0)
        return (shape[0], *self._windows(step, shape[1:-1], _many(step, "Kernel")), shape[-1])

    def _windows(self, step: Operator, sizes: Sequence[int], kernel: Sequence[int]) -> list[int]:
        pad, stride = _many(step, "Pad"), _many(step, "Stride")
        dilation = _many(step, "Dilation") or (1,) * len(stride)
        return [
            (size - 1 + pad[2 * axis] + pad[2 * axis + 1] - (kernel[axis] - 1) * dilation[axis]) // stride[axis] + 1
            for axis, size in enumerate(sizes)
        ]

    def _matmul(self, step: Operator) -> Shape:
        left, right = step.inputs[:2]
        follower, other = (right, left) if self._leader((left, right)) == left else (left, right)
        batch = self.now[other].shape[0]
        common = self.now[other].shape[2 if other == left else 1]
        held = self.now[follower].shape
        self.follow(follower, (batch, common, held[2]) if follower == right else (batch, held[1], common))
        return (self.shape(step, 0)[0], self.shape(step, 0)[1], self.shape(step, 1)[2])

    def _reduce(self, step: Operator) -> Shape:
        axis = _one(step, "Axis")
        return tuple(1 if place == axis else size for place, size in enumerate(self.shape(step, 0)))

    def _argmax(self, step: Operator) -> Shape:
        axis = _one(step, "Axis")
        return tuple(size for place, size in enumerate(self.shape(step, 0)) if place != axis)

    def _reshape(self, step: Operator) -> Shape:
        """The target follows where one axis of it can take up the change."""
        count, wanted = math.prod(self.shape(step, 0)), self.values(step.inputs[1])
        total = math.prod(wanted)
        if count != total:
            fitting = [axis for axis, size in enumerate(wanted) if size * count % total == 0]
            same = [axis for axis in fitting if self._lost(step, axis, wanted)]
            axis = (same or fitting or [-1])[-1]
            if axis >= 0:
                wanted[axis] = wanted[axis] * count // total
            else:
                wanted = [1] * (len(wanted) - 1) + [count]
            self.assign(step.inputs[1], wanted)
        return tuple(wanted)

    def _lost(self, step: Operator, axis: int, wanted: Sequence[int]) -> bool:
        """Was an axis of this size changed in the operand?"""
        old, new = self.old(step.inputs[0]), self.shape(step, 0)
        return len(old) == len(new) and any(
            one == wanted[axis] and one != other for one, other in zip(old, new, strict=True)
        )

    def _slice(self, step: Operator) -> Shape:
        shape = self.shape(step, 0)
        starts, sizes = self.values(step.inputs[1]), self.values(step.inputs[2])
        old = self.old(step.inputs[0])
        for axis, size in enumerate(shape):
            if len(old) == len(shape) and sizes[axis] == old[axis]:
                starts[axis], sizes[axis] = 0, size
            starts[axis] = min(starts[axis], size - 1)
            sizes[axis] = min(sizes[axis], size - starts[axis])
        self.assign(step.inputs[1], starts)
        self.assign(step.inputs[2], sizes)
        return tuple(sizes)

    def _pad(self, step: Operator) -> Shape:
        pads = self.values(step.inputs[1])
        return tuple(size + pads[2 * axis] + pads[2 * axis + 1] for axis, size in enumerate(self.shape(step, 0)))

    def _tile(self, step: Operator) -> Shape:
        return tuple(size * times for size, times in zip(self.shape(step, 0), self.values(step.inputs[1]), strict=True))

    def _concat(self, step: Operator) -> Shape:
        axis, leader = _one(step, "Axis"), self._leader(step.inputs)
        shape = self.now[leader].shape
        for name in step.inputs:
            if name != leader:
                held = self.now[name].shape
                self.follow(name, [held[place] if place == axis else size for place, size in enumerate(shape)])
        total = sum(self.now[name].shape[axis] for name in step.inputs)
        return tuple(total if place == axis else size for place, size in enumerate(shape))

    def _transpose(self, step: Operator) -> Shape:
        return tuple(self.shape(step, 0)[axis] for axis in _many(step, "Perms"))

    def _gather(self, step: Operator) -> Shape:
        shape, wanted = self.shape(step, 0), self.shape(step, 1)
        self.follow(step.inputs[1], (shape[0], wanted[1]))
        return (shape[0], self.shape(step, 1)[1], shape[2])

    def _scatter(self, step: Operator) -> Shape:
        shape, indices = self.shape(step, 0), self.shape(step, 1)
        self.follow(step.inputs[1], (shape[0], indices[1]))
        self.follow(step.inputs[2], (shape[0], indices[1], shape[2]))
        return shape

    def _resize(self, step: Operator) -> Shape:
        shape = self.shape(step, 0)
        scale, offset, border = (self.values(name) for name in step.inputs[1:4])
        sizes = [
            ((shape[axis + 1] - 1) * scale[2 * axis] - offset[axis] + border[axis]) // scale[2 * axis + 1] + 1
            for axis in range(2)
        ]
        return (shape[0], *sizes, shape[3])


_ONE = ("NEGATE", "RESCALE", "TABLE", "CLAMP", "CAST", "IDENTITY", "ABS", "CLZ", "REVERSE")
"""Only the first operand has the result's shape."""
_RULES: Mapping[str, Callable[[_Walk, Operator], Shape]] = {
    "CONV2D": _Walk._conv,
    "CONV3D": _Walk._conv,
    "DEPTHWISE_CONV2D": _Walk._depthwise,
    "TRANSPOSE_CONV2D": _Walk._transposed,
    "AVG_POOL2D": _Walk._pool,
    "MAX_POOL2D": _Walk._pool,
    "MATMUL": _Walk._matmul,
    **{f"REDUCE_{kind}": _Walk._reduce for kind in ("SUM", "MAX", "MIN", "ALL", "ANY", "PRODUCT")},
    "ARGMAX": _Walk._argmax,
    "RESHAPE": _Walk._reshape,
    "SLICE": _Walk._slice,
    "PAD": _Walk._pad,
    "TILE": _Walk._tile,
    "CONCAT": _Walk._concat,
    "TRANSPOSE": _Walk._transpose,
    "GATHER": _Walk._gather,
    "SCATTER": _Walk._scatter,
    "RESIZE": _Walk._resize,
}


def _many(step: Operator, name: str) -> tuple[int, ...]:
    found = step.attributes.get(name, ())
    return found if isinstance(found, tuple) else (int(found),)


def _one(step: Operator, name: str) -> int:
    found = step.attributes[name]
    if isinstance(found, tuple):
        raise ValueError(f"{name} of {step.op} is no number")
    return int(found)
