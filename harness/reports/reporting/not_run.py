"""What a run did not do, so that nothing is silently green.

Legs that did not run with their reasons, what no oracle could judge, what the time was too short for, problems,
cases that are no test, mismatches that did not show a second time, and files of the run that cannot be read. Equal
reasons are counted, with one case as an example; numbers and names of graphs in a reason do not make it another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.campaign.summary import Tally
from harness.case.wording import counted_as
from harness.evidence.reasons import by_kind, kind_of
from harness.pipeline.legs import legs
from harness.reports.reporting.material import Drawn, JudgedRun, per_graph
from harness.reports.reporting.merging import missing_shards
from harness.triage.buckets import any_family
from harness.triage.findings import Finding


@dataclass(frozen=True)
class Reason:
    """Something that happened ``count`` times, and the name of one case where it did."""

    text: str
    count: int
    case: str = ""


@dataclass(frozen=True)
class LegRow:
    """One leg: cases where it ran and was skipped, and why; and what was not judged of its outputs, in words."""

    name: str
    ran: int
    skipped: int
    why: tuple[Reason, ...]
    unjudged: str


@dataclass(frozen=True)
class UnjudgedRow:
    """An operator or reason for which outputs were not judged.

    :param share: how much of them, in words (``36 of 36 elements``); empty where nothing was measured.
    """

    what: str
    outputs: int
    cases: int
    share: str
    why: str


@dataclass(frozen=True)
class NotRun:
    """What was not done.

    :param left: sentences about the run as a whole.
    :param unrepeated: buckets of mismatches that did not show a second time.
    :param information: buckets of findings that do not count (``--strict`` counts them).
    :param unreadable: case files that cannot be read, and why.
    :param unjudged: what no oracle could judge, the most outputs first.
    """

    legs: tuple[LegRow, ...]
    left: tuple[str, ...]
    problems: tuple[Reason, ...]
    invalid: tuple[Reason, ...]
    unrepeated: tuple[Reason, ...]
    information: tuple[Reason, ...]
    unreadable: tuple[Reason, ...]
    unjudged: tuple[UnjudgedRow, ...]

    @property
    def silent_legs(self) -> tuple[str, ...]:
        """Legs that never ran although there was something to run."""
        return tuple(row.name for row in self.legs if row.skipped and not row.ran)


def not_run(judged: JudgedRun, drawn: Drawn) -> NotRun:
    """Collect what a run did not do."""
    tally = judged.tally
    return NotRun(
        legs=tuple(_leg(tally, name) for name in legs()),
        left=tuple(_left_of_all(judged)),
        problems=_counted((problem, "") for problem in tally.problems),
        invalid=_counted((item.invalid or "", item.case) for item in tally.invalid),
        unrepeated=_buckets(tally.unrepeated),
        information=_buckets(judged.information),
        unreadable=tuple(Reason(why, 1, name) for name, why in drawn.unreadable.items()),
        unjudged=tuple(
            UnjudgedRow(what, reason.outputs, reason.cases, reason.share, reason.why)
            for what, reason in tally.unjudged.ranked()
        ),
    )


def _leg(tally: Tally, name: str) -> LegRow:
    reasons = tally.skipped.get(name, Counter())
    why = tuple(Reason(text, count) for text, count in by_kind(reasons))
    return LegRow(name, tally.ran[name], sum(reasons.values()), why, tally.unjudged.leg(name))


def _left_of_all(judged: JudgedRun) -> Iterator[str]:
    """What each run left, told apart by its folder, and which shards are not there at all."""
    for shards in missing_shards(judged.infos):
        yield f"Not in this report: {shards}."
    if not judged.parts:
        yield from _left(judged)
        return
    for part in judged.parts:
        yield from (f"{judged.name_of(part)}: {line}" for line in _left(part))


def _left(judged: JudgedRun) -> Iterator[str]:
    info = judged.run.info
    if info.state == "interrupted":
        yield "The run was interrupted; this is what was done until then."
    elif info.state == "running":
        yield "The run had not ended when this report was made: it still runs, or was killed."
    if judged.unfinished:
        few = judged.unfinished == 1
        yield (
            f"{counted_as(judged.unfinished, 'graph')} {'is' if few else 'are'} incomplete: not all of "
            f"{'its' if few else 'their'} {per_graph(judged.run)} cases ran."
        )
    asked = info.asked.max_examples
    if asked is not None and info.asked.shard == (1, 1) and judged.graphs < asked:
        yield f"{judged.graphs} of the {asked} graphs that were asked for are complete."
    yield from info.left


def _counted(reasons: Iterable[tuple[str, str]]) -> tuple[Reason, ...]:
    """Reasons of one kind (``kind_of``) counted together, the most frequent first."""
    found: dict[str, Reason] = {}
    for text, case in reasons:
        key = kind_of(text)
        first = found.get(key, Reason(text, 0, PurePosixPath(case).name))
        found[key] = Reason(first.text, first.count + 1, first.case)
    return tuple(sorted(found.values(), key=lambda item: -item.count))


def _buckets(findings: Iterable[Finding]) -> tuple[Reason, ...]:
    found: dict[str, Reason] = {}
    for finding in findings:
        key = any_family(finding.bucket)
        first = found.get(key, Reason(f"{key}: {finding.message}", 0, PurePosixPath(finding.case).name))
        found[key] = Reason(first.text, first.count + 1, first.case)
    return tuple(sorted(found.values(), key=lambda item: -item.count))
