"""What the Arm passes did to a delegate's graph: one snapshot after each pass, as data.

Words: the *start* is the delegate's graph before the first pass, still with its quantize and
dequantize nodes; a *snapshot* is (index, name, nodes) after one pass of the manager's list, and
names repeat, so the index is its identity. A node's *origin* is the start node that it descends
from, carried by a mark in the node's metadata that the passes copy along; a node that a pass
made without metadata has none, unless its name tells.

Invariants: snapshots are in the manager's order and there is one for every pass that ended;
snapshots after a pass that changed nothing share their nodes with the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from harness.case.arrays import Array


@dataclass(frozen=True)
class Ref:
    """A node named inside another node's arguments."""

    name: str


@dataclass(frozen=True)
class Qparams:
    """Quantization parameters as the passes hold them.

    :param scale: one scale, or one a channel.
    :param dtype: of the codes: int8, int16, int32, uint8.
    """

    scale: float | tuple[float, ...]
    zero_point: int | tuple[int, ...]
    qmin: int
    qmax: int
    dtype: str
    axis: int = 0

    @property
    def scales(self) -> tuple[float, ...]:
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)

    @property
    def zero_points(self) -> tuple[int, ...]:
        return self.zero_point if isinstance(self.zero_point, tuple) else (self.zero_point,)

    def __str__(self) -> str:
        return f"{self.dtype} scale={self.scale!r} zp={self.zero_point} [{self.qmin}, {self.qmax}]"


@dataclass(frozen=True)
class NodeState:
    """One node of the graph as it stood after a pass.

    :param op: fx's word: placeholder, call_function, get_attr, output.
    :param target: ``aten.cat.default``, ``tosa.RESCALE.default``, or a placeholder's own name.
    :param args: literals, ``Ref`` and nested tuples of them.
    :param origin: name of the start node it descends from.
    :param dtype: of its value (of the first one, if it has several); empty if unknown.
    :param kind: of a constant placeholder: parameter, buffer or constant; empty otherwise.
    :param value: a constant's value; shared between snapshots while it stays the same.
    :param lifted: of a constant placeholder: its name in the program's state.
    :param sources: names that fx recorded for the nodes it was made from, oldest first.
    :param call: the node of the case's graph whose call it descends from, or ``FILE:LINE`` of a user's own module.
    """

    name: str
    op: str
    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    origin: str | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    dim_order: tuple[int, ...] = ()
    input_qparams: Mapping[int, Qparams] = field(default_factory=dict)
    output_qparams: Mapping[int, Qparams] = field(default_factory=dict)
    kind: str = ""
    value: Array | None = None
    lifted: str = ""
    sources: tuple[str, ...] = ()
    call: str = ""

    @property
    def refs(self) -> tuple[str, ...]:
        """Names of the nodes it reads, in order, nested ones included."""
        return tuple(_refs((self.args, tuple(self.kwargs.values()))))


@dataclass(frozen=True)
class Snapshot:
    """The graph after one pass (index -1, name "start": before the first)."""

    index: int
    name: str
    nodes: Mapping[str, NodeState]

    @cached_property
    def users(self) -> Mapping[str, tuple[NodeState, ...]]:
        """Readers of each node."""
        table: dict[str, list[NodeState]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            for name in dict.fromkeys(node.refs):
                table.setdefault(name, []).append(node)
        return {name: tuple(users) for name, users in table.items()}

    def call(self, name: str) -> str:
        """``NodeState.call`` of a node; empty if there is no such node."""
        node = self.nodes.get(name)
        return "" if node is None else node.call


@dataclass(frozen=True)
class PassTrace:
    """All snapshots of one delegate.

    :param passes: names of the manager's list, whole, whether or not all of them ended.
    :param finished: did the last pass end?
    :param seconds: spent on taking the snapshots.
    """

    passes: tuple[str, ...]
    start: Snapshot
    snapshots: tuple[Snapshot, ...]
    finished: bool
    seconds: float = 0.0

    @property
    def last(self) -> Snapshot:
        return self.snapshots[-1] if self.snapshots else self.start

    @property
    def changes(self) -> tuple[Snapshot, ...]:
        """The start and every snapshot whose nodes differ from the one before."""
        found = [self.start]
        for snapshot in self.snapshots:
            if snapshot.nodes is not found[-1].nodes:
                found.append(snapshot)
        return tuple(found)


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from _refs(item)


ARRANGING = (
    "view",
    "view_copy",
    "permute",
    "permute_copy",
    "transpose",
    "transpose_copy",
    "expand",
    "expand_copy",
    "repeat",
    "squeeze",
    "squeeze_copy",
    "unsqueeze",
    "unsqueeze_copy",
    "clone",
)
"""Operators whose result has every element that they read, in another place or several times."""


SPLITS = ("split_copy", "split_with_sizes_copy")
"""Operators whose results are pieces of what they read."""


def base(node: NodeState) -> str:
    """``cat`` for ``aten.cat.default``; empty for what is no call."""
    words = node.target.split(".")
    return words[1] if node.op == "call_function" and len(words) > 1 else ""


def value_origin(state: NodeState, graph: Mapping[str, NodeState], start: Snapshot) -> str | None:
    """The start node whose value a node has; None where no single one has it.

    A pass gives its helpers the metadata of the node that it rewrites: an unsqueeze ahead of a
    matrix product bears the product's mark. Such a helper has the value of what it reads, unless
    it selects: a split becomes slices, each with the value of one getitem; any other slice is a
    part that no start node stands for. What leaves the operators that a pass made of a node, a linear's
    convolution and the view behind it, has the node's value.

    :param graph: the snapshot that has the node.
    """
    marked = start.nodes.get(state.origin or "")
    same = marked is not None and base(marked).removesuffix("_with_indices") == base(state)  # RemoveGetItemPass
    if state.op == "placeholder" or same or not state.refs or (marked is None and base(state) not in ARRANGING):
        return state.origin
    if marked is not None and _alone_leaves(state, marked, graph):
        return state.origin
    if base(state) in ARRANGING:
        before = graph.get(state.refs[0])
        return value_origin(before, graph, start) if before is not None else None
    return _piece(state, marked, start) if marked is not None and base(marked) in SPLITS else None


def _alone_leaves(state: NodeState, marked: NodeState, graph: Mapping[str, NodeState]) -> bool:
    """Is it the only one of several operators with a node's mark that others read, and as large as that node?"""
    group = {name for name, node in graph.items() if node.origin == state.origin and node.op == "call_function"}
    read = {name for node in graph.values() if node.name not in group for name in node.refs}
    return len(group) > 1 and group & read == {state.name} and prod(state.shape) == prod(marked.shape)


def _piece(state: NodeState, split: NodeState, start: Snapshot) -> str | None:
    """The getitem of a split whose elements a slice selects."""
    if base(state) != "slice_copy" or len(state.args) < 3:
        return None
    axis, first = state.args[1:3]
    sizes, along = split.args[1], split.args[2] if len(split.args) > 2 else 0
    for getitem in start.users.get(split.name, ()):
        place = getitem.args[1]
        before = (sizes,) * place if isinstance(sizes, int) else sizes[:place]
        if not all(isinstance(size, int) for size in before):
            continue  # symbolic
        if (axis, first, state.shape) == (along % len(split.shape), sum(before), getitem.shape):
            return getitem.name
    return None
