"""Calibration chosen against the graph: ranges that make operands of one operator pull apart.

Two pressures, each found by looking at where an input meets other values:

* ``sibling``: the input shares a quantization domain with a rectified value. Shifted a little
  below zero, it moves the shared zero point off qmin (seed 001: ``rand - 0.065``).
* ``neighbour``: the input is one operand of a joining operator. A hundred times wider (or
  narrower) than the others, it makes their codes collapse in a shared domain.

An input *reaches* an operand if only layout operators lie between: its range arrives unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from generators.sizes import pick
from harness.case.case import Distribution, Graph, Node
from harness.case.checking import value_types
from harness.case.operators import Draw
from harness.case.registry import calibration_kinds, operators

SIBLING = [
    ("shifted", {"low": 0.0, "high": 1.0, "offset": -0.065}),
    ("shifted", {"low": 0.0, "high": 1.0, "offset": -0.01}),
    ("shifted", {"low": 0.0, "high": 1.0, "offset": -0.5}),
    ("tiny_range", {"center": -0.5, "width": 0.002}),
]
NEIGHBOUR = [
    ("huge_range", {"bound": 100.0}),
    ("one_sided", {"bound": 255.0}),
    ("huge_range", {"bound": 10000.0}),
    ("tiny_range", {"center": 0.0, "width": 0.01}),
]
# how often a distribution is drawn where the graph exerts no pressure
WEIGHTS = {"uniform": 5, "normal": 3, "shifted": 2}


def _tags(node: Node) -> frozenset[str]:
    """None of a captured operator."""
    entry = operators().get(node.operator)
    return frozenset() if entry is None else entry.tags


def _origins(graph: Graph, keep: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """For every value the inputs that reach it, and "rectified" where a rectifier does."""
    inputs = {item.name for item in graph.inputs}
    origins: dict[str, frozenset[str]] = {name: frozenset({name}) for name in inputs}
    for node in graph.nodes:
        reached = frozenset[str]()
        if _tags(node) & keep:
            reached = frozenset().union(*(_origin(origins, name) for name in node.inputs))
        elif _rectifies(node):
            reached = frozenset({"rectified"})
        origins[node.name] = reached
    return origins


def _origin(origins: Mapping[str, frozenset[str]], name: str) -> frozenset[str]:
    """``n3.1`` comes from what ``n3`` comes from."""
    return origins.get(name, origins.get(name.partition(".")[0], frozenset()))


def _rectifies(node: Node) -> bool:
    return node.operator in ("relu", "relu6") or (
        node.operator in ("hardtanh", "clamp") and node.attributes["min"] == 0
    )


def pressures(graph: Graph) -> Mapping[str, frozenset[str]]:
    """For every input the pressures that the graph allows: "sibling", "neighbour", both or none."""
    origins = _origins(graph, frozenset({"layout", "divide"}))
    found: dict[str, set[str]] = {item.name: set() for item in graph.inputs}
    for node in graph.nodes:
        if not _tags(node) & {"join", "shared"} or len(set(node.inputs)) < 2:
            continue
        for name in node.inputs:
            others = [_origin(origins, other) for other in node.inputs if other != name]
            for item in _origin(origins, name) & found.keys():
                found[item].add("neighbour")
                if any("rectified" in other for other in others):
                    found[item].add("sibling")
    return {name: frozenset(kinds) for name, kinds in found.items()}


def draw_calibration(draw: Draw, graph: Graph) -> dict[str, Distribution]:
    """A distribution an input, often one that the graph is sensitive to; shrinks to uniform(-1, 1).

    Integers are indices, below the smallest dimension that they choose from.
    """
    felt, bounds = pressures(graph), index_bounds(graph)
    return {
        item.name: _draw_indices(draw, bounds.get(item.name))
        if item.dtype.startswith("int")
        else _draw_one(draw, felt[item.name])
        for item in graph.inputs
    }


def index_bounds(graph: Graph) -> Mapping[str, int]:
    """For every integer input that is an index the bound below which it must stay (constants are made below theirs)."""
    if not any(item.dtype.startswith("int") for item in graph.inputs):
        return {}
    types, found = value_types(graph), dict[str, int]()
    for node in graph.nodes:
        below = operators()[node.operator].below if node.operator in operators() else None
        if below is not None:
            bounds = below([types[name] for name in node.inputs], node.attributes)
            for name, bound in zip(node.inputs, bounds, strict=True):
                if bound is not None:
                    found[name] = min(bound, found.get(name, bound))
    return found


def _draw_indices(draw: Draw, below: int | None) -> Distribution:
    kind = calibration_kinds()["indices"]
    return Distribution(kind=kind.name, parameters=kind.draw(draw) if below is None else {"below": below})


def _draw_one(draw: Draw, felt: frozenset[str]) -> Distribution:
    pressed = {"sibling": SIBLING, "neighbour": NEIGHBOUR}
    odds = 5 if "sibling" in felt else 2 if felt else 0  # in eight
    if odds and draw(st.integers(0, 7)) >= 8 - odds:
        pressure = "sibling" if "sibling" in felt and draw(st.integers(0, 3)) < 3 else "neighbour"
        kind, parameters = draw(st.sampled_from(pressed[pressure]))
        return Distribution(kind=kind, parameters=dict(parameters))
    kinds = [
        kind
        for kind in calibration_kinds().values()
        if not kind.tags & {"stored", "integer"}
        for _ in range(WEIGHTS.get(kind.name, 1))
    ]
    chosen = pick(draw, kinds)
    return Distribution(kind=chosen.name, parameters=chosen.draw(draw))
