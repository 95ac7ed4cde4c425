"""What a plant of a campaign is: a bug in a place where known bugs live, and the campaign that must report it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

VELA = "Vela"


@dataclass(frozen=True)
class Drawn:
    """The graphs of a campaign: the first so many of a seed, on one target."""

    target: str
    seed: int
    graphs: int


@dataclass(frozen=True)
class Plant:
    """A bug put into the installed compiler on purpose; the clean twin is the same campaign without it.

    :param stands_for: the kind of bug, in a few words.
    :param shows: the findings that it must have, as ``oracle/kind`` or ``oracle``; any of them.
    :param blame: the pass class to be blamed, or ``Vela``, ``serializer``.
    :param planted: opens a context inside which the installed packages have the bug; graphs that lack the place of
        the bug stay as they are.
    :param here: for the payload: the TOSA operators that may be named as the first wrong one; none: not asked.
    """

    name: str
    stands_for: str
    shows: tuple[str, ...]
    blame: str
    drawn: Drawn
    planted: Callable[[], AbstractContextManager[None]]
    here: tuple[str, ...] = ()

    @property
    def in_payload(self) -> bool:
        """Is it in what Vela emits?"""
        return self.blame == VELA


def verdict_of(culprit: str, named: str | None, steps: Sequence[str]) -> str:
    """How what a finding names stands to the culprit: exact, bracket (it lies in one that says so), none or WRONG.

    :param steps: what can be named, in order; a bracket is open at its beginning.
    """
    if named is None:
        return "none"
    first, wide, last = named.partition("..")
    if not wide:
        return "exact" if first == culprit else "WRONG"
    low = 0 if first not in steps else steps.index(first)
    high = -1 if last not in steps else len(steps) - 1 - list(reversed(steps)).index(last)  # a pass that runs twice
    return "bracket" if culprit in steps[low + 1 : high + 1] else "WRONG"
