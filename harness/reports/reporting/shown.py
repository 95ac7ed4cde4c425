"""The cases that a report shows: of one card, sentence, picture, recipe, link and command are of one case.

A bucket has two of them. The *shown* case is the minimized one if its finding is on record, else the smallest
that showed it. The *worst* case is the one with the largest error; where no case is worse than the shown one, they
are the same. What is said of a case is never put beside another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness.campaign.run_folder import Minimized, Run
from harness.case.case import Case
from harness.reports.reporting.material import Drawn, Seen, case_at, case_file
from harness.triage.findings import Finding, measured_size


@dataclass(frozen=True)
class CaseFile:
    """A case of a run.

    :param path: where it lies, relative to the run's folder.
    :param case: the case, or None, and then ``why`` says why it cannot be read.
    """

    path: str
    case: Case | None
    why: str

    @property
    def name(self) -> str:
        """What a link to it is called: ``1f2e3d4c5b6a.json``, or ``bug-name/case.json``."""
        words = self.path.split("/")
        return "/".join(words[-2:]) if words[-1] == "case.json" else words[-1]


@dataclass(frozen=True)
class Shown(CaseFile):
    """A case and the finding that it shows.

    :param minimized: what became of the bucket's smallest case, if this is it.
    """

    finding: Finding
    minimized: Minimized | None = None

    @property
    def size(self) -> str:
        """Its error with its unit, ``13 steps``; empty if none was measured."""
        return measured_size(self.finding.measured)

    @property
    def chain(self) -> tuple[str, ...]:
        """The operators that its wrong output depends on; all of a minimized case's."""
        return self.minimized.operators if self.minimized else self.finding.chain

    @property
    def recipe(self) -> str:
        return self.case.recipe if self.case else self.finding.recipe


def read(run: Run, path: str) -> CaseFile:
    """A case of a run, as far as it can be read."""
    case, path = case_at(run, path), case_file(run, path).relative_to(run.folder).as_posix()
    return CaseFile(path, case, "") if isinstance(case, Case) else CaseFile(path, None, case)


def with_finding(run: Run, finding: Finding, minimized: Minimized | None = None) -> Shown:
    """The case of a finding."""
    file = read(run, finding.case)
    return Shown(file.path, file.case, file.why, finding, minimized)


def smallest_first(drawn: Drawn, group: Sequence[Seen]) -> list[Seen]:
    """The findings of a bucket: new ones before those that resemble a known bug, then small graphs first."""

    def size(item: Seen) -> tuple[bool, int, int, int]:
        case = drawn.cases.get(item.graph)
        nodes = len(case.graph.nodes) if case else 1 << 30
        return item.finding.state == "resembling", nodes, len(item.finding.chain), item.number

    return sorted(group, key=size)


def shown_case(run: Run, minimized: Sequence[Minimized], smallest: Finding) -> Shown:
    """The case that stands for a bucket.

    :param minimized: what became of its smallest cases, the best first.
    :param smallest: the first of its findings.
    """
    for item in minimized:
        if item.state != "lost" and item.finding is not None:
            shown = with_finding(run, msgspec.structs.replace(item.finding, case=item.case), item)
            if shown.case is not None:
                return shown
    return with_finding(run, smallest)


def worst_of(findings: Sequence[Finding], unit: str) -> Finding:
    """The first of those with the largest error in a unit; errors of different units cannot be compared."""
    return max(findings, key=lambda finding: error_of(finding, unit))


def error_of(finding: Finding, unit: str) -> float:
    """The error of a finding in a unit; below all others if there is none."""
    distance = finding.measured.get("distance", finding.measured.get("excess"))
    number = isinstance(distance, (int, float)) and not isinstance(distance, bool)
    if not number or str(finding.measured.get("unit", "")) != unit:
        return -math.inf
    return abs(float(distance or 0.0))
