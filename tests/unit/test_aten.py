"""Captured nodes: arguments survive, nothing but checked words becomes source."""

import msgspec
import pytest

from harness.case.aten import aten_call, check_aten_node, referenced
from harness.case.case import Node, TensorType
from harness.case.errors import BadInput

NODE = Node(
    name="conv",
    operator="aten.conv2d.default",
    inputs=("x", "w"),
    attributes={
        "args": [{"value": "x"}, {"value": "w"}, None, [1, 1], {"float": "-inf"}],
        "kwargs": {"dtype": {"dtype": "float32"}},
    },
    types=(TensorType((1, 4)),),
)


def test_source_text():
    text = aten_call(NODE, lambda name: f"self.{name}")
    assert text == "torch.ops.aten.conv2d.default(self.x, self.w, None, [1, 1], float('-inf'), dtype=torch.float32)"


def test_text_stays_text():
    node = msgspec.structs.replace(
        NODE, inputs=(), attributes={"args": ["ij,jk->ik", "'); import os; ('"], "kwargs": {}}
    )
    check_aten_node(node, "$.graph.nodes[0]")
    assert aten_call(node, str) == """torch.ops.aten.conv2d.default('ij,jk->ik', "'); import os; ('")"""


def test_references_in_order_of_first_use():
    assert referenced([[{"value": "b"}, {"value": "a"}], {"value": "b"}]) == ["b", "a"]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"operator": "os.system.default"}, "operator"),
        ({"operator": "aten.conv2d"}, "operator"),
        ({"types": None}, "types"),
        ({"inputs": ("x",)}, "inputs"),
        ({"attributes": {"args": []}}, "attributes"),
        ({"attributes": {"args": [{"dtype": "x); import os"}], "kwargs": {}}, "inputs": ()}, "attributes"),
        ({"attributes": {"args": ["a\nb"], "kwargs": {}}, "inputs": ()}, "attributes"),
        ({"attributes": {"args": [{"code": "x"}], "kwargs": {}}, "inputs": ()}, "attributes"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_path(change, part):
    with pytest.raises(BadInput) as caught:
        check_aten_node(msgspec.structs.replace(NODE, **change), "$.graph.nodes[0]")
    assert f"$.graph.nodes[0].{part}" in str(caught.value)
    assert ";" in str(caught.value)
