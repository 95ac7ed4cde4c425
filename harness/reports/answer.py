"""What ``armdiff check`` and the pytest fixture answer about one model: problems, the program, the verdict.

Three levels of detail: ``quiet`` has a line a problem and the verdict; ``normal`` also has the program on each target,
what did not run and what was not judged; ``full`` has each finding below its line as campaigns list it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from harness.campaign.summary import Tally
from harness.case.wording import counted_as
from harness.compat.releases import installed, release_line
from harness.pipeline.engines import NOT_ASKED
from harness.pipeline.profile import Profile
from harness.reports.deployment import lines as deployment_lines
from harness.reports.linting import Problem, Subject, line_of, problems_of, verdict_of
from harness.reports.listing import about_the_run, described, with_unjudged
from harness.triage.unjudged import counting

Detail = Literal["quiet", "normal", "full"]
ADVISED = "armdiff doctor"
"""What a reason names that ``armdiff doctor`` has the remedy for, in the place of details."""
NOT_APPLICABLE = "has no command stream"
"""How the reason ends for which a leg does not apply to a target at all."""


@dataclass(frozen=True)
class Answer:
    """One model on its targets.

    :param profiles: of each target's program; None where there is none.
    :param notes: what else did not run, and how to run it.
    :param allow_known: known bugs do not fail.
    """

    tally: Tally
    subject: Subject
    targets: tuple[str, ...]
    profiles: Mapping[str, Profile | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    allow_known: bool = False

    @cached_property
    def problems(self) -> list[Problem]:
        return problems_of(self.tally, self.subject)

    @property
    def fails(self) -> bool:
        """Is there anything that counts?"""
        return bool(self.tally.new if self.allow_known else self.tally.counted)

    def lines(self, detail: Detail = "normal") -> Iterator[str]:
        """The whole answer; the last line is the verdict."""
        if detail != "quiet":
            yield f"{self.subject.file}: {counted_as(self.tally.cases, 'case')} on {', '.join(self.targets)}"
            yield f"{_releases()}\n"
        for problem in self.problems:
            yield line_of(problem, self.subject)
            if detail == "full":
                yield from self._in_full(problem)
        if detail != "quiet":
            if self.problems and detail == "normal":
                yield ""
            yield from self._programs()
            yield from self._about(detail)
        said = verdict_of(self.problems, allow_known=self.allow_known)
        judged = self.tally.cases - len(self.tally.problems)
        if judged < len(self.targets):  # an interrupt, or a target that could not be run: silence says nothing of it
            some = f"only {judged} of {counted_as(len(self.targets), 'target')} judged: {said}"
            said = some if judged or self.problems else "no target was judged"
        yield with_unjudged(said, self.tally)

    def _in_full(self, problem: Problem) -> Iterator[str]:
        for finding in problem.findings:
            yield f"    {finding.bucket}"
            yield from (f"  {line}" for line in described(finding, self.tally.again))
        yield ""

    def _programs(self) -> Iterator[str]:
        for target in self.targets:
            profile = self.profiles.get(target)
            if profile is not None:
                yield from deployment_lines(target, profile, self.subject.sites)
                yield ""

    def _about(self, detail: Detail) -> Iterator[str]:
        if detail == "full":
            yield from about_the_run(self.tally)
        else:
            if self.tally.unrepeated:
                yield f"{counted_as(len(self.tally.unrepeated), 'finding')} did not show a second time and do not count"
            yield from self._not_run()
            yield from counting.lines(self.tally.unjudged)
        yield from self.notes
        if self.problems and detail != "full":
            yield "(-v shows each finding in full, with the command that shows it again)"

    def _not_run(self) -> Iterator[str]:
        """Legs that apply and did not run, a line a leg."""
        for leg, reasons in self.tally.skipped.items():
            why = [item for item in reasons if not item.endswith(NOT_APPLICABLE) and not item.startswith(NOT_ASKED)]
            if why:
                short = dict.fromkeys(item.partition(": ")[0] if ADVISED in item else item for item in why)
                doctor = " ('armdiff doctor' says what to do)" if any(ADVISED in item for item in why) else ""
                yield f"{leg} did not run: {', '.join(short)}{doctor}"


def _releases() -> str:
    versions = ", ".join(f"{name} {version}" for name, version in installed().items())
    return f"release line {release_line() or 'unknown'} ({versions})"
