"""Cuts of numbers: smaller dimensions and plainer attributes.

Shapes follow from those of inputs and constants, and often have to change together: a size is replaced
wherever it occurs, attributes included, or in all shapes, or in one place. A ``view`` whose shape no longer
fits has one of its sizes changed so that it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.campaign.reduction.structure import Cut, valid
from harness.case.case import Case, Constant, Graph, Input, Node, TensorType
from harness.case.checking import value_types
from harness.case.errors import BadInput

_RESHAPES = ("view", "reshape")
PLAIN_FLOATS = (0.0, 1.0)


def size_cuts(case: Case) -> Iterator[Cut]:
    """Valid cases with smaller inputs and constants. A captured graph records its types and stays as it is."""
    if not case.graph.captured:
        yield from valid(case, _size_cuts(case))


def attribute_cuts(case: Case) -> Iterator[Cut]:
    """Valid cases with one attribute of one node plainer; captured nodes stay as they are."""
    yield from valid(case, _attribute_cuts(case))


def _size_cuts(case: Case) -> Iterator[Cut]:
    graph = case.graph
    leaves: list[Input | Constant] = [*graph.inputs, *graph.constants]
    for size in sorted({size for item in leaves for size in item.shape if size > 1}, reverse=True):
        for smaller in _toward(size, 1):
            words = f"{smaller} for {size} in"
            everywhere = _with_leaves(graph, [_resized(item, size, smaller) for item in leaves])
            nodes = tuple(
                node
                if "." in node.operator
                else msgspec.structs.replace(node, attributes=_replaced(node.attributes, size, smaller))
                for node in graph.nodes
            )
            yield _cut(case, msgspec.structs.replace(everywhere, nodes=nodes), f"{words} all shapes and attributes")
            yield _cut(case, everywhere, f"{words} all shapes")
    for place, item in enumerate(leaves):
        for axis, size in enumerate(item.shape):
            for smaller in _toward(size, 1):
                shape = (*item.shape[:axis], smaller, *item.shape[axis + 1 :])
                changed = _with_leaves(graph, [*leaves[:place], _shaped(item, shape), *leaves[place + 1 :]])
                yield _cut(case, changed, f"shape {list(shape)} of {item.name} in place of {list(item.shape)}")


def _cut(case: Case, graph: Graph, what: str) -> Cut:
    return Cut(msgspec.structs.replace(case, graph=_refitted(graph)), what)


def _toward(value: int, plain: int) -> list[int]:
    """Smaller integers on the way to the plain one, the boldest first."""
    half = value // 2 if value > 0 else -(-value // 2)
    return [item for item in dict.fromkeys((plain, plain + 1, half, value - 1)) if plain <= item < value]


def _resized(item: Input | Constant, size: int, smaller: int) -> Input | Constant:
    return _shaped(item, tuple(smaller if place == size else place for place in item.shape))


def _shaped(item: Input | Constant, shape: tuple[int, ...]) -> Input | Constant:
    if isinstance(item, Constant) and item.kind == "literal" and shape != item.shape:
        values = item.parameters["values"][: math.prod(shape)]
        return msgspec.structs.replace(item, shape=shape, parameters={"values": values})
    return msgspec.structs.replace(item, shape=shape)


def _with_leaves(graph: Graph, leaves: list[Input | Constant]) -> Graph:
    inputs = tuple(item for item in leaves if isinstance(item, Input))
    constants = tuple(item for item in leaves if isinstance(item, Constant))
    return msgspec.structs.replace(graph, inputs=inputs, constants=constants)


def _replaced(value: Any, size: int, smaller: int) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, size, smaller) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, size, smaller) for item in value]
    return smaller if isinstance(value, int) and not isinstance(value, bool) and value == size else value


def _refitted(graph: Graph) -> Graph:
    """A graph whose reshapes hold as many elements as they are given, where changing one size is enough."""
    for place, node in enumerate(graph.nodes):
        if node.operator not in _RESHAPES:
            continue
        before = msgspec.structs.replace(graph, nodes=graph.nodes[:place], outputs=(node.inputs[0],))
        try:
            elements = value_types(before)[node.inputs[0]].elements
        except (BadInput, KeyError):
            return graph
        fitted = _fitted(node, elements)
        graph = msgspec.structs.replace(graph, nodes=(*graph.nodes[:place], fitted, *graph.nodes[place + 1 :]))
    return graph


def _fitted(node: Node, elements: int) -> Node:
    shape = node.attributes["shape"]
    if -1 in shape or TensorType(tuple(shape)).elements == elements:
        return node
    for axis in reversed(range(len(shape))):
        rest = math.prod(shape[:axis] + shape[axis + 1 :])
        if rest and elements % rest == 0:
            return msgspec.structs.replace(
                node, attributes={**node.attributes, "shape": [*shape[:axis], elements // rest, *shape[axis + 1 :]]}
            )
    return node


def _attribute_cuts(case: Case) -> Iterator[Cut]:
    graph = case.graph
    for place, node in enumerate(graph.nodes):
        if "." in node.operator:
            continue
        for key, value in node.attributes.items():
            for plainer in _plainer(value):
                changed = msgspec.structs.replace(node, attributes={**node.attributes, key: plainer})
                nodes = (*graph.nodes[:place], changed, *graph.nodes[place + 1 :])
                words = f"{key} {plainer!r} of {node.name} ({node.operator}) in place of {value!r}"
                yield _cut(case, msgspec.structs.replace(graph, nodes=nodes), words)


def _plainer(value: Any) -> Iterator[Any]:
    """Plainer values of an attribute, the boldest first."""
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        yield from _toward(value, 0) if value > 0 else [item for item in (0, -1) if item > value]
    elif isinstance(value, float):
        rounded = float(round(value))
        yield from (item for item in dict.fromkeys((*PLAIN_FLOATS, rounded)) if abs(item) < abs(value))
    elif isinstance(value, list):
        for plain in (0, 1):
            if any(value) and all(isinstance(item, int) and item >= plain for item in value):
                yield [plain] * len(value)
        for place, item in enumerate(value):
            for plainer in _plainer(item):
                yield [*value[:place], plainer, *value[place + 1 :]]
