"""Brings every asked course to its budget, one after the other, and returns all that lie there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.case.errors import BadInput
from harness.cli.benchmark.rediscovery.contestants import CONTESTANTS, Asked
from harness.cli.benchmark.rediscovery.course import Course
from harness.corrections import chosen
from harness.reports.upstream.causes import cause_of, causes
from harness.triage.corpus import Entry, bugs_of
from harness.triage.program_entries import program_entries

FOLDER = "rediscover"
_TOLD_EVERY = 30.0
"""Seconds between two lines of progress."""


def contestants_named(names: Sequence[str]) -> tuple[str, ...]:
    """The contestants that were asked for; none stands for all that are cold.

    :raises BadInput: there is no such contestant.
    """
    for name in names:
        if name not in CONTESTANTS:
            raise BadInput("--contestant", f"unknown {name!r}", f"use {', '.join(CONTESTANTS)}")
    return tuple(dict.fromkeys(names)) or tuple(name for name, item in CONTESTANTS.items() if item.cold)


def courses(
    names: Sequence[str],
    seeds: Sequence[int],
    seconds: float,
    targets: tuple[str, ...],
    folder: Path,
    corpus: Sequence[Entry],
    say: Callable[[str], None],
    jobs: int = 1,
) -> list[Course]:
    """The courses of every contestant and seed, each gone on with until it has had so much processor time.

    :param jobs: workers of a campaign.
    """
    found, bugs = [], bugs_of(corpus)
    for seed in seeds:
        for name in names:
            place = folder / FOLDER / f"{name}-{seed}"
            told = _Progress(f"{name}, seed {seed}", seconds, say)
            asked = Asked(seed, seconds, targets, place, corpus, told, jobs)
            course = CONTESTANTS[name].course(seed, place, bugs)
            if course.processor < seconds:
                CONTESTANTS[name].go_on(asked)
                course = CONTESTANTS[name].course(seed, place, bugs)
            found.append(course)
    return found


def root_causes(corpus: Sequence[Entry]) -> dict[str, str]:
    """Entry -> the one that its root cause is told by, bugs that only TOSA programs show included."""
    return cause_of(causes(corpus, chosen(("all",))), program_entries())


class _Progress:
    """Says how far a course is, now and then."""

    def __init__(self, name: str, seconds: float, say: Callable[[str], None]) -> None:
        self._name, self._of, self._say, self._last = name, seconds, say, time.monotonic()

    def __call__(self, spent: float, ran: int) -> None:
        if time.monotonic() >= self._last + _TOLD_EVERY:
            self._last = time.monotonic()
            self._say(f"{self._name}: {spent / 60:.1f} of {self._of / 60:.1f} min of processor time, {ran} run")
