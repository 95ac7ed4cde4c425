"""Which of the waiting cases is next: the cases of one graph follow each other on one worker where that is free.

A worker's stage cache (``harness.compat.warm.stage_cache``) serves the next target of the graph that it ran last. So a
worker that becomes free takes, in this order: a case of a graph that an idle worker ran last; a case of a graph that
nobody is running; the first case there is. So two workers share a graph only where there is nothing else to do, and
nobody waits for anybody. A graph is named by a text; the empty one belongs to no graph.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def next_case(waiting: Sequence[str], idle: Collection[str], busy: Collection[str]) -> int:
    """The place of the case to run next.

    :param waiting: the graphs of the cases that wait, in their order; not empty.
    :param idle: the graphs that idle workers ran last.
    :param busy: the graphs that workers are running.
    """
    free = [place for place, graph in enumerate(waiting) if not graph or graph not in busy]
    warm = [place for place in free if waiting[place] and waiting[place] in idle]
    return (warm or free or [0])[0]


def worker_for(graph: str, idle: Sequence[str], waiting: Collection[str]) -> int:
    """The place of the worker that takes a case: the one that ran its graph, or one that no other case waits for.

    :param idle: the graphs that idle workers ran last; not empty.
    :param waiting: the graphs of the cases that wait.
    """
    warm = [place for place, ran in enumerate(idle) if graph and ran == graph]
    cold = [place for place, ran in enumerate(idle) if not ran or ran not in waiting]
    return (warm or cold or [0])[0]
