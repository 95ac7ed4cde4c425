"""The ``buffers`` oracle and its checks on hand-made programs, TOSA tensors and Vela tables."""

from dataclasses import replace

import pytest

from harness.artifacts.planning import clobbers, misaligned, outside, plan_faults
from harness.artifacts.program import Call, Place, Plan, Program, ProgramDelegate, ProgramTensor, ProgramValue
from harness.artifacts.tosa import TosaBlock, TosaOperator, TosaTensor
from harness.artifacts.vela import VelaIO, VelaPayload
from harness.compat.snapshots import NodeState, PassTrace, Qparams, Ref, Snapshot
from harness.evidence.called_delegates import CalledDelegate
from harness.evidence.delegate_io import (
    WIDENED,
    against_tosa,
    against_type,
    duplicated,
    forgotten_by,
    retyped_by,
    shared_root,
    tosa_against_vela,
)
from harness.evidence.observation import DelegateRecord, Failure, Mismatch, ValueType
from oracles import buffers
from tests.unit.observations import observation

CLEAN = observation([0.0], [0.0])


def tensor(shape=(2, 4), dtype="int8", element=1, offset=None, *, pool=1, initialized=False):
    place = None if offset is None else Place(pool, offset)
    return ProgramTensor(shape, dtype, element, tuple(range(len(shape))), initialized, place)


def tosa(shape=(2, 4), dtype="INT8"):
    return TosaTensor("t", shape, dtype)


# -- the program's value against the TOSA tensor


def test_codes_of_one_width_are_one_type():
    for dtype in ("int8", "uint8"):
        assert against_tosa(tensor(dtype=dtype), tosa(), False, "output") is None
    assert against_tosa(tensor((3,), "bool", 1), tosa((3,), "BOOL"), False, "output") is None
    assert against_tosa(tensor((), "float32", 4), tosa((1,), "FP32"), False, "output") is None


def test_sizes_are_compared_in_memory_order():
    last = replace(tensor((1, 2, 3, 4)), dim_order=(0, 2, 3, 1))
    assert against_tosa(last, tosa((1, 3, 4, 2)), False, "input") is None
    found = against_tosa(last, tosa((1, 2, 3, 4)), False, "input")
    assert found.kind == "shape differs"


def test_a_float_parent_of_a_byte_output_is_widened_and_of_an_input_differs():
    wide = tensor((2, 4), "float32", 4)
    found = against_tosa(wide, tosa(), False, "output")
    assert found.kind == "output dtype widened"
    assert found.summary == (
        "the program allocates float32 (4 bytes an element), the payload writes 1 byte an element (INT8)"
    )
    assert found.text == "float32 [2, 4] is 32 bytes, INT8 [2, 4] is 8"
    assert against_tosa(wide, tosa(), False, "input").kind == "input bytes differ"
    assert against_tosa(tensor(), tosa(dtype="INT32"), False, "output").kind == "output bytes differ"
    assert against_tosa(tensor(dtype="int32", element=4), tosa(dtype="FP32"), False, "output").kind == (
        "output dtype differs"
    )


def test_other_sizes_are_other_bytes():
    assert against_tosa(tensor((2, 5)), tosa((2, 4)), False, "output").kind == "output bytes differ"
    assert against_tosa(None, tosa(), False, "input").kind == "input bytes differ"


def test_axes_of_one_element_move_no_byte():
    value = replace(tensor((2, 1, 2, 4)), dim_order=(0, 2, 1, 3))
    assert against_tosa(value, tosa((2, 2, 4, 1)), False, "output") is None
    assert against_type(value, ValueType((2, 1, 2, 4), "int8", (0, 2, 3, 1))) is None
    assert against_tosa(value, tosa((2, 4, 2, 1)), False, "output").kind == "shape differs"


def test_int4_outputs_are_unpacked_by_the_ethos_u_runtime_only():
    assert against_tosa(tensor(), tosa(dtype="INT4"), True, "output") is None
    assert against_tosa(tensor(), tosa(dtype="INT4"), False, "output").kind == "output bytes differ"
    assert against_tosa(tensor(), tosa(dtype="INT4"), True, "input").kind == "input bytes differ"
    assert against_tosa(tensor(), tosa(dtype="INT48"), True, "output").kind == "output bytes differ"


def test_what_the_emitter_changed_is_seen():
    type_ = ValueType((2, 4), "int8", (0, 1))
    assert against_type(tensor(), type_) is None
    assert against_type(tensor(dtype="float32"), type_).kind == "dtype differs"
    assert against_type(tensor((4, 2)), type_).kind == "shape differs"
    assert against_type(None, type_).kind == "shape differs"
    assert against_type(replace(tensor(), dim_order=(1, 0)), type_).kind == "shape differs"
    assert against_type(tensor(), None) is None


