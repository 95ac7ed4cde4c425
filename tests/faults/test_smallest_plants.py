"""Plants in the streams of TOSA programs: what they change, in which programs, and what a new bug is called there."""

import pytest

from harness.tosa.compiling import compile_flatbuffer
from harness.tosa.translating import to_flatbuffer
from tests.faults.smallest_plants import NEW, PLANTS, outcomes, stands_there, subjects


def plant(name):
    return next(item for item in PLANTS if item.name == name)


def test_a_register_is_changed_for_its_operations_only():
    base, pool, other = ("SET_IFM_BASE0", {"value": 32}), ("OP_POOL", {"mode": 1}), ("OP_ELEMENTWISE", {"mode": 1})
    changed = plant("pool-reads-beside").stream([base, pool, other], None)
    assert changed == [base, ("SET_IFM_BASE0", {"value": 33}), pool, base, other]
    assert plant("elementwise-behind").stream([base, pool, other], None) == [base, pool, other], "it sets no zero point"


def test_there_are_plants_of_several_kinds():
    assert len({item.name for item in PLANTS}) == len(PLANTS) >= 6
    assert len({item.register for item in PLANTS}) >= 5


@pytest.fixture(scope="module")
def program():
    [found] = subjects("u55", 13, 1)
    return found


def test_a_subject_has_what_a_whole_condition_names(program):
    assert stands_there(program, "u55")
    assert len(program.operators) > 1


def test_the_payload_differs_by_the_plant_alone(program):
    tosa = to_flatbuffer(program)
    right, wrong = compile_flatbuffer(tosa, "ethos-u55-128"), plant("pool-zero-point").compile(tosa, "ethos-u55-128")
    assert (right.inputs, right.outputs, right.weights) == (wrong.inputs, wrong.outputs, wrong.weights)
    assert right.commands != wrong.commands


def test_a_plant_is_called_new():
    found = [*outcomes(plant("pool-zero-point"), "u55", 13, 2)]
    assert {item.called for item in found} == {NEW}, found
