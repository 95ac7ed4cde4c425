"""Mutated TOSA programs: what campaigns, the corpus or a suite left behind, changed in one to three places.

A mutation is an entry of ``MUTATORS``: a function from a program to another one, or to None where it has nothing to
change. Shapes follow the change (``harness.tosa.resizing``), and edits are those of reduction and of twins: a mutant
loses an operator by a cut, gets another one by a swap, is spliced with a second program, or goes on with an entry of
``generators/tosa_ops``.

A mutant is a program by its names and shapes. Whether TOSA allows it the reference model says, before Vela sees it
(``judge``, ``vetted=False``). Blocks are numbered and the same on every machine, as those of ``draw_programs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from hypothesis import strategies as st

from generators.programs import fitting, programs_of
from generators.tosa_graph import CHANNELS, SPACE, TosaGraph, between, choose, one_in
from harness.case.operators import Draw
from harness.tosa.cutting import before, entries, replaced, shortcuts
from harness.tosa.findings import digest
from harness.tosa.program import SHAPE, Attribute, Operator, Program, Tensor, problem, pruned
from harness.tosa.resizing import resized
from harness.tosa.simplifying import canonical, dtypes
from harness.tosa.swapping import siblings, swapped
from harness.tosa.twins import twins_of

COUNTS = (1, 1, 2, 3)
MOST_OPERATORS = 12
MOST_ELEMENTS = 1 << 16
WINDOW = 8
"""Operators in a row that are taken of a longer program."""
WIDE = (-(1 << 20), 1 << 20)
_CHANGED = ("Pad", "OutPad", "Stride", "Dilation", "Kernel", "Axis", "Perms")
_SIZED = {"PAD": 1, "TILE": 1, "SLICE": 2, "RESHAPE": 1}
"""Operators with a constant shape, and which operand that is."""


@dataclass(frozen=True)
class Seeds:
    """What is mutated, for a family."""

    programs: tuple[Program, ...]
    family: str


Mutate = Callable[[Draw, Program, Seeds], Program | None]


def _attribute(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """A pad, stride, kernel, axis or order becomes another one."""
    found = [
        (place, name)
        for place, step in enumerate(program.operators)
        for name in _CHANGED
        if name in step.attributes and entries(step.attributes[name])
    ]
    if not found:
        return None
    place, name = choose(draw, found)
    step = program.operators[place]
    value = _changed(draw, program, step, name)
    steps = list(program.operators)
    steps[place] = msgspec.structs.replace(step, attributes={**step.attributes, name: value})
    return resized(program, operators=steps)


def _changed(draw: Draw, program: Program, step: Operator, name: str) -> Attribute:
    numbers = list(entries(step.attributes[name]))
    rank = len(program.by_name[step.inputs[0]].shape)
    if name == "Axis":
        return between(draw, 0, rank - 1)
    at = between(draw, 0, len(numbers) - 1)
    if name == "Perms":
        other = between(draw, 0, len(numbers) - 1)
        numbers[at], numbers[other] = numbers[other], numbers[at]
    else:
        least = 0 if "Pad" in name else 1
        numbers[at] = choose(draw, [item for item in (numbers[at] + 1, least, numbers[at] - 1, 2, 3) if item >= least])
    return tuple(numbers)


def _sizes(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """Another amount of padding, another slice, another target of a RESHAPE."""
    found = [step for step in program.operators if step.op in _SIZED]
    if not found:
        return None
    step = found[choose(draw, range(len(found)))]
    name = step.inputs[_SIZED[step.op]]
    numbers = [int(item) for item in program.by_name[name].values()]
    if not numbers:
        return None
    at, other = between(draw, 0, len(numbers) - 1), between(draw, 0, len(numbers) - 1)
    if step.op == "RESHAPE":
        numbers[at], numbers[other] = numbers[other], numbers[at]
    else:
        numbers[at] = max(numbers[at] + choose(draw, (1, -1, 2, -2)), 0 if step.op == "PAD" else 1)
    return resized(program, constants={name: numbers})


def _shape(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """An axis of an input or of a constant gets another size."""
    free = [item for item in program.tensors if item.name not in program.producers and item.dtype != SHAPE]
    free = [item for item in free if item.elements > 1 or not item.constant]
    if not free:
        return None
    item = choose(draw, range(len(free)))
    shape = list(free[item].shape)
    if not shape:
        return None
    axis = between(draw, 0, len(shape) - 1)
    shape[axis] = choose(draw, CHANNELS if axis == len(shape) - 1 else SPACE)
    return resized(program, shapes={free[item].name: tuple(shape)})


def _sibling(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """An operator gives its place to another one that takes the same operands."""
    found = [place for place, step in enumerate(program.operators) if siblings(step.op)]
    if not found:
        return None
    place = choose(draw, found)
    made = swapped(program, place, choose(draw, siblings(program.operators[place].op)))
    return resized(made, operators=made.operators)


def _twin(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """An operator becomes something else that says the same."""
    found = list(twins_of(program))
    if not found:
        return None
    twin, place = found[choose(draw, range(len(found)))]
    return twin.of(program, place, between(draw, 0, 99))


def _removed(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """A way through the program becomes shorter, or begins later."""
    found = [*shortcuts(program), *before(program)]
    return found[choose(draw, range(len(found)))] if found else None


def _narrowed(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """int8 for int16, or for int32."""
    found = list(dtypes(program))
    return found[choose(draw, range(len(found)))] if found else None


def _output(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """A value inside is an output as well."""
    inner = [name for name in program.producers if name not in program.outputs]
    if not inner:
        return None
    return msgspec.structs.replace(program, outputs=(*program.outputs, choose(draw, inner)))


def _grown(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """The program goes on with an entry of ``generators/tosa_ops``."""
    graph = TosaGraph.of(program, seeds.family)
    outputs = [item for item in graph.values if item.name in program.outputs]
    value = choose(draw, range(len(graph.values)))
    start = graph.values[value] if one_in(draw, 3) or not outputs else outputs[-1]
    options = fitting(draw, seeds.family, start)
    if not options:
        return None
    choose(draw, options).draw(draw, graph, start)
    return graph.program()


def _spliced(draw: Draw, program: Program, seeds: Seeds) -> Program | None:
    """An output of the program is what another one of the seeds reads."""
    other = _renamed(_window(draw, seeds.programs[choose(draw, range(len(seeds.programs)))]))
    pairs = [
        (name, free)
        for name in program.outputs
        for free in other.inputs
        if program.by_name[name].dtype == other.by_name[free].dtype
    ]
    if not pairs:
        return None
    name, free = choose(draw, pairs)
    value, wanted = program.by_name[name], other.by_name[free]
    shape = _of_rank(value.shape, len(wanted.shape))
    fitted = resized(other, shapes={free: shape})
    if fitted is None:
        return None
    more: list[Tensor] = []
    steps: list[Operator] = []
    source = name
    if shape != value.shape:
        source, target = f"{free}_joined", f"{free}_shape"
        more = [Tensor(target, (len(shape),), SHAPE, shape), Tensor(source, shape, value.dtype)]
        steps = [Operator("RESHAPE", (name, target), (source,))]
    for step in fitted.operators:
        inputs = tuple(source if item == free else item for item in step.inputs)
        steps.append(msgspec.structs.replace(step, inputs=inputs))
    outputs = tuple(item for item in (*program.outputs, *fitted.outputs) if item not in (free, name))
    return Program(
        (*program.tensors, *more, *(item for item in fitted.tensors if item.name != free)),
        (*program.operators, *steps),
        (*program.inputs, *(item for item in fitted.inputs if item != free)),
        outputs,
    )


def _of_rank(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The same elements in another rank: ones in front, or the first axes in one."""
    while len(shape) < rank:
        shape = (1, *shape)
    while len(shape) > max(rank, 1):
        shape = (shape[0] * shape[1], *shape[2:])
    return shape


