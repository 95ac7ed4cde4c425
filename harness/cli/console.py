"""Progress on standard error: a live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.status import Status

from harness.campaign.campaign import Progress
from harness.case.wording import counted_as
from harness.workers.protocol import CaseResult

PLAIN_EVERY = 20.0
"""Seconds between plain lines."""


class LiveLine:
    """One line that changes on a terminal; elsewhere a plain line now and then.

    :param first: the line to begin with; ``plain``: what a log has of it.
    """

    def __init__(self, first: str = "", plain: str = "") -> None:
        self._console = Console(stderr=True)
        self._first, self._plain = first, plain
        self._live: Status | None = None
        self._last = time.monotonic()

    def __enter__(self) -> LiveLine:
        if self._console.is_terminal:
            self._live = self._console.status(self._first)
            self._live.start()
        elif self._plain:
            self.say(self._plain)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def now(self, text: str) -> None:
        """How far it is: a log has it when the last such line is old."""
        if self._live:
            self._live.update(text)
        elif time.monotonic() - self._last >= PLAIN_EVERY:
            self._last = time.monotonic()
            self.say(text)

    def say(self, text: str) -> None:
        """Something else goes on: a log has it in any case."""
        if self._live:
            self._live.update(text)
        else:
            print(f"armdiff: {text}", file=sys.stderr, flush=True)


class Reporter(LiveLine):
    """Shows the rate and the findings so far."""

    def __init__(self, graphs: int | None) -> None:
        super().__init__("starting workers (torch and executorch take 5 to 9 s to import)", "starting workers")
        self._of = f"/{graphs}" if graphs else ""

    def __enter__(self) -> Reporter:
        super().__enter__()
        return self

    def case(self, progress: Progress, result: CaseResult) -> None:
        """One case is done."""
        tally = progress.tally
        graphs = f"{tally.graphs}{self._of} graphs" if self._of else counted_as(tally.graphs, "graph")
        text = (
            f"{graphs}, {counted_as(tally.cases, 'case')}, {progress.graphs_per_minute:.1f} graphs/min, "
            f"{counted_as(len(tally.findings), 'finding')} ({len(tally.new)} new), {len(tally.invalid)} invalid"
        )
        self.now(text)