# -- the TOSA tensor against Vela's table


def io(shape=(1, 1, 1, 1, 2, 4), element_size=1, offset=0, region=1):
    return VelaIO(shape, element_size, offset, region)


def test_vela_may_regroup_axes_but_not_change_elements():
    assert tosa_against_vela(tosa(), io(), "input") is None
    assert tosa_against_vela(tosa(), io((1, 1, 1, 1, 1, 8)), "output") is None
    assert tosa_against_vela(tosa(), io(element_size=2), "output").kind == "output bytes differ"
    assert tosa_against_vela(tosa(), io((1, 1, 1, 1, 2, 5)), "input").kind == "input bytes differ"


def test_packed_and_padded_outputs_are_information():
    padded = tosa_against_vela(tosa((2, 3)), io((1, 1, 1, 1, 2, 16)), "output")
    assert (padded.kind, padded.information) == ("output padded", True)
    packed = tosa_against_vela(tosa((2, 4), "INT4"), io((1, 1, 1, 1, 2, 2)), "output")
    assert (packed.kind, packed.information) == ("output packed", True)
    assert not tosa_against_vela(tosa((2, 3)), io((1, 1, 1, 1, 2, 16)), "input").information


def block(*operators, outputs):
    names = {name for item in operators for name in (*item.inputs, *item.outputs)}
    return TosaBlock("main", ("x",), outputs, operators, {name: TosaTensor(name, (8,), "INT8") for name in names})


def test_outputs_may_share_memory_if_one_is_a_part_of_the_other():
    table = TosaOperator(0, "TABLE", ("x",), ("a",))
    other = TosaOperator(1, "TABLE", ("x",), ("c",))
    reshape = TosaOperator(2, "RESHAPE", ("a",), ("b",))
    seen = block(table, other, reshape, outputs=("a", "b", "c"))
    assert shared_root(seen, 0, 1)
    assert not shared_root(seen, 0, 2)


# -- the plan


def plan(*tensors, calls, inputs=(0,), outputs=(), pools=(0, 64)):
    values = tuple(ProgramValue("tensor", item) for item in tensors)
    return Plan("forward", values, inputs, outputs, tuple(calls), (), pools)


def kernel(*values, name="aten::relu.out"):
    return Call("kernel", name, values=(*values, values[-1]))


def test_ranges_outside_their_pool_and_misaligned_offsets():
    assert outside(plan(tensor(offset=56), calls=())) == []
    assert outside(plan(tensor(offset=57), calls=())) == [0]
    assert outside(plan(tensor(offset=0, pool=2), calls=())) == [0]
    assert outside(plan(tensor(offset=0, pool=0), calls=())) == [0]
    assert misaligned(plan(tensor(dtype="float32", element=4, offset=2), calls=())) == [0]


def chain(*offsets, **changes):
    """x -> a -> b -> c; the last is the output."""
    tensors = [tensor(offset=offset) for offset in offsets]
    calls = [kernel(index, index + 1) for index in range(len(offsets) - 1)]
    return plan(*tensors, calls=calls, outputs=(len(offsets) - 1,), **changes)


def test_memory_may_be_reused_once_nothing_reads_it():
    assert clobbers(chain(0, 8, 0, 8), ()) == []


def test_an_output_over_its_own_input_is_a_clobber():
    [found] = clobbers(chain(0, 8, 12), ())
    assert (found.value, found.by.value, found.source.time, found.read) == (1, 2, 0, 1)


def test_two_inputs_in_one_place_are_a_clobber_of_each():
    seen = plan(tensor(offset=0), tensor(offset=4), tensor(offset=16), calls=[kernel(0, 1, 2)], inputs=(0, 1))
    assert len(clobbers(seen, ())) == 2


def test_an_output_lives_to_the_end():
    first = plan(*(tensor(offset=at) for at in (0, 8, 8)), calls=[kernel(0, 1), kernel(0, 2)], outputs=(1, 2))
    [found] = clobbers(first, ())
    assert (found.value, found.by.value, found.read) == (1, 2, 2)
    assert clobbers(replace(first, outputs=(2,)), ()) == []
    [fault] = plan_faults(first, ())
    assert fault.kind == "plan overlap"
    assert fault.text == (
        "1 reads see memory that was written over: value 1 (int8 [2, 4], bytes 8 to 16 of pool 1), written by "
        "instruction 0 (aten::relu.out) and read by the caller at the end; value 2 (int8 [2, 4], bytes 8 to 16 of "
        "pool 1) is written over it by instruction 1 (aten::relu.out)"
    )


