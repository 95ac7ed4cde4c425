"""Every operator entry: results against torch, attributes, wrong operands.

Examples are what each entry's own strategy chooses. Whether a rule is a little too strict or too
lax is the matter of ``test_operator_borders``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from generators.adversarial import index_bounds
from generators.cases import draw_block
from generators.graph_pool import GraphPool, result_names
from generators.sizes import draw_shape
from harness.case.building import module_of
from harness.case.case import Case, Distribution, Graph, Node, TensorType
from harness.case.checking import check_case, value_types
from harness.case.operators import Operator, ShapeError
from harness.case.registry import operators
from harness.case.sampling import evaluation_inputs

every_operator = pytest.mark.parametrize("name", sorted(operators()))


def quick(examples: int) -> settings:
    return settings(
        max_examples=examples, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


SOURCES = ("float32", "int64", "int32", "int8", "bool")


def _may_accept(entry: Operator, rank: int, dtype: str) -> bool:
    return any(entry.accepts(TensorType((size,) * rank, dtype)) for size in (2, 4))


@st.composite
def single_nodes(draw: Any, entry: Operator) -> tuple[Graph, Node]:
    """A graph of one node whose outputs are all its results, and the node."""
    pool = GraphPool(draw)
    sources = [(rank, dtype) for dtype in SOURCES for rank in range(1, 6) if _may_accept(entry, rank, dtype)]
    rank, dtype = draw(st.sampled_from(sources))
    source = pool.input(draw_shape(draw, rank), dtype)
    assume(entry.accepts(pool.type_of(source)))
    choice = entry.draw(draw, pool, source)
    results = pool.add_all(entry.name, *choice.inputs, **choice.attributes)
    graph = Graph(inputs=tuple(pool.inputs), constants=tuple(pool.constants), nodes=tuple(pool.nodes), outputs=results)
    return graph, pool.nodes[0]


def case_of(graph: Graph) -> Case:
    uniform = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    bounds = index_bounds(graph)
    return Case(
        graph=graph,
        calibration={
            item.name: Distribution(kind="indices", parameters={"below": bounds.get(item.name, 100)})
            if item.dtype.startswith("int")
            else uniform
            for item in graph.inputs
        },
    )


def run(case: Case) -> list[tuple[torch.Tensor, ...]]:
    """Results of the case's module on every evaluation input."""
    model = module_of(case)
    with torch.no_grad():
        results = [model(*map(torch.from_numpy, given.arrays)) for given in evaluation_inputs(case)]
    return [(result,) if isinstance(result, torch.Tensor) else tuple(result) for result in results]


def wanted(case: Case) -> list[tuple[tuple[int, ...], str]]:
    types = value_types(case.graph)
    return [(types[name].shape, f"torch.{types[name].dtype}") for name in case.graph.outputs]


@every_operator
def test_shape_rule_agrees_with_torch(name: str) -> None:
    seen: list[str] = []

    @quick(35)
    @given(single_nodes(operators()[name]))
    def check(drawn: tuple[Graph, Node]) -> None:
        case = case_of(drawn[0])
        check_case(case)
        first = run(case)[0]
        assert [(tuple(result.shape), str(result.dtype)) for result in first] == wanted(case)
        assert json.loads(json.dumps(drawn[1].attributes)) == drawn[1].attributes
        seen.append(name)

    check()
    # operators without attributes have few distinct examples
    assert len(seen) >= 30


@every_operator
def test_wrong_operands_are_refused(name: str) -> None:
    entry = operators()[name]

    @quick(3)
    @given(single_nodes(entry))
    def check(drawn: tuple[Graph, Node]) -> None:
        graph, node = drawn
        known = value_types(graph)
        types = [known[operand] for operand in node.inputs]
        assert entry.infer(types, node.attributes)
        with pytest.raises(ShapeError):
            entry.infer([], node.attributes)
        with pytest.raises(ShapeError, match=r"takes .*, not float16"):
            entry.infer([TensorType(type_.shape, "float16") for type_ in types], node.attributes)
        if name not in ("cat", "stack"):
            with pytest.raises(ShapeError, match="operand"):
                entry.infer([*types, *types, *types], node.attributes)

    check()


@every_operator
def test_attributes_of_the_wrong_kind_are_refused(name: str) -> None:
    """Whatever stands in a JSON file, it either fits or is refused: source text is made from it."""
    entry = operators()[name]

    @quick(3)
    @given(single_nodes(entry))
    def check(drawn: tuple[Graph, Node]) -> None:
        graph, node = drawn
        known = value_types(graph)
        types = [known[operand] for operand in node.inputs]
        assert set(node.attributes) == set(entry.attributes)
        for key in entry.attributes:
            for wrong in ("__import__('os')", {"a": 1}, ["x"], [1.5], True if key not in FLAGS else 1):
                with pytest.raises((ShapeError, TypeError)):
                    entry.infer(types, {**node.attributes, key: wrong})

    check()


