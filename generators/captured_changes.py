"""Changes of nodes as they are, without new ones: arguments, sizes, and the order in which nodes stand.

Captured nodes record their types and have no shape rule (``generators.mutants``). So a number is changed only where a
node's result has the type of an operand, and a size only where every value of a graph has one shape and no node has an
integer that could mean a size. A drawn graph gets other sizes and attributes from ``generators.kin``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from generators.sizes import pick
from harness.case.aten import owner_of
from harness.case.case import Case, Input, Node, TensorType, maker_of
from harness.case.checking import value_types
from harness.case.editing import UNIFORM, of_shape, with_graph, with_node
from harness.case.operators import Draw

FACTORS = (0.5, 2.0, 4.0)
SIZES = (1, 2, 3, 4, 5, 6, 8)
_AXIS = {"softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "flip"}
"""ATen operators whose integers are dims; their results have the type of the operand."""
_NUMBER = {*_AXIS, "add", "sub", "mul", "add_", "sub_", "mul_"}
"""ATen operators whose integers say nothing of sizes."""
_COPY = "aten.copy_.default"
_WRITING = {f"aten.{name}.Tensor": f"aten.{name}_.Tensor" for name in ("add", "sub", "mul")} | {
    "aten.copy.default": _COPY
}
"""Operators of two operands, and what writes their result into the first one. A division may be by zero."""


def argument(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A number of a captured node is a half, twice or four times as large, or another dimension is meant."""
    types = value_types(case.graph)
    places = [
        (place, path)
        for place, node in enumerate(case.graph.nodes)
        if node.types is not None and _keeps_type(node, types)
        for path in _numbers(node.attributes, dims=_word(node) in _AXIS)
    ]
    if not places:
        return None
    place, path = pick(draw, places)
    node = case.graph.nodes[place]
    old = _at(node.attributes, path)
    if isinstance(old, float):
        new: float = old * draw(st.sampled_from(FACTORS))
    else:
        rank = types[node.inputs[0]].rank
        others_than = [dim for dim in range(rank) if dim != old % rank] if rank else []
        if not others_than:
            return None
        new = draw(st.sampled_from(others_than))
    return with_node(case, place, msgspec.structs.replace(node, attributes=_put(node.attributes, path, new)))


def written(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A captured node of two operands writes its result into the first one, or writes another result there."""
    types, nodes = value_types(case.graph), {node.name: node for node in case.graph.nodes}
    callers = {item.name for item in case.graph.inputs}
    places = [
        place
        for place, node in enumerate(case.graph.nodes)
        if node.operator in _WRITING.values() or node.operator in _WRITING
        if _keeps_type(node, types) and _is_of_two(node) and types[node.inputs[0]] == types[node.name]
        if owner_of(node.inputs[0], nodes) not in callers
    ]
    if not places:
        return None
    place = pick(draw, places)
    node = case.graph.nodes[place]
    options = [item for item in _WRITING.values() if item != node.operator]
    if len(node.inputs) < 2:
        options.remove(_COPY)
    return with_node(case, place, msgspec.structs.replace(node, operator=draw(st.sampled_from(options))))


def stretch(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A captured slice takes another stretch of the same length."""
    types = value_types(case.graph)
    places = []
    for place, node in enumerate(case.graph.nodes):
        if node.operator == "aten.slice.Tensor" and len(node.attributes["args"]) == 4 and node.types:
            _, axis, start, _ = node.attributes["args"]
            length, size = node.types[0].shape[axis], types[node.inputs[0]].shape[axis]
            places += [(place, other, length) for other in range(size - length + 1) if other != start]
    if not places:
        return None
    place, start, length = pick(draw, places)
    node = case.graph.nodes[place]
    arguments = [*node.attributes["args"][:2], start, start + length]
    attributes = {**node.attributes, "args": arguments}
    return with_node(case, place, msgspec.structs.replace(node, attributes=attributes))


def resized(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A size is another one wherever it stands, in a captured graph whose values all have one shape."""
    graph = case.graph
    shapes = {item.shape for item in value_types(graph).values()}
    if any(item.kind == "tensor" for item in graph.constants):  # they are stored as they are
        return None
    if len(shapes) != 1 or any(node.types is None or _sized(node) for node in graph.nodes):
        return None
    (before,) = shapes
    if not before:
        return None
    old = pick(draw, before)
    new = draw(st.sampled_from([size for size in SIZES if size != old]))
    shape = tuple(new if size == old else size for size in before)
    made = msgspec.structs.replace(
        graph,
        inputs=tuple(Input(name=item.name, shape=shape, dtype=item.dtype) for item in graph.inputs),
        constants=tuple(of_shape(item, shape) for item in graph.constants),
        nodes=tuple(
            msgspec.structs.replace(node, types=tuple(TensorType(shape, item.dtype) for item in node.types or ()))
            for node in graph.nodes
        ),
    )
    recorded = [item.name for item in graph.inputs if case.calibration[item.name].kind == "recorded"]
    return with_graph(case, made, dict.fromkeys(recorded, UNIFORM))  # what was recorded has the old shape


def reordered(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """The nodes stand in another order, each still behind what it reads: nothing that is computed is different."""
    if any(_word(node).endswith("_") for node in case.graph.nodes):
        return None  # an operator that works in place has its moment
    left, order = list(case.graph.nodes), []
    while left:
        waiting = {node.name for node in left}
        ready = [node for node in left if not waiting.intersection(map(maker_of, node.inputs))]
        order.append(pick(draw, list(reversed(ready))))
        left.remove(order[-1])
    if tuple(order) == case.graph.nodes:
        return None
    return with_graph(case, msgspec.structs.replace(case.graph, nodes=tuple(order)))


Path = tuple[str | int, ...]


def _is_of_two(node: Node) -> bool:
    """Is a value its first argument, and a value or a number its second one, and the last?"""
    first, *others = node.attributes["args"] or [None]
    return isinstance(first, dict) and len(others) == 1 and not node.attributes["kwargs"]


def _word(node: Node) -> str:
    """``softmax`` of ``aten.softmax.int``."""
    words = node.operator.split(".")
    return words[1] if len(words) > 1 else node.operator


def _keeps_type(node: Node, types: Mapping[str, TensorType]) -> bool:
    return len(node.types or ()) == 1 and types[node.name] in {types[name] for name in node.inputs}


def _numbers(value: Any, *, dims: bool, path: Path = ()) -> list[Path]:
    """Where in a node's arguments numbers stand that may be others; zero stays."""
    if isinstance(value, Mapping) and not path:
        return [
            found for key, item in value.items() for found in _numbers(item, dims=dims and key == "args", path=(key,))
        ]
    if isinstance(value, (list, Mapping)):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        return [found for key, item in items for found in _numbers(item, dims=dims, path=(*path, key))]
    if isinstance(value, bool) or not (isinstance(value, float) or (dims and isinstance(value, int))):
        return []
    return [path] if value or isinstance(value, int) else []


def _sized(node: Node) -> bool:
    """May an integer among the arguments speak of a size?"""
    return _word(node) not in _NUMBER and _has_integer([node.attributes["args"], [*node.attributes["kwargs"].values()]])


def _has_integer(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_integer, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(value: Any, path: Path, new: object) -> Any:
    """A copy with another item at a place."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copy[path[0]] = _put(value[path[0]], path[1:], new)
    return copy