def test_a_view_shares_the_memory_of_what_it_views():
    """x -> a; the view v of a has no instruction; v -> b."""
    values = [tensor(offset=0), tensor(offset=8), tensor((8,), offset=8), tensor(offset=0)]
    assert clobbers(plan(*values, calls=[kernel(0, 1), kernel(2, 3)], outputs=(3,)), ()) == []
    late = plan(*values, tensor((4,), offset=10), calls=[kernel(0, 1), kernel(0, 4), kernel(2, 3)], outputs=(3,))
    [found] = clobbers(late, ())
    assert (found.value, found.source.value, found.by.value) == (2, 1, 4)


def test_a_view_instruction_writes_nothing():
    view = Call("kernel", "executorch_prim::et_view.default", values=(1, 2))
    values = [tensor(offset=0), tensor(offset=8), tensor((8,), offset=8), tensor(offset=16)]
    assert clobbers(plan(*values, calls=[kernel(0, 1), view, kernel(1, 2, 3)], outputs=(3,)), ()) == []


def test_in_place_kernels_and_constants_are_left_alone():
    update = Call("kernel", "aten::copy_", values=(1, 0, 2))
    values = [tensor(offset=0), tensor(offset=8, initialized=True), tensor(offset=8)]
    assert clobbers(plan(*values, calls=[update], outputs=(1,)), ()) == []
    assert (
        clobbers(plan(tensor(offset=0), tensor(initialized=True), tensor(offset=8), calls=[kernel(0, 1, 2)]), ()) == []
    )


def test_no_claim_about_control_flow_or_unknown_calls():
    bad = chain(0, 8, 12)
    assert clobbers(replace(bad, calls=(*bad.calls, Call("jump", values=(0,)))), ()) == []
    assert clobbers(replace(bad, calls=(*bad.calls, Call("delegate", delegate=0, values=(0, 1)))), ()) == []


# -- the whole oracle


def record(**changes):
    return replace(DelegateRecord("d", "EthosUBackend", None, b"", ("x", "y"), ("x", "y"), ()), **changes)


def test_a_damaged_program_is_one_mismatch():
    seen = replace(CLEAN, lowering=replace(CLEAN.lowering, program=b"\x08\x00\x00\x00ET12" + b"\xff" * 64))
    [found] = buffers.judge(seen)
    assert (found.kind, found.stage) == ("damaged artifact", "emit")
    assert "ExecuTorch program" in found.message


def test_a_delegate_is_at_fault_if_a_mismatch_tells_of_it(monkeypatch):
    dropped = record(name="d0", tosa_inputs=("x",))
    lowering = replace(CLEAN.lowering, delegates=(dropped, record(name="d1"), record(name="d2")), program=b"")
    seen = replace(CLEAN, lowering=lowering)
    assert buffers.delegates_at_fault(seen) == {"d0"}
    held = ProgramDelegate("EthosUBackend", b"other", 0)
    program = Program((replace(plan(tensor(), calls=[Call("delegate", delegate=0)]), delegates=(held,)),))
    monkeypatch.setattr(buffers, "decode_program", lambda data: program)
    alone = replace(seen, lowering=replace(lowering, delegates=(record(name="d1"),), program=b"x"))
    assert next(item.kind for item in buffers.judge(alone)) == "payload differs"
    assert buffers.delegates_at_fault(alone) == {"d1"}


def test_nothing_is_said_of_a_lowering_that_failed():
    assert buffers.judge(replace(CLEAN, failure=Failure("lower", "ValueError", "no"))) == []


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (io(offset=96), None),
        (io(offset=112), "outside scratch"),
        (io(region=2), "outside scratch"),
        (io(offset=8), "misaligned"),
    ],
)
def test_entries_lie_aligned_inside_the_scratch_memory(entry, kind):
    holder = CalledDelegate(None, Call("delegate"), None, record())
    found = list(buffers._compiled(holder, None, VelaPayload(b"", b"", 104, (entry,), ())))
    assert [item.kind for item in found] == ([kind] if kind else [])
    assert all(item.pass_name == "Vela" and "input 0 (x)" in item.message for item in found)


def test_inputs_of_a_payload_may_not_overlap_and_an_output_may_lie_over_an_input():
    holder = CalledDelegate(None, Call("delegate"), None, record())
    wide = io((1, 1, 1, 1, 1, 32))
    [found] = buffers._compiled(holder, None, VelaPayload(b"", b"", 64, (wide, io(offset=16)), ()))
    assert found.kind == "payload overlap"
    assert "input 0 (x) at bytes 0 to 32 and input 1 (y) at bytes 16 to 24" in found.message
    assert list(buffers._compiled(holder, None, VelaPayload(b"", b"", 64, (wide,), (wide,)))) == []


