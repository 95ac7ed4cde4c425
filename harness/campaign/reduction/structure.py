"""Cuts of the graph: outputs, nodes and operands less.

In the order of what they take away: what follows a value (it becomes the only output), what leads to one (it
becomes an input), one node (an operand of the same type takes its place), one output, one operand (another
value of its type takes its place). What nothing depends on any more goes as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from harness.case.case import Case, Constant, Distribution, Graph, Input, TensorType, maker_of
from harness.case.checking import check_case, value_types
from harness.case.errors import BadInput
from harness.case.recipe import parse_recipe

UNIFORM = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})


@dataclass(frozen=True)
class Cut:
    """A changed case and what was changed, in words that follow "with"."""

    case: Case
    what: str


def valid(case: Case, cuts: Iterator[Cut]) -> Iterator[Cut]:
    """The cuts whose case holds together, and is another one."""
    for cut in cuts:
        if cut.case == case:
            continue
        try:
            check_case(cut.case)
        except BadInput:
            continue
        yield cut


def structural_cuts(case: Case) -> Iterator[Cut]:
    """Valid cases with a smaller graph, the smallest first."""
    found = valid(case, _cuts(case))
    yield from sorted(found, key=lambda cut: (len(cut.case.graph.nodes), len(cut.case.graph.outputs)))


def _cuts(case: Case) -> Iterator[Cut]:
    graph, types = case.graph, value_types(case.graph)
    results = results_of(graph, types)
    for name in results:
        if (name,) != graph.outputs:
            yield only_output(case, name)
    for name in results:
        if types[name].dtype == "float32" and any(name in node.inputs for node in graph.nodes):
            yield as_input(case, name, types[name])
    for node in graph.nodes:
        for operand in dict.fromkeys(node.inputs):
            if node.name in types and types[operand] == types[node.name]:
                words = f"{operand} in place of {node.name} ({node.operator})"
                yield Cut(with_graph(case, _renamed(graph, {node.name: operand})), words)
    if len(graph.outputs) > 2:
        for name in graph.outputs:
            rest = tuple(item for item in graph.outputs if item != name)
            yield Cut(with_graph(case, msgspec.structs.replace(graph, outputs=rest)), f"no output {name}")
    leaves: list[Input | Constant] = [*graph.inputs, *graph.constants]
    for index, one in enumerate(leaves):
        for other in leaves[:index]:
            if types[one.name] == types[other.name]:
                words = f"{other.name} in place of {one.name}"
                yield Cut(with_graph(case, _renamed(graph, {one.name: other.name})), words)
    for constant in graph.constants:
        if constant.dtype == "float32":
            yield as_input(case, constant.name, types[constant.name])


def results_of(graph: Graph, types: Mapping[str, TensorType]) -> list[str]:
    """The values that nodes compute."""
    nodes = {node.name for node in graph.nodes}
    return [name for name in types if maker_of(name) in nodes]


def only_output(case: Case, name: str) -> Cut:
    """What follows a value goes, and it is all that comes out."""
    return Cut(with_graph(case, msgspec.structs.replace(case.graph, outputs=(name,))), f"{name} as the only output")


def as_input(case: Case, name: str, type_: TensorType) -> Cut:
    """What a value is computed from goes, and it becomes an input."""
    new = Input(name=f"in_{name.replace('.', '_')}", shape=type_.shape)
    graph = msgspec.structs.replace(case.graph, inputs=(*case.graph.inputs, new))
    changed = _renamed(graph, {name: new.name})
    # an input that is an output as well would be a program of its own
    outputs = tuple(item for item in changed.outputs if item != new.name) or changed.outputs
    graph = msgspec.structs.replace(changed, outputs=outputs)
    return Cut(with_graph(case, graph, {new.name: UNIFORM}), f"an input in place of {name}")


def _renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """A graph that reads other values; the nodes that define the old ones stay."""

    def renamed(item: str) -> str:
        return names.get(item, item)

    nodes = tuple(
        msgspec.structs.replace(
            node, inputs=tuple(map(renamed, node.inputs)), attributes=_rereferenced(node.attributes, names)
        )
        for node in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes, outputs=tuple(dict.fromkeys(map(renamed, graph.outputs))))


def _rereferenced(value: object, names: Mapping[str, str]) -> object:
    """Attributes of a captured node name their operands once more, as ``{"value": name}``."""
    if isinstance(value, dict):
        if value.keys() == {"value"} and isinstance(value["value"], str):
            return {"value": names.get(value["value"], value["value"])}
        return {key: _rereferenced(item, names) for key, item in value.items()}
    return [_rereferenced(item, names) for item in value] if isinstance(value, list) else value


def pruned(graph: Graph) -> Graph:
    """A graph without what no output depends on."""
    wanted = set(map(maker_of, graph.outputs))
    nodes = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            nodes.append(node)
            wanted |= set(map(maker_of, node.inputs))
    return msgspec.structs.replace(
        graph,
        inputs=tuple(item for item in graph.inputs if item.name in wanted),
        constants=tuple(item for item in graph.constants if item.name in wanted),
        nodes=tuple(reversed(nodes)),
    )


def with_graph(case: Case, graph: Graph, added: Mapping[str, Distribution] | None = None) -> Case:
    """A case with another graph, pruned; calibration and recipe lose the names that are gone."""
    graph = pruned(graph)
    calibration = {**case.calibration, **(added or {})}
    kept = {item.name: calibration[item.name] for item in graph.inputs if item.name in calibration}
    recipe = parse_recipe(case.recipe)
    names = {node.name for node in graph.nodes}
    recipe = msgspec.structs.replace(recipe, float_nodes=tuple(name for name in recipe.float_nodes if name in names))
    return msgspec.structs.replace(case, graph=graph, calibration=kept, recipe=str(recipe))
