"""What goes on while a verb waits for its workers: on a terminal a live line, in a log a line for what takes long.

Both name the case, the run of it (the first, once more, with a correction), the stage and the time that it has taken.
In a log a stage is told when it has run for ten seconds, and whenever that time has doubled, so that one that hangs
shows as well. An estimate of what is left needs cases that are done, or a first guess.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import click
from rich.console import Console
from rich.status import Status

from harness.reports.reporting.words import duration
from harness.workers.frames import Question
from harness.workers.protocol import CompareTask, Task

TOLD_AFTER = 10.0
"""Seconds after which a log tells a stage; a stage that is over sooner is not told there."""
TICK = 0.5
WORDS = {
    "import": "importing torch and executorch",
    "build": "building the module",
    "prepare": "annotating",
    "calibrate": "calibrating",
    "convert": "quantizing",
    "export": "exporting",
    "export-quantized": "exporting what was quantized",
    "lower": "partitioning and Arm passes",
    "vela": "compiling with Vela",
    "emit": "emitting the .pte",
    "probe": "working out what rounding allows",
    "probe:streams": "executing the command streams step by step",
    "oracles": "judging",
    "blame": "looking for the pass to blame",
    "prove": "beginning anew",
}
"""What a stage does; legs and probes have names of their own."""
COUNTED = (Task, CompareTask)
"""Questions that an estimate is made of."""


@dataclass
class _Going:
    """A case that a worker is at.

    :param since: when its stage began; ``begun``: when the case did.
    :param due: when a log tells the stage next.
    """

    stage: str
    run: str
    since: float
    begun: float
    due: float


@dataclass
class Estimate:
    """Seconds that are left, from cases that are done; until there are any, from a guess.

    :param cases: how many there are; 0 if nobody knows.
    :param guess: seconds a case; None if there is no telling.
    """

    cases: int = 0
    jobs: int = 1
    guess: float | None = None
    took: list[float] = field(default_factory=list)

    def left(self, running: float) -> float | None:
        """Seconds until the last case is done.

        :param running: seconds that the cases at work have taken so far, together.
        """
        each = sum(self.took) / len(self.took) if self.took else self.guess
        waiting = self.cases - len(self.took)
        if each is None or waiting <= 0:
            return None
        left = each * waiting - running
        return left / min(self.jobs, waiting) if left > 0 else None


class Stages:
    """Shows what workers are at. Use as a context manager; ``told`` is for ``Pool.told``.

    :param label: what a question is called.
    :param clock: seconds, for tests.
    """

    def __init__(
        self,
        label: Callable[[Question], str],
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.estimate = Estimate()
        self._label, self._clock = label, clock
        self._console = console or Console(stderr=True)
        self._started = clock()
        self._going: dict[str, _Going] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._live: Status | None = None
        self._head = "starting workers (torch and executorch take 5 to 9 s to import)"

    def __enter__(self) -> Stages:
        if self._console.is_terminal:
            self._live = self._console.status(self)
            self._live.start()
        else:
            self._print(self._head)
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._live:
            self._live.stop()

    def told(self, task: Question, stage: str, run: str) -> None:
        """A stage of a question begins; an empty one: the question is answered."""
        now, name = self._clock(), self._label(task)
        with self._lock:
            before = self._going.pop(name, None)
            begun = before.begun if before else now
            if stage:
                self._going[name] = _Going(stage, run, now, begun, now + TOLD_AFTER)
            elif isinstance(task, COUNTED):
                self.estimate.took.append(now - begun)

    def expect(self, cases: int, jobs: int = 1, guess: float | None = None) -> None:
        """So many cases come next.

        :param guess: seconds that one may take.
        """
        with self._lock:
            self.estimate = Estimate(cases, jobs, guess)

    def say(self, text: str) -> None:
        """Something that is worth a line: ahead of the live one, if there is one."""
        if self._live:
            self._console.print(f"armdiff: {text}", markup=False, highlight=False)
        else:
            self._print(text)

    def __rich__(self) -> str:
        """The live line, as rich asks for it several times a second."""
        now = self._clock()
        with self._lock:
            oldest = min(self._going.items(), key=lambda item: item[1].begun, default=None)
            more = len(self._going) - 1
        if oldest is None:
            return self._head
        beside = f" (and {more} more)" if more > 0 else ""
        return f"{self._described(*oldest, now)}{beside}; {self._total(now)}".replace("[", r"\[")

    def due(self) -> list[str]:
        """What a log is told now: stages that have run for long."""
        now = self._clock()
        lines = []
        with self._lock:
            for name, going in self._going.items():
                if now >= going.due:
                    going.due = going.since + 2 * (now - going.since)
                    lines.append((name, going))
        return [f"{self._described(name, going, now)}; {self._total(now)}" for name, going in lines]

    def _described(self, name: str, going: _Going, now: float) -> str:
        run = f", {going.run}" if going.run else ""
        return f"{name}{run}: {_in_words(going.stage)} for {duration(int(now - going.since))}"

    def _total(self, now: float) -> str:
        with self._lock:
            running = sum(now - going.begun for going in self._going.values())
        left = self.estimate.left(running)
        return f"{duration(int(now - self._started))} in all" + (
            f", about {duration(max(1, round(left)))} left" if left is not None else ""
        )

    def _watch(self) -> None:
        while not self._over.wait(TICK):
            for line in self.due():
                self._print(line)

    def _print(self, text: str) -> None:
        click.echo(f"armdiff: {text}", err=True)


def _in_words(stage: str) -> str:
    """A stage as whoever waits reads it."""
    kind, _, name = stage.partition(":")
    named = {"leg": f"running {name}", "probe": f"probing {name}"} if name else {}
    return WORDS.get(stage) or named.get(kind, stage)
