"""``draw_kin``: graphs like that of a case, so that most of them come to the code that its bug is in.

A kin is the case's graph, drawn anew: a size is another one wherever it stands, a node has other attributes or
operands, an operator stands in front of an input or behind the end. Calibration and recipe stay or are drawn again;
a recipe that stays sets the same nodes apart, whatever they are called now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from generators.adversarial import draw_calibration
from generators.cases import RUN, SAMPLES, SEEDS, fresh_examples, graph_digest, run_seed
from generators.graph_pool import GraphPool, result_names
from generators.graphs import MOST_NODES
from generators.recipes import recipes
from generators.rules import Shape
from generators.sizes import BUDGET, one_in, pick
from harness.case.case import Case, Graph, Node, case_digest
from harness.case.checking import check_case
from harness.case.editing import of_shape
from harness.case.errors import BadInput
from harness.case.operators import Draw, ShapeError
from harness.case.recipe import Recipe, parse_recipe
from harness.case.registry import operators
from harness.case.target import parse_target

_SIZES = (1, 2, 3, 4, 5, 6, 8)
_UNARY = ("relu", "sigmoid", "abs", "neg", "hardtanh", "tanh", "exp")
_MISFITS = (ShapeError, TypeError, ValueError, IndexError, AttributeError, KeyError)
"""What a shape rule raises for attributes that were made for other sizes; KeyError: a node has fewer results now."""


def draw_kin(case: Case, seed: int, count: int) -> list[Case]:
    """Up to ``count`` kin of a generated case, on its target, none twice. The same arguments give the same kin.

    A larger ``count`` appends to what a smaller one returns. A captured graph has no kin.
    """
    if case.graph.captured or case.tensors is not None:
        return []
    own = int(case_digest(case), 16)
    found: dict[str, Case] = {}
    for run in range(count):
        for [item] in fresh_examples(run_seed(seed, own, -1000 - run), kin(case)):
            found.setdefault(f"{graph_digest(item.graph)} {item.recipe}", item)
        if len(found) >= count or len(found) < run * RUN // 4:  # a small graph with few kin
            break
    return list(found.values())[:count]


@st.composite
def kin(draw: Draw, case: Case) -> tuple[Case, ...]:
    edited = "edited=" in case.recipe  # by hand: what would stand behind an edit has no meaning
    graph, names = draw(_graph(case.graph, grows=not edited))
    pairs = zip(case.graph.inputs, graph.inputs, strict=False)
    kept = {new.name: case.calibration[old.name] for old, new in pairs if old.dtype == new.dtype == "float32"}
    calibration = draw_calibration(draw, graph)
    recipe = str(_of_nodes(parse_recipe(case.recipe), names, graph))
    if parse_target(case.target).quantized and not edited and one_in(draw, 4):
        recipe = draw(recipes(graph))
    seeds = msgspec.structs.replace(case.seeds, weights=draw(SEEDS), calibration=draw(SEEDS))
    other = msgspec.structs.replace(
        case,
        graph=graph,
        calibration=calibration if one_in(draw, 3) else calibration | kept,
        recipe=recipe,
        samples=draw(st.sampled_from(SAMPLES)),
        seeds=seeds,
        note="",
    )
    try:
        check_case(other)
    except BadInput:
        return (case,)
    return (other,)


def _of_nodes(recipe: Recipe, names: Mapping[str, str], graph: Graph) -> Recipe:
    """The recipe for a graph in which nodes have other names; of nodes that are gone it says nothing."""
    mixed = tuple((widths, tuple(names.get(name, name) for name in nodes)) for widths, nodes in recipe.mixed)
    float_nodes = tuple(names.get(name, name) for name in recipe.float_nodes)
    renamed = msgspec.structs.replace(recipe, float_nodes=float_nodes, mixed=mixed)
    return renamed.keeping({node.name for node in graph.nodes})


@st.composite
def _graph(draw: Draw, graph: Graph, *, grows: bool) -> tuple[Graph, Mapping[str, str]]:
    """The graph again, and what its values are called now; the graph itself where a change does not fit.

    :param grows: further nodes may stand behind it.
    """
    sizes = _other_sizes(draw, graph)
    redrawn = draw(st.sampled_from([None, None, *(node.name for node in graph.nodes)]))
    pool = GraphPool(draw)
    names: dict[str, str] = {}
    try:
        for item in graph.inputs:
            names[item.name] = pool.input(_resized(item.shape, sizes), item.dtype)
        for constant in graph.constants:
            own = of_shape(constant, _resized(constant.shape, sizes))
            names[constant.name] = pool.constant(own.kind, own.shape, dtype=own.dtype, **own.parameters)
        for item in graph.inputs:
            if item.dtype == "float32" and one_in(draw, 8):
                names[item.name] = _unary(pool, names[item.name])
        for node in graph.nodes:
            _again(pool, node, names, sizes, other=node.name == redrawn)
    except _MISFITS:
        return graph, {}
    while grows and len(pool.nodes) < MOST_NODES and one_in(draw, 3):
        pool.free_node()
    made = pool.finish()
    fits = all(0 < type_.elements <= 4 * BUDGET for type_ in pool.types.values())
    if not fits or bool(graph.inputs) > bool(made.inputs):
        return graph, {}
    asked = tuple(dict.fromkeys(names[name] for name in graph.outputs if names[name] in pool.types))
    inner = tuple(
        name for name in asked if name not in made.outputs and name not in {item.name for item in pool.inputs}
    )
    return msgspec.structs.replace(made, outputs=(*made.outputs, *inner)), names


def _other_sizes(draw: Draw, graph: Graph) -> Mapping[int, int]:
    """Sizes to replace wherever they stand, each by another; none half of the time."""
    shapes = [item.shape for item in graph.inputs] + [item.shape for item in graph.constants]
    present = sorted({size for shape in shapes for size in shape if size > 1})
    if not present or draw(st.booleans()):
        return {}
    changed = pick(draw, present)
    return {changed: draw(st.sampled_from(_SIZES))}


def _resized(shape: Shape, sizes: Mapping[int, int]) -> Shape:
    return tuple(sizes.get(size, size) for size in shape)


def _unary(pool: GraphPool, source: str) -> str:
    options = [entry for entry in pool.fitting(source) if entry.name in _UNARY]
    if not options:
        return source
    entry = pick(pool.draw, options)
    choice = entry.draw(pool.draw, pool, source)
    return pool.add(entry.name, *choice.inputs, **choice.attributes)


def _again(pool: GraphPool, node: Node, names: dict[str, str], sizes: Mapping[int, int], *, other: bool) -> None:
    """Add a node of the case, with its own attributes if they fit and no others are wanted.

    :param names: what the case's values are called here; takes up the node's.
    """
    inputs = [names[name] for name in node.inputs]
    entry = operators()[node.operator]
    if other and entry.accepts(pool.type_of(inputs[0])):
        choice = entry.draw(pool.draw, pool, inputs[0])
        operands = choice.inputs if len(choice.inputs) != len(inputs) else _rather(pool, inputs, choice.inputs)
        made = pool.add_all(node.operator, *operands, **choice.attributes)
    else:
        made = pool.add_all(node.operator, *inputs, **_replaced(node.attributes, sizes))
    names.update(zip(result_names(node.name, len(made)), made, strict=True))
    names[node.name] = pool.nodes[-1].name


def _rather(pool: GraphPool, own: list[str], drawn: tuple[str, ...]) -> tuple[str, ...]:
    """The case's own operands where those that were drawn have the same types."""
    return tuple(
        name if pool.type_of(name) == pool.type_of(other) else other for name, other in zip(own, drawn, strict=True)
    )


def _replaced(value: Any, sizes: Mapping[int, int]) -> Any:
    """Attributes with other sizes, in lists (a view's shape); a single number is a dim, a stride or a width."""
    if isinstance(value, dict):
        return {key: _replaced(item, sizes) if isinstance(item, list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [
            sizes.get(item, item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value
        ]
    return value
