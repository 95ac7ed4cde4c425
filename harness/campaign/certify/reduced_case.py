"""Make a case smaller while it goes on showing something: a few large cuts, tried until none helps.

Cuts, largest first: one output alone; a node's result as the only output (what follows it goes); a
node's result as a new input (what leads to it goes). Unused inputs, constants and nodes go with them. They are
those of ``harness.campaign.reduction.structure`` that take most away, because a certificate lowers a case twice for
each try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.campaign.reduction.structure import Cut, as_input, only_output, results_of, valid
from harness.case.case import Case
from harness.case.checking import value_types

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
    graph = case.graph
    for cut in valid(case, iter(sorted(_cuts(case), key=lambda cut: len(cut.case.graph.nodes)))):
        if len(cut.case.graph.nodes) < len(graph.nodes) or len(cut.case.graph.outputs) < len(graph.outputs):
            yield cut.case


def _cuts(case: Case) -> Iterator[Cut]:
    graph, types = case.graph, value_types(case.graph)
    results = results_of(graph, types)
    for name in dict.fromkeys((*graph.outputs, *results)):
        if (name,) != graph.outputs:
            yield only_output(case, name)
    for name in results:
        if name not in graph.outputs and types[name].dtype == "float32":
            yield as_input(case, name, types[name])
