"""Root causes: findings are reduced to their smallest programs, and those with one fingerprint are one bug.

A cause is known if its smallest program is proved to be: a condition of an entry holds at its place, or it has an
entry's fingerprint, or would have it with another of its constants as the input. The pattern of that entry has to be in
the program that was reduced, too. It is also known if all of it but a bystander is (``harness.tosa.bystanders``).

A finding whose bucket and operators are those of a cause that is found already is put with it unreduced, which proves
nothing: it counts as the cause does, unless the cause is known. A known one must be proved of every finding, so there
each is reduced.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Protocol

import msgspec

from harness.case.chains import contains_in_order
from harness.case.wording import counted_as
from harness.ethosu.accelerator import accelerator_named
from harness.tosa.bystanders import without_bystanders
from harness.tosa.children import Children, Said, Say
from harness.tosa.comparing_twins import judge_with_twins
from harness.tosa.cutting import exchanged
from harness.tosa.engine import BLOCK, Judge, Plan, Result, run
from harness.tosa.findings import digest
from harness.tosa.fingerprint import generalisations, worded
from harness.tosa.judging import judge
from harness.tosa.patterns import classified_as_smallest, entries_there, without_others
from harness.tosa.program import Program, chain
from harness.tosa.reducing import SECONDS, Reduced, ops_of, reduced
from harness.tosa.simplifying import canonical
from harness.triage.buckets import any_family
from harness.triage.findings import Finding
from harness.triage.known import BY_REDUCTION, KnownBug, classified, shown_kind

FAMILIES = {"u55": "ethos-u55-128", "u65": "ethos-u65-256", "u85": "ethos-u85-256"}
"""An accelerator of each family."""


@dataclass
class Cause:
    """A bug as its smallest program.

    :param finding: what the program shows, in the state that the corpus gives it.
    :param families: accelerators, one a family, on which it shows.
    :param velas: version -> ``yes``, ``no``, or why that cannot be told.
    :param shown_by: the run's findings that are reduced to it, or look like it.
    """

    fingerprint: str
    program: Program
    finding: Finding
    families: tuple[str, ...]
    velas: Mapping[str, str]
    tried: int
    seconds: float
    ended: bool
    shown_by: list[Finding] = field(default_factory=list)

    @property
    def name(self) -> str:
        """A folder's name: readable, and the same from run to run."""
        ops = "-".join(dict.fromkeys(op.lower().replace("_", "") for op in chain(self.program)))
        return f"{self.finding.oracle}-{ops[:48]}-{digest(self.program)[:6]}"

    def may_be(self, finding: Finding) -> bool:
        """Does a finding look like it: the same bucket, with its operators in their order?"""
        alike = any_family(finding.bucket) in {any_family(item.bucket) for item in (self.finding, *self.shown_by)}
        return alike and contains_in_order(finding.chain, tuple(chain(self.program)))


@dataclass
class Causes:
    """The causes of a run's findings, as far as they are told.

    :param findings: of the run; what is proved to be known on the way says so.
    :param programs: by ``case`` of the findings.
    :ivar found: the causes by fingerprint; by entry, where a condition told it before the program was smallest.
    :ivar left: findings that were not reduced for want of time, or since armdiff failed on them.
    """

    findings: list[Finding]
    programs: Mapping[str, Program]
    found: dict[str, Cause] = field(default_factory=dict)
    left: int = 0

    def tell(self, reducer: Reducing, until: float, say: Callable[[str], None], jobs: int = 1) -> None:
        """Reduce what is not known: of each bucket one, then the second of each, …, the shortest programs first.

        A bug that most programs show would take all the time otherwise.

        :param until: ``time.monotonic()`` behind which no reduction begins.
        :param say: told a line of progress.
        :param jobs: reductions at a time, each in a child: each has the processor time of its own children.
        """
        waiting = self._in_turn([place for place, item in enumerate(self.findings) if not item.known])
        count, running = len(waiting), dict[int, int]()
        with Children(patience=float("inf")) as children:

            def begin() -> None:
                while len(running) < jobs and (place := self._next(waiting, [*running.values()], until)) is not None:
                    finding = self.findings[place]
                    what = f"{' -> '.join(finding.chain)} on {finding.target}"
                    say(f"reducing finding {count - len(waiting)} of {count}: {what}")
                    work = partial(_tell, reducer, self.programs[finding.case], finding)
                    running[children.start(work)] = place

            begin()
            for event in children.events():
                if isinstance(event, Said):
                    self._add(running[event.child], _CAUSE.decode(event.message))
                    continue
                del running[event.child]
                if event.how:
                    say(f"a reduction ended with {event.how}, and its finding is not reduced: report what is above")
                    self.left += 1
                begin()

    def _in_turn(self, places: Sequence[int]) -> list[int]:
        earlier: Counter[str] = Counter()
        turns: list[tuple[int, int, int]] = []
        for length, place in sorted(
            (len(self.programs[self.findings[place].case].operators), place) for place in places
        ):
            bucket = any_family(self.findings[place].bucket)
            turns.append((earlier[bucket], length, place))
            earlier[bucket] += 1
        return [place for *_, place in sorted(turns)]

    def _next(self, waiting: list[int], running: Sequence[int], until: float) -> int | None:
        """Take the next finding to reduce from those that wait, and away what looks like a new cause.

        What looks like a finding that is being reduced comes after the others: there may be no need for it.
        """
        later = None
        for place in [*waiting]:
            finding = self.findings[place]
            alike = next((cause for cause in self.found.values() if cause.may_be(finding)), None)
            if alike is not None and not alike.finding.known:
                alike.shown_by.append(finding)
                waiting.remove(place)
            elif time.monotonic() >= until:
                self.left += 1
                waiting.remove(place)
            elif not any(_look_alike(finding, self.findings[other]) for other in running):
                waiting.remove(place)
                return place
            else:
                later = place if later is None else later
        if later is not None:
            waiting.remove(later)
        return later

    def _add(self, place: int, cause: Cause | None) -> None:
        if cause is not None:
            self.findings[place] = marked(self.findings[place], cause)
            told = self.found.setdefault(cause.fingerprint or cause.finding.entry, cause)
            told.shown_by.append(self.findings[place])


