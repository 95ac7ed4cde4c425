"""Mutants of cases: each change changes something and keeps the case whole; blocks are numbered and repeat."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generators.captured_changes import argument, reordered, resized, stretch, written
from generators.mutants import (
    CHANGES,
    MOST_NODES,
    draw_mutants,
    drawn_anew,
    grown,
    masked,
    output,
    round_trip,
    second_reader,
    sibling,
    spliced,
)
from harness.case.case import Case, Distribution, Graph, Input, Node, TensorType
from harness.case.checking import check_case, value_types
from harness.case.editing import numbered
from harness.case.reading import read_case

TARGETS = ("TOSA-1.0+INT", "ethos-u85-256")
UNIFORM = Distribution(kind="uniform", parameters={"low": -2.0, "high": 2.0})
FOUND = Path(__file__).parents[2] / "corpus" / "found"


def aten(name: str, operator: str, *inputs: str, shape: tuple[int, ...] = (1, 4, 6)) -> Node:
    arguments = {"args": [{"value": item} for item in inputs], "kwargs": {}}
    return Node(name=name, operator=operator, inputs=inputs, attributes=arguments, types=(TensorType(shape),))


CAPTURED = Case(
    graph=Graph(
        inputs=(Input(name="x", shape=(1, 4, 6)), Input(name="y", shape=(1, 4, 6))),
        nodes=(
            aten("tanh", "aten.tanh.default", "x"),
            aten("add_1", "aten.add.Tensor", "tanh", "y"),
            aten("softmax", "aten.relu.default", "add_1"),
        ),
        outputs=("softmax",),
    ),
    calibration={"x": UNIFORM, "y": UNIFORM},
    target="TOSA-1.0+INT",
    recipe="a8w8",
)
DRAWN = read_case(FOUND / "neg-ignores-scale" / "case.json")
LONG = msgspec.structs.replace(
    CAPTURED,
    graph=Graph(
        inputs=CAPTURED.graph.inputs[:1],
        nodes=tuple(aten(f"t{place}", "aten.tanh.default", f"t{place - 1}" if place else "x") for place in range(30)),
        outputs=("t29",),
    ),
    calibration={"x": UNIFORM},
)


def plain(case: Case) -> Case:
    names = {item.name: f"x{place}" for place, item in enumerate(case.graph.inputs)}
    calibration = {names[name]: item for name, item in case.calibration.items()}
    return msgspec.structs.replace(case, graph=numbered(case.graph), calibration=calibration)


@pytest.mark.parametrize("change", [sibling, round_trip, masked, second_reader, output, grown, spliced])
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_change_of_a_captured_graph_is_another_valid_case(change, data):
    case = plain(CAPTURED)
    made = change(data.draw, case, (CAPTURED,))
    assert made is not None
    assert made.graph != case.graph
    check_case(made)
    assert set(made.calibration) == {item.name for item in made.graph.inputs}


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_round_trip_gives_every_reader_a_value_of_the_same_type(data):
    case = plain(CAPTURED)
    made = round_trip(data.draw, case, ())
    before, after = value_types(case.graph), value_types(made.graph)
    assert [before[name] for name in case.graph.outputs] == [after[name] for name in made.graph.outputs]
    assert len(made.graph.nodes) == len(case.graph.nodes) + 2


def with_arguments(operator: str, *more: object) -> Case:
    """One captured node with further arguments behind its operand."""
    node = aten("one", operator, "x")
    node = msgspec.structs.replace(node, attributes={"args": [{"value": "x"}, *more], "kwargs": {}})
    graph = Graph(inputs=CAPTURED.graph.inputs[:1], nodes=(node,), outputs=("one",))
    return msgspec.structs.replace(CAPTURED, graph=graph, calibration={"x": UNIFORM})


@pytest.mark.parametrize(
    ("case", "possible"),
    [
        (with_arguments("aten.leaky_relu.default", 0.25), [[0.125], [0.5], [1.0]]),
        (with_arguments("aten.clamp.default", -1.0, None), [[-0.5, None], [-2.0, None], [-4.0, None]]),
        (with_arguments("aten.softmax.int", -1, False), [[0, False], [1, False]]),
        (with_arguments("aten.flip.default", [1]), [[[0]], [[2]]]),
    ],
)
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_argument_becomes_another_number_or_dimension(data, case, possible):
    made = argument(data.draw, case, ())
    check_case(made)
    assert made.graph.nodes[0].attributes["args"][1:] in possible
    assert made.graph.nodes[0].types == case.graph.nodes[0].types


@pytest.mark.parametrize(
    "case", [with_arguments("aten.roll.default", [2], [1]), with_arguments("aten.threshold.default", 0.0), DRAWN]
)
def test_an_argument_that_may_be_a_size_or_is_zero_stays(case):
    assert argument(None, case, ()) is None


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_size_is_another_one_wherever_it_stands(data):
    recorded = Distribution(kind="recorded", parameters={"prefix": "x"})
    case = msgspec.structs.replace(CAPTURED, calibration={"x": recorded, "y": UNIFORM})
    made = resized(data.draw, case, ())
    check_case(made)
    (type_,) = {*value_types(made.graph).values()}
    assert sum(new != old for new, old in zip(type_.shape, (1, 4, 6), strict=True)) == 1
    assert made.calibration["x"].kind == "uniform"
    assert made.calibration["y"] == UNIFORM


def test_sizes_stay_where_an_argument_may_be_one():
    assert resized(None, with_arguments("aten.expand.default", [1, 4, 6]), ()) is None
    assert resized(None, DRAWN, ()) is None


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_state_is_of_another_size_with_what_is_written_into_it(data):
    case = plain(read_case(FOUND / "written-int64-state-cast" / "case.json"))
    made = resized(data.draw, case, ())
    check_case(made)
    assert made.graph != case.graph
    ((size,),) = {item.shape for item in value_types(made.graph).values()}
    assert len(made.graph.constants[0].parameters["values"]) == size


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_result_is_written_in_place_but_not_into_what_the_caller_gave(data):
    case = plain(CAPTURED)
    made = written(data.draw, case, ())
    check_case(made)
    assert made.graph.nodes[1].operator in (
        "aten.add_.Tensor",
        "aten.sub_.Tensor",
        "aten.mul_.Tensor",
        "aten.copy_.default",
    )
    assert made.graph.nodes[1].inputs == case.graph.nodes[1].inputs
    nodes = (aten("n0", "aten.view.default", "x0"), aten("n1", "aten.add.Tensor", "n0", "x1"))
    of_input = msgspec.structs.replace(case.graph, nodes=nodes, outputs=("n1",))
    assert written(data.draw, msgspec.structs.replace(case, graph=of_input), ()) is None


def test_a_slice_of_all_there_is_has_no_other_stretch():
    assert stretch(None, with_arguments("aten.slice.Tensor", 2, 0, 6), ()) is None


def test_nodes_in_another_order_still_stand_behind_what_they_read():
    nodes = (aten("a", "aten.tanh.default", "x"), aten("b", "aten.abs.default", "y"))
    graph = msgspec.structs.replace(
        CAPTURED.graph, nodes=(*nodes, aten("c", "aten.add.Tensor", "a", "b")), outputs=("c",)
    )
    orders = set()

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data):
        made = reordered(data.draw, msgspec.structs.replace(CAPTURED, graph=graph), ())
        orders.add(made and tuple(node.name for node in made.graph.nodes))

    check()
    assert orders == {None, ("b", "a", "c")}


def test_what_works_in_place_is_not_reordered():
    assert reordered(None, with_arguments("aten.relu_.default"), ()) is None


def test_a_captured_graph_is_not_drawn_anew():
    assert drawn_anew(None, CAPTURED, ()) is None


def test_every_change_is_met_in_a_few_blocks():
    """A change that never fits would be there for nothing: what each leaves behind is seen."""
    flat = msgspec.structs.replace(
        CAPTURED,
        graph=Graph(
            inputs=(Input(name="x", shape=(2, 12)),),
            nodes=(aten("one", "aten.abs.default", "x", shape=(2, 12)),),
            outputs=("one",),
        ),
        calibration={"x": UNIFORM},
    )
    views = read_case(FOUND / "write-into-view-lost" / "case.json")
    parents = [CAPTURED, DRAWN, flat, views]
    cases = [item[0] for block in range(12) for item in draw_mutants(parents, 0, block, 20, TARGETS)]
    nodes = [node for case in cases for node in case.graph.nodes]
    operators = {node.operator for node in nodes}
    assert len(CHANGES) == 14
    assert {"aten.add_.Tensor", "aten.sub_.Tensor", "aten.mul_.Tensor"} <= operators
    assert any(node.attributes["args"][2:] == [1, 3] for node in nodes if node.operator == "aten.slice.Tensor")
    assert {"permute", "cat", "slice", "reshape", "sigmoid", "maximum", "neg", "gt", "to_float"} <= operators
    assert any(len(case.graph.outputs) > 1 for case in cases)
    assert any(case.recipe.startswith("a16w8") for case in cases)


def test_a_block_repeats_and_has_no_graph_twice_and_no_parent():
    one, other = (draw_mutants([CAPTURED, DRAWN], 3, 5, 20, TARGETS) for _ in range(2))
    assert one == other
    assert len(one) == 20
    graphs = [(item[0].graph, item[0].recipe) for item in one]
    assert all(graphs.count(item) == 1 for item in graphs)
    assert (plain(CAPTURED).graph, "a8w8") not in graphs
    assert [case.target for case in one[0]] == list(TARGETS)
    assert one != draw_mutants([CAPTURED, DRAWN], 4, 5, 20, TARGETS)


def test_mutants_of_a_long_graph_are_windows_of_it():
    found = draw_mutants([LONG], 0, 0, 20, TARGETS[:1])
    assert len(found) == 20
    assert all(len(case.graph.nodes) <= MOST_NODES for (case,) in found)
    for (case,) in found:
        check_case(case)


def test_a_parent_s_words_on_its_nodes_go():
    edited = msgspec.structs.replace(CAPTURED, recipe="a8w8,float=add_1")
    assert not any("add_1" in case.recipe for (case,) in draw_mutants([edited], 0, 0, 20, TARGETS[:1]))


def test_numbered_graphs_name_results_of_several_and_operands_in_arguments():
    graph = msgspec.structs.replace(
        CAPTURED.graph,
        nodes=(
            msgspec.structs.replace(aten("chunk", "aten.chunk.default", "x"), types=(TensorType((1, 2, 6)),) * 2),
            aten("relu", "aten.relu.default", "chunk.1", shape=(1, 2, 6)),
        ),
        outputs=("relu", "chunk.0"),
    )
    made = numbered(graph, "s_")
    assert made.outputs == ("s_n1", "s_n0.0")
    assert made.nodes[1].inputs == ("s_n0.1",)
    assert made.nodes[1].attributes["args"] == [{"value": "s_n0.1"}]
