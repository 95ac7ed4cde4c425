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


class Reporter:
    """Shows the rate and the findings so far."""

    def __init__(self, graphs: int | None) -> None:
        self._console = Console(stderr=True)
        self._of = f"/{graphs}" if graphs else ""
        self._live: Status | None = None
        self._last = time.monotonic()

    def __enter__(self) -> Reporter:
        if self._console.is_terminal:
            self._live = self._console.status("starting workers (torch and executorch take 5 to 9 s to import)")
            self._live.start()
        else:
            print("armdiff: starting workers", file=sys.stderr, flush=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def case(self, progress: Progress, result: CaseResult) -> None:
        """One case is done."""
        tally = progress.tally
        graphs = f"{tally.graphs}{self._of} graphs" if self._of else counted_as(tally.graphs, "graph")
        text = (
            f"{graphs}, {counted_as(tally.cases, 'case')}, {progress.graphs_per_minute:.1f} graphs/min, "
            f"{counted_as(len(tally.findings), 'finding')} ({len(tally.new)} new), {len(tally.invalid)} invalid"
        )
        if self._live:
            self._live.update(text)
        elif time.monotonic() - self._last >= PLAIN_EVERY:
            self._last = time.monotonic()
            print(f"armdiff: {text}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Something else than a case goes on."""
        if self._live:
            self._live.update(text)
        else:
            print(f"armdiff: {text}", file=sys.stderr, flush=True)
