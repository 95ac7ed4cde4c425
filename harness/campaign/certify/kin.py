"""Graphs like a bug's own cases, compared until enough of them come to the code that a correction changes.

That a drawn graph is the same program stock and corrected says nothing if it never comes to the edited lines. Kin
(``generators.kin``) mostly do, and of a captured graph its mutants (``generators.mutants``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Protocol, TypeVar

from harness.case.case import Case, case_digest
from harness.workers.protocol import Comparison

BATCH = 20
TRIES = 4
"""Graphs that are compared at most, for each that is to come to the correction."""
CHANGED = 4
"""Of so many graphs that come to the correction, one is to become another program."""


class _Row(Protocol):
    @property
    def comparison(self) -> Comparison: ...


_Compared = TypeVar("_Compared", bound=_Row)


@dataclass(frozen=True)
class Goal:
    """When to stop.

    :param reached: graphs that come to the correction; a quarter of them are to be changed by it.
    """

    reached: int

    def is_met(self, rows: Sequence[_Row]) -> bool:
        came = [row.comparison for row in rows if row.comparison.reached]
        changed = sum(not item.same for item in came)
        return len(came) >= self.reached and changed >= self.reached // CHANGED

    @property
    def tries(self) -> int:
        return TRIES * self.reached


def kin_of(cases: Sequence[Case], seed: int, count: int) -> Iterator[Case]:
    """Kin of several cases, in turn, up to ``count`` of them in all."""
    each = -(-count // max(1, len(cases)))
    drawn = (_kin(case, seed, each) for case in cases)
    yield from islice((item for item in chain.from_iterable(zip_longest(*drawn)) if item is not None), count)


def _kin(case: Case, seed: int, count: int) -> list[Case]:
    """A captured graph, which nobody can draw anew, has mutants for kin; none if its tensors are stored beside it."""
    from generators.kin import draw_kin
    from generators.mutants import draw_mutants

    if not case.graph.captured:
        return draw_kin(case, seed, count)
    if case.tensors is not None:
        return []
    mutants = draw_mutants([case], seed, int(case_digest(case), 16), count, [case.target])
    return [one for [one] in mutants]


def until_enough(
    cases: Iterator[Case],
    goal: Goal,
    compare: Callable[[Sequence[Case]], Sequence[_Compared]],
    earlier: Sequence[_Compared] = (),
) -> list[_Compared]:
    """Compare cases, a batch at a time, until the goal is met or there are no more.

    :param earlier: rows of other graphs that count as well.
    """
    rows: list[_Compared] = []
    while not goal.is_met([*earlier, *rows]) and (batch := [*islice(cases, BATCH)]):
        rows += compare(batch)
    return rows
