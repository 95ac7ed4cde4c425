"""What showing the bug means: the same bucket, found twice, and as new (or as known) as it was.

A case that is being cut must not slip from a new bug into a known one of the same bucket, so a finding counts
only if the corpus says the same of it as of the first one.

Where a command stream returns other values than its TOSA graph, the bucket ends with the TOSA operation that the wrong
step makes. That is whatever follows (cat, or a mean of it), and changes when it is cut: any operation will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.again import PROBED
from harness.agreement import DIFFERS_FROM_TOSA
from harness.campaign import write_case
from harness.case import Case, case_digest
from harness.corpus import Entry, known_by
from harness.engines import EngineChoice
from harness.pool import CaseRunner
from harness.probes import ProbeMode
from harness.protocol import CaseResult, Task
from harness.reduction.search import Verdict
from harness.triage import Finding, any_range


@dataclass
class BucketJudge:
    """Runs cases on a pool and says which show a finding's bucket.

    :param folder: where cases are written before they run; the tensors that they name lie there.
    :ivar found: the finding that a case showed, by the case's digest.
    """

    finding: Finding
    corpus: Sequence[Entry]
    pool: CaseRunner
    folder: Path
    corrections: tuple[str, ...] = ()
    engine: EngineChoice = "default"
    found: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._entry = known_by(self.corpus, self.finding)
        self._probes: ProbeMode = "all" if self.finding.oracle in PROBED else "none"

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
        if shown:
            self.found[case_digest(case)] = shown[0]
            return "shows"
        others = [item for item in (*result.findings, *result.unrepeated) if not item.information]
        return "other" if others or result.invalid is not None or result.problem is not None else "clean"

    def _is_it(self, item: Finding) -> bool:
        same = any_operation(item.bucket) == any_operation(self.finding.bucket)
        return same and known_by(self.corpus, item) == self._entry


def any_operation(bucket: str) -> str:
    """A bucket as it stays while a case is cut: without the range of inputs, and without what a wrong step makes."""
    words = any_range(bucket).split("/")
    return "/".join(words[:-1]) if words[2:3] == [DIFFERS_FROM_TOSA.replace(" ", "-")] else "/".join(words)