class Reducing(Protocol):
    """Tells causes: ``Reducer``."""

    def cause(self, program: Program, finding: Finding) -> Cause | None:
        """The cause of one finding; None if it does not show again."""


_CAUSE: msgspec.json.Decoder[Cause | None] = msgspec.json.Decoder(Cause | None)


def _tell(reducer: Reducing, program: Program, finding: Finding, say: Say) -> None:
    """What a child does."""
    say(msgspec.json.encode(reducer.cause(program, finding)))


def _look_alike(finding: Finding, other: Finding) -> bool:
    """Is it in the other's bucket, with the other's operators in their order?"""
    return any_family(finding.bucket) == any_family(other.bucket) and contains_in_order(finding.chain, other.chain)


@dataclass(frozen=True)
class Reducer:
    """Tells the cause of a finding.

    :param bugs: version of Vela -> what the corpus knows of it.
    :param velas: version -> folder (None: the installed one), the oldest first.
    :param seconds: processor time for each reduction; ``most``: candidates.
    :param judging: how programs are judged; tests plant faults into it.
    :param hasty: a program that a condition proves need not become smaller: who only asks what is known is told sooner.
    """

    bugs: Mapping[str, Sequence[KnownBug]]
    velas: Mapping[str, Path | None]
    seconds: float = SECONDS
    judging: Judge = judge
    most: int | None = None
    hasty: bool = False

    def cause(self, program: Program, finding: Finding) -> Cause | None:
        """The cause of one finding; None if it does not show again."""
        version = self._version(finding)
        bugs = self.bugs[version]
        there = entries_there(program, bugs)
        found = self._reduced(program, finding, version, bugs, there)
        if found is None or found.finding.known or not found.ended:
            return found
        return self._with_bystanders(found, version, without_others(bugs, there))

    def _with_bystanders(self, cause: Cause, version: str, bugs: Sequence[KnownBug]) -> Cause:
        """The cause as known, if all of its program but the operators at the place is a known one's smallest."""
        smaller = without_bystanders(cause.program, cause.finding.place)
        asked = [(program, cause.finding.target) for program in smaller]
        shown: dict[int, Finding] = {}
        for result in self._judged(asked, version, cause.finding, placed=True):
            for item in result.findings:
                if _is_alike(item, cause.finding):
                    shown.setdefault(result.block // _TRIES, item)
        for place, item in shown.items():
            found = self._reduced(smaller[place], item, version, bugs, entries_there(smaller[place], bugs))
            if found and found.finding.known and len(found.program.operators) == len(smaller[place].operators):
                proof = f"all but {', '.join(ops_of(cause.finding.place))} is that bug's: {found.finding.proof}"
                entry = found.finding.entry
                known = msgspec.structs.replace(cause.finding, state="known", entry=entry, proof=proof)
                return replace(cause, finding=known)
        return cause

    def _reduced(
        self, program: Program, finding: Finding, version: str, bugs: Sequence[KnownBug], there: set[str]
    ) -> Cause | None:
        """The cause as the smallest program tells it.

        :param there: the bugs whose pattern the program has.
        """

        def same(candidate: Finding) -> bool:
            now = classified(candidate, bugs)
            if finding.known:
                return now.known and now.entry == finding.entry
            return not now.known or now.entry in there

        small = reduced(
            program,
            finding,
            same=same,
            enough=lambda candidate: self.hasty and not finding.known and classified(candidate, bugs).known,
            seconds=self.seconds,
            most=self.most,
            judging=self._judge_of(finding),
            vela=self.velas[version],
        )
        return None if small is None else self._told(small, version, bugs, there)

    def _judge_of(self, finding: Finding) -> Judge:
        """How a finding is seen: one between twins with that twin alone."""
        twin = finding.measured.get("twin")
        return partial(judge_with_twins, only=twin) if twin else self.judging

    def _version(self, finding: Finding) -> str:
        """The newest Vela that has it."""
        states = finding.measured.get("velas", {})
        having = [version for version in self.velas if states.get(version, "yes") == "yes"]
        return (having or [*self.velas])[-1]

    def _told(self, small: Reduced, version: str, bugs: Sequence[KnownBug], there: set[str]) -> Cause:
        """Try what the fingerprint needs to know, and on which accelerators and Velas it shows; in haste of what a
        condition proves only the latter.

        :param there: the entries that may prove it by ``whole``: what the program is the smallest of otherwise, it
            resembles.
        """
        own = without_others(bugs, there)
        velas = {name: "yes" if name == version else self._state(small, name) for name in self.velas}
        if self.hasty and (proved := _as_smallest(small, _UNTOLD, own)).known:
            found, target = msgspec.structs.replace(proved, fingerprint=""), (small.finding.target,)
            return Cause("", small.program, found, target, velas, small.tried, small.seconds, small.ended)
        others = [name for name in FAMILIES.values() if not _same_family(name, small.finding.target)]
        shows = self._show([(small.program, name) for name in others], small.finding, version)
        families = [small.finding.target, *compress(others, shows)]
        text = self._fingerprint(small.program, small.finding, version)
        found = _as_smallest(small, text, own)
        if not found.known:
            found = self._exchanged(small, found, version, own)
        if not found.known:
            found = _resembling(found, _as_smallest(small, text, bugs))
        return Cause(
            text, small.program, found, tuple(sorted(families)), velas, small.tried, small.seconds, small.ended
        )

    def _exchanged(self, small: Reduced, told: Finding, version: str, bugs: Sequence[KnownBug]) -> Finding:
        """The finding as known if the program is an entry's once an input and a constant have changed places."""
        programs = [*map(canonical, exchanged(small.program))]
        shows = self._show([(program, told.target) for program in programs], told, version)
        for program in compress(programs, shows):
            text = self._fingerprint(program, told, version)
            found = classified(msgspec.structs.replace(told, fingerprint=text), bugs)
            if found.known:
                return msgspec.structs.replace(found, fingerprint=told.fingerprint)
        return told

    def _fingerprint(self, program: Program, finding: Finding, version: str) -> str:
        wider = generalisations(program, finding)
        shows = self._show([(item, finding.target) for item in wider.values()], finding, version)
        return worded(program, finding, dict(zip(wider, shows, strict=True)))

    def _show(self, asked: Sequence[tuple[Program, str]], finding: Finding, version: str) -> list[bool]:
        """Which of these programs show the same kind of finding."""
        found = [False] * len(asked)
        for result in self._judged(asked, version, finding):
            found[result.block // _TRIES] |= _shows(result, finding)
        return found

    def _state(self, small: Reduced, version: str) -> str:
        results = [*self._judged([(small.program, small.finding.target)], version, small.finding)]
        if any(_shows(item, small.finding) for item in results):
            return "yes"
        told = (item.without(small.finding.oracle) for item in results)
        return next((word for word in told if word != "no"), "no")

    def _judged(
        self, asked: Sequence[tuple[Program, str]], version: str, finding: Finding, placed: bool = False
    ) -> Iterator[Result]:
        """Each program under a few seeds of inputs."""
        if not asked:
            return

        def source(block: int) -> tuple[str, Sequence[Program]]:
            program, accelerator = asked[block // _TRIES]
            return accelerator, [program]

        plan = Plan(
            source,
            most=len(asked) * _TRIES * BLOCK,
            judge=partial(self._judge_of(finding), placed=placed),
            vela=self.velas[version],
        )
        yield from (result for result in run(plan) if result.accelerator)


_UNTOLD = "not asked for"
"""Stands for the fingerprint of a smallest program that a condition may prove without it."""


def _as_smallest(small: Reduced, fingerprint: str, bugs: Sequence[KnownBug]) -> Finding:
    smallest = msgspec.structs.replace(small.finding, fingerprint=fingerprint)
    return classified_as_smallest(smallest, small.program, bugs)


_TRIES = 2
"""Seeds of inputs with which a variation is judged."""


def marked(finding: Finding, cause: Cause) -> Finding:
    """The finding with its cause's fingerprint; known, if its smallest program is."""
    told = msgspec.structs.replace(finding, fingerprint=cause.fingerprint)
    if not cause.finding.known:
        return _resembling(told, cause.finding)
    count = counted_as(len(cause.program.operators), "operator")
    proof = f"{BY_REDUCTION}{count}: {cause.finding.proof}"
    return msgspec.structs.replace(told, state="known", entry=cause.finding.entry, proof=proof)


def _resembling(finding: Finding, like: Finding) -> Finding:
    """The finding as one that resembles what another is, or resembles; as it is, if that is new."""
    return msgspec.structs.replace(finding, state="resembling", entry=like.entry) if like.entry else finding


def _shows(result: Result, finding: Finding) -> bool:
    return any(_is_alike(item, finding) for item in result.findings)


def _is_alike(one: Finding, other: Finding) -> bool:
    return shown_kind(one) == shown_kind(other)


def _same_family(one: str, other: str) -> bool:
    return accelerator_named(one).family == accelerator_named(other).family
