"""Mutated cases: graphs of campaigns, of upstream's tests or of a user's model, changed in one to three places.

A change is an entry of ``CHANGES``: a function from a case to another one, or to None where it has nothing to change.
Nodes of a captured graph have recorded types and no shape rule, so a change keeps the types of what it goes around:
another operator in the same place, a round trip on the way to a reader (permute and back, cat and slice) or a mask, a
second reader, one more output, an operator behind a value, another graph behind an output; what needs no new node is in
``generators.captured_changes``. A drawn graph is drawn anew as well
(``generators.kin``), with other sizes and attributes. Of a long captured graph a window is taken first.

Mutants are valid by construction, as far as pure data tells; what does not run in eager mode is counted as invalid, as
with drawn graphs. Blocks are numbered and the same on every machine, as those of ``generators.cases.draw_block``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from hypothesis import strategies as st

from generators.adversarial import draw_calibration
from generators.captured_changes import argument, reordered, resized, stretch, written
from generators.cases import SEEDS, fresh_examples, graph_digest, run_seed
from generators.graph_pool import GraphPool
from generators.kin import kin
from generators.recipes import recipes
from generators.sizes import one_in, pick
from harness.case.case import Attributes, Case, Distribution, Graph, Input, Node, maker_of
from harness.case.checking import check_case, value_types
from harness.case.editing import UNIFORM, numbered, renamed, with_graph, with_node
from harness.case.errors import BadInput
from harness.case.operators import Draw
from harness.case.target import parse_target

COUNTS = (1, 1, 2, 3)
WINDOW = 6
"""Nodes in a row that are taken of a longer captured graph."""
WHOLE = 12
"""A drawn graph of up to so many nodes, such as a block of a network, stays whole."""
MOST_NODES = 16
MOST_ELEMENTS = 1 << 14
Change = Callable[[Draw, Case, Sequence[Case]], Case | None]
_ONE = ("relu", "sigmoid", "tanh", "abs", "neg", "hardswish", "exp", "floor")
_TWO: Mapping[str, Attributes] = {
    "add": {"scalar": None, "side": None, "alpha": 1},
    "sub": {"scalar": None, "side": None, "alpha": 1},
    "mul": {"scalar": None, "side": None},
    "maximum": {},
    "minimum": {},
}


def sibling(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """An operator of one or two values gives its place to another one of the same types."""
    types = value_types(case.graph)
    places = [
        place
        for place, node in enumerate(case.graph.nodes)
        if 0 < len(node.inputs) < 3
        and _plain(node)
        and len({types.get(name) for name in (*node.inputs, node.name)}) == 1
        if types[node.inputs[0]].dtype == "float32"
    ]
    if not places:
        return None
    place = pick(draw, places)
    node = case.graph.nodes[place]
    name = pick(draw, _ONE) if len(node.inputs) == 1 else pick(draw, list(_TWO))
    made = Node(name=node.name, operator=name, inputs=node.inputs, attributes=_TWO.get(name, {}))
    return with_node(case, place, made)


def round_trip(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A value is moved and moved back on the way to its readers: nothing that a reader gets is different."""
    types = value_types(case.graph)
    found = [name for name in _floats(case.graph) if types[name].rank > 1]
    if not found:
        return None
    name = pick(draw, found)
    shape = types[name].shape
    axis = draw(st.integers(0, len(shape) - 1))
    pool = _pool(draw, case.graph)
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(shape))))
        there = pool.add("permute", name, dims=list(order))
        back = pool.add("permute", there, dims=[order.index(place) for place in range(len(shape))])
    else:
        there = pool.add("cat", name, name, dim=axis)
        back = pool.add("slice", there, dim=axis, start=shape[axis], stop=None, step=1)
    return _rerouted(case, pool, name, back)


