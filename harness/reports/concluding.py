"""What a campaign does with its findings before it ends: minimize each new bucket, the most valuable first.

Hypothesis shrinks the choices that a graph was drawn from, for a part of the time, and remembers the smallest in
the example database; then cuts make the case smaller (``harness.campaign.reduction``), and the bug gets a folder with a
script and a report (``harness.reports.bugs``). One bug on several targets is minimized once, beginning with the
shortest graph that shows it nearly as badly as any (``harness.campaign.reduction.harm``). What the time is too short
for is said, with the command that goes on from the checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.campaign.budget import Budget
from harness.campaign.campaign import BLOCK, Options, Progress, write_case
from harness.campaign.reduction.criterion import BucketJudge
from harness.campaign.reduction.harm import Harm, harm_of, sharing
from harness.campaign.reduction.minimizing import Terms, minimize
from harness.campaign.run_folder import BUGS, SMALLEST_IS, Minimized, Run, append
from harness.campaign.summary import by_cause
from harness.case.case import Case
from harness.case.errors import ArmdiffError, CannotRun
from harness.case.reading import read_case
from harness.reports.programs import keep, programs_of
from harness.triage.buckets import any_family
from harness.triage.corpus import Entry
from harness.triage.findings import Finding
from harness.workers.pool import CaseRunner, Pool

REDUCTIONS, SHRUNK = "reductions", "hypothesis"
SHORTEST_TRY = 20.0
"""Seconds that a script gets, even if the time is over: most of them are imports."""
SHRINKING = 0.3
"""The part of a bucket's time that Hypothesis' shrinking may take."""
MOST_SHRINKING = 40
"""Cases that it may take. It comes down quickly at first; cuts are better at the end."""


@dataclass(frozen=True)
class Concluding:
    """Called by ``run_campaign`` while the workers are warm.

    :param earlier: the run as an earlier sitting left it, if there was one.
    :param report: told a line of progress.
    """

    options: Options
    corpus: Sequence[Entry]
    earlier: Run | None
    report: Callable[[str], None]

    def __call__(self, progress: Progress, pool: CaseRunner, budget: Budget) -> Sequence[str]:
        """Minimize, and return what was left."""
        before = {any_family(item.bucket) for item in self.earlier.minimized} if self.earlier else set()
        groups = [group for cause, group in by_cause(progress.tally.new).items() if cause not in before]
        left: list[str] = []
        for place, group in enumerate(groups):
            finding, harm = self._representative(group, progress.tally.findings)
            if budget.is_over():
                left.append(f"not minimized: {finding.bucket}; 'armdiff reduce {finding.case}' does it")
                continue
            self.report(f"minimizing {place + 1} of {len(groups)}: {finding.bucket}")
            blocks = 2 + progress.drawn * 5 // (4 * BLOCK)  # up to a fifth of a block's graphs had occurred before
            try:
                made, start = self._minimized(finding, harm, pool, budget, len(groups) - place, blocks)
            except CannotRun:
                raise
            except Exception as error:  # noqa: BLE001 -- one bucket must not cost the run its other findings
                left.append(f"not minimized ({type(error).__name__}: {error}): {finding.bucket}")
                continue
            append(self.options.out, [made])
            if made.finding is not None and made.finding.known:
                left.append(f"{made.final}: {SMALLEST_IS} {made.finding.entry}; look at {finding.case} too")
            if made.state == "stopped":
                words = f"{start} --bucket '{finding.bucket}' --out {self._folder(finding)}"
                left.append(f"stopped early: {made.final}; 'armdiff reduce {words}' goes on")
        return left

    def _representative(self, group: Sequence[Finding], findings: Sequence[Finding]) -> tuple[Finding, Harm]:
        """The first of a bucket's findings whose case shows its cause about as badly as the worst, and that harm.

        :param group: the bucket's findings, the shortest graph first.
        :param findings: all findings of the campaign.
        """
        harms = []
        for finding in group:
            shares = sharing(finding, self.corpus)
            harms.append(harm_of([item for item in findings if item.case == finding.case and shares(item)]))
        worst = max(harms, key=Harm.order)
        return next(pair for pair in zip(group, harms, strict=True) if pair[1].as_bad_as(worst))

    def _folder(self, finding: Finding) -> Path:
        """Where a bucket is reduced: a case may show several."""
        return self.options.out / REDUCTIONS / bug_name(finding)

    def _minimized(
        self, finding: Finding, harm: Harm, pool: CaseRunner, budget: Budget, waiting: int, blocks: int
    ) -> tuple[Minimized, str]:
        """What became of a finding, and the case that cutting began with."""
        until = budget.until_for(waiting)
        terms = Terms(self.corpus, self.options.corrections, self.options.ethos_u_engine, until)
        start, tries = self._shrunk(finding, harm, pool, until, blocks)
        folder = self._folder(finding) / Path(start.case).stem
        made, smallest = minimize(start, pool, folder, terms, harm=harm)
        made = msgspec.structs.replace(made, origin=finding.case, tries=made.tries + tries)
        if made.state != "lost":
            made = self._written(made, smallest, bug_name(finding), budget.left / waiting)
            self._keep(made, pool)
        inside = {name: os.path.relpath(path, self.options.out) for name, path in _paths(made).items()}
        shown = made.finding and msgspec.structs.replace(made.finding, case=inside["case"])
        return msgspec.structs.replace(made, **inside, finding=shown), start.case

    def _written(self, made: Minimized, smallest: Finding, name: str, left: float) -> Minimized:
        """Write the bug's folder, trying its script for so many seconds at most; what prevents it is told."""
        from harness.reports.bugs import write_bug  # imports as much again as a campaign, for its end
        from harness.reports.bugs.verifying import TIME_LIMIT

        folder, limit = self.options.out / BUGS / name, max(SHORTEST_TRY, min(TIME_LIMIT, left))
        try:
            repro = write_bug(folder, Path(made.case), smallest, minimized=made, corpus=self.corpus, timeout=limit)
        except ArmdiffError as error:
            self.report(f"no report of {made.bucket}: {error}")
            return made
        return msgspec.structs.replace(made, folder=name, repro=repro)

    def _keep(self, made: Minimized, pool: CaseRunner) -> None:
        """Put what the case compiles to beside its report, if it compiles. Workers elsewhere send no files."""
        from harness.reports.bugs.writing import CASE

        if made.folder and isinstance(pool, Pool):
            folder = self.options.out / BUGS / made.folder
            files = programs_of(pool, folder / CASE, corrections=self.options.corrections)
            if not isinstance(files, str):
                keep({name: data for name, data in files.items() if not (folder / name).exists()}, folder)

    def _shrunk(self, finding: Finding, harm: Harm, pool: CaseRunner, until: float, blocks: int) -> tuple[Finding, int]:
        """The finding on the smallest graph that Hypothesis comes to, and the cases that it took.

        A case that was not drawn in this campaign (one of the database, a user's model) stays as it is.
        """
        from generators.cases import graph_digest
        from generators.search import OutOfTime, database_at, seed_of_run, shrunk

        case = read_case(Path(finding.case))
        graph = graph_digest(case.graph)
        own = seed_of_run(graph, self.options.seed, blocks, BLOCK)
        if own is None:
            return finding, 0
        folder = self.options.out / REDUCTIONS / SHRUNK
        now = time.monotonic()
        end = now + SHRINKING * max(0.0, until - now)
        engine = self.options.ethos_u_engine
        judge = BucketJudge(finding, self.corpus, pool, folder, self.options.corrections, engine, harm)
        tries = 0

        def bucket(drawn: tuple[Case, ...]) -> str | None:
            nonlocal tries
            if time.monotonic() >= end or tries >= MOST_SHRINKING:
                raise OutOfTime
            tries += 1
            return finding.bucket if judge(drawn) == ["shows"] else None

        database = database_at(self.options.database) if self.options.database else None
        small = shrunk(graph, own, (case.target,), bucket, database)
        if small is None:
            return finding, tries
        return msgspec.structs.replace(finding, case=str(write_case(small[0], folder))), tries


def _paths(made: Minimized) -> dict[str, str]:
    """The files of a minimized bucket: a run's folder may be moved, so it names them from inside."""
    found = {"origin": made.origin, "case": made.case, "neighbour": made.neighbour}
    return {name: path for name, path in found.items() if path is not None}


def bug_name(finding: Finding) -> str:
    """A folder's name for a bucket: readable, and the same from run to run."""
    digest = hashlib.sha256(any_family(finding.bucket).encode()).hexdigest()[:6]
    return f"{finding.oracle}-{finding.kind.split(',', 1)[0].replace(' ', '-')}-{digest}"
