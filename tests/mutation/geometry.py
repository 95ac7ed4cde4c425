"""Mutations of where an operator reads: padding, stride, dilation, slice starts, resize offsets.

Each keeps the shape of the output. TOSA wants sizes to fit exactly, so for a convolution or
pooling along one axis

    (output - 1) * stride + (kernel - 1) * dilation + 1 = input + padding before + padding after

and a stride or dilation that changes takes the padding behind with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator, TosaTensor
from tests.mutation.fields import Change, Fields, Patch

_KERNEL_AT = {"CONV2D": 1, "CONV3D": 1, "TRANSPOSE_CONV2D": 1, "DEPTHWISE_CONV2D": 0}
_POOLS = ("AVG_POOL2D", "MAX_POOL2D")


@dataclass(frozen=True)
class _Window:
    """A convolution's or pooling's windows: places and values of its fields, sizes along its axes."""

    fields: Fields
    op: str
    places: dict[str, list[int]]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kernel: tuple[int, ...]

    def value(self, name: str, index: int) -> int:
        return self.fields.read(self.places[name][index], 4) if self.places[name] else 1

    def change(self, what: str, wanted: dict[tuple[str, int], int]) -> Change:
        before = {key: self.value(*key) for key in wanted}
        patches = tuple(
            Patch(self.places[name][index], value.to_bytes(4, "little", signed=True))
            for (name, index), value in wanted.items()
        )
        return Change(what, _text(before), _text(wanted), patches)


def _text(values: dict[tuple[str, int], int]) -> str:
    return ", ".join(f"{name}[{index}]={value}" for (name, index), value in values.items())


def _window(block: TosaBlock, fields: Fields, operator: TosaOperator) -> _Window | None:
    if operator.op in _POOLS:
        slots = {"kernel": 4, "stride": 6, "pad": 8}
    elif operator.op in _KERNEL_AT:
        transposed = operator.op == "TRANSPOSE_CONV2D"
        slots = {"pad": 4, "stride": 6} | ({} if transposed else {"dilation": 8})
    else:
        return None
    places = {name: fields.vector(operator, slot, 4) for name, slot in slots.items()}
    axes = len(places["stride"])
    if not axes or len(places["pad"]) != 2 * axes:
        return None
    if "kernel" in places:
        kernel = tuple(fields.read(place, 4) for place in places["kernel"])
    else:
        first = _KERNEL_AT[operator.op]
        kernel = block.tensors[operator.inputs[1]].shape[first : first + axes]
    sizes = (block.tensors[name].shape[1 : 1 + axes] for name in (operator.inputs[0], operator.outputs[0]))
    return _Window(fields, operator.op, {"dilation": [], **places}, *sizes, kernel)


def _pad(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """Move one row or column of padding to the other side."""
    window = _window(block, fields, operator)
    if window is None:
        return None
    possible = []
    for axis, kernel in enumerate(window.kernel):
        lowest = 1 - kernel if window.op == "TRANSPOSE_CONV2D" else 0
        highest = kernel - 1 if window.op in _POOLS else 1 << 20
        for source, target in ((2 * axis, 2 * axis + 1), (2 * axis + 1, 2 * axis)):
            less, more = window.value("pad", source) - 1, window.value("pad", target) + 1
            if less >= lowest and more <= highest:
                possible.append({("pad", source): less, ("pad", target): more})
    wanted = _one(rng, possible)
    return window.change("padding moved", wanted) if wanted else None


def _stride(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """One more or less; matters only where more than one window (or input) lies along the axis."""
    window = _window(block, fields, operator)
    if window is None:
        return None
    possible = []
    for axis, count in enumerate(window.inputs if window.op == "TRANSPOSE_CONV2D" else window.outputs):
        for step in (1, -1):
            stride = window.value("stride", axis) + step
            behind = _behind(window, axis, stride, window.value("dilation", axis))
            if count > 1 and stride >= 1 and behind is not None:
                possible.append({("stride", axis): stride, ("pad", 2 * axis + 1): behind})
    wanted = _one(rng, possible)
    return window.change("stride", wanted) if wanted else None


def _dilation(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """One more or less; matters only where the kernel has more than one element along the axis."""
    window = _window(block, fields, operator)
    if window is None or not window.places["dilation"]:
        return None
    possible = []
    for axis, kernel in enumerate(window.kernel):
        for step in (1, -1):
            dilation = window.value("dilation", axis) + step
            behind = _behind(window, axis, window.value("stride", axis), dilation)
            if kernel > 1 and dilation >= 1 and behind is not None:
                possible.append({("dilation", axis): dilation, ("pad", 2 * axis + 1): behind})
    wanted = _one(rng, possible)
    return window.change("dilation", wanted) if wanted else None


def _behind(window: _Window, axis: int, stride: int, dilation: int) -> int | None:
    """The padding behind that keeps the output's length, if TOSA allows it."""
    before, kernel = window.value("pad", 2 * axis), window.kernel[axis]
    if window.op == "TRANSPOSE_CONV2D":
        behind = window.outputs[axis] - (window.inputs[axis] - 1) * stride - kernel - before
        return behind if behind > -kernel else None
    reach = (window.outputs[axis] - 1) * stride + (kernel - 1) * dilation + 1
    behind = reach - window.inputs[axis] - before
    return behind if 0 <= behind < (kernel if window.op in _POOLS else 1 << 20) else None


