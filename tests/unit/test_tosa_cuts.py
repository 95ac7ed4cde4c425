"""Cuts of programs, shapes that follow them, and the canonical form: pure data."""

import msgspec
import pytest

from generators.programs import draw_programs
from harness.case.place import Place, PlacedOperator
from harness.tosa.bystanders import without_bystanders
from harness.tosa.cutting import WIDE, exchanged, freed, replaced, shortcuts
from harness.tosa.program import Fill, Operator, Program, Tensor, problem
from harness.tosa.resizing import resized
from harness.tosa.simplifying import CUTS, candidates, canonical, dtypes, measure, moved, plainer, ranks

POOL = {"Kernel": (2, 2), "Stride": (1, 1), "Pad": (1, 0, 1, 0), "NanMode": 1}
PROGRAM = Program(
    tensors=(
        Tensor("a", (2, 4, 4, 8), "INT8"),
        Tensor("b", (2, 4, 4, 8), "INT8"),
        Tensor("shape", (2,), "SHAPE", (2, 128)),
        Tensor("m", (2, 4, 4, 8), "INT8"),
        Tensor("p", (2, 4, 4, 8), "INT8"),
        Tensor("y", (2, 128), "INT8"),
    ),
    operators=(
        Operator("MAXIMUM", ("a", "b"), ("m",), {"NanMode": 1}),
        Operator("MAX_POOL2D", ("m",), ("p",), POOL),
        Operator("RESHAPE", ("p", "shape"), ("y",)),
    ),
    inputs=("a", "b"),
    outputs=("y",),
)


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_a_program_without_a_change_keeps_its_shapes(family: str):
    for program in draw_programs(5, 1, 60, family):
        assert resized(program) == program


def test_operands_pools_and_reshapes_follow_an_axis():
    found = resized(PROGRAM, shapes={"a": (2, 4, 4, 3)})
    assert found is not None
    assert {item.name: item.shape for item in found.tensors} == {
        "a": (2, 4, 4, 3),
        "b": (2, 4, 4, 3),
        "m": (2, 4, 4, 3),
        "p": (2, 4, 4, 3),
        "shape": (2,),
        "y": (2, 48),
    }
    assert found.by_name["shape"].data == (2, 48)


def test_operands_that_do_not_fit_are_no_program():
    assert resized(PROGRAM, operators=[Operator("CONCAT", ("a", "shape"), ("y",), {"Axis": 3})]) is None


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_every_candidate_is_a_program_and_smaller(family: str):
    count = 0
    for program in draw_programs(7, 0, 30, family):
        for cut in CUTS:
            for item in candidates(program, cut):
                assert problem(item) == ""
                assert measure(item) < measure(program)
                count += 1
    assert count > 1000


def test_a_constant_becomes_the_input_where_the_one_that_there_is_has_nothing_to_do_with_it():
    """Else the smallest program keeps CONCAT, since a program has an input (seen: a bug of REVERSE and CLAMP)."""
    program = Program(
        tensors=(
            Tensor("a", (2, 4), "INT32", span=(0, 9)),
            Tensor("two", (4, 4), "INT32"),
            Tensor("c", (2, 4), "INT32", Fill("uniform", -5, 5)),
            Tensor("r", (2, 4), "INT32"),
        ),
        operators=(
            Operator("CONCAT", ("a", "a"), ("two",), {"Axis": 0}),
            Operator("REVERSE", ("c",), ("r",), {"Axis": 1}),
        ),
        inputs=("a",),
        outputs=("two", "r"),
    )
    [found] = candidates(program, freed)
    assert (found.ops, found.inputs, found.outputs) == (("REVERSE",), ("c",), ("r",))
    assert (found.by_name["c"].data, found.by_name["c"].span) == (None, WIDE)
    assert candidates(msgspec.structs.replace(found, inputs=("c",)), freed) == []
    assert candidates(replaced(program, "c", dtype="INT4"), freed) == []  # numpy has no such inputs


def test_a_constant_that_is_computed_with_and_the_input_change_places():
    tensors = [
        msgspec.structs.replace(item, data=Fill("uniform", 0, 9)) if item.name == "b" else item
        for item in PROGRAM.tensors
    ]
    program = msgspec.structs.replace(PROGRAM, tensors=tuple(tensors), inputs=("a",))
    [found] = exchanged(program)
    assert (found.inputs, found.by_name["a"].constant, found.by_name["b"].data) == (("b",), True, None)
    assert problem(found) == ""
    assert [*exchanged(PROGRAM)] == [], "two inputs"


