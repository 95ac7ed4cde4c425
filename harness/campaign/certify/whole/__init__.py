"""Whole domains: where what a correction changes is a function of few small numbers, go through all of them.

Drawn graphs are a sample; this is a proof for the domain. A module here has a ``DOMAIN`` with the name of its
correction, the points, and a judge that asks the installed function about one point and checks its answer by
itself, without the function's own means. ``going`` asks it stock and corrected.

Judges import upstream where they are made: for worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.case.registry import entries

Judge = Callable[[Any], bool | None]
"""Is the function's answer at a point right? None: it leaves everything as it is, which is always right."""


@dataclass(frozen=True)
class Domain:
    """All that a corrected function can be asked, within stated bounds.

    :param name: of the correction.
    :param says: what is gone through and what is checked, in one sentence.
    :param points: each once.
    :param judge: makes the judge.
    """

    name: str
    says: str
    points: Callable[[], Iterable[Any]]
    judge: Callable[[], Judge]


@cache
def domains() -> Mapping[str, Domain]:
    """Every domain, by its correction's name."""
    return entries("domain", "harness.campaign.certify.whole", "DOMAIN")
