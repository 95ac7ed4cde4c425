"""Make a case smaller while it goes on showing something: a few large cuts, tried until none helps.

Cuts, largest first: one output alone; a node's result as the only output (what follows it goes); a
node's result as a new input (what leads to it goes). Unused inputs, constants and nodes go with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from harness.case import Case, Distribution, Graph, Input
from harness.checking import check_case, value_types
from harness.errors import BadInput
from harness.recipe import parse_recipe

MOST_TRIES = 60


def smallest(case: Case, shows: Callable[[Case], bool]) -> Case:
    """The smallest case that cuts lead to.

    :param case: it must show what is looked for; it is not tried again.
    :param shows: does a smaller case still show it?
    """
    tries = 0
    again = True
    while again:
        again = False
        for cut in cuts(case):
            if tries >= MOST_TRIES:
                return case
            tries += 1
            if shows(cut):
                case, again = cut, True
                break
    return case


def cuts(case: Case) -> Iterator[Case]:
    """Smaller valid cases, the smallest kind of graph first."""
    graph, types = case.graph, value_types(case.graph)
    found: list[tuple[Graph, dict[str, Distribution]]] = []
    if len(graph.outputs) > 1:
        found += [(msgspec.structs.replace(graph, outputs=(name,)), {}) for name in graph.outputs]
    results = [name for name in types if name.split(".", 1)[0] in {node.name for node in graph.nodes}]
    found += [(msgspec.structs.replace(graph, outputs=(name,)), {}) for name in results if (name,) != graph.outputs]
    for name in results:
        if name in graph.outputs or types[name].dtype != "float32":
            continue
        cut = Input(name=f"in_{name.replace('.', '_')}", shape=types[name].shape)
        nodes = tuple(
            msgspec.structs.replace(node, inputs=tuple(cut.name if item == name else item for item in node.inputs))
            for node in graph.nodes
        )
        changed = msgspec.structs.replace(graph, inputs=(*graph.inputs, cut), nodes=nodes)
        found.append((changed, {cut.name: Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})}))
    smaller = [_with_graph(case, _pruned(changed), added) for changed, added in found]
    for cut_case in sorted(smaller, key=lambda item: len(item.graph.nodes)):
        if len(cut_case.graph.nodes) < len(graph.nodes) or len(cut_case.graph.outputs) < len(graph.outputs):
            try:
                check_case(cut_case)
            except BadInput:
                continue
            yield cut_case


def _pruned(graph: Graph) -> Graph:
    """A graph without what no output depends on."""
    wanted = {name.split(".", 1)[0] for name in graph.outputs}
    nodes = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            nodes.append(node)
            wanted |= {name.split(".", 1)[0] for name in node.inputs}
    return msgspec.structs.replace(
        graph,
        inputs=tuple(item for item in graph.inputs if item.name in wanted),
        constants=tuple(item for item in graph.constants if item.name in wanted),
        nodes=tuple(reversed(nodes)),
    )


def _with_graph(case: Case, graph: Graph, added: dict[str, Distribution]) -> Case:
    calibration = {**case.calibration, **added}
    kept = {item.name: calibration[item.name] for item in graph.inputs if item.name in calibration}
    recipe = parse_recipe(case.recipe)
    names = {node.name for node in graph.nodes}
    recipe = msgspec.structs.replace(recipe, float_nodes=tuple(name for name in recipe.float_nodes if name in names))
    return msgspec.structs.replace(case, graph=graph, calibration=kept, recipe=str(recipe))
