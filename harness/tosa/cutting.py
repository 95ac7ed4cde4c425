"""The cuts of a reducer: smaller programs that are like a given one, as pure data.

Each *cut* is a function from a program to candidates, the boldest first. Candidates need not be valid, and need not
show anything: ``harness.tosa.reducing`` asks. ``measure`` is what must get smaller, so that every reduction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.tosa.program import SHAPE, Attribute, Fill, Operator, Program, Tensor, problem, pruned
from harness.tosa.resizing import resized

Cut = Callable[[Program], Iterator[Program]]
_WIDE = (-(1 << 20), 1 << 20)
"""Range of an int32 tensor that becomes an input."""
_NARROW = (-128, 127)
"""Tried after it: behind such an input a RESCALE or MUL may be undefined for more."""
_PLAIN: Mapping[str, int] = {"Stride": 1, "Dilation": 1, "Pad": 0, "OutPad": 0}
Measure = tuple[int, ...]


def measure(program: Program) -> Measure:
    """What a reduction makes smaller: operators first, then operands, axes, attributes, elements, values."""
    data = [item for item in program.tensors if item.dtype != SHAPE]
    shapes = [item for item in program.tensors if item.dtype == SHAPE]
    return (
        len(program.operators),
        len(program.inputs) + len(program.outputs),
        len(data),
        sum(len(item.shape) for item in data),
        sum(_weight(step) for step in program.operators),
        sum(item.elements for item in data),
        sum(abs(int(value)) for item in shapes for value in item.values()),
        sum(_complexity(item) for item in data),
    )


def _weight(step: Operator) -> int:
    """Attributes that are not what they would be if nobody cared."""
    found = sum(
        abs(item - plain)
        for name, plain in _PLAIN.items()
        for item in _entries(step.attributes.get(name, ()))
        if name in step.attributes
    )
    found += sum(_entries(step.attributes.get("Kernel", ())))
    return found + sum(bool(step.attributes.get(name)) for name in ("PerChannel", "Round", "LocalBound"))


def _complexity(tensor: Tensor) -> int:
    """How much there is to say of a constant's values."""
    if tensor.data is None:
        return 0
    if isinstance(tensor.data, Fill):
        return 3 if tensor.data.low != tensor.data.high else 1 + (tensor.data.low != 0)
    values = set(tensor.data)
    return 2 * (len(values) - 1) + sum(1 for value in values if value not in (0, 1))


def _entries(value: Attribute) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (int(value),)


def behind(program: Program) -> Iterator[Program]:
    """One value is the only output: everything behind it goes. The first values first."""
    for step in program.operators:
        for name in step.outputs:
            if (name,) != program.outputs:
                yield _with_outputs(program, (name,))


def outputs(program: Program) -> Iterator[Program]:
    """One output fewer."""
    if len(program.outputs) > 1:
        for dropped in program.outputs:
            yield _with_outputs(program, tuple(name for name in program.outputs if name != dropped))


def before(program: Program) -> Iterator[Program]:
    """A result becomes an input, the last ones first: everything before it goes."""
    for step in reversed(program.operators[:-1]):
        if step.outputs[0] not in program.outputs or program.readers(step.outputs[0]):
            yield _as_input(program, step, _WIDE)
            if program.by_name[step.outputs[0]].dtype in ("INT32", "INT48"):
                yield _as_input(program, step, _NARROW)


def _as_input(program: Program, step: Operator, span: tuple[int, int]) -> Program:
    name = step.outputs[0]
    tensors = tuple(
        msgspec.structs.replace(item, span=span) if item.name == name and item.dtype in ("INT32", "INT48") else item
        for item in program.tensors
    )
    kept = tuple(item for item in program.operators if item is not step)
    wanted = tuple(item for item in program.outputs if item != name) or program.outputs
    found = msgspec.structs.replace(program, tensors=tensors, operators=kept, outputs=wanted)
    return pruned(msgspec.structs.replace(found, inputs=(*program.inputs, name)))


def bypassed(program: Program) -> Iterator[Program]:
    """An operator goes; what read its result reads one of its operands."""
    for step in reversed(program.operators):
        for name in step.inputs:
            if program.by_name[name].dtype == program.by_name[step.outputs[0]].dtype:
                yield from _reading(program, step.outputs[0], name, without=step)


