"""Cuts that keep the operators and make what is left plainer; the order of all cuts; the canonical form.

Plainer is: an operator of the same kind that does less (MAX_POOL2D for AVG_POOL2D, ADD for SUB), int8 for int16, fewer
axes, constants of one value. Where the finding stays, what was there does not matter to it, and two findings of one
cause come out alike. ``measure`` is what must get smaller, so that every reduction ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.tosa import cutting
from harness.tosa.cutting import FLAGS, NARROW, PLAIN, WIDE, Cut, entries, replaced
from harness.tosa.program import (
    BITS,
    BOUNDS,
    SHAPE,
    Attribute,
    Fill,
    Operator,
    Program,
    Tensor,
    bound,
    limits,
    problem,
    pruned,
    stored_bound,
)
from harness.tosa.swapping import swapped

Measure = tuple[int, ...]
_PLAINER: Mapping[str, str] = {
    **dict.fromkeys(("SUB", "MAXIMUM", "MINIMUM", "MUL", "LOGICAL_LEFT_SHIFT"), "ADD"),
    **dict.fromkeys(("BITWISE_OR", "BITWISE_XOR"), "BITWISE_AND"),
    **dict.fromkeys(("LOGICAL_OR", "LOGICAL_XOR"), "LOGICAL_AND"),
    **dict.fromkeys(("EQUAL", "GREATER_EQUAL"), "GREATER"),
    **dict.fromkeys(("NEGATE", "TABLE", "BITWISE_NOT", "RESCALE", "REVERSE"), "CLAMP"),
    "REDUCE_MIN": "REDUCE_MAX",
    "REDUCE_ANY": "REDUCE_ALL",
    "AVG_POOL2D": "MAX_POOL2D",
}
"""Operators, and what does less with the same operands: it is tried in their place."""
_NOTHING = "IDENTITY"
"""It does least, and is tried for whatever keeps type and shape."""
_COMMUTATIVE = ("ADD", "MUL", "MAXIMUM", "MINIMUM", "EQUAL", "BITWISE_AND", "LOGICAL_AND")
_INT32, _INT48 = 5, 6
"""The schema's numbers, for ``AccType``."""
_NARROWER = ({"INT16": "INT8", "INT48": "INT32"}, {"INT32": "INT8"}, {"INT32": "INT16"})
_FIXED_RANK = frozenset(
    (
        *("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "AVG_POOL2D", "MAX_POOL2D"),
        *("MATMUL", "GATHER", "SCATTER", "RESIZE"),
    )
)
_SIZED: Mapping[str, int] = {"PAD": 2, "SLICE": 1, "TILE": 1, "RESHAPE": 1}
"""Operators with constant shapes: numbers an axis."""


def measure(program: Program) -> Measure:
    """What a reduction makes smaller: operators, operands, what they do, axes, bits, where axes are, attributes, sizes,
    values. The first that differs decides.
    """
    data = [item for item in program.tensors if item.dtype != SHAPE]
    shapes = [item for item in program.tensors if item.dtype == SHAPE]
    return (
        len(program.operators),
        len(program.inputs) + len(program.outputs),
        len(data),
        sum(2 if step.op in _PLAINER else step.op != _NOTHING for step in program.operators),
        sum(len(item.shape) for item in data),
        sum(BITS[item.dtype] for item in data),
        sum(len(item.shape) - axis for item in data for axis, size in enumerate(item.shape) if size > 1),
        sum(_weight(step) for step in program.operators),
        sum(item.elements for item in data),
        sum(abs(int(value)) for item in shapes for value in item.values()),
        sum(_complexity(item) for item in data),
        sum(_disordered(program, step) for step in program.operators),
    )


def _weight(step: Operator) -> int:
    """Attributes that are not what they would be if nobody cared."""
    found = sum(
        abs(item - plain)
        for name, plain in PLAIN.items()
        for item in entries(step.attributes.get(name, ()))
        if name in step.attributes
    )
    found += sum(entries(step.attributes.get("Kernel", ())))
    return found + sum(bool(step.attributes.get(name)) for name in FLAGS)


def _complexity(tensor: Tensor) -> int:
    """How much there is to say of a constant's values."""
    if tensor.data is None:
        return 0
    if isinstance(tensor.data, Fill):
        return 3 if tensor.data.low != tensor.data.high else 1 + (tensor.data.low != 0)
    values = set(tensor.data)
    return 2 * (len(values) - 1) + sum(1 for value in values if value not in (0, 1))


def plainer(program: Program) -> Iterator[Program]:
    """An operator that does less takes the place of another one."""
    pairs = [(place, step, other) for place, step in enumerate(program.operators) for other in _others(step)]
    for place, step, other in pairs:
        if _may_be(other, program, step):
            yield pruned(swapped(program, place, other))


def _others(step: Operator) -> tuple[str, ...]:
    found = _PLAINER.get(step.op)
    return () if step.op == _NOTHING else (_NOTHING,) if found is None else (_NOTHING, found)


def _may_be(other: str, program: Program, step: Operator) -> bool:
    """Do types and shapes let it stand there?"""
    before, after = program.by_name[step.inputs[0]], program.by_name[step.outputs[0]]
    if other == _NOTHING:
        return (before.dtype, before.shape) == (after.dtype, after.shape)
    if other == "CLAMP":
        return before.dtype == after.dtype and before.dtype in ("INT8", "INT16")
    return other != "ADD" or before.dtype == after.dtype == "INT32"


def dtypes(program: Program) -> Iterator[Program]:
    """int8 for int16 (and int32 for int48), or for int32."""
    for table in _NARROWER:
        if any(item.dtype in table for item in program.tensors):
            tensors = tuple(_narrowed(item, table) for item in program.tensors)
            found = msgspec.structs.replace(program, tensors=tensors)
            steps = tuple(_narrowed_step(found, program, step) for step in program.operators)
            yield msgspec.structs.replace(found, operators=steps)


def _narrowed(item: Tensor, table: Mapping[str, str]) -> Tensor:
    if item.dtype not in table:
        return item
    dtype = table[item.dtype]
    low, high = limits(dtype)
    data = item.data
    if isinstance(data, tuple):
        data = tuple(min(max(value, low), high) for value in data)
    elif isinstance(data, Fill):
        ends = (min(max(end, low), high) for end in (data.low, data.high))
        data = msgspec.structs.replace(data, **dict(zip(("low", "high"), ends, strict=True)))
    return msgspec.structs.replace(item, dtype=dtype, data=data, span=None)


def _narrowed_step(now: Program, before: Program, step: Operator) -> Operator:
    """Attributes that speak of a type follow."""
    found = dict(step.attributes)
    dtype, wide = now.by_name[step.inputs[0]].dtype, before.by_name[step.inputs[0]].dtype
    if step.op == "CLAMP" and dtype != wide:
        low, high = limits(dtype)
        held = [bound(found[name]) for name in BOUNDS]
        kept = [min(max(number, low), high) for number in held]
        if len({*kept}) < len({*held}):  # a clamp to one value would hide what is wrong before it
            kept = [number >> BITS[wide] - BITS[dtype] for number in held]
        for name, number in zip(BOUNDS, kept, strict=True):
            found[name] = stored_bound(number, dtype)
    if found.get("AccType") == _INT48 and now.by_name[step.inputs[0]].dtype == "INT8":
        found["AccType"] = _INT32
    return msgspec.structs.replace(step, attributes=found)


def ranks(program: Program) -> Iterator[Program]:
    """An axis of one element goes from every tensor; RESHAPE takes away a part of its target."""
    data = [item for item in program.tensors if item.dtype != SHAPE and len(item.shape) > 1]
    fewest = min((len(item.shape) for item in data), default=0)
    alike = all(len(item.shape) == fewest for item in data)
    for axis in range(fewest if alike else 1):
        if all(item.shape[axis] == 1 for item in data):
            yield from _without(program, axis)
    for step in program.operators:
        if step.op != "RESHAPE" or program.readers(step.outputs[0]):
            continue
        held = [int(item) for item in program.by_name[step.inputs[1]].values()]
        for place in range(len(held) - 1):
            joined = [*held[:place], held[place] * held[place + 1], *held[place + 2 :]]
            yield _target(program, step, joined)


def _target(program: Program, step: Operator, values: Sequence[int]) -> Program:
    found = replaced(program, step.inputs[1], shape=(len(values),), data=tuple(values))
    return replaced(found, step.outputs[0], shape=tuple(values))


def _without(program: Program, axis: int) -> Iterator[Program]:
    """Every tensor loses an axis, where the operators let it."""
    if any(step.op in _FIXED_RANK for step in program.operators):
        return
    tensors = {item.name: item for item in program.tensors}
    steps: list[Operator] = []
    for name, item in tensors.items():
        if len(item.shape) > 1 and item.dtype != SHAPE:
            tensors[name] = msgspec.structs.replace(item, shape=(*item.shape[:axis], *item.shape[axis + 1 :]))
    for step in program.operators:
        found: dict[str, Attribute] = dict(step.attributes)
        if "Axis" in found:
            along = entries(found["Axis"])[0]
            if along == axis:
                return
            found["Axis"] = along - (along > axis)
        if "Perms" in found:
            perms = entries(found["Perms"])
            if axis >= len(perms) or perms[axis] != axis:
                return
            found["Perms"] = tuple(other - (other > axis) for other in perms if other != axis)
        count = _SIZED.get(step.op, 0)
        for name in step.inputs if count else ():
            item = tensors[name]
            if item.dtype == SHAPE and isinstance(item.data, tuple) and item == program.by_name[name]:
                data = (*item.data[: count * axis], *item.data[count * (axis + 1) :])
                tensors[name] = msgspec.structs.replace(item, shape=(len(data),), data=data)
        steps.append(msgspec.structs.replace(step, attributes=found))
    kept = tuple(tensors[item.name] for item in program.tensors)
    yield msgspec.structs.replace(program, tensors=kept, operators=tuple(steps))


def moved(program: Program) -> Iterator[Program]:
    """Two neighbouring axes change places in every tensor: axes of several elements come to the back."""
    data = [item for item in program.tensors if item.dtype != SHAPE and len(item.shape) > 1]
    fewest = min((len(item.shape) for item in data), default=0)
    fixed = any(step.op in _FIXED_RANK or step.op == "RESHAPE" for step in program.operators)
    if fixed or any(len(item.shape) != fewest for item in data):
        return
    for axis in range(fewest - 1):
        order = [*range(axis), axis + 1, axis, *range(axis + 2, fewest)]
        tensors = {item.name: _transposed(item, order) if item in data else item for item in program.tensors}
        steps = []
        for step in program.operators:
            found = dict(step.attributes)
            if "Axis" in found:
                found["Axis"] = order.index(entries(found["Axis"])[0])
            if "Perms" in found:
                perms = entries(found["Perms"])
                found["Perms"] = tuple(order.index(perms[other]) for other in order)
            steps.append(msgspec.structs.replace(step, attributes=found))
            count = _SIZED.get(step.op, 0)
            for name in step.inputs if count else ():
                item = tensors[name]
                if item.dtype == SHAPE and isinstance(item.data, tuple) and item == program.by_name[name]:
                    parts = [item.data[count * other : count * (other + 1)] for other in order]
                    numbers = tuple(number for part in parts for number in part)
                    tensors[name] = msgspec.structs.replace(item, data=numbers)
        kept = tuple(tensors[item.name] for item in program.tensors)
        yield msgspec.structs.replace(program, tensors=kept, operators=tuple(steps))


def _transposed(item: Tensor, order: Sequence[int]) -> Tensor:
    data = item.data
    if isinstance(data, tuple):
        data = tuple(int(value) for value in item.values().transpose(order).ravel())
    return msgspec.structs.replace(item, shape=tuple(item.shape[axis] for axis in order), data=data)


def ordered(program: Program) -> Iterator[Program]:
    """Operands that may change places do: inputs first, then results as they come, then constants."""
    for place, step in enumerate(program.operators):
        if _disordered(program, step):
            one, other, *more = step.inputs
            changed = msgspec.structs.replace(step, inputs=(other, one, *more))
            steps = (*program.operators[:place], changed, *program.operators[place + 1 :])
            yield msgspec.structs.replace(program, operators=steps)


def _disordered(program: Program, step: Operator) -> bool:
    order = [*program.inputs, *(name for item in program.operators for name in item.outputs)]
    ranks = [order.index(name) if name in order else len(order) for name in step.inputs[:2]]
    return step.op in _COMMUTATIVE and ranks != sorted(ranks)


def values(program: Program) -> Iterator[Program]:
    """Constants become one value, or a rule; factors of RESCALE one; CLAMP wide; an input's range its type's."""
    for item in program.tensors:
        if item.dtype == SHAPE or item.data is None:
            continue
        for plain in (0, 1, 2):
            if item.data != (plain,) * item.elements:
                yield replaced(program, item.name, data=(plain,) * item.elements)
        if isinstance(item.data, tuple) and len(set(item.data)) > 1:
            yield replaced(program, item.name, data=(item.data[0],) * item.elements)
            yield replaced(program, item.name, data=Fill("uniform", min(item.data), max(item.data)))
    for step in program.operators:
        if step.op == "RESCALE":
            yield _by_one(program, step)
    for name in program.inputs:
        if program.by_name[name].span not in (None, WIDE, NARROW):
            yield replaced(program, name, span=None)


def _by_one(program: Program, step: Operator) -> Program:
    """Factor one: a multiplier of a power of two, and the shift that takes it back."""
    wide = bool(step.attributes.get("Scale32"))
    bits = 30 if wide else 14
    count = program.by_name[step.inputs[1]].elements
    found = replaced(program, step.inputs[1], data=(1 << bits,) * count)
    return replaced(found, step.inputs[2], data=(bits,) * count)


CUTS: tuple[Cut, ...] = (
    cutting.behind,
    cutting.before,
    cutting.outputs,
    cutting.freed,
    cutting.shortcuts,
    cutting.merged,
    plainer,
    cutting.shapes,
    cutting.attributes,
    cutting.sizes,
    ranks,
    moved,
    dtypes,
    values,
    ordered,
)
"""Cheap and bold first."""


def candidates(program: Program, cut: Cut) -> list[Program]:
    """What a cut offers that is a program and smaller, each once, in the cut's order."""
    most = measure(program)
    found = dict.fromkeys(_Seen(item) for item in cut(program) if not problem(item) and measure(item) < most)
    return [item.program for item in found]


class _Seen:
    """A program that can be a key."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._bytes = msgspec.json.encode(program)

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Seen) and self._bytes == other._bytes


def canonical(program: Program) -> Program:
    """The same program with plain names in the order of use: ``x0`` inputs, ``c0`` constants, ``v0`` results.

    Constants that say the same in the same shape are one.
    """
    names: dict[str, str] = {}
    kept: dict[str, Tensor] = {}
    counts = {"x": 0, "c": 0, "v": 0}
    said: dict[bytes, str] = {}

    def name_of(old: str) -> str:
        if old in names:
            return names[old]
        item = program.by_name[old]
        letter = "c" if item.constant else "v" if old in program.producers else "x"
        body = msgspec.json.encode(msgspec.structs.replace(item, name=""))
        if letter == "c" and body in said:
            names[old] = said[body]
            return said[body]
        new = f"{letter}{counts[letter]}"
        counts[letter] += 1
        names[old] = new
        said.setdefault(body, new)
        kept[new] = msgspec.structs.replace(item, name=new)
        return new

    inputs = {name_of(name) for step in program.operators for name in step.inputs if name in program.inputs}
    steps = tuple(
        msgspec.structs.replace(
            step,
            inputs=tuple(map(name_of, step.inputs)),
            outputs=tuple(map(name_of, step.outputs)),
            attributes=dict(sorted(step.attributes.items())),
        )
        for step in program.operators
    )
    given = tuple(dict.fromkeys([*sorted(inputs, key=lambda name: int(name[1:])), *map(name_of, program.inputs)]))
    return Program(tuple(kept.values()), steps, given, tuple(map(name_of, program.outputs)))
