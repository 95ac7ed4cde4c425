"""``graphs()``: the strategy of module graphs.

A graph starts from a motif (a pattern that has broken upstream before, ``generators.motifs``) or
from nothing and goes on with free nodes, up to eight in all. Whether it goes on is drawn node by
node, with odds that make every length equally likely; operators, shapes and operands are drawn
where they are used, so that the shrinker can delete a node without disturbing the rest.

Shrinks towards one node, one input, one output and small shapes.
"""

from __future__ import annotations

from hypothesis import strategies as st

from generators.motifs import MOTIFS
from generators.pool import GraphPool
from harness.case import Graph
from harness.operators import Draw

MOST_NODES = 8


@st.composite
def graphs(draw: Draw, *, motifs: bool = True) -> Graph:
    """Module graphs of one to eight nodes, valid by construction.

    :param motifs: begin about four in ten with a motif.
    """
    pool = GraphPool(draw)
    if motifs and draw(st.integers(0, 9)) >= 6:
        draw(st.sampled_from(MOTIFS)).build(pool)
    if not pool.nodes:
        pool.free_node()
    # with left nodes to go, one chance in left + 1 to stop: all lengths are equally likely
    while (left := MOST_NODES - len(pool.nodes)) > 0 and draw(st.integers(0, left)):
        pool.free_node()
    return pool.finish()
