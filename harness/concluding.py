"""What a campaign does with its findings before it ends: minimize each new bucket, the most valuable first.

One bug on several targets is minimized once. What the time is too short for is said, with the command that goes
on from the checkpoint.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.budget import Budget
from harness.campaign import Options, Progress
from harness.corpus import Entry
from harness.pool import Pool
from harness.reduction.minimizing import Terms, minimize
from harness.runs import Minimized, Run, append
from harness.summary import by_cause
from harness.triage import Finding, any_family

REDUCTIONS = "reductions"


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

    def __call__(self, progress: Progress, pool: Pool, budget: Budget) -> Sequence[str]:
        """Minimize, and return what was left."""
        before = {any_family(item.bucket) for item in self.earlier.minimized} if self.earlier else set()
        groups = [group for cause, group in by_cause(progress.tally.new).items() if cause not in before]
        left: list[str] = []
        for place, group in enumerate(groups):
            finding = group[0]
            if budget.is_over():
                left.append(f"not minimized: {finding.bucket}; 'armdiff reduce {finding.case}' does it")
                continue
            self.report(f"minimizing {place + 1} of {len(groups)}: {finding.bucket}")
            made = self._minimized(finding, pool, budget.until_for(len(groups) - place))
            append(self.options.out, [made])
            if made.state == "stopped":
                folder = self.options.out / REDUCTIONS
                left.append(f"stopped early: {made.final}; 'armdiff reduce {finding.case} --out {folder}' goes on")
        return left

    def _minimized(self, finding: Finding, pool: Pool, until: float) -> Minimized:
        folder = self.options.out / REDUCTIONS / Path(finding.case).stem
        terms = Terms(self.corpus, self.options.corrections, self.options.ethos_u_engine, until)
        made, _ = minimize(finding, pool, folder, terms)
        inside = {name: os.path.relpath(path, self.options.out) for name, path in _paths(made).items()}
        return msgspec.structs.replace(made, **inside)


def _paths(made: Minimized) -> dict[str, str]:
    """The files of a minimized bucket: a run's folder may be moved, so it names them from inside."""
    found = {"origin": made.origin, "case": made.case, "neighbour": made.neighbour}
    return {name: path for name, path in found.items() if path is not None}


def bug_name(finding: Finding) -> str:
    """A folder's name for a bucket: readable, and the same from run to run."""
    digest = hashlib.sha256(any_family(finding.bucket).encode()).hexdigest()[:6]
    return f"{finding.oracle}-{finding.kind.split(',', 1)[0].replace(' ', '-')}-{digest}"
