"""The tally of a run: counts, legs, findings by state and bucket, seconds; as JSON (text: ``harness.reports.listing``).

JSON is what docs/architecture.md fixes ("JSON result"), plus fields of our own. A finding's
state is the worker's where that tried a correction, and the corpus's everywhere else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness import __version__
from harness.campaign.replay_command import Again
from harness.case.interrupts import Interrupted, again, deferred
from harness.compat.releases import installed
from harness.evidence.observation import oracle_named
from harness.evidence.reasons import by_kind
from harness.pipeline.legs import legs
from harness.triage.buckets import any_family
from harness.triage.corpus import Entry, bugs_of
from harness.triage.findings import Finding
from harness.triage.known import classified
from harness.triage.unjudged import counting
from harness.workers.protocol import CaseResult


@dataclass
class Tally:
    """Adds up case results.

    :param strict: information counts as a finding.
    :param again: the options that it takes to see a finding again.
    :ivar stopped: what the run had to stop for, in one line.
    :ivar interrupted: what a signal that ended it before it was done leaves to say, ending with what goes on.
    """

    corpus: Sequence[Entry] = ()
    graphs: int = 0
    cases: int = 0
    invalid: list[CaseResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unrepeated: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    stopped: str = ""
    interrupted: str = ""
    ran: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: Counter[str] = field(default_factory=Counter)
    bounds: list[float] = field(default_factory=list)
    unjudged: counting.UnjudgedTally = field(default_factory=counting.UnjudgedTally)
    strict: bool = False
    again: Again = field(default_factory=Again)

    def add(self, result: CaseResult) -> None:
        """Count one result."""
        self.cases += 1
        if result.problem is not None:
            self.problems.append(result.problem)
        if result.invalid is not None:
            self.invalid.append(result)
        bugs = bugs_of(self.corpus) if result.findings else ()
        entries = {entry.name: entry for entry in self.corpus}
        for finding in result.findings:
            finding = classified(finding, bugs)
            entry = entries.get(finding.entry) if finding.known else None
            upstream = (*entry.status.reports, f"corpus entry {entry.name}")[0] if entry else None
            self.findings.append(msgspec.structs.replace(finding, upstream=upstream))
        self.unrepeated += result.unrepeated
        for leg, state in result.legs.items():
            if state == "ran":
                self.ran[leg] += 1
            else:
                self.skipped[leg][state] += 1
        self.seconds.update(result.seconds)
        if result.tightness is not None:
            self.bounds.append(result.tightness.bound)
        self.unjudged.add(result.unjudged)

    @property
    def new(self) -> list[Finding]:
        """What counts: new findings, then those that only resemble a known bug."""
        return sorted((item for item in self.counted if not item.known), key=lambda item: item.state == "resembling")

    @property
    def counted(self) -> list[Finding]:
        """Findings that are no mere information, known ones included; all of them if strict."""
        return counted(self.findings, self.strict)

    @property
    def information(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.information and not self.strict]

    def leg_table(self) -> dict[str, dict[str, Any]]:
        """Leg -> how often it ran and was skipped, and why; and what was not judged of it."""
        table = {}
        for name in legs():
            reasons = self.skipped.get(name, Counter())
            why = "; ".join(f"{count}x {reason}" for reason, count in by_kind(reasons))
            table[name] = {
                "ran": self.ran[name],
                "skipped": sum(reasons.values()),
                "why": why,
                "unjudged": self.unjudged.leg(name),
            }
        return table


@contextmanager
def until_interrupted(tally: Tally, goes_on: Callable[[], str] = again) -> Iterator[None]:
    """Let a signal end what runs inside, and go on behind it with what was counted until then.

    :param goes_on: says how to go on (``harness.case.interrupts.deferred``).
    """
    try:
        with deferred(goes_on):
            yield
    except Interrupted as error:
        tally.interrupted = str(error)


def counted(findings: Sequence[Finding], strict: bool) -> list[Finding]:
    """Findings without mere information, unless that is asked for."""
    return [finding for finding in findings if strict or not finding.information]


def as_json(tally: Tally, **extra: Any) -> dict[str, Any]:
    """The run as JSON data."""
    return {
        "armdiff": __version__,
        "releases": dict(installed()),
        "graphs": tally.graphs,
        "cases": tally.cases,
        "invalid": [{"case": item.case, "why": item.invalid} for item in tally.invalid],
        "legs": tally.leg_table(),
        "unjudged": counting.rows(tally.unjudged),
        "findings": [as_data(finding) for finding in tally.findings],
        "unrepeated": [as_data(finding) for finding in tally.unrepeated],
        "problems": [*tally.problems, *filter(None, [tally.stopped])],
        "seconds": {stage: round(value, 3) for stage, value in sorted(tally.seconds.items())},
        **extra,
    }


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as JSON data."""
    return {**msgspec.to_builtins(finding), "known": finding.known}


def by_cause(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Findings by bucket regardless of the target family, so that one bug is listed once.

    Values come before crashes and buffers (they are the silent ones), large groups before small
    ones; inside a group the shortest operator chain comes first.
    """
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[any_family(finding.bucket)].append(finding)
    for group in groups.values():
        group.sort(key=lambda item: (len(item.chain), item.case))
    return dict(sorted(groups.items(), key=lambda pair: (rank(pair[1][0]), -len(pair[1]), pair[0])))


def rank(finding: Finding) -> int:
    """Where its oracle stands among the oracles: wrong values first, crashes last."""
    return oracle_named(finding.oracle).rank
