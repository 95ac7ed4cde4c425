"""``graphs()``: the strategy of module graphs.

A graph starts from a motif (a pattern that has broken upstream before, ``generators.motifs``) or
from nothing and goes on with free nodes, up to eight in all. Whether it goes on is drawn node by
node, with odds that make every length equally likely; operators, shapes and operands are drawn
where they are used, so that the shrinker can delete a node without disturbing the rest.

Shrinks towards one node, one input, one output and small shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators import state
from generators.graph_pool import GraphPool
from generators.motifs import MOTIFS, Motif
from generators.sizes import one_in, pick
from harness.case.case import Graph
from harness.case.operators import Draw

MOST_NODES = 8
STATE_ODDS = 24
"""Of so many nodes one is the beginning of a step that keeps or writes state, where there is room for it."""


@st.composite
def graphs(draw: Draw, motifs: Sequence[Motif] = MOTIFS) -> Graph:
    """Module graphs of one to eight nodes, valid by construction.

    :param motifs: what a graph may begin with; none: all begin with an input.
    """
    pool = GraphPool(draw)
    draw(_beginning(pool, motifs))
    draw(_free_nodes(pool))
    return pool.finish()


@st.composite
def graphs_with(draw: Draw, patterns: Sequence[Sequence[str]]) -> Graph:
    """Graphs that are made to contain one of several patterns: operators in order, as in ``status.toml``.

    Most do; where nothing fits an operator, the graph goes on without it.
    """
    pool = GraphPool(draw)
    draw(_beginning(pool, MOTIFS))
    for word in pick(draw, list(patterns)):
        pool.node_of(word.split("|"))
    if draw(st.booleans()):
        draw(_free_nodes(pool))
    return pool.finish()


@st.composite
def _beginning(draw: Draw, pool: GraphPool, motifs: Sequence[Motif]) -> None:
    """A new input, or (four times in ten) a motif."""
    if draw(st.integers(0, 9)) >= 6 and motifs:
        pick(draw, [motif for motif in motifs for _ in range(motif.weight)]).build(pool)
    else:
        pool.any_input()


@st.composite
def _free_nodes(draw: Draw, pool: GraphPool) -> None:
    """Free nodes until a draw says stop; at least one if there is no motif.

    With ``left`` nodes to go the chance to stop is one in ``left + 1``, which makes every length
    equally likely. Nested, because the shrinker replaces a strategy by a smaller one of its kind
    inside it: that deletes nodes at the front as well as at the back.
    """
    left = MOST_NODES - len(pool.nodes)
    if left > 0 and (draw(st.integers(0, left)) or not pool.nodes):
        if left >= state.MOST_NODES and one_in(draw, STATE_ODDS):
            state.step(pool)
        else:
            pool.free_node()
        draw(_free_nodes(pool))
