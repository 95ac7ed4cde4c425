"""Conditions: what a path, its terms and neighbours ask of a place; siblings; what cannot be read."""

import msgspec
import pytest

from harness.case.place import Place, PlacedOperator
from harness.triage.conditions import Condition, siblings


def op(name, *reads, **facts):
    return PlacedOperator(op=name, facts=facts, reads=reads)


LINE = Place(
    graph="tosa",
    operators=(
        op("SLICE", cut=1),
        op("RESHAPE", 0, last_kept=1),
        op("CONV2D", 1, batch=2, pad=1, dtype="int8"),
        op("RESCALE", 2),
        op("CONCAT", 3),
        op("TABLE", 0),
    ),
    here=(3,),
    facts={"share": 0.5, "operation": "CONV"},
)


def holds(*path, place=LINE, **rest):
    return Condition(path=path, **rest).holds(place)


def test_operators_lie_on_one_line_of_data_flow_in_order():
    assert holds("SLICE", "CONV2D")
    assert holds("SLICE", "CONV2D", "CONCAT")
    assert not holds("CONV2D", "SLICE")
    assert not holds("TABLE", "CONV2D")  # both read the slice: two lines
    assert not holds("SLICE", "MATMUL")


def test_where_nothing_tells_what_is_wrong_first_a_condition_needs_evidence():
    untold = msgspec.structs.replace(LINE, facts={"share": 0.5, "told": 0})
    assert not holds("SLICE", "CONV2D", place=untold)
    assert holds("SLICE", "CONV2D", at=("share < 1",), place=untold)


def test_only_operators_to_go_through_may_stand_between():
    assert not holds("SLICE", "CONV2D", through="RESCALE")
    assert holds("SLICE", "RESHAPE", "CONV2D", through="RESCALE")


def test_the_wrong_operator_lies_on_the_line_or_at_its_ends():
    assert holds("CONV2D")  # RESCALE behind it is gone through
    assert holds("CONCAT")  # and before it
    assert not holds("TABLE")
    assert not holds("SLICE", "TABLE")
    elsewhere = msgspec.structs.replace(LINE, here=(5,))
    assert not holds("SLICE", "CONV2D", place=elsewhere)
    assert holds("SLICE", "TABLE", place=elsewhere)


def test_a_whole_condition_tells_all_that_a_smallest_program_has():
    line = msgspec.structs.replace(LINE, operators=LINE.operators[:-1], facts={"told": 0})
    path = ("SLICE", "CONV2D: batch > 1", "CONCAT")
    assert holds(*path, place=line, whole=True), "whatever is wrong first"
    assert not holds(*path, place=LINE, whole=True), "it has a TABLE besides"
    assert not holds("SLICE", "CONV2D", place=line, whole=True)
    assert not holds(*path, place=line, whole=True, through="RESCALE")
    given = msgspec.structs.replace(line, operators=(*line.operators, op("INPUT"), op("RESCALE", 0)))
    assert holds(*path, place=given, whole=True)
    assert holds(*path, place=LINE, whole=True, rest="TABLE")
    assert not holds("SLICE", "CONCAT", place=line, whole=True, rest="*"), "the CONV2D is between"
    with pytest.raises(ValueError, match="write whole = true"):
        Condition(path=path, rest="TABLE").check()
    with pytest.raises(ValueError, match="give it a path"):
        Condition(at=("share < 1",), whole=True).check()


def test_a_whole_condition_may_say_which_operator_is_wrong():
    line = msgspec.structs.replace(LINE, operators=LINE.operators[:5])
    assert holds("SLICE", "*CONV2D", "CONCAT", place=line, whole=True), "the RESCALE behind it is"
    assert not holds("SLICE", "CONV2D", "*CONCAT", place=line, whole=True)
    assert not holds("*SLICE", "CONV2D", "CONCAT", place=msgspec.structs.replace(line, here=(2,)), whole=True)


def test_a_star_says_which_operator_is_wrong():
    assert holds("SLICE", "*CONV2D", "CONCAT")  # the RESCALE behind it is wrong
    assert not holds("*SLICE", "CONV2D", "CONCAT")
    assert not holds("SLICE", "CONV2D", "*CONCAT")
    assert holds("SLICE", "*CONV2D")
    behind = msgspec.structs.replace(LINE, here=(1,))
    assert holds("*SLICE", "CONV2D", place=behind)
    assert not holds("SLICE", "*CONV2D", place=behind)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CONV2D: batch > 1", True),
        ("CONV2D: batch > 2", False),
        ("CONV2D|DEPTHWISE_CONV2D: batch >= 2, pad != 0", True),
        ("CONV2D: batch > 1, pad == 0", False),
        ("CONV2D: dtype == int8", True),
        ("CONV2D: dtype in int16|int32", False),
        ("CONV2D: stride > 1", False),  # a fact that it does not have
    ],
)
def test_terms_speak_of_one_operator(text, wanted):
    assert holds(text) is wanted


def test_a_neighbour_off_the_line():
    assert holds("RESHAPE: beside TABLE", "CONV2D")
    assert not holds("CONV2D: beside TABLE", through="RESCALE")
    assert holds("CONCAT: with RESCALE")
    assert not holds("CONCAT: with SLICE", through="RESCALE")
    assert holds("CONCAT: with CONV2D")  # through the RESCALE


def test_the_first_operand_is_told_from_the_others():
    two = msgspec.structs.replace(LINE, operators=(*LINE.operators, op("MATMUL", 5, 3)), here=(6,))
    assert holds("MATMUL: first TABLE", place=two)
    assert holds("MATMUL: with CONV2D", place=two)
    assert not holds("MATMUL: first CONV2D", place=two)


def test_terms_about_what_was_seen():
    assert holds("CONV2D", at=("share < 1", "operation == CONV"))
    assert not holds("CONV2D", at=("share == 1",))
    assert holds(at=("share < 1",))
    assert not holds("CONV2D", graph="aten")


def test_a_condition_holds_at_none_of_the_siblings_of_a_place():
    condition = Condition(path=("SLICE: cut > 0", "CONV2D: batch > 1, dtype == int8"), at=("share < 1",))
    assert condition.holds(LINE)
    found = siblings(condition, LINE)
    assert len(found) == 6
    assert [what for what, place in found if condition.holds(place)] == []


def test_a_term_that_asks_for_nothing_is_found_by_its_sibling():
    """Another convolution without the batch satisfies what is left: the sibling says which term is idle."""
    idle = Condition(path=("SLICE|CONV2D: batch >= 0",))
    other = msgspec.structs.replace(LINE, here=(0,), operators=(op("SLICE", cut=1, batch=1), *LINE.operators[1:]))
    assert [what for what, place in siblings(idle, other) if idle.holds(place)] == []
    assert [what for what, _ in siblings(idle, other)] == ["not SLICE|CONV2D: batch >= 0", "no SLICE|CONV2D"]


@pytest.mark.parametrize("path", [("CONV2D: batch>1",), ("CONV2D: batch > many",), (" : batch > 1",), ()])
def test_what_cannot_be_read_is_said(path):
    with pytest.raises(ValueError, match=r"term|operator|number|everywhere|convert"):
        Condition(path=path).check()
