"""Cuts of the graph: outputs, nodes and operands less.

In the order of what they take away: what follows a value (it becomes the only output), what leads to one (it
becomes an input), one node (an operand of the same type takes its place), one output, one operand (another
value of its type takes its place). What nothing depends on any more goes as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from harness.case.case import Case, Constant, Graph, Input, Node, TensorType, maker_of
from harness.case.checking import check_case, value_types
from harness.case.editing import UNIFORM, renamed, with_graph
from harness.case.errors import BadInput


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
                yield Cut(with_graph(case, _without(graph, node, operand)), words)
    if len(graph.outputs) > 2:
        for name in graph.outputs:
            rest = tuple(item for item in graph.outputs if item != name)
            yield Cut(with_graph(case, msgspec.structs.replace(graph, outputs=rest)), f"no output {name}")
    leaves: list[Input | Constant] = [*graph.inputs, *graph.constants]
    for index, one in enumerate(leaves):
        for other in leaves[:index]:
            if types[one.name] == types[other.name]:
                words = f"{other.name} in place of {one.name}"
                yield Cut(with_graph(case, renamed(graph, {one.name: other.name})), words)
    for constant in graph.constants:
        if constant.dtype == "float32":
            yield as_input(case, constant.name, types[constant.name])


def _without(graph: Graph, node: Node, operand: str) -> Graph:
    """Without a node, be it one that writes: its readers read an operand."""
    left = msgspec.structs.replace(graph, nodes=tuple(item for item in graph.nodes if item is not node))
    return renamed(left, {node.name: operand})


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
    changed = renamed(graph, {name: new.name})
    # an input that is an output as well would be a program of its own
    outputs = tuple(item for item in changed.outputs if item != new.name) or changed.outputs
    graph = msgspec.structs.replace(changed, outputs=outputs)
    return Cut(with_graph(case, graph, {new.name: UNIFORM}), f"an input in place of {name}")
