"""``recipes(graph)``: quantization recipes in their one spelling.

More than half are the plain ``a8w8`` that users start with; the rest vary one or two choices. 4-bit weights and nodes
with widths of their own (mixed precision) are rare.
``io=uint8`` and fixed activations stay rare: they are configurations of particular products.
Shrinks to ``a8w8``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.sizes import one_in, pick
from harness.case.case import Graph
from harness.case.operators import Draw
from harness.case.recipe import Recipe

# one entry is one chance in twenty
WIDTHS = ("plain",) * 11 + ("a8w8",) * 3 + ("a16w8",) * 4 + ("a8w4", "mixed")

DRAWN_WORDS = (
    *("a8w8", "a16w8", "a8w4", "per-tensor", "qmin=-127", "wmin=-128"),
    *("act=fixed", "io=same", "io=fixed", "io=uint8", "float=…", "a8w8=…", "a16w8=…"),
)
"""Every word that a drawn recipe may have; ``float=…`` stands for any nodes that stay float."""
OTHER_WIDTHS = {"a8w8": "a16w8", "a16w8": "a8w8", "a8w4": "a8w8"}
"""What some nodes of a recipe have instead of its own widths."""


def _float_nodes(draw: Draw, graph: Graph) -> tuple[str, ...]:
    """One or two nodes that stay float, in one recipe of ten; never every node."""
    names = [node.name for node in graph.nodes]
    return _some(draw, names) if len(names) > 1 and one_in(draw, 10) else ()


def _mixed(draw: Draw, graph: Graph) -> Recipe:
    """One or two nodes have other widths than the rest; never every node."""
    widths, names = draw(st.sampled_from(list(OTHER_WIDTHS))), [node.name for node in graph.nodes]
    nodes = _some(draw, names) if len(names) > 1 else ()
    return Recipe(widths=widths, mixed=((OTHER_WIDTHS[widths], nodes),) if nodes else ())


def _some(draw: Draw, names: Sequence[str]) -> tuple[str, ...]:
    """One or two names; not both if there are no more."""
    first = pick(draw, names)
    second = pick(draw, names) if len(names) > 2 and one_in(draw, 3) else first
    return tuple(name for name in names if name in (first, second))


@st.composite
def recipes(draw: Draw, graph: Graph) -> str:
    """A quantized recipe for this graph, as a string."""
    widths = draw(st.sampled_from(WIDTHS))
    if widths == "plain":
        return str(Recipe(float_nodes=_float_nodes(draw, graph)))
    if widths == "mixed":
        return str(_mixed(draw, graph))
    per_channel = draw(st.booleans())
    float_nodes = _float_nodes(draw, graph)
    if widths == "a16w8":
        io = "same" if one_in(draw, 6) else None
        return str(Recipe(widths=widths, per_channel=per_channel, io=io, float_nodes=float_nodes))
    if one_in(draw, 12):
        return str(Recipe(qmin=-127, fixed_activations=True, io="fixed"))
    io = draw(st.sampled_from([None] * 7 + ["same", "same", "uint8"]))
    qmin = draw(st.sampled_from([-127, -127, -128]))
    weight_qmin = -128 if widths == "a8w8" and one_in(draw, 5) else -127
    return str(
        Recipe(
            widths=widths,
            per_channel=per_channel,
            qmin=qmin,
            weight_qmin=weight_qmin,
            io=io,
            float_nodes=float_nodes,
        )
    )
