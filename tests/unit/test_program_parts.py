"""The parts of a .pte between its delegate calls, and the image of its memory. No executorch: a stored file is cut."""

from pathlib import Path

import pytest

from harness.artifacts.program import Call, Place, Plan, ProgramTensor, ProgramValue, decode_program
from harness.artifacts.program_parts import Memory, Part, delegate_part, initial_state, parts
from harness.case.errors import BadInput

DATA = (Path(__file__).parents[1] / "hostile/files/neg.pte").read_bytes()
PLAN = decode_program(DATA).main


def stored(index, *places):
    """A plan without instructions; int8 [4] at the given offsets of pool 1, or in no memory."""
    values = [ProgramTensor((4,), "int8", 1, (0,), place=None if at is None else Place(1, at)) for at in places]
    return Plan("forward", tuple(ProgramValue("tensor", item) for item in values), (), (), (), (), (0, index))


def test_parts_and_delegate_calls_are_the_instructions_in_their_order():
    pieces = list(parts(DATA, PLAN))
    assert [type(item) for item in pieces] == [Part, Call, Part]
    inside = [decode_program(item.data).main.calls for item in pieces if isinstance(item, Part)]
    assert (*inside[0], pieces[1], *inside[1]) == PLAN.calls
    assert pieces[1].kind == "delegate"


def test_a_part_is_the_same_file_with_other_inputs_outputs_and_instructions():
    for part in (item for item in parts(DATA, PLAN) if isinstance(item, Part)):
        plan = decode_program(part.data).main
        assert plan.delegates == ()
        assert (plan.inputs, plan.outputs) == (part.takes, part.gives)
        assert (plan.values, plan.pools, plan.name) == (PLAN.values, PLAN.pools, PLAN.name)
        assert set(part.gives) == {index for call in plan.calls for index in plan.tensors(call.values)}
        assert len(part.data) % 4096 == len(DATA) % 4096  # segments stay aligned


def test_a_part_is_given_what_it_writes_into_planned_memory_and_not_what_has_none():
    kernel = Call("kernel", "aten::add.out", values=(0, 1, 1))
    for place, takes in ((Place(1, 4), (0, 1)), (None, (0,))):
        first, second = (ProgramTensor((1,), "int8", 1, (0,), place=item) for item in (Place(1, 0), place))
        values = (ProgramValue("tensor", first), ProgramValue("tensor", second))
        plan = Plan("forward", values, (0,), (1,), (kernel,), (), (0, 8))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("harness.artifacts.program_parts._cut", lambda *words: b"")
            [part] = parts(b"", plan)
        assert (part.takes, part.gives) == (takes, (0, 1))


def test_a_delegate_alone_keeps_its_payload():
    [call] = [item for item in PLAN.calls if item.kind == "delegate"]
    part = delegate_part(DATA, PLAN, call, 1)
    plan = decode_program(part.data).main
    assert (plan.calls, plan.inputs, plan.outputs) == ((call,), part.takes, part.gives)
    assert [item.payload for item in plan.delegates] == [item.payload for item in PLAN.delegates]
    assert (part.takes, part.gives) == (call.values[:1], call.values[1:])


def test_control_flow_is_refused():
    plan = Plan("forward", (), (), (), (Call("jump", values=(0,)),), (), (0,))
    with pytest.raises(BadInput, match="control flow"):
        list(parts(DATA, plan))


def test_memory_is_shared_as_the_plan_says():
    memory = Memory(DATA, stored(6, 0, 2, None))
    memory.write(0, b"abcd")
    assert memory.read(1) == b"cd\0\0"
    memory.write(1, b"wxyz")
    assert memory.read(0) == b"abwx"
    memory.write(2, b"1234")
    assert (memory.read(0), memory.read(2)) == (b"abwx", b"1234")


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda memory: memory.read(0), "which nothing wrote"),
        (lambda memory: memory.write(0, b"12345"), "of 4 bytes, which is given 5"),
        (lambda memory: memory.read(1), "outside its pool"),
        (lambda memory: memory.write(1, b"1234"), "outside its pool"),
    ],
)
def test_memory_refuses_what_a_device_could_not_do(use, told):
    with pytest.raises(BadInput, match=told):
        use(Memory(DATA, stored(6, None, 3)))


def test_a_program_without_state_has_none():
    assert initial_state(DATA, PLAN) == {}
