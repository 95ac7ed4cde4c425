"""Drawn graphs: valid, varied, covering, reproducible, and shrinking towards the plainest.

No torch here; that drawn graphs run in eager is checked in ``test_operators``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generators.adversarial import index_bounds
from generators.cases import cases, draw_block, draw_covering, graph_digest
from generators.graph_pool import GraphPool
from generators.graphs import MOST_NODES, graphs
from generators.motifs import MOTIFS, Motif
from generators.recipes import recipes
from generators.sizes import BUDGET, between, pick
from harness.case.case import Case, Distribution, Graph, Node, Seeds, TensorType
from harness.case.chains import has_pattern
from harness.case.checking import check_case, value_types
from harness.case.constants import CONSTANT_KINDS
from harness.case.recipe import parse_recipe
from harness.case.registry import calibration_kinds, operators

TARGET = ("TOSA-1.0+INT",)
ROOT = Path(__file__).parents[2]


def quick(examples: int) -> settings:
    return settings(
        max_examples=examples, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


@cache
def block(seed: int) -> tuple[Case, ...]:
    """The first 300 graphs of a seed."""
    return tuple(case for (case,) in draw_block(seed, 0, 300, TARGET))


def graphs_of(seed: int) -> list[Graph]:
    return [case.graph for case in block(seed)]


SEEDS = (0, 1, 2)


def test_every_operator_is_drawn_twice_at_least() -> None:
    nodes = Counter(node.operator for seed in SEEDS for graph in graphs_of(seed) for node in graph.nodes)
    rare = {name: nodes[name] for name in operators() if nodes[name] < 2}
    assert rare == {}  # in 900 graphs; which are rarest is chance


def test_integer_inputs_stay_below_what_reads_them() -> None:
    drawn = [case for seed in SEEDS for case in block(seed)]
    integers = [(case, item) for case in drawn for item in case.graph.inputs if item.dtype.startswith("int")]
    assert len(integers) >= 20
    for case, item in integers:
        bound = index_bounds(case.graph).get(item.name, 100)
        assert case.calibration[item.name].kind == "indices"
        assert case.calibration[item.name].parameters["below"] <= bound
    assert {item.dtype for case in drawn for item in case.graph.inputs} == {"float32", "int8", "int32", "int64", "bool"}


def test_every_constant_and_calibration_is_drawn_at_least_five_times() -> None:
    drawn = [case for seed in SEEDS for case in block(seed)]
    constants = Counter(constant.kind for case in drawn for constant in case.graph.constants)
    calibrations = Counter(item.kind for case in drawn for item in case.calibration.values())
    drawn_kinds = [name for name, kind in calibration_kinds().items() if not kind.tags & {"stored", "integer"}]
    assert {
        name: constants[name] for name, kind in CONSTANT_KINDS.items() if not kind.stored and constants[name] < 5
    } == {}
    assert {name: calibrations[name] for name in drawn_kinds if calibrations[name] < 5} == {}
    assert not constants["tensor"] + constants["parameter"]
    assert not calibrations["recorded"]


def test_blocks_are_full_distinct_and_checked() -> None:
    graphs = graphs_of(0)
    assert len({graph_digest(graph) for graph in graphs}) == len(graphs) == 300
    for case in block(0):
        check_case(case)
    assert not {graph_digest(graph) for graph in graphs} <= {graph_digest(graph) for graph in graphs_of(1)}
    other = [graph_digest(case.graph) for (case,) in draw_block(0, 1, 30, TARGET)]
    # graphs of one node on one element repeat
    assert len(set(other) & {graph_digest(graph) for graph in graphs}) <= 5


def test_a_larger_block_begins_with_the_smaller_one() -> None:
    assert tuple(case for (case,) in draw_block(0, 0, 17, TARGET)) == block(0)[:17]


GROUPS = ((("neg",),), (("full_like",), ("zeros_like",)), (("conv2d", "relu|clamp"),), (("no-such-operator",),))


def test_a_covering_block_has_each_group_often_enough_in_few_graphs() -> None:
    drawn = draw_covering(GROUPS, 0, 6, ("TOSA-1.0+INT", "ethos-u55-128"))
    found = [drawn_cases[0].graph for drawn_cases in drawn]
    assert [sum(has_pattern(graph, group) for graph in found) >= 6 for group in GROUPS] == [True, True, True, False]
    assert len(found) < 3 * 6
    assert len({graph_digest(graph) for graph in found}) == len(found)
    assert all([case.target for case in item] == ["TOSA-1.0+INT", "ethos-u55-128"] for item in drawn)
    assert draw_covering(GROUPS, 0, 6, ("TOSA-1.0+INT", "ethos-u55-128")) == drawn
    assert draw_covering(GROUPS, 1, 6, ("TOSA-1.0+INT", "ethos-u55-128")) != drawn


def test_graphs_have_all_sizes_and_ranks() -> None:
    graphs = graphs_of(0)
    lengths = Counter(len(graph.nodes) for graph in graphs)
    assert set(lengths) == set(range(1, MOST_NODES + 1))
    assert min(lengths.values()) >= 10
    inputs = [item for graph in graphs for item in graph.inputs]
    ranks = Counter(len(item.shape) for item in inputs)
    assert min(ranks[rank] for rank in range(1, 6)) >= 10
    assert max(ranks, key=ranks.__getitem__) == 4
    images = [item.shape for item in inputs if len(item.shape) == 4]
    assert sum(shape[0] > 1 for shape in images) >= 20
    assert sum(1 in shape[1:] for shape in images) >= 20
    assert {len(graph.inputs) for graph in graphs} >= {1, 2, 3}
    assert max(len(graph.inputs) for graph in graphs) <= 5  # three, and indices or a mask too large for a constant
    outputs = Counter(len(graph.outputs) for graph in graphs)
    assert outputs[1] >= 100
    assert 40 <= 300 - outputs[1] <= 200


def test_tensors_stay_within_the_budget() -> None:
    sizes = [
        max(type_.elements for type_ in value_types(graph).values()) for seed in (0, 1, 2) for graph in graphs_of(seed)
    ]
    assert max(sizes) <= 2 * BUDGET
    assert sum(size > BUDGET for size in sizes) <= len(sizes) // 50


def test_nothing_in_a_graph_is_dead() -> None:
    for graph in graphs_of(0) + graphs_of(1):
        types = value_types(graph)
        used = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
        produced = {item.name for item in graph.inputs} | {item.name for item in graph.constants}
        assert produced <= used
        # some results of a split may go nowhere, but only where another one is used in the graph
        inner = {name for node in graph.nodes for name in node.inputs}
        for node in graph.nodes:
            results = {name for name in types if name.partition(".")[0] == node.name}
            assert results <= used or (len(results) > 1 and results & inner)
        assert graph.outputs


def _producers(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def _has_chain(graph: Graph, *names: str) -> bool:
    """Is there a path through operators of these names (``|`` for alternatives), last one last?"""
    nodes = _producers(graph)

    def ends(name: str, wanted: tuple[str, ...]) -> bool:
        node = nodes.get(name.partition(".")[0])
        return (
            node is not None
            and node.operator in wanted[-1].split("|")
            and (len(wanted) == 1 or any(ends(operand, wanted[:-1]) for operand in node.inputs))
        )

    return any(ends(node.name, names) for node in graph.nodes)


@pytest.mark.parametrize(
    "chain",
    [
        ("cat", "conv2d"),
        ("conv2d", "relu", "cat"),
        ("conv2d", "relu|relu6|hardtanh|clamp"),
        ("softmax", "matmul"),
        ("matmul", "softmax"),
        ("view", "permute"),
        ("permute", "reshape"),
        ("linear", "view|reshape"),
        ("cat", "view"),
        ("split|chunk", "cat"),
        ("hardtanh|clamp|relu6", "relu"),
        ("sigmoid", "mul"),
        ("conv2d", "add"),
    ],
)
def test_patterns_of_the_seeds_are_drawn_often(chain: tuple[str, ...]) -> None:
    found = sum(_has_chain(graph, *chain) for seed in (0, 1, 2) for graph in graphs_of(seed))
    assert found >= 4  # in 900 graphs


def test_some_nodes_start_from_a_constant_and_are_folded() -> None:
    folded: set[str] = set()
    kinds: Counter[str] = Counter()
    for case in block(0) + block(1) + block(2):
        constants = {constant.name: constant.dtype for constant in case.graph.constants}
        for node in case.graph.nodes:
            if node.operator in operators() and node.inputs and node.inputs[0] in constants:
                kinds[constants[node.inputs[0]]] += 1
                if all(name in constants for name in node.inputs):
                    folded.add(node.operator)
    assert folded >= {"relu", "view", "conv2d"}
    assert len(folded) >= 40, "any operator may"
    assert kinds["int64"]
    assert kinds["int32"]
    assert kinds["float32"] > 5 * (kinds["int64"] + kinds["int32"])


def test_constants_meet_activations_in_cat() -> None:
    """Seed 000 (factory -> cat -> conv) and seed 002 (ramps in a cat)."""
    kinds: Counter[str] = Counter()
    for graph in graphs_of(0) + graphs_of(1) + graphs_of(2):
        constants = {constant.name: constant.kind for constant in graph.constants}
        for node in graph.nodes:
            if node.operator == "cat":
                kinds.update({constants[name] for name in node.inputs if name in constants})
                kinds["twice"] += len(set(node.inputs)) < len(node.inputs)
                kinds["negative"] += node.attributes["dim"] < 0
    assert min(kinds[kind] for kind in ("full", "zeros", "ones", "ramp", "random", "twice", "negative")) >= 3, kinds


@pytest.mark.parametrize("motif", MOTIFS, ids=lambda motif: motif.name)
def test_motifs_build_valid_graphs(motif: Motif) -> None:
    @quick(25)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        pool = GraphPool(data.draw)
        motif.build(pool)
        graph = pool.finish()
        types = value_types(graph)
        assert 1 <= len(graph.nodes) <= MOST_NODES
        assert max(type_.elements for type_ in types.values()) <= 2 * BUDGET
        calibration = {item.name: Distribution(kind="zero") for item in graph.inputs}
        check_case(Case(graph=graph, calibration=calibration))

    check()


def test_pool_gives_no_loose_value_to_a_dense_operator() -> None:
    """view needs memory order; a permuted value and what is computed from it lack it."""

    @quick(30)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        pool = GraphPool(data.draw)
        source = pool.input((2, 3, 4))
        moved = pool.add("relu", pool.add("permute", source, dims=[2, 0, 1]))
        assert "view" in {entry.name for entry in pool.fitting(source)}
        assert "view" not in {entry.name for entry in pool.fitting(moved)}
        assert "reshape" in {entry.name for entry in pool.fitting(moved)}

    check()


def test_operand_has_exactly_the_type_that_was_asked_for() -> None:
    origins: Counter[str] = Counter()

    @quick(60)
    @given(st.data(), st.booleans())
    def check(data: st.DataObject, constants: bool) -> None:
        pool = GraphPool(data.draw)
        source = pool.input((2, 3))
        pool.add("relu", source)
        pool.add("transpose", source, dim0=0, dim1=1)
        name = pool.operand(TensorType((2, 3)), constants=constants)
        assert pool.type_of(name) == TensorType((2, 3))
        assert constants or not name.startswith("c")
        origins[name[0]] += 1

    check()
    assert set(origins) == {"x", "n", "c"}


def test_cases_of_a_graph_differ_in_target_and_recipe_only() -> None:
    targets = ["TOSA-1.0+INT", "TOSA-1.0+FP", "ethos-u55-128"]
    for integer, floating, ethos in draw_block(3, 0, 30, targets):
        assert [integer.target, floating.target, ethos.target] == targets
        assert floating.recipe == "float"
        assert integer.recipe == ethos.recipe != "float"
        for other in (floating, ethos):
            assert (other.graph, other.calibration, other.samples, other.seeds) == (
                integer.graph,
                integer.calibration,
                integer.samples,
                integer.seeds,
            )
        assert 1 <= integer.samples <= 3
        for case in (integer, floating, ethos):
            check_case(case)


def test_recipes_are_weighted_towards_the_plain_one() -> None:
    drawn = [parse_recipe(case.recipe) for seed in (0, 1, 2) for case in block(seed)]
    share = {
        "plain": sum(str(item).split(",float=")[0] == "a8w8" for item in drawn),
        "a16w8": sum(item.widths == "a16w8" for item in drawn),
        "uint8": sum(item.io == "uint8" for item in drawn),
        "fixed": sum(item.fixed_activations for item in drawn),
    }
    assert share["plain"] >= 0.5 * len(drawn)
    assert 0.12 * len(drawn) <= share["a16w8"] <= 0.3 * len(drawn)
    assert 1 <= share["uint8"] <= 0.03 * len(drawn)
    assert 1 <= share["fixed"] <= 0.04 * len(drawn)
    assert 0.01 * len(drawn) <= sum(item.widths == "a8w4" for item in drawn) <= 0.1 * len(drawn)
    assert {item.mixed[0][0] for item in drawn if item.mixed} == {"a8w8", "a16w8"}
    for word in ("per_channel", "qmin", "weight_qmin", "io", "float_nodes", "mixed"):
        assert len({getattr(item, word) for item in drawn}) >= 2, word
    assert all(str(parse_recipe(case.recipe)) == case.recipe for case in block(0))


def test_recipes_never_leave_everything_float() -> None:
    partly = [case for seed in (0, 1, 2) for case in block(seed) if parse_recipe(case.recipe).float_nodes]
    assert len(partly) >= 20
    for case in partly:
        assert len(parse_recipe(case.recipe).float_nodes) < len(case.graph.nodes)


def test_long_choices_are_even_and_complete() -> None:
    counts: Counter[int] = Counter()

    @hypothesis.seed(0)
    @settings(max_examples=3000, database=None, deadline=None, phases=[Phase.generate])
    @given(st.composite(lambda draw: (pick(draw, range(120)), between(draw, 5, 7)))())
    def check(drawn: tuple[int, int]) -> None:
        counts[drawn[0]] += 1
        assert 5 <= drawn[1] <= 7

    check()
    assert set(counts) == set(range(120))


def smallest(found: Callable[[Case], bool]) -> Case:
    """The smaller of two cases that Hypothesis shrinks to (each may stop at a local minimum)."""
    quietly = settings(
        max_examples=1000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    shrunk = [
        hypothesis.find(cases(TARGET, graphs()), lambda drawn: found(drawn[0]), settings=quietly, random=Random(seed))[
            0
        ]
        for seed in (3, 4)
    ]
    return min(shrunk, key=lambda case: len(case.graph.nodes))


def is_plain(case: Case) -> bool:
    uniform = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    calibrated = all(item == uniform for item in case.calibration.values())
    return calibrated and case.recipe == "a8w8" and case.seeds == Seeds()


def test_shrinks_to_relu_of_one_element() -> None:
    case = smallest(lambda case: True)
    assert [(node.operator, node.inputs) for node in case.graph.nodes] == [("relu", ("x0",))]
    assert [item.shape for item in case.graph.inputs] == [(1,)]
    assert case.graph.outputs == ("n0",)
    assert is_plain(case)


def test_shrinks_to_one_node_of_the_kind_that_matters() -> None:
    case = smallest(lambda case: any(node.operator == "cat" for node in case.graph.nodes))
    assert [node.operator for node in case.graph.nodes] == ["cat"]
    assert len(case.graph.outputs) == 1
    assert len(case.graph.inputs) <= 1  # the smallest cat may be the one of two ramps
    assert max(type_.elements for type_ in value_types(case.graph).values()) <= 16
    assert is_plain(case)


def test_recipe_shrinks_to_a8w8() -> None:
    graph = block(0)[0].graph
    assert hypothesis.find(recipes(graph), lambda text: True, settings=quick(50)) == "a8w8"


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_nothing_starts_from_a_value_without_elements(data):
    """A slice of an input that became smaller may leave none; a convolution of it has no channels."""
    pool = GraphPool(data.draw)
    whole = pool.input((1, 2, 5), "float32")
    (empty,) = pool.add_all("slice", whole, dim=1, start=2, stop=5, step=1)
    assert pool.types[empty].elements == 0
    assert pool.source() != empty