def _renamed(program: Program) -> Program:
    """With names that no other program has."""

    def other(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"s_{name}" for name in names)

    return Program(
        tuple(msgspec.structs.replace(item, name=f"s_{item.name}") for item in program.tensors),
        tuple(
            msgspec.structs.replace(step, inputs=other(step.inputs), outputs=other(step.outputs))
            for step in program.operators
        ),
        other(program.inputs),
        other(program.outputs),
    )


MUTATORS: tuple[Mutate, ...] = (
    *(_attribute, _sizes, _shape, _sibling, _twin),
    *(_grown, _spliced, _removed, _output, _narrowed),
)


def _window(draw: Draw, program: Program) -> Program:
    """The program, or some operators of it in a row if it is a long one."""
    count = len(program.operators)
    if count <= WINDOW:
        return program
    size = between(draw, 2, WINDOW)
    start = choose(draw, range(count - size + 1))
    steps = program.operators[start : start + size]
    made = {name for step in steps for name in step.outputs}
    read = {name for step in steps for name in step.inputs}
    outside = {name for step in program.operators if step not in steps for name in step.inputs} | {*program.outputs}
    inputs = [item for item in program.tensors if item.name in read - made and not item.constant]
    cut = msgspec.structs.replace(
        program,
        operators=steps,
        inputs=tuple(item.name for item in inputs),
        outputs=tuple(name for step in steps for name in step.outputs if name in outside or name not in read),
    )
    for item in inputs:
        if item.dtype in ("INT32", "INT48") and item.span is None:
            cut = replaced(cut, item.name, span=WIDE)
    return pruned(cut)


def mutants(seeds: Seeds) -> st.SearchStrategy[Program]:
    """One mutant; a seed itself where nothing could be changed."""

    @st.composite
    def mutant(draw: Draw) -> Program:
        program = canonical(_window(draw, seeds.programs[choose(draw, range(len(seeds.programs)))]))
        for _ in range(choose(draw, COUNTS)):
            made = choose(draw, MUTATORS)(draw, program, seeds)
            if made is not None and not problem(made) and _is_small(made):
                program = canonical(pruned(made))
        return program

    return mutant()


def _is_small(program: Program) -> bool:
    data = max((item.elements for item in program.tensors), default=0)
    ranks = max((len(item.shape) for item in program.tensors), default=0)
    return bool(program.inputs) and len(program.operators) <= MOST_OPERATORS and data <= MOST_ELEMENTS and ranks <= 6


def draw_mutants(programs: Sequence[Program], seed: int, block: int, count: int, family: str) -> list[Program]:
    """The first ``count`` mutants of a block, none twice and none of the seeds."""
    seeds = Seeds(tuple(programs), family)
    kept = {digest(canonical(item)) for item in programs}
    return programs_of(mutants(seeds), seed, block, count, kept)
