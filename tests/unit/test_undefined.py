"""Writes of several values to one place: PyTorch leaves open which stays, so that no answer is a finding."""

import msgspec
import numpy as np
import pytest

from harness.case.case import Graph, Input, Node
from harness.case.sampling import EvaluationInput
from harness.evidence.observation import Failure, LegResult, Observation, oracles
from harness.evidence.undefined import written_twice
from tests.unit.observations import CASE

X = np.zeros((1, 2, 3), np.float32)


def graph(*more, operator="aten.index_put.default", indices=({"value": "i"}, {"value": "j"})):
    inputs = [Input(name="x", shape=(1, 2, 3)), *(Input(name=name, shape=(2,), dtype="int64") for name in "ij")]
    node = Node(
        name="put",
        operator=operator,
        inputs=["x", "i", "j"],
        attributes={"args": [{"value": "x"}, [*indices], {"value": "x"}, *more]},
    )
    return Graph(inputs=inputs, nodes=[node], outputs=["put"])


def given(first, second):
    return EvaluationInput("calibration", (X, np.array(first), np.array(second)), True)


@pytest.mark.parametrize(
    ("first", "second", "twice"), [([0, 0], [1, 1], True), ([0, 0], [1, 0], False), ([0, 0], [1], True)]
)
def test_a_place_is_written_twice_if_all_its_indices_are_the_same(first, second, twice):
    assert written_twice(graph(), [given([0, 0], [0, 1]), given(first, second)]) == twice


@pytest.mark.parametrize(
    "words",
    [
        {"operator": "aten.index.Tensor"},
        {"indices": ({"value": "i"}, None)},
        {"indices": ({"value": "made"}, {"value": "j"})},
    ],
)
def test_nothing_is_said_of_other_operators_and_of_indices_that_are_no_inputs(words):
    assert not written_twice(graph(**words), [given([0, 0], [1, 1])])


def test_what_is_added_up_is_defined():
    assert written_twice(graph(False), [given([0, 0], [1, 1])])
    assert not written_twice(graph(True), [given([0, 0], [1, 1])])


@pytest.mark.parametrize(
    ("second", "message", "found"),
    [
        ([1, 1], "returned TOSA_UNPREDICTABLE", 0),
        ([1, 0], "returned TOSA_UNPREDICTABLE", 1),
        ([1, 1], "returned TOSA_ERROR", 1),
    ],
)
def test_the_crash_oracle_says_nothing_of_what_is_undefined(second, message, found):
    failure = Failure("leg:tosa-reference", "ReferenceModelError", message)
    case = msgspec.structs.replace(CASE, graph=graph())
    seen = Observation(case, (given([0, 0], second),), legs={"tosa-reference": LegResult(failure=failure)})
    assert len(oracles()["crash"].judge(seen)) == found


@pytest.mark.parametrize(("value", "found"), [(np.nan, 0), (1.0, 1)])
def test_the_crash_oracle_says_nothing_of_a_power_that_is_no_number(value, found):
    failure = Failure("leg:tosa-reference", "ReferenceModelError", "returned TOSA_UNPREDICTABLE")
    eager = LegResult(((np.asarray([2.0, value], np.float32),),))
    case = msgspec.structs.replace(CASE, graph=graph())
    legs = {"eager": eager, "tosa-reference": LegResult(failure=failure)}
    seen = Observation(case, (given([0, 0], [1, 0]),), legs=legs)
    assert len(oracles()["crash"].judge(seen)) == found