def test_each_cut_offers_what_it_is_for():
    offered = {cut.__name__: candidates(PROGRAM, cut) for cut in CUTS}
    assert [item.ops for item in offered["behind"]] == [("MAXIMUM",), ("MAXIMUM", "MAX_POOL2D")]
    assert [item.ops for item in offered["before"]] == [("RESHAPE",), ("MAX_POOL2D", "RESHAPE")]
    assert ("MAXIMUM", "RESHAPE") in [item.ops for item in offered["shortcuts"]]
    assert [item.inputs for item in offered["merged"]][:1] == [("a",)]
    pools = [item.operators[1].attributes for item in offered["attributes"]]
    assert (0, 0, 0, 0) in [pool["Pad"] for pool in pools]
    assert (1, 1) in [pool["Kernel"] for pool in pools]
    assert offered["shapes"][0].by_name["a"].shape == (1, 4, 4, 8)


def test_the_canonical_form_forgets_names_and_orders():
    again = msgspec.json.decode(
        msgspec.json.encode(PROGRAM).replace(b'"a"', b'"left"').replace(b'"m"', b'"most"'), type=Program
    )
    shuffled = msgspec.structs.replace(again, tensors=again.tensors[::-1], inputs=again.inputs[::-1])
    assert canonical(shuffled) == canonical(PROGRAM)
    assert canonical(PROGRAM).inputs == ("x0", "x1")
    assert canonical(canonical(PROGRAM)) == canonical(PROGRAM)


def chained(*steps: Operator, shape: tuple[int, ...], dtype: str = "INT8", **given: Tensor) -> Program:
    """Operators of one operand in a row, from ``a`` on; results have the operand's shape and type unless given."""
    names = [name for step in steps for name in step.outputs]
    tensors = {name: Tensor(name, shape, dtype) for name in ("a", *names)} | given
    return Program(tuple(tensors.values()), steps, ("a",), (names[-1],))


def test_a_shortcut_takes_a_way_of_other_types_and_back():
    program = chained(
        Operator("CAST", ("a",), ("w",)),
        Operator("ABS", ("w",), ("b",)),
        Operator("CAST", ("b",), ("n",)),
        Operator("REVERSE", ("n",), ("y",), {"Axis": 0}),
        shape=(4,),
        w=Tensor("w", (4,), "INT32"),
        b=Tensor("b", (4,), "INT32"),
    )
    assert [item.ops for item in candidates(program, shortcuts)] == [
        ("REVERSE",),
        ("CAST", "CAST", "REVERSE"),
        ("CAST", "ABS", "CAST"),
    ]


def test_int16_becomes_int8_with_what_speaks_of_it():
    program = chained(
        Operator("CLAMP", ("a",), ("y",), {"MinVal": (0x9C, 0xFF), "MaxVal": (0xE8, 0x03), "NanMode": 1}),
        shape=(4,),
        dtype="INT16",
    )
    [found] = candidates(program, dtypes)
    assert {item.dtype for item in found.tensors} == {"INT8"}
    assert "MinVal=-100 MaxVal=127" in str(found)


def test_bounds_that_int8_does_not_have_stay_two():
    bounds = {"MinVal": (0xFF, 0x3F), "MaxVal": (0xFF, 0x7F), "NanMode": 1}
    [found] = candidates(chained(Operator("CLAMP", ("a",), ("y",), bounds), shape=(4,), dtype="INT16"), dtypes)
    assert "MinVal=63 MaxVal=127" in str(found)


def test_an_operator_that_does_less_takes_the_place_of_another():
    pool = {"Kernel": (2, 2), "Stride": (1, 1), "Pad": (0, 1, 0, 1), "AccType": 5}
    program = chained(
        Operator("AVG_POOL2D", ("a", "z", "z"), ("y",), pool), shape=(1, 4, 4, 8), z=Tensor("z", (1,), "INT8", (0,))
    )
    nothing, found = candidates(program, plainer)
    assert nothing.operators == (Operator("IDENTITY", ("a",), ("y",)),)
    assert found.operators == (Operator("MAX_POOL2D", ("a",), ("y",), {**POOL, "Pad": (0, 1, 0, 1)}),)


