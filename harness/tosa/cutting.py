"""Cuts of a program: operators, operands, outputs, axes and attributes go.

Each *cut* is a function from a program to candidates, the boldest first. Candidates need not be valid, and need not
show anything: ``harness.tosa.reducing`` asks. ``harness.tosa.simplifying`` has the cuts that keep the operators' number
and make what is left plainer, the order of all cuts, and what a reduction makes smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from harness.tosa.inputs import INPUT_TYPES
from harness.tosa.program import SHAPE, Attribute, Fill, Operator, Program, parameters, pruned
from harness.tosa.resizing import resized

Cut = Callable[[Program], Iterator[Program]]
WIDE = (-(1 << 20), 1 << 20)
"""Range of an int32 tensor that becomes an input."""
NARROW = (-128, 127)
"""Tried after it: behind such an input a RESCALE or MUL may be undefined for more."""
_RANGED = ("INT32", "INT48")
"""Types whose inputs have a range."""
PLAIN: Mapping[str, int] = {"Stride": 1, "Dilation": 1, "Pad": 0, "OutPad": 0}
"""Attributes of windows, and what they are where nobody cares."""
FLAGS = ("PerChannel", "Round", "LocalBound")


def entries(value: Attribute) -> tuple[int, ...]:
    """An attribute's numbers."""
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


def freed(program: Program) -> Iterator[Program]:
    """A constant that is computed with becomes an input, for one output alone: a program must have an input, and the
    one that it has may be there for nothing else.
    """
    for item in program.tensors:
        if item.data is not None and item.dtype in INPUT_TYPES:
            held = _given(program, item.name, WIDE)
            found = [_with_outputs(held, (wanted,)) for wanted in program.outputs]
            yield from (one for one in found if item.name in one.inputs)


def before(program: Program) -> Iterator[Program]:
    """A result becomes an input, the last ones first: everything before it goes."""
    for step in reversed(program.operators[:-1]):
        if program.by_name[step.outputs[0]].dtype not in INPUT_TYPES:
            continue
        if step.outputs[0] not in program.outputs or program.readers(step.outputs[0]):
            yield _as_input(program, step, WIDE)
            if program.by_name[step.outputs[0]].dtype in _RANGED:
                yield _as_input(program, step, NARROW)


def _as_input(program: Program, step: Operator, span: tuple[int, int]) -> Program:
    name = step.outputs[0]
    kept = tuple(item for item in program.operators if item is not step)
    wanted = tuple(item for item in program.outputs if item != name) or program.outputs
    return pruned(msgspec.structs.replace(_given(program, name, span), operators=kept, outputs=wanted))


def _given(program: Program, name: str, span: tuple[int, int]) -> Program:
    """The program with a tensor as an input, in this range if its type is one that has a range."""
    held = replaced(program, name, data=None)
    if program.by_name[name].dtype in _RANGED:
        held = replaced(held, name, span=span)
    return msgspec.structs.replace(held, inputs=(*program.inputs, name))


def shortcuts(program: Program) -> Iterator[Program]:
    """What reads one value reads an earlier one of its type: everything between them goes, the longest way first."""
    order = [*program.inputs, *(name for step in program.operators for name in step.outputs)]
    table = program.by_name
    pairs = [
        (late - early, old, new)
        for late, old in enumerate(order)
        for early, new in enumerate(order[:late])
        if old in program.producers and table[old].dtype == table[new].dtype
    ]
    for _, old, new in sorted(pairs, key=lambda pair: -pair[0]):
        yield from _reading(program, old, new)


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
            yield _fixed(program, name)


def exchanged(program: Program) -> Iterator[Program]:
    """The only input becomes a constant, and a constant that an operator computes with the input.

    No cut, since nothing gets smaller: which of them a reduction leaves as the input is chance.
    """
    if len(program.inputs) != 1:
        return
    computed = {name for step in program.operators for name in step.inputs if name not in parameters(step)}
    for item in program.tensors:
        if item.constant and item.dtype != SHAPE and item.name in computed:
            yield _fixed(_given(program, item.name, WIDE), program.inputs[0])


def _fixed(program: Program, name: str) -> Program:
    """The program with an input as a constant."""
    low, high = (min(max(end, -128), 127) for end in program.by_name[name].limits)
    held = replaced(program, name, data=Fill("uniform", low, high), span=None)
    return msgspec.structs.replace(held, inputs=tuple(item for item in held.inputs if item != name))


def _reading(program: Program, old: str, new: str) -> Iterator[Program]:
    """Readers of one tensor read another one."""

    def renamed(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    steps = [msgspec.structs.replace(step, inputs=renamed(step.inputs)) for step in program.operators]
    results = {name for step in steps for name in step.outputs}
    wanted = renamed(program.outputs) if new in results else tuple(name for name in program.outputs if name != old)
    if not wanted:
        return
    found = resized(msgspec.structs.replace(program, outputs=tuple(dict.fromkeys(wanted))), operators=steps)
    if found is not None:
        yield pruned(found)


def shapes(program: Program) -> Iterator[Program]:
    """An axis of an input or a constant becomes one, a half, or one less."""
    free = [item for item in program.tensors if item.name not in program.producers and item.dtype != SHAPE]
    for sized in (lambda size: 1, lambda size: 2, lambda size: size // 2, lambda size: size - 1):
        for item in sorted(free, key=lambda item: -item.elements):
            for axis, size in enumerate(item.shape):
                if 1 <= (less := sized(size)) < size:
                    shape = (*item.shape[:axis], less, *item.shape[axis + 1 :])
                    yield from made(resized(program, shapes={item.name: shape}))


def attributes(program: Program) -> Iterator[Program]:
    """Pads, strides, dilations and kernels become what they would be if nobody cared."""
    for place, step in enumerate(program.operators):
        for name, value in step.attributes.items():
            for simple in _simpler(step, name, value):
                changed = msgspec.structs.replace(step, attributes={**step.attributes, name: simple})
                steps = (*program.operators[:place], changed, *program.operators[place + 1 :])
                yield from made(resized(program, operators=steps))


def _simpler(step: Operator, name: str, value: Attribute) -> Iterator[Attribute]:
    if name in FLAGS and value:
        yield False
    if name == "RoundingMode" and value != 1:
        yield 1
    if not isinstance(value, tuple) or name not in (*PLAIN, "Kernel"):
        return
    plain = PLAIN.get(name, 1)
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
                        yield from made(resized(program, constants={step.inputs[index]: values}))


def _with_outputs(program: Program, wanted: tuple[str, ...]) -> Program:
    return pruned(msgspec.structs.replace(program, outputs=wanted))


def made(program: Program | None) -> Iterator[Program]:
    """A program without what nothing needs, if there is one."""
    if program is not None:
        yield pruned(program)


def replaced(program: Program, tensor: str, **fields: object) -> Program:
    """One tensor with other fields."""
    tensors = tuple(
        msgspec.structs.replace(item, **fields) if item.name == tensor else item for item in program.tensors
    )
    return msgspec.structs.replace(program, tensors=tensors)
