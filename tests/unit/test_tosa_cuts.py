"""Cuts of programs, shapes that follow them, and the canonical form: pure data."""

import msgspec
import pytest

from generators.programs import draw_programs
from harness.tosa.cutting import CUTS, candidates, canonical, measure
from harness.tosa.program import Operator, Program, Tensor, problem
from harness.tosa.resizing import resized

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


def test_each_cut_offers_what_it_is_for():
    offered = {cut.__name__: candidates(PROGRAM, cut) for cut in CUTS}
    assert [item.ops for item in offered["behind"]] == [("MAXIMUM",), ("MAXIMUM", "MAX_POOL2D")]
    assert [item.ops for item in offered["before"]] == [("RESHAPE",), ("MAX_POOL2D", "RESHAPE")]
    assert ("MAXIMUM", "RESHAPE") in [item.ops for item in offered["bypassed"]]
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
