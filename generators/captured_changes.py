"""Changes of nodes as they are, without new ones: arguments, sizes, and the order in which nodes stand.

Captured nodes record their types and have no shape rule (``generators.mutants``). So a number is changed only where a
node's result has the type of an operand, and a size only where every value of a graph has one type and no node has an
integer that could mean a size. A drawn graph gets other sizes and attributes from ``generators.kin``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from generators.sizes import pick
from harness.case.case import Case, Input, Node, TensorType, maker_of
from harness.case.checking import value_types
from harness.case.editing import UNIFORM, with_graph, with_node
from harness.case.operators import Draw

FACTORS = (0.5, 2.0, 4.0)
SIZES = (1, 2, 3, 4, 5, 6, 8)
_AXIS = {"softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "flip"}
"""ATen operators whose integers are dims; their results have the type of the operand."""


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


def resized(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A size is another one wherever it stands, in a captured graph whose values all have one type."""
    graph = case.graph
    types = {*value_types(graph).values()}
    if graph.constants or len(types) != 1 or any(node.types is None or _sized(node) for node in graph.nodes):
        return None
    (type_,) = types
    if not type_.shape:
        return None
    old = pick(draw, type_.shape)
    new = draw(st.sampled_from([size for size in SIZES if size != old]))
    shape = tuple(new if size == old else size for size in type_.shape)
    made = msgspec.structs.replace(
        graph,
        inputs=tuple(Input(name=item.name, shape=shape, dtype=item.dtype) for item in graph.inputs),
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
    return _word(node) not in _AXIS and _has_integer([node.attributes["args"], [*node.attributes["kwargs"].values()]])


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
