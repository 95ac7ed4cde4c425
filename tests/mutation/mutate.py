"""Mutants of a TOSA flatbuffer: one constant, RESCALE parameter or operator attribute changed in place.

``sites`` lists everything that can be changed; ``mutate`` draws a kind, a site of that kind and a
change, and returns the altered bytes with a description. Only values are overwritten, never the
layout, so a mutant is always a readable flatbuffer of the same size.

Changes that TOSA forbids by a simple rule (a zero point on int32, shifts outside 2..62), or that
cannot matter by definition (stride along an output of length 1, NaN mode on integers) are left
out: both would only pad the score. Changed padding, stride and dilation keep the output's shape.
An axis has no such neighbour and mostly gives a graph that the reference model rejects.

Limit: a scalar attribute that has the schema's default is not stored, so there is nothing to
change (axis 0, ``per_channel`` and ``input_unsigned`` where they are false).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from harness.artifacts.tosa import SHAPE, TosaBlock, TosaOperator, TosaTensor, decode_tosa
from tests.mutation.fields import Change, Fields, Patch, patched
from tests.mutation.geometry import GEOMETRY

INTEGERS = {"INT8": 1, "INT16": 2, "INT32": 4, "INT48": 6, SHAPE: 8}
CONVOLUTIONS = ("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D")
ROUNDING = {1: "SINGLE_ROUND", 2: "INEXACT_ROUND", 3: "DOUBLE_ROUND"}
FIRST_TWO = ("SUB", "INTDIV", "GREATER", "GREATER_EQUAL", "POW", "MATMUL", "ARITHMETIC_RIGHT_SHIFT")
AXES = ("CONCAT", "ARGMAX", "REVERSE", "REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY")

_ROLES = {
    **{(op, 1): "weight" for op in CONVOLUTIONS},
    **{(op, 2): "bias" for op in CONVOLUTIONS},
    **{(op, place): "operator zero point" for op in (*CONVOLUTIONS,) for place in (3, 4)},
    **{("MATMUL", place): "operator zero point" for place in (2, 3)},
    **{(op, place): "operator zero point" for op in ("AVG_POOL2D", "NEGATE") for place in (1, 2)},
    ("RESCALE", 1): "RESCALE multiplier",
    ("RESCALE", 2): "RESCALE shift",
    ("RESCALE", 3): "RESCALE input zero point",
    ("RESCALE", 4): "RESCALE output zero point",
    ("TABLE", 1): "TABLE entry",
    ("PAD", 2): "PAD value",
    ("MUL", 2): "MUL shift",
    ("GATHER", 1): "GATHER index",
}


@dataclass(frozen=True)
class Mutation:
    """What was changed.

    :param operator: index of the operator in the main block (of a shared constant's first reader).
    :param tensor: the constant that was changed, or "" for an attribute.
    :param what: the change in words: "+8", "x (1 + 2^-4)", "pad [0, 1] -> ...".
    """

    kind: str
    operator: int
    op: str
    tensor: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Site:
    """A place that can be changed; ``draw`` returns a change, or None if none is possible."""

    kind: str
    operator: TosaOperator
    tensor: str
    draw: Callable[[np.random.Generator], Change | None]


def mutate(data: bytes, rng: np.random.Generator, kind: str | None = None) -> tuple[bytes, Mutation] | None:
    """A random mutant of a flatbuffer (of one kind, if asked for), or None if nothing can be changed.

    Kinds have equal chances, then sites of a kind: otherwise most mutants would be weights.
    """
    by_kind: dict[str, list[Site]] = {}
    for site in sites(data):
        if kind in (None, site.kind):
            by_kind.setdefault(site.kind, []).append(site)
    while by_kind:
        places = by_kind.pop(sorted(by_kind)[int(rng.integers(len(by_kind)))])
        while places:
            site = places.pop(int(rng.integers(len(places))))
            change = site.draw(rng)
            if change is not None:
                return patched(data, change.patches), _mutation(site, change)
    return None


def _mutation(site: Site, change: Change) -> Mutation:
    operator = site.operator
    return Mutation(site.kind, operator.index, operator.op, site.tensor, change.what, change.before, change.after)


@lru_cache(maxsize=4)
def sites(data: bytes) -> tuple[Site, ...]:
    """Every place of the main block that can be changed, in graph order."""
    block, fields = decode_tosa(data).main, Fields(data)
    found: dict[tuple[str, str], Site] = {}
    for operator in block.operators:
        for site in _sites_of(block, fields, operator):
            found.setdefault((site.kind, site.tensor or str(operator.index)), site)  # a shared constant counts once
    return tuple(found.values())


def _sites_of(block: TosaBlock, fields: Fields, operator: TosaOperator) -> Iterator[Site]:
    for place, name in enumerate(operator.inputs):
        tensor = block.tensors[name]
        if tensor.data is None or tensor.dtype not in INTEGERS or tensor.dtype == SHAPE or not tensor.elements:
            continue
        kind = _ROLES.get((operator.op, place), "constant")
        yield Site(kind, operator, name, partial(_element, block, operator, tensor, kind))
    for rule in (_rounding, _clamp, _axis, _transpose, _swap):
        kind = rule.__name__[1:]
        yield Site(_ATTRIBUTES[kind], operator, "", partial(rule, block, fields, operator))
    for kind, rule in GEOMETRY.items():
        yield Site(kind, operator, "", partial(rule, block, fields, operator))


_ATTRIBUTES = {
    "rounding": "RESCALE rounding mode",
    "clamp": "CLAMP bound",
    "axis": "axis",
    "transpose": "TRANSPOSE perms",
    "swap": "operands swapped",
}


def _element(
    block: TosaBlock, operator: TosaOperator, tensor: TosaTensor, kind: str, rng: np.random.Generator
) -> Change | None:
    """Change one element of a constant."""
    width = INTEGERS[tensor.dtype]
    at = int(rng.integers(tensor.elements))
    before = int(tensor.values().reshape(-1)[at])
    options = _options(block, operator, tensor, kind, before)
    low, high = _allowed(block, operator, kind, width)
    possible = [(what, after) for what, after in options if low <= after <= high and after != before]
    if not possible:
        return None
    what, after = possible[int(rng.integers(len(possible)))]
    start = tensor.span[0] + at * width
    stored = after.to_bytes(width, "little", signed=True)
    return Change(f"[{at}] of {list(tensor.shape)}: {what}", str(before), str(after), (Patch(start, stored),))


def _options(
    block: TosaBlock, operator: TosaOperator, tensor: TosaTensor, kind: str, value: int
) -> list[tuple[str, int]]:
    if kind == "RESCALE multiplier":
        parts = [
            (f"x (1 {sign:+d} * 2^-{bits})", value + sign * (value >> bits)) for bits in (8, 4) for sign in (1, -1)
        ]
        return [*parts, ("doubled", 2 * value), ("halved", value // 2)]
    steps = [(f"{step:+d}", value + step) for step in (1, -1)]
    if kind in ("RESCALE shift", "MUL shift", "GATHER index"):
        return steps
    if kind.endswith("zero point"):
        # TOSA has zero points on int8 only (and on uint16, which nothing here uses)
        return steps if tensor.dtype == "INT8" else []
    steps += [(f"{step:+d}", value + step) for step in (8, -8)]
    return steps if kind == "TABLE entry" else [*steps, ("sign flipped", -value), ("zeroed", 0)]


def _allowed(block: TosaBlock, operator: TosaOperator, kind: str, width: int) -> tuple[int, int]:
    """Lowest and highest value that TOSA allows there."""
    if kind == "RESCALE shift":
        return 2, 62
    if kind == "RESCALE multiplier":
        return 0, (1 << (8 * width - 1)) - 1
    if kind == "MUL shift":
        return 0, 63 if block.tensors[operator.inputs[0]].dtype == "INT32" else 0
    if kind == "GATHER index":
        return 0, block.tensors[operator.inputs[0]].shape[1] - 1
    low = -(1 << (8 * width - 1))
    return (low + 1 if kind == "weight" else low), -low - 1  # symmetric: -128 is not what a compiler emits


def _rounding(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    place = fields.scalar(operator, "RESCALE", 6, 4)
    if place is None:
        return None
    before = fields.read(place, 4)
    others = [mode for mode in ROUNDING if mode != before]
    after = others[int(rng.integers(len(others)))]
    return Change(
        "rounding mode",
        ROUNDING.get(before, str(before)),
        ROUNDING[after],
        (Patch(place, after.to_bytes(4, "little")),),
    )


def _clamp(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """Move one bound by 1 or 8; the bounds are stored as bytes of the tensor's type."""
    if operator.op != "CLAMP":
        return None
    width = INTEGERS.get(block.tensors[operator.inputs[0]].dtype, 0)
    slots = {name: fields.vector(operator, slot, 1) for name, slot in (("min", 4), ("max", 6))}
    if any(len(places) != width for places in slots.values()) or not width:
        return None
    now = {name: fields.read(places[0], width) for name, places in slots.items()}
    top = (1 << (8 * width - 1)) - 1
    possible = []
    for name, step in ((name, step) for name in now for step in (1, -1, 8, -8)):
        then = {**now, name: now[name] + step}
        if -top - 1 <= then["min"] <= then["max"] <= top:
            possible.append((name, step))
    if not possible:
        return None
    name, step = possible[int(rng.integers(len(possible)))]
    after = now[name] + step
    patch = Patch(slots[name][0], after.to_bytes(width, "little", signed=True))
    return Change(f"{name} {step:+d}", str(now[name]), str(after), (patch,))


def _axis(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    place = fields.scalar(operator, operator.op, 4, 4) if operator.op in AXES else None
    if place is None:
        return None
    before = fields.read(place, 4)
    others = [axis for axis in range(len(block.tensors[operator.inputs[0]].shape)) if axis != before]
    if not others:
        return None
    after = others[int(rng.integers(len(others)))]
    return Change("axis", str(before), str(after), (Patch(place, after.to_bytes(4, "little")),))


def _transpose(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """Swap two axes that have the same length (not 1) in the output."""
    if operator.op != "TRANSPOSE":
        return None
    shape = block.tensors[operator.outputs[0]].shape
    places = fields.vector(operator, 4, 4)
    pairs = [
        (i, j) for i in range(len(shape)) for j in range(i + 1, len(shape)) if shape[i] == shape[j] and shape[i] != 1
    ]
    if not pairs or len(places) != len(shape):
        return None
    i, j = pairs[int(rng.integers(len(pairs)))]
    perms = [fields.read(place, 4) for place in places]
    first, second = (perms[axis].to_bytes(4, "little") for axis in (i, j))
    swapped = [perms[j] if axis == i else perms[i] if axis == j else perm for axis, perm in enumerate(perms)]
    return Change("perms", str(perms), str(swapped), (Patch(places[i], second), Patch(places[j], first)))


def _swap(block: TosaBlock, fields: Fields, operator: TosaOperator, rng: np.random.Generator) -> Change | None:
    """Exchange two operands of one type where their order matters."""
    if operator.op in FIRST_TWO:
        pairs = [(0, 1)]
    elif operator.op == "SELECT":
        pairs = [(1, 2)]
    elif operator.op == "CONCAT":
        pairs = [(i, j) for i in range(len(operator.inputs)) for j in range(i + 1, len(operator.inputs))]
    else:
        return None

    def same(i: int, j: int) -> bool:
        first, second = (block.tensors[operator.inputs[place]] for place in (i, j))
        return first.name != second.name and (first.shape, first.dtype) == (second.shape, second.dtype)

    pairs = [pair for pair in pairs if same(*pair)]
    if not pairs:
        return None
    i, j = pairs[int(rng.integers(len(pairs)))]
    names = operator.inputs
    return Change(
        f"operands {i} and {j}", f"{names[i]}, {names[j]}", f"{names[j]}, {names[i]}", fields.swap(operator, i, j)
    )
