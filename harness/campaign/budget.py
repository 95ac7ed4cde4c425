"""The time of a campaign: how long to draw, so that what follows still fits.

Minimization and reports belong to the time that was asked for. So drawing ends early enough for the cases that
are running, for every new bucket found so far (a share of the time at most), and for the reports.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Protocol

from harness.triage.findings import Finding

REPORTS = 8.0
"""Seconds for the reports of a run."""
A_CASE = 2.0
"""Seconds that a case is thought to take while none were measured."""
A_BUCKET = 90.0
"""Seconds that minimizing a bucket, and writing and trying its script, should have."""
MOST_A_BUCKET = 300.0
MINIMIZING = 0.75
"""The part of a bucket's time that minimization may take; its script takes the rest."""
SHARE = 0.4
"""The part of the time that minimization may take from drawing."""


class Findings(Protocol):
    """What a budget asks of a tally."""

    @property
    def cases(self) -> int: ...

    @property
    def new(self) -> list[Finding]: ...


@dataclass
class Budget:
    """Time since the campaign began.

    :param seconds: what was asked for, or None: as long as it takes.
    :param before: the cases of the sittings that this one resumes.
    :param warm: seconds spent and cases counted when the first results of this sitting were seen. What a case takes
        is measured from there: a start of the workers takes as long as several cases.
    """

    seconds: float | None
    started: float = field(default_factory=time.monotonic)
    before: int | None = None
    warm: tuple[float, int] | None = None

    @property
    def spent(self) -> float:
        return time.monotonic() - self.started

    def drawing_is_over(self, tally: Findings, running: int) -> bool:
        """Is the rest of the time needed for what runs and for what follows?"""
        if self.seconds is None:
            return False
        a_case = self._a_case(tally.cases)
        buckets = len({finding.bucket for finding in tally.new})
        minimization = min(SHARE * self.seconds, A_BUCKET * buckets)
        return self.spent + (running + 1) * a_case + minimization + min(REPORTS, 0.1 * self.seconds) >= self.seconds

    def _a_case(self, cases: int) -> float:
        """Seconds a case, of all workers together."""
        if self.before is None:
            self.before = cases
        if self.warm is None and cases > self.before:
            self.warm = (self.spent, cases)
        if self.warm is None or cases == self.warm[1]:
            return A_CASE
        return (self.spent - self.warm[0]) / (cases - self.warm[1])

    def until_for(self, waiting: int) -> float:
        """When to stop minimizing a bucket, as ``time.monotonic`` tells it, if so many are still waiting.

        :param waiting: buckets to minimize, this one included.
        """
        now = time.monotonic()
        if self.seconds is None:
            return now + MOST_A_BUCKET
        return now + max(0.0, min(MOST_A_BUCKET, MINIMIZING * self.left / max(1, waiting)))

    @property
    def left(self) -> float:
        """Seconds until reports have to be written."""
        return math.inf if self.seconds is None else self.seconds - self.spent - REPORTS

    def is_over(self) -> bool:
        """Is there no time for anything but the reports?"""
        return self.left <= 0
