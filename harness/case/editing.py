"""Changes of a case's graph that keep it whole: values renamed, what nothing depends on gone, its calibration with it.

Pure data. Reduction (``harness.campaign.reduction``) and mutation (``generators.mutants``) are made of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from harness.case.aten import needed
from harness.case.case import Case, Constant, Distribution, Graph, Node, maker_of
from harness.case.recipe import parse_recipe

UNIFORM = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """A graph that reads other values; the nodes that define the old ones stay."""

    def new(item: str) -> str:
        return names.get(item, item)

    nodes = tuple(
        msgspec.structs.replace(
            node, inputs=tuple(map(new, node.inputs)), attributes=_rereferenced(node.attributes, names)
        )
        for node in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes, outputs=tuple(dict.fromkeys(map(new, graph.outputs))))


def _rereferenced(value: object, names: Mapping[str, str]) -> object:
    """Attributes of a captured node name their operands once more, as ``{"value": name}``."""
    if isinstance(value, dict):
        if value.keys() == {"value"} and isinstance(value["value"], str):
            return {"value": names.get(value["value"], value["value"])}
        return {key: _rereferenced(item, names) for key, item in value.items()}
    return [_rereferenced(item, names) for item in value] if isinstance(value, list) else value


def pruned(graph: Graph) -> Graph:
    """A graph without what no output depends on; what is written into something that is left stays."""
    wanted = needed(graph, graph.outputs)
    return msgspec.structs.replace(
        graph,
        inputs=tuple(item for item in graph.inputs if item.name in wanted),
        constants=tuple(item for item in graph.constants if item.name in wanted),
        nodes=tuple(node for node in graph.nodes if node.name in wanted),
    )


def with_graph(case: Case, graph: Graph, added: Mapping[str, Distribution] | None = None) -> Case:
    """A case with another graph, pruned; calibration and recipe lose the names that are gone."""
    graph = pruned(graph)
    calibration = {**case.calibration, **(added or {})}
    kept = {item.name: calibration[item.name] for item in graph.inputs if item.name in calibration}
    recipe = parse_recipe(case.recipe).keeping({node.name for node in graph.nodes})
    return msgspec.structs.replace(case, graph=graph, calibration=kept, recipe=str(recipe))


def with_node(case: Case, place: int, node: Node) -> Case:
    """A case with another node in the place of one."""
    nodes = (*case.graph.nodes[:place], node, *case.graph.nodes[place + 1 :])
    return with_graph(case, msgspec.structs.replace(case.graph, nodes=nodes))


def of_shape(constant: Constant, shape: tuple[int, ...]) -> Constant:
    """A constant of another shape; a literal has its values again and again."""
    parameters = dict(constant.parameters)
    if constant.kind == "literal" and shape != constant.shape:
        values, elements = parameters["values"], math.prod(shape)
        parameters["values"] = (values * -(-elements // len(values)))[:elements]
    return msgspec.structs.replace(constant, shape=shape, parameters=parameters)


def numbered(graph: Graph, prefix: str = "") -> Graph:
    """A graph whose inputs are x0, x1…, constants c0, c1… and nodes n0, n1…, each behind a prefix."""
    names: dict[str, str] = {}
    for letter, old in (
        ("x", [item.name for item in graph.inputs]),
        ("c", [item.name for item in graph.constants]),
        ("n", [node.name for node in graph.nodes]),
    ):
        names |= {name: f"{prefix}{letter}{place}" for place, name in enumerate(old)}
    values = {
        name: name.replace(maker_of(name), names[maker_of(name)], 1)
        for name in (*names, *graph.outputs, *(item for node in graph.nodes for item in node.inputs))
    }
    made = renamed(graph, values)
    return msgspec.structs.replace(
        made,
        inputs=tuple(msgspec.structs.replace(item, name=names[item.name]) for item in graph.inputs),
        constants=tuple(msgspec.structs.replace(item, name=names[item.name]) for item in graph.constants),
        nodes=tuple(msgspec.structs.replace(node, name=names[node.name]) for node in made.nodes),
    )
