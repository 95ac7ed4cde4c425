"""Where the boxes of a small directed graph go: layers from top to bottom, few crossings, straight long edges.

The usual three steps (Sugiyama): every box gets the layer below its last source (a source is pulled down to
its first reader); the order inside the layers is swept by the mean place of the neighbours, and the best
order seen wins; x is then the least-squares place between neighbours that keeps order and distances. An edge
over several layers gets a bend in each, which takes part in ordering like a box.

Units are CSS pixels, y grows downwards, positions are a box's upper left corner. The same graph gives the same
layout; an edge's ports lie on its boxes' lower and upper sides, in the order of results and operands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP = 18.0
BEND_GAP = 10.0
LAYER_GAP = 30.0
SWEEPS = 12


@dataclass(frozen=True)
class Box:
    """Something of a size."""

    name: str
    wide: float
    high: float


@dataclass(frozen=True)
class Edge:
    """From a box's lower side to a box's upper side.

    :param leaves: where it leaves, as a share of the source's width; ``enters`` likewise.
    """

    source: str
    target: str
    leaves: float = 0.5
    enters: float = 0.5


@dataclass(frozen=True)
class Layout:
    """Places.

    :param corners: box -> its upper left corner.
    :param routes: for each edge the points that it goes through; between points 2k and 2k + 1 it crosses a
        gap between layers, between 2k + 1 and 2k + 2 it passes a layer.
    """

    wide: float
    high: float
    corners: Mapping[str, tuple[float, float]]
    routes: tuple[tuple[tuple[float, float], ...], ...]


@dataclass
class _Item:
    """A box, or the bend of a long edge (of no size)."""

    wide: float
    high: float
    layer: int
    x: float = 0.0
    above: list[tuple[int, float, float]] = field(default_factory=list)
    """(neighbour, offset of the port there, offset of the port here), both from the middle."""
    below: list[tuple[int, float, float]] = field(default_factory=list)


def laid_out(boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Place boxes, which are given sources first."""
    layer = _layers(boxes, edges)
    items = [_Item(box.wide, box.high, layer[box.name]) for box in boxes]
    index = {box.name: place for place, box in enumerate(boxes)}
    chains = [_chain(items, index, edge) for edge in edges]
    order = _ordered(items)
    _place(items, order)
    tops, bottoms, high = _heights(items, order)
    left = min((item.x - item.wide / 2 for item in items), default=0.0)
    right = max((item.x + item.wide / 2 for item in items), default=0.0)
    corners = {
        box.name: (items[place].x - box.wide / 2 - left, tops[items[place].layer]) for place, box in enumerate(boxes)
    }
    routes = tuple(_route(items, chain, edge, tops, left, bottoms) for chain, edge in zip(chains, edges, strict=True))
    return Layout(right - left, high, corners, routes)


def _layers(boxes: Sequence[Box], edges: Sequence[Edge]) -> dict[str, int]:
    layer: dict[str, int] = {}
    sources: dict[str, list[str]] = defaultdict(list)
    targets: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        sources[edge.target].append(edge.source)
        targets[edge.source].append(edge.target)
    for box in boxes:
        layer[box.name] = max((layer[name] + 1 for name in sources[box.name]), default=0)
    for box in boxes:
        if not sources[box.name] and targets[box.name]:
            layer[box.name] = min(layer[name] for name in targets[box.name]) - 1
    return layer


def _chain(items: list[_Item], index: Mapping[str, int], edge: Edge) -> list[int]:
    """The items that an edge goes through, its bends added to ``items``."""
    first, last = index[edge.source], index[edge.target]
    chain = [first]
    for layer in range(items[first].layer + 1, items[last].layer):
        items.append(_Item(0.0, 0.0, layer))
        chain.append(len(items) - 1)
    chain.append(last)
    out, into = (edge.leaves - 0.5) * items[first].wide, (edge.enters - 0.5) * items[last].wide
    for upper, lower in pairwise(chain):
        here, there = out if upper == first else 0.0, into if lower == last else 0.0
        items[upper].below.append((lower, there, here))
        items[lower].above.append((upper, here, there))
    return chain