def test_an_axis_of_one_element_goes_wherever_it_is():
    program = chained(
        Operator("PAD", ("a", "pads", "z"), ("p",)),
        Operator("REVERSE", ("p",), ("y",), {"Axis": 2}),
        shape=(3, 1, 5),
        pads=Tensor("pads", (6,), "SHAPE", (1, 0, 0, 0, 0, 2)),
        z=Tensor("z", (1,), "INT8", (0,)),
        p=Tensor("p", (4, 1, 7), "INT8"),
        y=Tensor("y", (4, 1, 7), "INT8"),
    )
    [found] = candidates(program, ranks)
    assert found.by_name["pads"].data == (1, 0, 0, 2)
    assert [item.shape for item in found.tensors if item.name in "apy"] == [(3, 5), (4, 7), (4, 7)]
    assert found.operators[1].attributes == {"Axis": 1}


def test_an_axis_of_several_elements_comes_to_the_back_with_what_speaks_of_it():
    program = chained(
        Operator("PAD", ("a", "pads", "z"), ("p",)),
        Operator("TRANSPOSE", ("p",), ("t",), {"Perms": (1, 0, 2)}),
        Operator("REVERSE", ("t",), ("y",), {"Axis": 1}),
        shape=(1, 5, 1),
        pads=Tensor("pads", (6,), "SHAPE", (0, 0, 0, 2, 0, 0)),
        z=Tensor("z", (1,), "INT8", (0,)),
        p=Tensor("p", (1, 7, 1), "INT8"),
        t=Tensor("t", (7, 1, 1), "INT8"),
        y=Tensor("y", (7, 1, 1), "INT8"),
    )
    assert resized(program) == program
    found = [item for item in candidates(program, moved) if item.by_name["a"].shape == (1, 1, 5)]
    assert [item.by_name["pads"].data for item in found] == [(0, 0, 0, 0, 0, 2)]
    assert [resized(item) for item in found] == found
    assert [step.attributes for step in found[0].operators[1:]] == [{"Perms": (2, 1, 0)}, {"Axis": 2}]


def test_what_lies_outside_a_narrower_type_stays_a_constant():
    """A rule for values that int8 does not have, and an input with such a range."""
    rows = (Tensor("a", (4,), "INT32", span=(200, 300)), Tensor("b", (4,), "INT32", Fill("uniform", 400, 500)))
    steps = (Operator("ADD", ("a", "b"), ("y",)), Operator("ADD", ("y", "z"), ("w",)))
    more = (Tensor("z", (4,), "INT32"), Tensor("y", (4,), "INT32"), Tensor("w", (4,), "INT32"))
    program = Program((*rows, *more), steps, ("a", "z"), ("w",))
    for cut in CUTS:
        for item in candidates(program, cut):
            assert all(tensor.values().size == tensor.elements for tensor in item.tensors if tensor.constant)


def test_what_is_wrong_first_goes_from_an_end_where_it_is_the_only_one_of_its_kind():
    def place(*here: int) -> Place:
        operators = tuple(PlacedOperator(op=op) for op in ("INPUT", *PROGRAM.ops))
        return Place(graph="tosa", operators=operators, here=here)

    def left(program: Program, *here: int) -> set[tuple[str, ...]]:
        return {item.ops for item in without_bystanders(program, place(*here))}

    assert left(PROGRAM, 1) == {("MAX_POOL2D", "RESHAPE")}
    assert left(PROGRAM, 3) == {("MAXIMUM", "MAX_POOL2D")}
    assert left(PROGRAM, 2) == set(), "what is amid others brings them together"
    assert left(PROGRAM, 1, 2) == {("RESHAPE",)}
    assert without_bystanders(PROGRAM, None) == []
    doubled = msgspec.structs.replace(PROGRAM.operators[2], inputs=("m", "shape"), outputs=("z",))
    two = msgspec.structs.replace(
        PROGRAM,
        tensors=(*PROGRAM.tensors, Tensor("z", (2, 128), "INT8")),
        operators=(*PROGRAM.operators, doubled),
        outputs=("y", "z"),
    )
    assert left(two, 3) == set()
    assert left(two, 2) == {("MAXIMUM", "RESHAPE", "RESHAPE")}, "its result becomes an input"