FLAGS = {"bias", "ceil_mode", "count_include_pad", "keepdim"}
FLAGS |= {"accumulate", "affine", "align_corners", "causal", "channelwise"}

WRONG_SHAPES: list[tuple[str, list[tuple[int, ...]], dict[str, Any], str]] = [
    ("cat", [(1, 2, 3), (1, 2, 4)], {"dim": 1}, "differ outside dim 1"),
    ("cat", [(1, 2), (1, 2, 1)], {"dim": 0}, "ranks"),
    ("stack", [(1, 2), (2, 1)], {"dim": 0}, "differ"),
    ("add", [(2, 3), (3, 2)], {"scalar": None, "side": None, "alpha": 1}, "broadcast"),
    ("add", [(2, 3), (2, 3)], {"scalar": 1.0, "side": "left", "alpha": 1}, "operand"),
    ("mul", [(2, 3)], {"scalar": 1.0, "side": "above"}, "left or right"),
    ("matmul", [(2, 3), (2, 3)], {}, "inner sizes 3 and 2"),
    ("bmm", [(2, 3, 4), (3, 4, 5)], {}, "batches"),
    ("addmm", [(5,), (2, 3), (3, 4)], {"beta": 1, "alpha": 1}, "broadcast"),
    ("view", [(2, 3)], {"shape": [4]}, "6 elements"),
    ("view", [(2, 3)], {"shape": [-1, -1]}, "twice"),
    ("permute", [(2, 3)], {"dims": [0, 0]}, "twice"),
    ("permute", [(2, 3)], {"dims": [0]}, "rank 2"),
    ("unsqueeze", [(2, 3)], {"dim": 3}, "outside"),
    ("select", [(2, 3)], {"dim": 1, "index": 3}, "outside size 3"),
    ("slice", [(2, 3)], {"dim": 2, "start": 0, "stop": 1, "step": 1}, "outside rank 2"),
    ("expand", [(2, 3)], {"shape": [4, 3]}, "does not expand"),
    ("split", [(2, 3)], {"sizes": [1, 1], "dim": 1}, "add up to 3"),
    (
        "conv2d",
        [(1, 3, 4, 4)],
        {
            "out_channels": 4,
            "kernel": [1, 1],
            "stride": [1, 1],
            "padding": [0, 0],
            "dilation": [1, 1],
            "groups": 2,
            "bias": True,
        },
        "groups",
    ),
    (
        "conv2d",
        [(1, 3, 4, 4)],
        {
            "out_channels": 4,
            "kernel": [5, 1],
            "stride": [1, 1],
            "padding": [0, 0],
            "dilation": [1, 1],
            "groups": 1,
            "bias": True,
        },
        "exceeds",
    ),
    (
        "conv_transpose2d",
        [(1, 2, 1, 1)],
        {
            "out_channels": 4,
            "kernel": [1, 1],
            "stride": [1, 1],
            "padding": [1, 1],
            "output_padding": [0, 0],
            "dilation": [1, 1],
            "groups": 1,
            "bias": True,
        },
        "not positive",
    ),
    (
        "max_pool2d",
        [(1, 1, 4, 4)],
        {"kernel": [2, 2], "stride": None, "padding": [2, 0], "dilation": [1, 1], "ceil_mode": False},
        "half",
    ),
    ("div", [(2,)], {"scalar": 0}, "zero"),
    ("clamp", [(2,)], {"min": None, "max": None}, "no bound"),
    ("mean", [(2, 3)], {"dims": [0, -2], "keepdim": True}, "twice"),
    ("softmax", [(2, 3)], {"dim": 2}, "outside rank 2"),
]


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "sentence"),
    WRONG_SHAPES,
    ids=[f"{row[0]}-{row[3].replace(' ', '-')}" for row in WRONG_SHAPES],
)
def test_wrong_shapes_are_refused_with_a_sentence(
    name: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ShapeError, match=sentence):
        operators()[name].infer([TensorType(shape) for shape in shapes], attributes)


def test_drawn_graphs_run_in_eager_and_stay_finite() -> None:
    """The generators' promise: nothing torch refuses, next to nothing that overflows."""
    blocks = draw_block(11, 0, 200, ["TOSA-1.0+INT"])
    infinite = 0
    for (case,) in blocks:
        results = run(case)
        expected = wanted(case)
        for result in results:
            assert [(tuple(item.shape), str(item.dtype)) for item in result] == expected
        infinite += not all(bool(torch.isfinite(item).all()) for result in results for item in result)
    assert len(blocks) == 200
    assert infinite <= 2


def test_results_of_several_are_numbered() -> None:
    assert result_names("n3", 1) == ("n3",)
    assert result_names("n3", 2) == ("n3.0", "n3.1")