def merged(program: Program) -> Iterator[Program]:
    """Two inputs, or a constant and an input, become one; an input becomes a constant."""
    table = program.by_name
    free = [item for item in program.tensors if item.name not in program.producers and item.dtype != SHAPE]
    for name in program.inputs:
        for other in free:
            if other.name != name and (other.shape, other.dtype) == (table[name].shape, table[name].dtype):
                yield from _reading(program, other.name, name)
    for name in program.inputs:
        if len(program.inputs) > 1:
            low, high = table[name].limits
            yield _replaced(program, name, data=Fill("uniform", max(low, -128), min(high, 127)), span=None)


def _reading(program: Program, old: str, new: str, *, without: Operator | None = None) -> Iterator[Program]:
    """Readers of one tensor read another one."""

    def renamed(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    steps = [
        msgspec.structs.replace(step, inputs=renamed(step.inputs))
        for step in program.operators
        if step is not without and step is not None
    ]
    made = {name for step in steps for name in step.outputs}
    wanted = renamed(program.outputs) if new in made else tuple(name for name in program.outputs if name != old)
    if not wanted:
        return
    found = resized(msgspec.structs.replace(program, outputs=tuple(dict.fromkeys(wanted))), operators=steps)
    if found is not None:
        yield pruned(found)


def shapes(program: Program) -> Iterator[Program]:
    """An axis of an input or a constant becomes one, a half, or one less; all axes of that size at once first."""
    free = [item for item in program.tensors if item.name not in program.producers and item.dtype != SHAPE]
    for sized in (lambda size: 1, lambda size: 2, lambda size: size // 2, lambda size: size - 1):
        for item in sorted(free, key=lambda item: -item.elements):
            for axis, size in enumerate(item.shape):
                if 1 <= (less := sized(size)) < size:
                    shape = (*item.shape[:axis], less, *item.shape[axis + 1 :])
                    yield from _made(resized(program, shapes={item.name: shape}))


def attributes(program: Program) -> Iterator[Program]:
    """Pads, strides, dilations and kernels become what they would be if nobody cared."""
    for place, step in enumerate(program.operators):
        for name, value in step.attributes.items():
            for simple in _simpler(step, name, value):
                changed = msgspec.structs.replace(step, attributes={**step.attributes, name: simple})
                steps = (*program.operators[:place], changed, *program.operators[place + 1 :])
                yield from _made(resized(program, operators=steps))


def _simpler(step: Operator, name: str, value: Attribute) -> Iterator[Attribute]:
    if name in ("PerChannel", "Round", "LocalBound") and value:
        yield False
    if name == "RoundingMode" and value != 1:
        yield 1
    if not isinstance(value, tuple) or name not in (*_PLAIN, "Kernel"):
        return
    plain = _PLAIN.get(name, 1)
    if any(item != plain for item in value):
        yield (plain,) * len(value)
    for place, item in enumerate(value):
        for less in dict.fromkeys((plain, item - 1)):
            if plain <= less < item:
                yield (*value[:place], less, *value[place + 1 :])


def sizes(program: Program) -> Iterator[Program]:
    """Constant shapes: smaller pads and multiples, shorter slices that begin at the front."""
    for step in program.operators:
        for index, plain in {"PAD": ((1, 0),), "TILE": ((1, 1),), "SLICE": ((1, 0), (2, 1))}.get(step.op, ()):
            held = [int(item) for item in program.by_name[step.inputs[index]].values()]
            for place, item in enumerate(held):
                for less in dict.fromkeys((plain, item // 2, item - 1)):
                    if plain <= less < item:
                        values = [*held[:place], less, *held[place + 1 :]]
                        yield from _made(resized(program, constants={step.inputs[index]: values}))


def ranks(program: Program) -> Iterator[Program]:
    """An axis of one element goes from the front of every tensor; RESHAPE takes away a part of its target."""
    if all(item.dtype == SHAPE or item.shape[:1] == (1,) for item in program.tensors if len(item.shape) > 1):
        yield from _lower(program)
    for step in program.operators:
        if step.op != "RESHAPE" or program.readers(step.outputs[0]):
            continue
        held = [int(item) for item in program.by_name[step.inputs[1]].values()]
        for place in range(len(held) - 1):
            joined = [*held[:place], held[place] * held[place + 1], *held[place + 2 :]]
            yield _target(program, step, joined)


def _target(program: Program, step: Operator, values: Sequence[int]) -> Program:
    found = _replaced(program, step.inputs[1], shape=(len(values),), data=tuple(values))
    return _replaced(found, step.outputs[0], shape=tuple(values))


def _lower(program: Program) -> Iterator[Program]:
    """Every tensor loses its first axis, where the operators let it."""
    moved = (
        "CLAMP",
        "ABS",
        "CAST",
        "IDENTITY",
        "TABLE",
        "ADD",
        "SUB",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "RESCALE",
        "NEGATE",
    )
    axes = (
        "REDUCE_MAX",
        "REDUCE_MIN",
        "REDUCE_SUM",
        "CONCAT",
        "REVERSE",
        "ARGMAX",
        "TRANSPOSE",
        "SLICE",
        "TILE",
        "PAD",
    )
    if any(step.op not in (*moved, *axes, "RESHAPE") for step in program.operators):
        return
    tensors = {item.name: item for item in program.tensors}
    steps: list[Operator] = []
    for name, item in tensors.items():
        if len(item.shape) > 1 and item.dtype != SHAPE:
            tensors[name] = msgspec.structs.replace(item, shape=item.shape[1:])
    for step in program.operators:
        found: dict[str, Attribute] = dict(step.attributes)
        if "Axis" in found:
            axis = _entries(found["Axis"])[0] - 1
            if axis < 0:
                return
            found["Axis"] = axis
        if "Perms" in found:
            perms = _entries(found["Perms"])
            if perms[0] != 0:
                return
            found["Perms"] = tuple(axis - 1 for axis in perms[1:])
        for name in step.inputs:
            item = tensors[name]
            if item.dtype == SHAPE and isinstance(item.data, tuple) and item == program.by_name[name]:
                data = item.data[2 if step.op == "PAD" else 1 :]
                tensors[name] = msgspec.structs.replace(item, shape=(len(data),), data=data)
        steps.append(msgspec.structs.replace(step, attributes=found))
    kept = tuple(tensors[item.name] for item in program.tensors)
    yield msgspec.structs.replace(program, tensors=kept, operators=tuple(steps))


def values(program: Program) -> Iterator[Program]:
    """Constants become one value; factors of RESCALE one half; an input's range its type's."""
    for item in program.tensors:
        if item.dtype == SHAPE or item.data is None:
            continue
        for plain in (0, 1, 2):
            if item.data != (plain,) * item.elements:
                yield _replaced(program, item.name, data=(plain,) * item.elements)
        if isinstance(item.data, tuple) and len(set(item.data)) > 1:
            yield _replaced(program, item.name, data=(item.data[0],) * item.elements)
    for step in program.operators:
        if step.op == "RESCALE":
            yield _halving(program, step)
    for name in program.inputs:
        if program.by_name[name].span not in (None, _WIDE, _NARROW):
            yield _replaced(program, name, span=None)


def _halving(program: Program, step: Operator) -> Program:
    """Factor one: a multiplier of a power of two, and the shift that takes it back."""
    wide = bool(step.attributes.get("Scale32"))
    bits = 30 if wide else 14
    count = program.by_name[step.inputs[1]].elements
    found = _replaced(program, step.inputs[1], data=(1 << bits,) * count)
    return _replaced(found, step.inputs[2], data=(bits,) * count)


CUTS: tuple[Cut, ...] = (behind, before, outputs, bypassed, merged, shapes, attributes, sizes, ranks, values)
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


def _with_outputs(program: Program, wanted: tuple[str, ...]) -> Program:
    return pruned(msgspec.structs.replace(program, outputs=wanted))


def _made(program: Program | None) -> Iterator[Program]:
    if program is not None:
        yield pruned(program)


def _replaced(program: Program, tensor: str, **fields: object) -> Program:
    tensors = tuple(
        msgspec.structs.replace(item, **fields) if item.name == tensor else item for item in program.tensors
    )
    return msgspec.structs.replace(program, tensors=tensors)
