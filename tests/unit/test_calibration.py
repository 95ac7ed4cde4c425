"""Calibration distributions: what each is about, and that samples are reproducible."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generators.adversarial import draw_calibration, pressures
from harness.case.arrays import Array
from harness.case.case import Case, Distribution, Graph, Input, Node
from harness.case.checking import check_case
from harness.case.registry import calibration_kinds
from harness.case.sampling import calibration_samples, evaluation_inputs
from tests.attributes import CONV_3X3

DRAWN = sorted(name for name, kind in calibration_kinds().items() if "stored" not in kind.tags)
SHAPES = [(), (1,), (7,), (2, 3), (1, 4, 5, 5), (2, 2, 1, 3, 2)]


def quick(examples: int) -> settings:
    return settings(
        max_examples=examples, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


def sample(
    kind: str,
    parameters: dict[str, Any],
    shape: tuple[int, ...] = (2, 4, 8, 8),
    index: int = 0,
    count: int = 1,
    seed: int = 0,
) -> Array:
    return calibration_kinds()[kind].sample(np.random.default_rng(seed), shape, parameters, index, count)


@st.composite
def drawn_parameters(draw: Any, name: str) -> dict[str, Any]:
    return calibration_kinds()[name].draw(draw)


@pytest.mark.parametrize("name", DRAWN)
def test_draws_declared_finite_parameters_and_samples_of_the_shape(name: str) -> None:
    kind = calibration_kinds()[name]

    @quick(15)
    @given(drawn_parameters(name), st.sampled_from(SHAPES), st.integers(0, 2))
    def check(parameters: dict[str, Any], shape: tuple[int, ...], index: int) -> None:
        assert set(parameters) == set(kind.parameters)
        assert json.loads(json.dumps(parameters)) == parameters
        values = sample(name, parameters, shape, index, 3)
        assert values.shape == shape
        assert np.isfinite(values.astype(np.float32)).all()
        assert np.abs(values).max() <= 1e4
        assert np.array_equal(values, sample(name, parameters, shape, index, 3))

    check()


def test_uniform_and_shifted_stay_in_their_range() -> None:
    values = sample("uniform", {"low": -2.0, "high": 3.0})
    assert -2 <= values.min() < -1.8
    assert 2.8 < values.max() <= 3
    shifted = sample("shifted", {"low": -2.0, "high": 3.0, "offset": -0.5})
    assert np.allclose(shifted, values - 0.5)


def test_normal_has_its_mean_and_deviation() -> None:
    values = sample("normal", {"mean": 3.0, "std": 0.5}, (64, 64))
    assert values.mean() == pytest.approx(3.0, abs=0.05)
    assert values.std() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("bound", [6.0, -6.0])
def test_one_sided_never_crosses_zero(bound: float) -> None:
    values = sample("one_sided", {"bound": bound}) * np.sign(bound)
    assert values.min() >= 0
    assert 5 < values.max() <= 6


def test_constant_and_zero_hold_one_value() -> None:
    assert set(sample("constant", {"value": -0.5}).flat) == {-0.5}
    assert set(sample("zero", {}).flat) == {0.0}


def test_tiny_and_huge_ranges() -> None:
    tiny = sample("tiny_range", {"center": 1.0, "width": 0.001})
    assert 0.0005 < tiny.max() - tiny.min() <= 0.001
    assert tiny.mean() == pytest.approx(1.0, abs=0.001)
    huge = sample("huge_range", {"bound": 1000.0})
    assert huge.min() < -900
    assert huge.max() > 900


def test_outlier_is_one_element_of_each_sample() -> None:
    places = set()
    for seed in range(5):
        values = sample("outlier", {"scale": 1.0, "outlier": -100.0}, seed=seed)
        assert (values == -100).sum() == 1
        assert (np.abs(values) <= 1).sum() == values.size - 1
        places.add(int(values.argmin()))
    assert len(places) > 1


def test_ramp_rises_from_end_to_end() -> None:
    values = sample("ramp", {"low": -1.0, "high": 2.0}, (3, 4)).ravel()
    assert (values[0], values[-1]) == (-1, 2)
    assert (np.diff(values) > 0).all()


def test_channel_skew_scales_dimension_one() -> None:
    values = np.abs(sample("channel_skew", {"ratio": 100.0}, (8, 3, 16, 16))).max(axis=(0, 2, 3))
    assert values == pytest.approx([1, 10, 100], rel=0.05)
    assert np.abs(sample("channel_skew", {"ratio": 100.0}, (3,)))[0] <= 1


def test_disjoint_samples_share_no_value() -> None:
    first, second = (sample("disjoint", {"width": 1.0, "gap": 2.0}, index=index, count=2) for index in (0, 1))
    assert first.max() < second.min()


def test_recorded_is_never_drawn_nor_sampled() -> None:
    kind = calibration_kinds()["recorded"]
    assert "stored" in kind.tags
    assert set(kind.parameters) == {"prefix"}
    with pytest.raises(AssertionError):
        sample("recorded", {"prefix": "x"})


def case_of(*inputs: Input, kind: str = "uniform", samples: int = 2, **parameters: Any) -> Case:
    parameters = parameters or {"low": -1.0, "high": 1.0}
    node = Node(name="n0", operator="relu", inputs=(inputs[0].name,))
    return Case(
        graph=Graph(inputs=inputs, nodes=(node,), outputs=("n0",)),
        samples=samples,
        calibration={item.name: Distribution(kind=kind, parameters=parameters) for item in inputs},
    )


def test_samples_are_reproducible_and_apart_by_input() -> None:
    x, y = Input(name="x", shape=(2, 3)), Input(name="y", shape=(2, 3))
    alone, both = calibration_samples(case_of(x)), calibration_samples(case_of(x, y))
    assert len(alone) == len(both) == 2
    for one, two in zip(alone, both, strict=True):
        assert one[0].dtype == np.float32
        assert np.array_equal(one[0], two[0])
        assert not np.array_equal(two[0], two[1])
    assert not np.array_equal(alone[0][0], alone[1][0])


def test_evaluation_holds_calibration_end_points_and_saturation() -> None:
    case = case_of(Input(name="x", shape=(4, 8)))
    seen = calibration_samples(case)
    low, high = (min(s[0].min() for s in seen), max(s[0].max() for s in seen))
    given_inputs = {item.origin: item for item in evaluation_inputs(case)}
    assert np.array_equal(evaluation_inputs(case)[0].arrays[0], seen[0][0])
    ends = given_inputs["end points"]
    assert set(ends.arrays[0].ravel()) == {low, high}
    assert ends.in_range
    beyond = given_inputs["saturating"]
    assert beyond.arrays[0].min() < 2 * low
    assert not beyond.in_range
    assert all(np.isfinite(item.arrays[0]).all() for item in evaluation_inputs(case))


@pytest.mark.parametrize(("operator", "kept"), [("aten.index_put.default", True), ("aten.index.Tensor", False)])
def test_indices_to_write_at_are_those_of_calibration(operator: str, kept: bool) -> None:
    """Their patterns would repeat, and what is written twice at one place is unpredictable."""
    case = case_of(Input(name="x", shape=(2,)), Input(name="at", shape=(2,), dtype="int64"), low=0.0, high=50.0)
    [node] = case.graph.nodes
    graph = msgspec.structs.replace(case.graph, nodes=(msgspec.structs.replace(node, operator=operator),))
    case = msgspec.structs.replace(case, graph=graph)
    [seen, *_] = calibration_samples(case)
    patterned = [item.arrays[1] for item in evaluation_inputs(case) if item.origin in ("end points", "saturating")]
    assert len(patterned) == 2
    assert all(np.array_equal(array, seen[1]) == kept for array in patterned)


def seed_001(join: str = "cat") -> Graph:
    """conv -> relu, joined with a sibling that is an input."""
    conv: dict[str, Any] = dict(CONV_3X3)
    attributes: dict[str, Any] = {"cat": {"dim": 1}, "minimum": {}}[join]
    return Graph(
        inputs=(Input(name="x", shape=(1, 4, 8, 8)), Input(name="y", shape=(1, 4, 8, 8))),
        nodes=(
            Node(name="n0", operator="conv2d", inputs=("x",), attributes=conv),
            Node(name="n1", operator="relu", inputs=("n0",)),
            Node(name="n2", operator="view", inputs=("y",), attributes={"shape": [1, 4, 8, 8]}),
            Node(name="n3", operator=join, inputs=("n1", "n2"), attributes=attributes),
        ),
        outputs=("n3",),
    )


@pytest.mark.parametrize("join", ["cat", "minimum"])
def test_pressures_see_the_sibling_of_a_rectified_branch(join: str) -> None:
    assert pressures(seed_001(join)) == {"x": frozenset(), "y": frozenset({"sibling", "neighbour"})}


def test_no_pressure_where_an_operand_meets_only_itself() -> None:
    graph = Graph(
        inputs=(Input(name="x", shape=(2,)),),
        nodes=(Node(name="n0", operator="cat", inputs=("x", "x"), attributes={"dim": 0}),),
        outputs=("n0",),
    )
    assert pressures(graph) == {"x": frozenset()}


def test_calibration_often_goes_against_the_graph() -> None:
    graph, drawn = seed_001(), []

    @quick(200)
    @given(st.composite(lambda draw: draw_calibration(draw, graph))())
    def check(calibration: dict[str, Distribution]) -> None:
        check_case(Case(graph=graph, calibration=calibration))
        drawn.append(calibration)

    check()
    below = [item for item in drawn if item["y"].kind == "shifted" and item["y"].parameters["offset"] < 0]
    wide = [item for item in drawn if item["y"].kind == "huge_range"]
    assert len(below) >= len(drawn) // 6
    assert len(wide) >= len(drawn) // 40
    plain = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    assert {"x": plain, "y": plain} in drawn
