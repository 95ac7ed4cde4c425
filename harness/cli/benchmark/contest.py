"""Asks contestants in turn: the same subjects, subject by subject, one contestant at a time.

With contestants a, b and c the first subject is processed in the order a, b, c, the next one c, a, b, then
b, c, a; every round begins one place further. So no contestant always comes after the same other one, and load
on the machine that lasts for minutes hits all alike. Before that each processes a subject that does not count,
which fills the caches that every process fills once.

A contestant that dies or takes too long has failed on that subject, and is started again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.case.memory import resident
from harness.case.reading import read_case
from harness.cli.benchmark.figures import Sample
from harness.cli.benchmark.subjects import Subject
from harness.workers.processes import WITHOUT, Death, Limits, Worker, start_worker
from harness.workers.protocol import Timed, TimeTask

LIMITS = Limits(seconds=900.0)


@dataclass(frozen=True)
class Contestant:
    """A process to compare.

    :param name: what its figures are listed under.
    :param kind: an entry of ``harness.cli.benchmark.contestant.CONTESTANTS``.
    :param without: warm tricks that it leaves out.
    """

    name: str
    kind: str
    without: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """What is started."""
        words = (f"{WITHOUT}{name}" for name in self.without)
        return (sys.executable, "-m", "harness.cli.benchmark.contestant", self.kind, *words)


class Contest:
    """Contestants that are ready. Use as a context manager.

    :ivar ready: contestant -> bytes in memory after the first subject, which does not count.
    """

    def __init__(self, contestants: Sequence[Contestant], start: Callable[[Contestant], Worker] | None = None) -> None:
        self.contestants = tuple(contestants)
        self.ready: dict[str, int] = {}
        self._start = start or (lambda item: start_worker(LIMITS, command=item.command))
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.kill()
            worker.close()

    def warm_up(self, subject: Subject) -> None:
        """Have every contestant process a subject that does not count."""
        for contestant in self.contestants:
            self._asked(contestant, subject, 0)
            worker = self._workers.get(contestant.name)
            self.ready[contestant.name] = resident(worker.process.pid) if worker else 0

    def run(self, subjects: Sequence[Subject], rounds: int) -> Iterator[Sample]:
        """Samples as they are measured; rounds count from 1."""
        for number in range(1, rounds + 1):
            for place, subject in enumerate(subjects):
                for contestant in turned(self.contestants, place + number - 1):
                    yield self._asked(contestant, subject, number)

    def _asked(self, contestant: Contestant, subject: Subject, number: int) -> Sample:
        worker = self._workers.get(contestant.name) or self._start(contestant)
        self._workers[contestant.name] = worker
        began = time.perf_counter()
        answer = worker.ask(TimeTask(cases=tuple(map(str, subject.cases))))
        if isinstance(answer, Timed):
            return Sample(
                contestant=contestant.name,
                subject=subject.name,
                round=number,
                wall=answer.wall,
                processor=answer.processor,
                stages=answer.stages,
                failed=answer.failed,
                resident=answer.resident,
            )
        assert isinstance(answer, Death)
        worker.kill()
        worker.close()
        del self._workers[contestant.name]
        return Sample(
            contestant=contestant.name,
            subject=subject.name,
            round=number,
            wall=time.perf_counter() - began,
            processor=0.0,
            failed={_target(case): f"{answer.stage}: the process ended with {answer.kind}" for case in subject.cases},
        )


def turned(contestants: Sequence[Contestant], by: int) -> list[Contestant]:
    """The order of contestants, its last so many taken to the front."""
    cut = len(contestants) - by % len(contestants)
    return [*contestants[cut:], *contestants[:cut]]


def _target(case: Path) -> str:
    return read_case(case).target
