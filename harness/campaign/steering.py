"""Which drawn graphs a campaign with a time limit runs: of every eight the one whose forms are the rarest.

A *form* is something that a graph has: an operator, a *pair* (producer, reader) for a value that a node reads
(constants are producers by their kind), and how an operator occurs: with which recipe and on which target, of which
types and ranks, with what for an attribute, reading one value twice, as an output. A form counts the less the more
graphs ran that had it, and a graph's sum is held against what it costs to run, which grows with its nodes.

Which graphs are run is a function of what was drawn, never of what was found: the same seed runs the same graphs, and
shards, which all draw everything, run each what the whole campaign would.

Measured on the 7,328 graphs of two campaigns (docs/benchmark.md): ten minutes of one core of the rarest of eight show
43.1 causes of executorch, of graphs as they come 40.7, of graphs in which operators meet that did not meet before 40.3
to 41.1. Drawing a graph takes 7 ms, running one a second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from harness.case.case import Case, Graph, Node, maker_of
from harness.case.target import parse_target

OF = 8
_NODES = 3.0
"""What every graph costs to run beside its nodes, in nodes: 0.34 s, and 0.12 s a node."""
_SMALL = 2
Form = tuple[str, ...]
Item = TypeVar("Item")


class Rarest(Generic[Item]):
    """Takes one of every so many graphs. Offer each, in the order in which they are drawn.

    :param of: how many; with one, every graph is taken.
    """

    def __init__(self, of: int = OF) -> None:
        self._of = of
        self._ran: Counter[Form] = Counter()
        self._waiting: list[tuple[Item, Case]] = []

    def offer(self, item: Item, case: Case) -> Item | None:
        """What is taken now, if anything.

        :param item: what stands for the graph; ``case``: one of its cases.
        """
        self._waiting.append((item, case))
        return self.last() if len(self._waiting) == self._of else None

    def last(self) -> Item | None:
        """The rarest of those that wait; the others are passed over."""
        waiting, self._waiting = self._waiting, []
        if self._of == 1 or not waiting:
            return waiting[0][0] if waiting else None
        has = [forms(case) for _, case in waiting]
        place = max(range(len(waiting)), key=lambda place: self._worth(has[place], waiting[place][1].graph))
        self._ran.update(has[place])
        return waiting[place][0]

    def _worth(self, has: set[Form], graph: Graph) -> float:
        return math.fsum(1 / (1 + self._ran[form]) for form in has) / (_NODES + len(graph.nodes))


def pairs(graph: Graph) -> set[tuple[str, str]]:
    """(producer, reader) for every value that a node reads, inputs of the module aside."""
    makers = {node.name: node.operator for node in graph.nodes} | {item.name: item.kind for item in graph.constants}
    return {
        (makers[name], node.operator) for node in graph.nodes for name in map(maker_of, node.inputs) if name in makers
    }


def forms(case: Case) -> set[Form]:
    """Everything that a case has, each once."""
    graph, family = case.graph, parse_target(case.target).family
    where: dict[str, Form] = {item.name: ("input", item.dtype, f"rank {len(item.shape)}") for item in graph.inputs}
    where |= {item.name: ("constant",) for item in graph.constants}
    outputs = {maker_of(name) for name in graph.outputs}
    found: set[Form] = {*pairs(graph)}
    for node in graph.nodes:
        ways = {*_ways(node), *(word for name in node.inputs for word in where.get(name, ()))}
        if node.name in outputs:
            ways.add("output")
        found |= {(node.operator,), *((node.operator, "as", way) for way in (case.recipe, family, *ways))}
    return found


def _ways(node: Node) -> Iterator[str]:
    """How an operator occurs in a node, whatever is around it."""
    if len(set(node.inputs)) < len(node.inputs):
        yield "repeated"
    for name, value in node.attributes.items():
        if name not in ("args", "kwargs"):  # of a call: names of values
            yield f"{name}={_coarse(value)}"


def _coarse(value: Any) -> str:
    """An attribute without its exact size."""
    if isinstance(value, list | tuple):
        return ",".join(sorted({_coarse(item) for item in value}))
    exact = isinstance(value, str) or (isinstance(value, int) and abs(value) <= _SMALL)
    return str(value) if exact else type(value).__name__