def _ordered(items: Sequence[_Item]) -> list[list[int]]:
    """Items of each layer from left to right."""
    layers: list[list[int]] = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    for place, item in enumerate(items):
        layers[item.layer].append(place)
    best, fewest = [list(layer) for layer in layers], _crossings(items, layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        at = {item: number for layer in layers for number, item in enumerate(layer)}
        for layer in layers if down else reversed(layers):
            layer[:] = [item for *_, item in sorted((_mean(items, item, at, down), at[item], item) for item in layer)]
            at |= {item: number for number, item in enumerate(layer)}
        if (found := _crossings(items, layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], found
    return best


def _mean(items: Sequence[_Item], item: int, place: Mapping[int, int], down: bool) -> float:
    """The mean place of its neighbours; a port counts for a part of a place."""
    near = items[item].above if down else items[item].below
    if not near:
        return float(place[item])
    return sum(place[other] + port / max(items[other].wide, 1.0) for other, port, _ in near) / len(near)


def _crossings(items: Sequence[_Item], layers: Sequence[Sequence[int]]) -> int:
    total = 0
    for layer in layers:
        ends = [
            (number + here / max(items[item].wide, 1.0), other, there / max(items[other].wide, 1.0))
            for number, item in enumerate(layer)
            for other, there, here in items[item].below
        ]
        below = {other: number for near in layers for number, other in enumerate(near)}
        lines = [(x, below[other] + port) for x, other, port in ends]
        total += sum(
            (one[0] - two[0]) * (one[1] - two[1]) < 0 for at, one in enumerate(lines) for two in lines[at + 1 :]
        )
    return total


def _place(items: Sequence[_Item], order: Sequence[Sequence[int]]) -> None:
    """Give every item its x."""
    for layer in order:
        _settle(items, layer, [0.0] * len(layer))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in order if down else reversed(order):
            _settle(items, layer, [_wanted(items, item, down, sweep >= SWEEPS - 2) for item in layer])
    for layer in order:  # what has neighbours on one side only follows them
        _settle(
            items, layer, [_wanted(items, item, True, True) if _end(items[item]) else items[item].x for item in layer]
        )


def _end(item: _Item) -> bool:
    return not item.above or not item.below


def _wanted(items: Sequence[_Item], item: int, down: bool, both: bool) -> float:
    here = items[item]
    near = here.above + here.below if both else here.above if down else here.below
    if not near:
        return here.x
    return sum(items[other].x + there - port for other, there, port in near) / len(near)


def _settle(items: Sequence[_Item], layer: Sequence[int], wanted: Sequence[float]) -> None:
    """The places nearest to what is wanted, in the sum of squares, that keep order and distances."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        one, two = items[left], items[right]
        gap = GAP if one.wide and two.wide else BEND_GAP
        offsets.append(offsets[-1] + one.wide / 2 + gap + two.wide / 2)
    blocks: list[tuple[float, int]] = []  # (mean, count): pooled until the means rise
    for target, offset in zip(wanted, offsets, strict=False):
        blocks.append((target - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (last, many), (before, few) = blocks.pop(), blocks.pop()
            blocks.append(((last * many + before * few) / (many + few), many + few))
    means = [mean for mean, count in blocks for _ in range(count)]
    for item, mean, offset in zip(layer, means, offsets, strict=True):
        items[item].x = mean + offset


def _heights(items: Sequence[_Item], order: Sequence[Sequence[int]]) -> tuple[list[float], list[float], float]:
    """Upper and lower end of each layer, and of everything."""
    tops, bottoms, y = [], [], 0.0
    for layer in order:
        tops.append(y)
        bottoms.append(y + max((items[item].high for item in layer), default=0.0))
        y = bottoms[-1] + LAYER_GAP
    return tops, bottoms, bottoms[-1] if bottoms else 0.0


def _route(
    items: Sequence[_Item],
    chain: Sequence[int],
    edge: Edge,
    tops: Sequence[float],
    left: float,
    bottoms: Sequence[float],
) -> tuple[tuple[float, float], ...]:
    first, last = items[chain[0]], items[chain[-1]]
    start = first.x + (edge.leaves - 0.5) * first.wide - left
    points = [(start, tops[first.layer] + first.high)]
    if bottoms[first.layer] > points[0][1]:  # a box lower than its neighbours: go down beside them first
        points = [points[0], points[0], (start, bottoms[first.layer])]
    for place in chain[1:-1]:
        bend = items[place]
        points += [(bend.x - left, tops[bend.layer]), (bend.x - left, bottoms[bend.layer])]
    return (*points, (last.x + (edge.enters - 0.5) * last.wide - left, tops[last.layer]))
