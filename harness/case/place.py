"""The place of a finding: the operators around the first wrong one, with their attributes, as data.

A *place* is a piece of a graph: the operator whose result is wrong first (``here``), and the operators that it
reads from and that read it, as far as a few edges lead. For what Vela did wrong it is a piece of the delegate's TOSA
graph; for what a pass or the quantizer did, of the graph that PT2E exported or of the case's own graph.

*Facts* are attributes in one vocabulary for all operators (``harness.evidence.inspection.surroundings`` lists them):
``batch``, ``rank``, ``kernel``, ``stride``, ``dilation``, ``pad``, ``dtype``, … Facts of the place itself tell what was
seen there: the command (``operation``), the share of wrong elements, registers.

Conditions of corpus entries (``harness.triage.conditions``) speak of places, and of nothing else. Pure data, so that a
place travels with its finding and can be judged again later.
"""

from __future__ import annotations

from typing import Literal

import msgspec

INPUT = "INPUT"
"""The operator of a place that stands for an input of the graph."""
Fact = int | float | str
GraphKind = Literal["tosa", "aten"]


class PlacedOperator(msgspec.Struct, frozen=True, kw_only=True):
    """One operator of a place.

    :param op: its name: ``CONV2D`` in a TOSA graph, ``conv2d`` in an ATen graph.
    :param facts: its attributes by name.
    :param reads: the operators whose results it reads, as indices into the place, in the order of its operands.
    """

    op: str
    facts: dict[str, Fact] = {}
    reads: tuple[int, ...] = ()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The surroundings of a finding.

    :param operators: in topological order.
    :param here: indices of the operators that the finding is about; several where it cannot be told closer.
    :param facts: what was seen there.
    """

    graph: GraphKind
    operators: tuple[PlacedOperator, ...]
    here: tuple[int, ...]
    facts: dict[str, Fact] = {}

    @property
    def readers(self) -> dict[int, tuple[int, ...]]:
        """The operators of the place that read each one."""
        table: dict[int, list[int]] = {index: [] for index in range(len(self.operators))}
        for index, operator in enumerate(self.operators):
            for source in dict.fromkeys(operator.reads):
                table[source].append(index)
        return {index: tuple(found) for index, found in table.items()}

    def __str__(self) -> str:
        """The operators in one line, those of the finding in brackets: ``SLICE -> [CONV2D] -> RESCALE``."""
        words = [f"[{item.op}]" if index in self.here else item.op for index, item in enumerate(self.operators)]
        return " -> ".join(words)
