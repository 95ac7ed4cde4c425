"""Which drawn graphs a campaign with a time limit runs: those in which operators meet that did not meet before.

A *pair* is (producer, reader) for a value that a node reads; constants are producers by their kind. A graph is *news*
if it has an operator or a pair that no graph had that was drawn before it. What is no news is passed over, at most
``PATIENCE`` graphs in a row: then one is run as it comes, so that other things than operators (calibration, recipe,
shapes) are still tried when all that can meet has met.

Which graphs are run is a function of what was drawn, never of what was found: the same seed runs the same graphs, and
shards, which all draw everything, run each what the whole campaign would.

Measured on 738 graphs of one campaign that took everything (executorch 1.5.1, ``--seed 20261123``, three targets): of
the 638 graphs after the first 100, 424 were news and 23 of those showed a cause (a corpus entry's bug or a new bucket)
that had not shown before; of the other 214 none did. Per hour of a worker 42.6 new causes instead of 29.8.
"""

from __future__ import annotations

from harness.case.case import Graph, maker_of

PATIENCE = 12


class NewPairs:
    """What the graphs drawn so far have. Ask once for each, in the order in which they are drawn."""

    def __init__(self) -> None:
        self._met: set[tuple[str, ...]] = set()
        self._passed_over = 0

    def accepts(self, graph: Graph) -> bool:
        """Is a graph to be run?"""
        fresh = {*pairs(graph), *((node.operator,) for node in graph.nodes)} - self._met
        self._met |= fresh
        if not fresh and self._passed_over < PATIENCE:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True


def pairs(graph: Graph) -> set[tuple[str, str]]:
    """(producer, reader) for every value that a node reads, inputs of the module aside."""
    makers = {node.name: node.operator for node in graph.nodes} | {item.name: item.kind for item in graph.constants}
    return {
        (makers[name], node.operator) for node in graph.nodes for name in map(maker_of, node.inputs) if name in makers
    }
