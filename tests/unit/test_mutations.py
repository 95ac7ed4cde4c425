"""Mutants of programs, swaps of operators and rewrites: pure data."""

from collections import Counter

import msgspec
import pytest

from generators import mutations
from generators.mutations import MUTATORS, Seeds, draw_mutants, mutants
from generators.programs import draw_programs
from harness.tosa.findings import digest
from harness.tosa.program import Operator, Program, Tensor, problem
from harness.tosa.rewriting import rewritten
from harness.tosa.simplifying import canonical
from harness.tosa.swapping import siblings, swapped

POOL = {"Kernel": (2, 2), "Stride": (1, 1), "Pad": (0, 0, 0, 0), "NanMode": 1}
PROGRAM = Program(
    (Tensor("a", (1, 4, 4, 8), "INT8"), Tensor("m", (1, 3, 3, 8), "INT8"), Tensor("y", (1, 3, 3, 8), "INT8")),
    (Operator("MAX_POOL2D", ("a",), ("m",), POOL), Operator("REVERSE", ("m",), ("y",), {"Axis": 1})),
    ("a",),
    ("y",),
)


@pytest.fixture(scope="module")
def seeds() -> list[Program]:
    return draw_programs(4, 0, 20, "u85")


def test_a_block_of_mutants_is_the_same_again_and_has_none_of_the_seeds(seeds: list[Program]):
    found = draw_mutants(seeds, 1, 7, 20, "u85")
    assert found == draw_mutants(seeds, 1, 7, 20, "u85")
    assert found != draw_mutants(seeds, 1, 8, 20, "u85")
    assert len({digest(item) for item in found}) == 20
    assert not {digest(item) for item in found} & {digest(canonical(item)) for item in seeds}


def test_mutants_are_programs_and_small(seeds: list[Program]):
    for block in range(4):
        for item in draw_mutants(seeds, 2, block, 20, "u85"):
            assert problem(item) == ""
            assert len(item.operators) <= mutations.MOST_OPERATORS
            assert item.inputs


@pytest.mark.parametrize("mutate", MUTATORS, ids=lambda item: item.__name__.strip("_"))
def test_each_mutation_changes_programs(seeds: list[Program], mutate, monkeypatch):
    monkeypatch.setattr(mutations, "MUTATORS", (mutate,))
    assert len(draw_mutants(seeds, 3, 0, 10, "u85")) == 10


def test_two_programs_are_spliced(seeds: list[Program], monkeypatch):
    monkeypatch.setattr(mutations, "MUTATORS", (mutations._spliced,))
    monkeypatch.setattr(mutations, "COUNTS", (1,))
    counts = Counter(len(item.operators) for item in draw_mutants([PROGRAM], 3, 0, 4, "u55"))
    assert set(counts) <= {4, 5}


def test_a_long_program_gives_a_part_of_it():
    steps, tensors = [], [Tensor("v0", (4,), "INT8")]
    for number in range(1, 31):
        tensors.append(Tensor(f"v{number}", (4,), "INT8"))
        steps.append(Operator("IDENTITY", (f"v{number - 1}",), (f"v{number}",)))
    long = Program(tuple(tensors), tuple(steps), ("v0",), ("v30",))
    for item in draw_mutants([long], 5, 0, 10, "u55"):
        assert len(item.operators) <= mutations.MOST_OPERATORS
    assert "Program(" not in repr(mutants(Seeds((long,), "u55")))


def test_a_sibling_brings_its_operands_and_attributes():
    found = swapped(PROGRAM, 0, "AVG_POOL2D")
    assert problem(found) == ""
    assert found.operators[0].attributes == {"Kernel": (2, 2), "Stride": (1, 1), "Pad": (0, 0, 0, 0), "AccType": 5}
    assert [found.by_name[name].data for name in found.operators[0].inputs[1:]] == [(0,), (0,)]
    assert swapped(found, 0, "MAX_POOL2D").operators[0] == PROGRAM.operators[0]
    assert siblings("MAX_POOL2D") == ("AVG_POOL2D",)


def test_a_rewrite_keeps_what_is_before_and_behind():
    found = rewritten(PROGRAM, 1, lambda draft, step: draft.again(step, [draft.again(step, step.inputs)]))
    assert found.ops == ("MAX_POOL2D", "REVERSE", "REVERSE")
    assert found.outputs == ("y",)
    assert problem(found) == ""
    with pytest.raises(ValueError, match="not what the last operator"):
        rewritten(found, 1, lambda draft, step: (draft.again(step, step.inputs), "x")[1])


def test_names_of_a_rewrite_are_new():
    named = msgspec.structs.replace(
        PROGRAM,
        tensors=tuple(msgspec.structs.replace(item, name=item.name.replace("m", "t3")) for item in PROGRAM.tensors),
        operators=(
            msgspec.structs.replace(PROGRAM.operators[0], outputs=("t3",)),
            msgspec.structs.replace(PROGRAM.operators[1], inputs=("t3",)),
        ),
    )
    found = rewritten(named, 1, lambda draft, step: draft.again(step, [draft.again(step, step.inputs)]))
    assert problem(found) == ""