def test_an_output_that_the_payload_lacks_is_vela_s():
    seen = block(TosaOperator(0, "TABLE", ("x",), ("a",)), outputs=("a", "x"))
    holder = CalledDelegate(None, Call("delegate"), None, record())
    eight = io((1, 1, 1, 1, 1, 8))
    [found] = buffers._compiled(holder, seen, VelaPayload(b"", b"", 64, (eight,), (eight,)))
    assert (found.kind, found.stage, found.pass_name) == ("output count", "vela", "Vela")


# -- who is to blame


def trace(*dtypes):
    """Snapshots of one output whose dtype is the start's, then that after each pass."""
    shots = []
    for index, dtype in enumerate(dtypes):
        nodes = {"a": NodeState("a", "call_function", "aten.relu.default", dtype=dtype)}
        nodes["output"] = NodeState("output", "output", "output", ((Ref("a"),),))
        shots.append(Snapshot(index - 1, f"Pass{index}", nodes))
    return PassTrace(("Pass1", "Pass2"), shots[0], tuple(shots[1:]), True)


def test_an_output_s_dtype_is_blamed_on_the_pass_that_changed_it():
    assert retyped_by(trace("float32", "float32", "int8"), 0, "float32") == "Pass2"
    assert retyped_by(trace("float32", "float32"), 0, "float32") == "serializer"
    assert retyped_by(trace("float32", "int8", "float32", "int8"), 0, "float32") == "Pass3"
    assert retyped_by(trace("int8", "int8"), 0, "float32") is None
    assert retyped_by(None, 0, "float32") is None


def test_folded_parameters_decide_an_output_s_dtype_before_its_operator_is_rewritten():
    shots = trace("float32", "float32", "int8")
    folded = shots.snapshots[0]
    held = replace(folded.nodes["a"], output_qparams={0: Qparams(0.5, 0, -128, 127, "int8")})
    folded = replace(folded, nodes={**folded.nodes, "a": held})
    assert retyped_by(replace(shots, snapshots=(folded, shots.last)), 0, "float32") == "Pass1"


def test_an_output_in_two_slots_is_seen_if_the_passes_left_two():
    assert duplicated(trace("int8"), ("a",)) is None
    assert duplicated(None, ("a", "a")) is None
    start = trace("int8").start
    nodes = {**start.nodes, "b": start.nodes["a"], "output": NodeState("output", "output", "", ((Ref("a"), Ref("b")),))}
    nodes["b"] = replace(nodes["b"], name="b")
    both = PassTrace((), replace(start, nodes=nodes), (), True)
    assert duplicated(both, ("a", "a")) == "a"
    assert duplicated(both, ("a", "b")) is None


# -- over the whole program


def widened(name, outputs, of, pass_name):
    text = f"{name}: {outputs} of {of} outputs"
    return Mismatch("buffers", WIDENED, text, "lower", pass_name, measured={"outputs": outputs, "of": of})


def test_widened_outputs_of_several_delegates_are_counted_over_the_program():
    other = Mismatch("buffers", "shape differs", "s")
    each = [widened("a", 2, 2, None), other, widened("b", 2, 2, "Fold")]
    whole, kept = buffers._widened_together(each, 5)
    assert whole.message == "4 of 5 delegate outputs of the program are wrong: a: 2 of 2 outputs; b: 2 of 2 outputs"
    assert (whole.pass_name, whole.measured) == ("Fold", {"outputs": 4, "of": 5})
    assert kept is other
    assert buffers._widened_together(each[:2], 2) == each[:2]


def test_an_input_is_forgotten_by_the_pass_after_which_nothing_reads_it():
    def graph(index, name, *readers):
        nodes = [NodeState("x", "placeholder", "x")]
        nodes += [NodeState(reader, "call_function", "aten.abs.default", (Ref("x"),)) for reader in readers]
        return Snapshot(index, name, {node.name: node for node in nodes})

    start = graph(-1, "start", "a")
    trace = PassTrace(("A", "B"), start, (graph(0, "A", "a"), graph(1, "B")), True)
    assert forgotten_by(trace, "x") == "B"
    assert forgotten_by(replace(trace, snapshots=(graph(0, "A", "a"), graph(1, "B", "b"))), "x") == "serializer"
    assert forgotten_by(replace(trace, finished=False), "x") is None
