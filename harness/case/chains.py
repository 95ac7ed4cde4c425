"""Operator chains of a graph: what an output depends on, as words that patterns can match."""

from __future__ import annotations

from collections.abc import Sequence

from harness.case.aten import needed
from harness.case.case import Graph
from harness.case.constants import CONSTANT_KINDS


def plain_name(operator: str) -> str:
    """``aten.relu_.default`` as the generators call it: ``relu``."""
    return operator.split(".")[1].removesuffix("_") if operator.count(".") > 1 else operator


def operator_chain(graph: Graph, output: int | None = None) -> tuple[str, ...]:
    """Operators (and constant kinds) that an output depends on, in topological order.

    :param output: index of the output; None stands for all of them.
    """
    wanted = needed(graph, graph.outputs if output is None else (graph.outputs[output],))
    chain = [node.operator for node in graph.nodes if node.name in wanted]
    constants = [item.kind for item in graph.constants if item.name in wanted and not CONSTANT_KINDS[item.kind].stored]
    return (*constants, *chain)


def contains_in_order(chain: Sequence[str], wanted: Sequence[str]) -> bool:
    """Do the words of ``wanted`` (``relu|hardtanh``: one of them) occur in ``chain``, in this order?

    ``relu`` stands for a captured module's ``aten.relu.default`` and ``aten.relu_.default`` as well.
    """
    rest = iter(chain)
    return all(any({item, plain_name(item)} & {*word.split("|")} for item in rest) for word in wanted)


def has_pattern(graph: Graph, patterns: Sequence[Sequence[str]]) -> bool:
    """Does a graph contain one of several operator patterns (``contains_in_order``)?"""
    chain = operator_chain(graph)
    return any(contains_in_order(chain, pattern) for pattern in patterns)
