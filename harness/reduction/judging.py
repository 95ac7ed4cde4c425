"""What showing the bug means: the same bucket, found twice, and as new (or as known) as it was.

A case that is being cut must not slip from a new bug into a known one of the same bucket, so a finding counts
only if the corpus says the same of it as of the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.campaign import write_case
from harness.case import Case
from harness.corpus import Entry, known_by
from harness.engines import EngineChoice
from harness.pool import Pool
from harness.probes import ProbeMode
from harness.protocol import CaseResult, Task
from harness.reduction.search import Judge, Verdict
from harness.triage import Finding, any_range

PROBED = ("deterministic", "metamorphic", "delegation", "stream", "model-unchanged")
"""Oracles that may need a probe."""


def judge_of(
    finding: Finding,
    corpus: Sequence[Entry],
    pool: Pool,
    folder: Path,
    *,
    corrections: tuple[str, ...] = (),
    engine: EngineChoice = "default",
) -> Judge:
    """A judge that runs cases on a pool.

    :param folder: where cases are written before they run; the tensors that they name lie there.
    """
    entry = known_by(corpus, finding)
    probes: ProbeMode = "all" if finding.oracle in PROBED else "none"

    def judge(cases: Sequence[Case]) -> list[Verdict]:
        files = [write_case(case, folder) for case in cases]
        tasks = [Task(case=str(file), probes=probes, ethos_u_engine=engine, corrections=corrections) for file in files]
        return [verdict(result) for result in pool.run(tasks)]

    def verdict(result: CaseResult) -> Verdict:
        if any(shows(item) for item in result.findings):
            return "shows"
        found = [item for item in (*result.findings, *result.unrepeated) if not item.information]
        return "other" if found or result.invalid is not None or result.problem is not None else "clean"

    def shows(item: Finding) -> bool:
        return any_range(item.bucket) == any_range(finding.bucket) and known_by(corpus, item) == entry

    return judge
