"""Captured nodes: arguments survive, nothing but checked words becomes source."""

import msgspec
import pytest

from harness.case.aten import aten_call, changed_state, check_aten_node, needed, referenced
from harness.case.case import Constant, Graph, Input, Node, TensorType
from harness.case.chains import operator_chain
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


def _node(name, operator, *operands):
    attributes = {"args": [{"value": item} for item in operands], "kwargs": {}}
    return Node(name=name, operator=operator, inputs=operands, attributes=attributes, types=(TensorType((1, 4)),))


def _state(name):
    return Constant(name=name, shape=(1, 4), kind="tensor", parameters={"key": name})


@pytest.mark.parametrize(
    ("nodes", "changed"),
    [
        ([_node("copy_", "aten.copy_.default", "cache", "x")], {"cache"}),
        (
            [
                _node("slice_1", "aten.slice.Tensor", "cache"),
                _node("view", "aten.view.default", "slice_1"),
                _node("add_", "aten.add_.Tensor", "view", "other"),
                _node("mul_", "aten.mul_.Tensor", "add_", "x"),
            ],
            {"cache"},
        ),
        ([_node("clone", "aten.clone.default", "cache"), _node("relu_", "aten.relu_.default", "clone")], set()),
        (
            [_node("shifted", "aten.__lshift__.Scalar", "cache"), _node("detach_", "aten.detach_.default", "cache")],
            set(),
        ),
    ],
)
def test_state_is_what_in_place_operators_write_through_views(nodes, changed):
    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4)),),
        constants=(_state("cache"), _state("other")),
        nodes=tuple(nodes),
        outputs=(nodes[-1].name,),
    )
    assert changed_state(graph) == changed


def test_a_write_belongs_to_what_depends_on_what_it_writes_into():
    nodes = (
        _node("relu", "aten.relu.default", "x"),
        _node("part", "aten.slice.Tensor", "relu"),
        _node("copy_", "aten.copy_.default", "part", "other"),
        _node("unread", "aten.add_.Tensor", "cache", "x"),
        _node("add", "aten.add.Tensor", "relu", "x"),
    )
    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4)),),
        constants=(_state("cache"), _state("other")),
        nodes=nodes,
        outputs=("add",),
    )
    assert needed(graph, ("add",)) == {"x", "relu", "part", "copy_", "other", "add"}
    assert operator_chain(graph) == tuple(node.operator for node in nodes if node.name != "unread")
