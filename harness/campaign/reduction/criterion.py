"""What showing the bug means: the same bucket, found twice, as new (or as known) as it was, and as bad.

A case that is being cut must not slip from a new bug into a known one of the same bucket, so a finding counts
only if the corpus says the same of it as of the first one. Nor must 86 steps become a thousandth of one, or wrong
values a mere difference of scales: the case counts only if it keeps the *harm* (``harness.campaign.reduction.harm``).

Where a command stream returns other values than its TOSA graph, the bucket ends with the TOSA operation that the wrong
step makes. That is whatever follows (cat, or a mean of it), and changes when it is cut: any operation will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.campaign.campaign import write_case
from harness.campaign.reduction.harm import Harm, any_operation, harm_of, sharing, worst_of
from harness.campaign.reduction.search import Verdict
from harness.case.case import Case, case_digest
from harness.evidence.observation import oracle_named
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.triage.buckets import any_range
from harness.triage.corpus import Entry, shown_by
from harness.triage.findings import Finding
from harness.workers.pool import CaseRunner
from harness.workers.protocol import CaseResult, Task


@dataclass
class BucketJudge:
    """Runs cases on a pool and says which show a finding's bucket.

    :param folder: where cases are written before they run; the tensors that they name lie there.
    :param harm: what the first case shows of the bug's cause, which a smaller one has to keep.
    :ivar found: the finding that a case showed, by the case's digest: its worst evidence of the cause.
    """

    finding: Finding
    corpus: Sequence[Entry]
    pool: CaseRunner
    folder: Path
    corrections: tuple[str, ...] = ()
    engine: EngineChoice = "default"
    harm: Harm = field(default_factory=Harm)
    found: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._entry = shown_by(self.corpus, self.finding)
        self._shares = sharing(self.finding, self.corpus)
        oracle = oracle_named(self.finding.oracle)
        self._smaller = oracle.smaller
        self._probes: ProbeMode = "judging" if oracle.smaller else "all" if oracle.probed else "none"

    def __call__(self, cases: Sequence[Case]) -> list[Verdict]:
        tasks = [
            Task(
                case=str(write_case(case, self.folder)),
                probes=self._probes,
                ethos_u_engine=self.engine,
                corrections=self.corrections,
            )
            for case in cases
        ]
        return [self._verdict(case, result) for case, result in zip(cases, self.pool.run(tasks), strict=True)]

    def _verdict(self, case: Case, result: CaseResult) -> Verdict:
        shown = [item for item in result.findings if self._is_it(item)]
        evidence = [*shown, *(item for item in result.findings if item not in shown and self._shares(item))]
        if shown and harm_of(evidence).as_bad_as(self.harm):
            self.found[case_digest(case)] = worst_of(evidence)
            return "shows"
        others = [item for item in (*result.findings, *result.unrepeated) if not item.information]
        return "other" if others or result.invalid is not None or result.problem is not None else "clean"

    def _is_it(self, item: Finding) -> bool:
        same = any_operation(item.bucket) == any_operation(self.finding.bucket) or self._came_out(item)
        return same and shown_by(self.corpus, item) == self._entry

    def _came_out(self, item: Finding) -> bool:
        """Does the smaller graph return what was wrong inside?"""
        kinds = {any_range(bucket).split("/")[2] for bucket in (item.bucket, self.finding.bucket)}
        return item.oracle == self._smaller and len(kinds) == 1 and item.target == self.finding.target
