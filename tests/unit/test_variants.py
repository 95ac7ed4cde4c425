"""Variants of a case: what stays, what moves, and that the same arguments give the same ones."""

import pytest

from generators.variants import draw_variants
from harness.case.case import Case, Distribution, Graph, Input, Node, case_digest

UNIFORM = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
CASE = Case(
    graph=Graph(
        inputs=(Input(name="x0", shape=(1, 4)), Input(name="x1", shape=(1, 4))),
        nodes=(
            Node(name="n0", operator="relu", inputs=("x0",)),
            Node(name="n1", operator="cat", inputs=("n0", "x1"), attributes={"dim": 1}),
        ),
        outputs=("n1",),
    ),
    calibration={"x0": UNIFORM, "x1": UNIFORM},
)


@pytest.fixture(scope="module")
def variants():
    return draw_variants(CASE, 3, 25)


def test_the_case_itself_comes_first_and_none_twice(variants):
    assert variants[0] == CASE
    assert len({case_digest(item) for item in variants}) == len(variants) == 25


def test_graph_weights_and_target_stay(variants):
    kept = {(case_digest(CASE), item.seeds.weights, item.target) for item in variants}
    assert len(kept) == 1
    assert all(item.graph == CASE.graph for item in variants)


def test_calibrations_move_and_few_recipes_serve_all(variants):
    assert len({str(item.calibration) for item in variants}) > 10
    assert 1 < len({item.recipe for item in variants}) <= 3


def test_the_same_arguments_give_the_same_variants(variants):
    assert draw_variants(CASE, 3, 25) == variants
    assert draw_variants(CASE, 4, 25)[1:] != variants[1:]
