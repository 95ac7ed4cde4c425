"""Cases as JSON: what goes out comes back, and what is wrong is named with its path and a remedy."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generators.cases import draw_block
from harness.case.case import Case, Constant, Distribution, Graph, Input, Node, Seeds, case_digest, encode_case
from harness.case.checking import check_case, value_types
from harness.case.errors import BadInput
from harness.case.reading import decode_case, read_case
from tests.attributes import CONV_3X3

CONV = {**CONV_3X3, "out_channels": 2}


def example() -> Case:
    """Several inputs, constants of two kinds, an operator with two results, two outputs."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4, 6, 6)), Input(name="y", shape=(1, 2, 6, 6))),
            constants=(
                Constant(name="c0", shape=(1, 2, 6, 6), kind="full", parameters={"value": 0.5}),
                Constant(
                    name="c1", shape=(6,), kind="literal", parameters={"values": [1.0, -1.0, 0.0, 2.0, 0.5, 1e-3]}
                ),
            ),
            nodes=(
                Node(name="n0", operator="split", inputs=("x",), attributes={"sizes": 2, "dim": 1}),
                Node(name="n1", operator="cat", inputs=("c0", "n0.1", "y"), attributes={"dim": 1}),
                Node(name="n2", operator="conv2d", inputs=("n1",), attributes=CONV),
                Node(
                    name="n3",
                    operator="add",
                    inputs=("n2", "c1"),
                    attributes={"scalar": None, "side": None, "alpha": 1},
                ),
            ),
            outputs=("n3", "n0.0"),
        ),
        calibration={
            "x": Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0}),
            "y": Distribution(kind="shifted", parameters={"low": 0.0, "high": 1.0, "offset": -0.065}),
        },
        samples=3,
        recipe="a8w8,per-tensor,qmin=-127,float=n2",
        target="ethos-u55-128",
        seeds=Seeds(weights=1, calibration=2, evaluation=3),
        note="an example",
    )


def test_round_trip_is_exact() -> None:
    data = encode_case(example())
    assert decode_case(data) == example()
    assert encode_case(decode_case(data)) == data
    assert json.loads(data)["schema"] == 1


def test_drawn_cases_round_trip_and_pass_their_checks() -> None:
    targets = ["TOSA-1.0+INT", "TOSA-1.0+FP", "ethos-u85-256"]
    drawn = draw_block(5, 0, 60, targets)
    assert len(drawn) == 60
    for cases in drawn:
        assert [case.target for case in cases] == targets
        for case in cases:
            check_case(case)
            assert decode_case(encode_case(case)) == case


def test_read_case_takes_a_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(encode_case(example()))
    assert read_case(tmp_path) == read_case(tmp_path / "case.json") == example()
    with pytest.raises(BadInput, match=r"nowhere.*give a case.json"):
        read_case(tmp_path / "nowhere.json")


def test_digest_ignores_the_note_and_nothing_else() -> None:
    tree = json.loads(encode_case(example()))
    digests = {case_digest(example())}
    tree["note"] = "another note"
    digests.add(case_digest(decode_case(json.dumps(tree).encode())))
    assert len(digests) == 1
    for key, value in (("target", "TOSA-1.0+INT"), ("recipe", "a16w8"), ("samples", 1)):
        digests.add(case_digest(decode_case(json.dumps({**tree, key: value}).encode())))
    assert len(digests) == 4


def test_types_of_all_values() -> None:
    types = value_types(example().graph)
    assert {name: types[name].shape for name in ("n0.0", "n0.1", "n1", "n2", "n3")} == {
        "n0.0": (1, 2, 6, 6),
        "n0.1": (1, 2, 6, 6),
        "n1": (1, 6, 6, 6),
        "n2": (1, 2, 6, 6),
        "n3": (1, 2, 6, 6),
    }
    assert "n0" not in types


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    """A change: the last item of ``path`` is written where the others lead."""

    def change(tree: dict[str, Any]) -> None:
        *holders, key, value = path
        place: Any = tree
        for holder in holders:
            place = place[holder]
        place[key] = value

    return change


def _drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(tree: dict[str, Any]) -> None:
        place: Any = tree
        for holder in path[:-1]:
            place = place[holder]
        del place[path[-1]]

    return change


NAN, INFINITE = float("nan"), float("inf")