def _padding(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """PAD: move one element of padding to the other side of an axis."""
    shape = _shape(block, operator, "PAD", 1)
    if shape is None:
        return None
    amounts = [int(value) for value in shape.values()]
    possible = []
    for source, amount in enumerate(amounts):
        if amount > 0:
            target = source ^ 1
            possible.append({source: amount - 1, target: amounts[target] + 1})
    wanted = _one(rng, possible)
    return _shape_change("padding moved", shape, wanted) if wanted else None


def _start(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """SLICE: start one element earlier or later, inside the input."""
    starts, sizes = (_shape(block, operator, "SLICE", place) for place in (1, 2))
    if starts is None or sizes is None:
        return None
    limits = block.tensors[operator.inputs[0]].shape
    possible = []
    for axis, (start, size, limit) in enumerate(zip(starts.values(), sizes.values(), limits, strict=True)):
        possible += [{axis: int(start) + step} for step in (1, -1) if 0 <= start + step <= limit - size]
    wanted = _one(rng, possible)
    return _shape_change("start", starts, wanted) if wanted else None


def _offset(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """RESIZE: move the sampling points by one fraction; the border keeps the size."""
    offset, border = (_shape(block, operator, "RESIZE", place) for place in (2, 3))
    if offset is None or border is None:
        return None
    axis, step = int(rng.integers(2)), int(rng.choice((1, -1)))
    moved = {axis: int(offset.values()[axis]) + step}
    kept = {axis: int(border.values()[axis]) + step}
    one, other = _shape_change("offset and border", offset, moved), _shape_change("", border, kept)
    return Change(one.what, f"{one.before}, {other.before}", f"{one.after}, {other.after}", one.patches + other.patches)


def _shape(block: TosaBlock, operator: TosaOperator, op: str, place: int) -> TosaTensor | None:
    """An operand of ``tosa.shape`` type that is a constant."""
    if operator.op != op or len(operator.inputs) <= place:
        return None
    tensor = block.tensors[operator.inputs[place]]
    return tensor if tensor.data is not None else None


def _shape_change(what: str, tensor: TosaTensor, wanted: dict[int, int]) -> Change:
    before = [int(value) for value in tensor.values()]
    after = [wanted.get(index, value) for index, value in enumerate(before)]
    patches = tuple(
        Patch(tensor.span[0] + 8 * index, value.to_bytes(8, "little", signed=True)) for index, value in wanted.items()
    )
    return Change(what, str(before), str(after), patches)


def _one(rng: np.random.Generator, possible: Sequence[dict[Any, int]]) -> dict[Any, int] | None:
    return possible[int(rng.integers(len(possible)))] if possible else None


Rule = Callable[[TosaBlock, Fields, TosaOperator, np.random.Generator], Change | None]
GEOMETRY: dict[str, Rule] = {
    "window padding": _pad,
    "window stride": _stride,
    "window dilation": _dilation,
    "PAD amounts": _padding,
    "SLICE start": _start,
    "RESIZE offset": _offset,
}
