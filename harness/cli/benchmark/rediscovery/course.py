"""What a contestant has done for one seed: steps, and the answer key that they are held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import msgspec

from harness.case.target import is_quantized, parse_target
from harness.triage.buckets import any_family, family_of
from harness.triage.corpus import Entry
from harness.triage.findings import Finding
from harness.triage.known import KnownBug


class Step(msgspec.Struct, frozen=True):
    """What was done between two looks at the clock: a case, or a block of programs.

    :param processor: seconds of processor time, without what the answer key takes: proofs.
    :param ran: cases, or programs.
    :param entries: of the corpus whose bugs findings are proved to be.
    :param unproved: what the other findings that count look like.
    """

    processor: float
    ran: int
    entries: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Course:
    """Steps of one contestant with one seed."""

    contestant: str
    seed: int
    steps: tuple[Step, ...]

    @property
    def processor(self) -> float:
        """Seconds of processor time so far."""
        return sum(step.processor for step in self.steps)

    @property
    def ran(self) -> int:
        """Cases, or programs, so far."""
        return sum(step.ran for step in self.steps)

    @property
    def first(self) -> dict[str, float]:
        """Entry -> processor seconds after which its bug was seen first."""
        found: dict[str, float] = {}
        spent = 0.0
        for step in self.steps:
            spent += step.processor
            for entry in step.entries:
                found.setdefault(entry, spent)
        return found

    def share(self, key: Sequence[str], seconds: float) -> float | None:
        """Part of the key that was found within so much processor time; None if it did not run for so long."""
        if self.processor < seconds or not key:
            return None
        first = self.first
        return sum(first.get(entry, seconds + 1) <= seconds for entry in key) / len(key)

    def half(self, key: Sequence[str]) -> float | None:
        """Processor seconds after which half of the key was found; None if it was not."""
        times = sorted(time for entry, time in self.first.items() if entry in key)
        needed = -(-len(key) // 2)
        return times[needed - 1] if 0 < needed <= len(times) else None


def step_of(findings: Iterable[Finding], processor: float, ran: int) -> Step:
    """A step and what it found."""
    counted = [finding for finding in findings if not finding.information]
    entries = {finding.entry for finding in counted if finding.known}
    unproved = {looks_of(finding) for finding in counted if not finding.known}
    return Step(processor, ran, tuple(sorted(entries)), tuple(sorted(unproved)))


def looks_of(finding: Finding) -> str:
    """What findings of one bug often share: the bucket, and the chain of operators."""
    return f"{any_family(finding.bucket)} {' '.join(finding.chain)}"


def answer_key(
    corpus: Sequence[Entry], targets: Sequence[str], cause_of: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Package -> the root causes of bugs that the installed packages have, and one of the targets can show.

    A float model's bugs are no part of it where all targets are quantized, and the other way round.

    :param cause_of: entry -> the name of its root cause.
    """
    families = {parse_target(name).family for name in targets}
    found: dict[str, set[str]] = {}
    for entry in corpus:
        bug = entry.bug
        if bug is not None and _can_show(families, bug):
            found.setdefault(entry.status.package, set()).add(cause_of[entry.name])
    return {package: tuple(sorted(names)) for package, names in sorted(found.items())}


def _can_show(families: Set[str], bug: KnownBug) -> bool:
    """May targets of some families show a bug?"""
    seen = {is_quantized(family_of(bucket)) for bucket in (bug.bucket, *bug.also)}
    return bool(seen & {*map(is_quantized, families)}) and (not bug.families or bool(families & {*bug.families}))


def told_by_cause(course: Course, cause_of: Mapping[str, str]) -> Course:
    """The course with root causes in the place of entries."""
    steps = (
        msgspec.structs.replace(step, entries=tuple(sorted({cause_of.get(name, name) for name in step.entries})))
        for step in course.steps
    )
    return replace(course, steps=tuple(steps))
