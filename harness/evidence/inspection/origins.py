"""Which start node each TOSA operator stands for.

A TOSA operator writes a tensor that is named after the node of the last snapshot which it was
made from, and that node carries its origin. The RESCALE behind a 16-bit TABLE has none and takes
the TABLE's.

A constant that a pass made is named after the node that it replaces; its origin is the start node
whose *value* that node has, which need not be the one that the node bears the mark of.

A *group* is all operators of one origin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from harness.artifacts.tosa import TosaBlock, TosaOperator, decode_tosa
from harness.case.traits import TOSA_MOVING
from harness.compat.snapshots import PassTrace
from harness.evidence.observation import DelegateRecord


@dataclass(frozen=True)
class Origins:
    """Origin of each operator of a block, by operator index; None where nothing tells."""

    of: Mapping[int, str | None]
    block: TosaBlock

    def group(self, origin: str) -> tuple[TosaOperator, ...]:
        """Operators of one origin, CONST aside."""
        return self._groups.get(origin, ())

    @cached_property
    def _groups(self) -> Mapping[str | None, tuple[TosaOperator, ...]]:
        table: dict[str | None, list[TosaOperator]] = {}
        for item in self.block.operators:
            if _computes(item):
                table.setdefault(self.of[item.index], []).append(item)
        return {origin: tuple(operators) for origin, operators in table.items()}

    def moves(self, origin: str) -> bool:
        """Does a group only move elements?"""
        return all(item.op in TOSA_MOVING for item in self.group(origin))

    def results(self, origin: str) -> tuple[str, ...]:
        """What ``leaving`` gives, without data movement ahead of the group's own arithmetic.

        Passes share the transposes and reshapes that several operators of one input begin with.
        """
        group = self.group(origin)
        after = {item.index for item in group if item.op not in TOSA_MOVING}
        if after:
            written: set[str] = set()
            for item in group:
                if item.index in after or any(name in written for name in item.inputs):
                    written |= set(item.outputs)
            return tuple(name for name in self.leaving(origin) if name in written)
        return self.leaving(origin)

    def leaving(self, origin: str) -> tuple[str, ...]:
        """Tensors that a group writes and somebody else reads, graph outputs included."""
        return tuple(
            name
            for item in self.group(origin)
            for name in item.outputs
            if name in self.block.outputs or any(self.of[reader.index] != origin for reader in self.block.readers(name))
        )


def origins_of(trace: PassTrace, block: TosaBlock) -> Origins:
    """Origins of a delegate's operators."""
    found: dict[int, str | None] = {}
    producers = block.producers
    for item in block.operators:
        found[item.index] = _origin(item, trace)
        before = producers.get(item.inputs[0]) if item.inputs else None
        if found[item.index] is None and before is not None and before.op == "TABLE":
            found[item.index] = found[before.index]  # the RESCALE that takes a 16-bit TABLE's fraction away
    return Origins(found, block)


def behind_moves(
    operator: TosaOperator | None, block: TosaBlock, moves: Collection[str] = TOSA_MOVING
) -> TosaOperator | None:
    """The operator whose result one hands on, itself if it does not move elements; None: an input of the graph.

    :param moves: operators to look through, along their first operand.
    """
    while operator is not None and operator.op in moves:
        operator = block.producers.get(operator.inputs[0])
    return operator


def constant_origin(name: str, trace: PassTrace) -> str | None:
    """The start node that a constant or an input was made from."""
    node = trace.last.nodes.get(name)
    return node.origin if node is not None and node.origin in trace.start.nodes else None


def call_made(tensors: Iterable[str], delegate: DelegateRecord) -> str:
    """The node of the case's graph that the first of some TOSA tensors was made for (``NodeState.call``).

    :returns: empty where nothing tells.
    """
    if delegate.tosa is None or delegate.trace is None:
        return ""
    block = decode_tosa(delegate.tosa).main
    origins = origins_of(delegate.trace, block)
    for name in tensors:
        producer = block.producers.get(name)
        for operator in (producer, behind_moves(producer, block)):  # a pass's own transpose has no origin
            origin = origins.of[operator.index] if operator is not None else None
            if origin is not None and (call := delegate.trace.start.call(origin)):
                return call
    return ""


def _origin(operator: TosaOperator, trace: PassTrace) -> str | None:
    for name in operator.outputs:
        origin = constant_origin(name, trace)
        if origin is not None:
            return origin
    return None


def _computes(operator: TosaOperator) -> bool:
    return operator.op not in ("CONST", "CONST_SHAPE")