# change, JSON path of the message, words of the problem, words of the remedy
WRONG: dict[str, tuple[Callable[[dict[str, Any]], None], str, str, str]] = {
    "unknown field": (_set("colour", "red"), "$", "colour", "harness/case/case.py"),
    "unknown field of a node": (
        _set("graph", "nodes", 0, "kernel", 3),
        "$.graph.nodes[0]",
        "kernel",
        "harness/case/case.py",
    ),
    "wrong type": (
        _set("graph", "inputs", 0, "shape", "big"),
        "$.graph.inputs[0].shape",
        "array",
        "harness/case/case.py",
    ),
    "missing field": (_drop("graph", "outputs"), "$.graph", "outputs", "harness/case/case.py"),
    "unknown version": (_set("schema", 7), "$.schema", "7", "version"),
    "unknown operator": (
        _set("graph", "nodes", 0, "operator", "splat"),
        "$.graph.nodes[0].operator",
        "splat",
        "generators/ops",
    ),
    "impossible shape": (
        _set("graph", "inputs", 1, "shape", [1, 2, 5, 6]),
        "$.graph.nodes[1]",
        "cat cannot take",
        "mend",
    ),
    "shape of nothing": (
        _set("graph", "inputs", 0, "shape", [1, 0, 6, 6]),
        "$.graph.inputs[0].shape",
        "[1, 0, 6, 6]",
        "at least 1",
    ),
    "unknown attribute": (
        _set("graph", "nodes", 1, "attributes", {"axis": 1}),
        "$.graph.nodes[1].attributes",
        "axis",
        "exactly",
    ),
    "attribute of a wrong kind": (
        _set("graph", "nodes", 1, "attributes", {"dim": "1); import os"}),
        "$.graph.nodes[1]",
        "not an integer",
        "mend",
    ),
    "unknown value": (_set("graph", "nodes", 2, "inputs", ["n9"]), "$.graph.nodes[2].inputs[0]", "n9", "order"),
    "later value": (
        _set("graph", "nodes", 1, "inputs", ["c0", "n2", "y"]),
        "$.graph.nodes[1].inputs[1]",
        "n2",
        "order",
    ),
    "whole of a split": (_set("graph", "nodes", 2, "inputs", ["n0"]), "$.graph.nodes[2].inputs[0]", "n0", "order"),
    "unknown output": (_set("graph", "outputs", ["n9"]), "$.graph.outputs[0]", "n9", "name a node"),
    "no output": (_set("graph", "outputs", []), "$.graph.outputs", "empty", "at least one"),
    "name used twice": (_set("graph", "constants", 0, "name", "x"), "$.graph.constants[0].name", "twice", "own name"),
    "name that is no identifier": (
        _set("graph", "nodes", 3, "name", "n 3"),
        "$.graph.nodes[3].name",
        "n 3",
        "identifier",
    ),
    "unknown constant": (_set("graph", "constants", 0, "kind", "eye"), "$.graph.constants[0]", "eye", "mend"),
    "wrong number of values": (
        _set("graph", "constants", 1, "parameters", {"values": [1.0]}),
        "$.graph.constants[1]",
        "6 values",
        "mend",
    ),
    "unknown dtype": (_set("graph", "inputs", 0, "dtype", "float8"), "$.graph.inputs[0].dtype", "float8", "float32"),
    "unknown distribution": (_set("calibration", "x", "kind", "cauchy"), "$.calibration.x.kind", "cauchy", "uniform"),
    "wrong parameters": (
        _set("calibration", "x", "parameters", {"low": 0.0}),
        "$.calibration.x.parameters",
        "low",
        "exactly",
    ),
    "no distribution": (_drop("calibration", "y"), "$.calibration", "'y'", "add one"),
    "distribution of nothing": (
        _set("calibration", "z", {"kind": "zero", "parameters": {}}),
        "$.calibration.z",
        "no input",
        "use x, y",
    ),
    "unknown recipe": (_set("recipe", "a8w8,fast"), "$.recipe", "fast", "harness/case/recipe.py"),
    "float of nothing": (_set("recipe", "a8w8,float=n8"), "$.recipe", "n8", "nodes"),
    "unknown target": (_set("target", "ethos-u99"), "$.target", "ethos-u99", "use one of"),
    "recipe against target": (_set("target", "TOSA-1.0+FP"), "$.recipe", "does not fit", "float"),
    "no samples": (_set("samples", 0), "$.samples", "0", "1 to 64"),
    "negative seed": (_set("seeds", "weights", -1), "$.seeds.weights", "natural", "use one"),
    "NaN": (
        _set("graph", "constants", 0, "parameters", {"value": NAN}),
        "$.graph.constants[0].parameters.value",
        "NaN",
        "finite",
    ),
    "infinite": (
        _set("calibration", "x", "parameters", "high", INFINITE),
        "$.calibration.x.parameters.high",
        "Infinity",
        "finite",
    ),
    "infinite literal": (
        _set("graph", "constants", 1, "parameters", {"values": [1.0] * 5 + [-INFINITE]}),
        "$.graph.constants[1].parameters.values[5]",
        "-Infinity",
        "finite",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_path_and_remedy(name: str) -> None:
    change, path, problem, remedy = WRONG[name]
    tree = copy.deepcopy(json.loads(encode_case(example())))
    change(tree)
    with pytest.raises(BadInput) as caught:
        decode_case(json.dumps(tree).encode(), "my.json")
    error = caught.value
    message = str(error)
    assert "\n" not in message
    assert message.startswith(f"my.json: {path}: "), message
    assert problem in error.problem, message
    assert remedy in error.remedy, message
    assert error.exit_status == 2


def test_number_beyond_float_is_not_finite() -> None:
    """1e999 is valid JSON, and infinite once read."""
    data = encode_case(example()).replace(b'"high": 1.0', b'"high": 1e999', 1)
    with pytest.raises(BadInput, match=r"\$\.calibration\.x\.parameters\.high|out of range"):
        decode_case(data)


def test_truncated_file_is_one_line() -> None:
    with pytest.raises(BadInput) as caught:
        decode_case(encode_case(example())[:100], "my.json")
    assert str(caught.value).startswith("my.json: ")
    assert "\n" not in str(caught.value)