def masked(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """Readers get a value where it is above a number, elsewhere zero, by way of a truth value that is cast."""
    found = _floats(case.graph)
    if not found:
        return None
    name = pick(draw, found)
    pool = _pool(draw, case.graph)
    mask = pool.add(pick(draw, ("gt", "lt", "ne")), name, scalar=draw(st.sampled_from((0.0, 0.5, -1.0))))
    kept = pool.add("mul", name, pool.add("to_float", mask), **_TWO["mul"])
    return _rerouted(case, pool, name, kept)


def second_reader(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A value gets one reader more, whose result is an output."""
    found = _floats(case.graph)
    if not found:
        return None
    pool = _pool(draw, case.graph)
    return _extended(case, pool, pool.add(pick(draw, _ONE), pick(draw, found)))


def output(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """A value inside is an output as well."""
    nodes = {node.name for node in case.graph.nodes}
    inner = [name for name in _floats(case.graph) if maker_of(name) in nodes and name not in case.graph.outputs]
    if not inner:
        return None
    graph = msgspec.structs.replace(case.graph, outputs=(*case.graph.outputs, pick(draw, inner)))
    return with_graph(case, graph)


def grown(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """Any operator that fits stands behind an output."""
    pool = _pool(draw, case.graph)
    source = pick(draw, case.graph.outputs)
    options = [entry for entry in pool.fitting(source) if "index" not in entry.tags]
    if not options:
        return None
    entry = pick(draw, options)
    choice = entry.draw(draw, pool, source)
    names = pool.add_all(entry.name, *choice.inputs, **choice.attributes)
    return _extended(case, pool, *names, instead=source)


def spliced(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """An output is what another graph reads, in another shape if need be."""
    options = [item for item in others if item.tensors is None or item.tensors == case.tensors]
    if not options:
        return None
    other = _window(draw, pick(draw, options))
    own, theirs = value_types(case.graph), value_types(other.graph)
    pairs = [
        (name, item.name)
        for name in case.graph.outputs
        for item in other.graph.inputs
        if own[name].dtype == item.dtype == "float32" and own[name].elements == theirs[item.name].elements
    ]
    if not pairs:
        return None
    name, free = pick(draw, pairs)
    graph = numbered(other.graph, "s_")
    anew = dict(zip((item.name for item in other.graph.inputs), (item.name for item in graph.inputs), strict=True))
    pool = _pool(draw, case.graph)
    joined = name
    if own[name].shape != theirs[free].shape:
        joined = pool.add("reshape", name, shape=list(theirs[free].shape))
    graph = renamed(graph, {anew[free]: joined})
    made = msgspec.structs.replace(
        case.graph,
        inputs=(*case.graph.inputs, *(item for item in graph.inputs if item.name != anew[free])),
        constants=(*case.graph.constants, *graph.constants),
        nodes=(*pool.nodes, *graph.nodes),
        outputs=tuple(dict.fromkeys((*(item for item in case.graph.outputs if item != name), *graph.outputs))),
    )
    added = {anew[item.name]: other.calibration[item.name] for item in other.graph.inputs if item.name != free}
    return with_graph(case, made, added)


def drawn_anew(draw: Draw, case: Case, others: Sequence[Case]) -> Case | None:
    """Of a drawn graph: other sizes, attributes and operands."""
    if case.graph.captured or case.tensors is not None:
        return None
    made: Case
    (made,) = draw(kin(case))
    return made


CHANGES: tuple[Change, ...] = (
    *(drawn_anew, drawn_anew, sibling, round_trip, masked, second_reader, output, grown, spliced),
    *(argument, resized, reordered, written, stretch),
)


def draw_mutants(
    parents: Sequence[Case], seed: int, block: int, count: int, targets: Sequence[str]
) -> list[tuple[Case, ...]]:
    """Up to ``count`` mutants of a block, each with its cases, none twice and none of the parents.

    :param parents: of any target; at least one.
    """
    kept = {graph_digest(numbered(item.graph)) + item.recipe for item in parents}
    found: list[tuple[Case, ...]] = []
    for run in range(count + 1):
        for item in fresh_examples(run_seed(seed, block, run), _cases(tuple(parents), tuple(targets))):
            own = graph_digest(item[0].graph) + item[0].recipe
            if own not in kept:
                kept.add(own)
                found.append(item)
        if len(found) >= count:
            break
    return found[:count]


@st.composite
def _cases(draw: Draw, parents: Sequence[Case], targets: Sequence[str]) -> tuple[Case, ...]:
    """One mutant on every target; a parent's window where no change fits."""
    case = _window(draw, pick(draw, parents))
    for _ in range(pick(draw, COUNTS)):
        made = pick(draw, CHANGES)(draw, case, parents)
        if made is not None and _is_whole(made):
            case = _numbered(made)
    if one_in(draw, 3):
        case = msgspec.structs.replace(case, calibration=case.calibration | _other_calibration(draw, case.graph))
    recipe = case.recipe
    if not parse_target(case.target).quantized or "float=" in recipe or one_in(draw, 3):
        recipe = draw(recipes(case.graph))
    seeds = msgspec.structs.replace(case.seeds, weights=draw(SEEDS), calibration=draw(SEEDS), evaluation=draw(SEEDS))
    plain = msgspec.structs.replace(case, seeds=seeds, note="")
    return tuple(
        msgspec.structs.replace(plain, target=target, recipe=recipe if parse_target(target).quantized else "float")
        for target in targets
    )


def _window(draw: Draw, case: Case) -> Case:
    """The case with numbered names, or some nodes of it in a row if it has many."""
    case = _numbered(msgspec.structs.replace(case, recipe=_without_nodes(case.recipe)))
    nodes = case.graph.nodes
    if len(nodes) <= (WINDOW if case.graph.captured else WHOLE):
        return case
    start = draw(st.integers(0, len(nodes) - WINDOW))
    chosen = nodes[start : start + WINDOW]
    types, made = value_types(case.graph), {node.name for node in chosen}
    before = {node.name for node in nodes[:start]}
    read = dict.fromkeys(name for node in chosen for name in node.inputs if maker_of(name) in before)
    if any(types[name].dtype != "float32" for name in read):
        return case
    names = {name: f"in_{name.replace('.', '_')}" for name in read}
    outside = {name for node in nodes[start + WINDOW :] for name in node.inputs} | {*case.graph.outputs}
    inside = {name for node in chosen for name in node.inputs}
    outputs = [name for name in types if maker_of(name) in made and (name in outside or name not in inside)]
    graph = msgspec.structs.replace(
        case.graph,
        inputs=(*case.graph.inputs, *(Input(name=new, shape=types[old].shape) for old, new in names.items())),
        nodes=chosen,
        outputs=tuple(outputs),
    )
    cut = with_graph(case, renamed(graph, names), dict.fromkeys(names.values(), UNIFORM))
    if not cut.graph.inputs or not _is_whole(cut):
        return case
    return _numbered(cut)


def _without_nodes(recipe: str) -> str:
    """A recipe without the words that name nodes or speak of an edit by hand."""
    return ",".join(word for word in recipe.split(",") if not word.startswith(("float=", "edited=")))


def _numbered(case: Case) -> Case:
    """The case with numbered names, those of its calibration as well."""
    calibration = {f"x{place}": case.calibration[item.name] for place, item in enumerate(case.graph.inputs)}
    return msgspec.structs.replace(case, graph=numbered(case.graph), calibration=calibration)


def _other_calibration(draw: Draw, graph: Graph) -> dict[str, Distribution]:
    """Of the float inputs; integers may be indices of a captured operator, whose bound nothing tells."""
    floats = {item.name for item in graph.inputs if item.dtype == "float32"}
    return {name: item for name, item in draw_calibration(draw, graph).items() if name in floats}


def _pool(draw: Draw, graph: Graph) -> GraphPool:
    """A pool that goes on where the graph ends; what is in it may lie in memory in any order."""
    pool = GraphPool(draw)
    pool.inputs, pool.constants, pool.nodes = [*graph.inputs], [*graph.constants], [*graph.nodes]
    pool.types = dict(value_types(graph))
    pool.used = {name for node in graph.nodes for name in node.inputs}
    pool.loose = {*pool.types}
    return pool


def _extended(case: Case, pool: GraphPool, *results: str, instead: str = "") -> Case:
    """The case with what was added to its pool; the results are outputs, one of them in an output's place."""
    kept = [name for name in case.graph.outputs if name != instead]
    graph = Graph(
        inputs=tuple(pool.inputs),
        constants=tuple(pool.constants),
        nodes=tuple(pool.nodes),
        outputs=tuple(dict.fromkeys((*kept, *results))),
    )
    new = [item.name for item in pool.inputs if item.name not in case.calibration]
    return with_graph(case, graph, dict.fromkeys(new, UNIFORM))


def _rerouted(case: Case, pool: GraphPool, old: str, new: str) -> Case:
    """The readers of a value read another one, and so do outputs."""
    added = pool.nodes[len(case.graph.nodes) :]
    place = next((at for at, node in enumerate(case.graph.nodes, 1) if node.name == maker_of(old)), 0)
    graph = renamed(case.graph, {old: new})
    nodes = (*graph.nodes[:place], *added, *graph.nodes[place:])
    return with_graph(case, msgspec.structs.replace(graph, nodes=nodes))


def _plain(node: Node) -> bool:
    """Does it take values and no other arguments that matter?"""
    if node.types is None:
        return node.operator in _ONE or node.operator in _TWO
    args, name = node.attributes.get("args", []), node.operator.split(".")[1] if "." in node.operator else ""
    return name in (*_ONE, *_TWO) and len(args) == len(node.inputs) and not node.attributes.get("kwargs")


def _floats(graph: Graph) -> list[str]:
    """Float values that a change may read; constants are left to those who made them."""
    made = {item.name for item in graph.constants}
    return [name for name, type_ in value_types(graph).items() if type_.dtype == "float32" and name not in made]


def _is_whole(case: Case) -> bool:
    try:
        check_case(case)
        types = value_types(case.graph).values()
    except BadInput:
        return False
    small = all(type_.elements <= MOST_ELEMENTS for type_ in types)
    return small and bool(case.graph.inputs) and len(case.graph.nodes) <= MOST_NODES
