"""The report of a run, or of several together, as data: everything that its pages show, computed once.

``make_report`` puts together what the modules beside this one compute; the pages (``page``, ``markdown``,
``junit``, ``plain``) only lay it out. The same run, corpus and previous run give the same report: no clock is
read, and a run's own line of releases decides what is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.campaign.run_folder import Run
from harness.case.wording import counted_as
from harness.reports.reporting.buckets import Bucket, Bug, buckets_of, bugs_of
from harness.reports.reporting.compare import Comparison, comparison
from harness.reports.reporting.coverage import Coverage, coverage
from harness.reports.reporting.material import JudgedRun, drawn, tallied
from harness.reports.reporting.merging import merged, missing_shards
from harness.reports.reporting.not_run import NotRun, not_run
from harness.reports.reporting.timing import Timing, timing
from harness.triage.corpus import Entry


@dataclass(frozen=True)
class Report:
    """The report of a run.

    :param bugs: ranked, new ones first.
    :param previous: the comparison with the previous run, if there is one.
    """

    judged: JudgedRun
    bugs: tuple[Bug, ...]
    coverage: Coverage
    not_run: NotRun
    timing: Timing
    previous: Comparison | None

    @property
    def new(self) -> tuple[Bug, ...]:
        return tuple(bug for bug in self.bugs if not bug.known)

    @property
    def known(self) -> tuple[Bug, ...]:
        return tuple(bug for bug in self.bugs if bug.known)

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """Every bucket, bug by bug."""
        return tuple(bucket for bug in self.bugs for bucket in bug.buckets)

    @property
    def sentence(self) -> str:
        """The verdict: what was found in how much, what did not run, and what was not judged."""
        cases, graphs = self.judged.tally.cases, self.judged.graphs
        if not cases:
            return "Nothing was run: the run ended before its first case was done."
        buckets = sum(len(bug.buckets) for bug in self.new)
        alike = sum(bug.state != "new" for bug in self.new)
        found = (
            f"{counted_as(len(self.new), 'new bug')} ({counted_as(buckets, 'bucket')})" if self.new else "No new bugs"
        )
        found += f", {alike} of them resembling a known one," if alike else ""
        known = counted_as(len(self.known), "known one") if self.known else "no known ones"
        over = f"in {counted_as(graphs, 'graph')}, {counted_as(cases, 'case')}"
        runs = f" of {len(self.judged.parts)} runs" if self.judged.parts else ""
        return "; ".join((f"{found} and {known} {over}{runs}", *self._not_run())) + "."

    def _not_run(self) -> Iterator[str]:
        tally, silent = self.judged.tally, self.not_run.silent_legs
        for shards in missing_shards(self.judged.infos):
            yield f"without {shards}"
        if silent:
            yield f"{' and '.join(silent)} never ran"
        if unjudged := tally.unjudged.total.phrase:
            yield unjudged
        if tally.problems:
            yield counted_as(len(tally.problems), "problem")
        if tally.invalid:
            yield f"{counted_as(len(tally.invalid), 'case')} invalid"
        if self.judged.run.info.state != "done":
            yield "interrupted" if self.judged.run.info.state == "interrupted" else "not ended"


def make_report(run: Run, corpus: Sequence[Entry], previous: Run | None) -> Report:
    """Compute the report of a run.

    :param corpus: what is known; the run's release line decides what of it counts.
    :param previous: the run to compare with.
    """
    return report_on([tallied(run, corpus)], tallied(previous, corpus) if previous else None)


def report_on(runs: Sequence[JudgedRun], previous: JudgedRun | None) -> Report:
    """Compute the one report of several runs, each judged by what is known on its line.

    :param runs: at least one.
    """
    now = merged(runs)
    graphs = drawn(now.run)
    return Report(
        judged=now,
        bugs=bugs_of(buckets_of(now, graphs)),
        coverage=coverage(now, graphs),
        not_run=not_run(now, graphs),
        timing=timing(now),
        previous=comparison(now, previous) if previous else None,
    )
