"""A smaller program with the same finding: cuts are tried until nothing more goes.

The *aim* says what must stay: oracle, kind, target, and the operators at which the finding is; where the first wrong
operator could not be told, oracle and kind alone. When nothing more goes under this rule, the finding may move to an
operator beside them, as long as theirs stay in the program: what is wrong often shows at a neighbour once something
between them is cut. Whoever reduces may ask for more (``same``): that the corpus says the same of it, so that a new bug
does not end as a known one.

The search runs in a child, which has imported Vela once: Vela dies of some candidates. A death is noted, and another
child goes on; where the finding is that death, the candidate is the next smaller program. Validity is the reference
model's word. Candidates come in a fixed order, the inputs have a fixed seed, and the first one that shows the finding
is taken, so the same program gives the same result unless the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from harness.case.place import Place
from harness.case.processor_time import children_seconds
from harness.compat.velas import use_vela
from harness.evidence.observation import CRASH
from harness.tosa.children import MEMORY, Children, Ended, Say
from harness.tosa.engine import BLOCK, REFERENCE, Judge, Plan, run
from harness.tosa.findings import death, digest, finding_of
from harness.tosa.judging import BY_CHANCE, judge
from harness.tosa.program import Program
from harness.tosa.simplifying import CUTS, candidates, canonical
from harness.triage.conditions import THROUGH
from harness.triage.findings import Finding
from harness.triage.known import shown_kind

SECONDS = 60.0
"""Processor time that a reduction may take: what it comes to does not depend on what else the machine does."""
_SEEDS = 4
"""Seeds of inputs under which the finding is looked for before the first cut."""
_PATIENCE = 10.0
"""Seconds after which a candidate counts as hanging."""
_PASSED_OVER = frozenset(THROUGH.split("|"))
Same = Callable[[Finding], bool]


@dataclass(frozen=True)
class Aim:
    """What must stay.

    :param ops: the operators at the finding's place; none if it could not be told.
    :param near: the operators of the whole place.
    :param words: the bucket of a death or a refusal, of which nothing but the words tells what it is.
    """

    oracle: str
    kind: str
    target: str
    ops: tuple[str, ...]
    near: frozenset[str] = frozenset()
    words: str = ""

    def met_by(self, finding: Finding) -> bool:
        """Is this the same kind of finding at the same kind of place?"""
        return self._is_alike(finding) and (not self.ops or self.ops == ops_of(finding.place))

    def nearly_met_by(self, finding: Finding, program: Program) -> bool:
        """Is it at a neighbour, in a program that has the operators all the same?"""
        return self.perhaps_met_by(finding, program) and set(ops_of(finding.place)) <= self.near

    def perhaps_met_by(self, finding: Finding, program: Program) -> bool:
        """Is it the same kind of finding, wherever it is, in a program that has the operators?"""
        return self._is_alike(finding) and set(self.ops) - _PASSED_OVER <= set(program.ops)

    def _is_alike(self, finding: Finding) -> bool:
        alike = (finding.oracle, finding.kind, finding.target) == (self.oracle, self.kind, self.target)
        return alike and self.words in ("", finding.bucket)


@dataclass(frozen=True)
class Reduced:
    """What came of a reduction.

    :param program: the smallest one, in canonical form.
    :param finding: what it shows.
    :param tried: candidates that were judged; ``kept``: cuts that stayed.
    :param seconds: processor time.
    :param ended: nothing more could be cut; otherwise the time was over.
    """

    program: Program
    finding: Finding
    tried: int
    kept: int
    seconds: float
    ended: bool


def aim_of(finding: Finding) -> Aim:
    """What a reduction of a finding keeps. Of a death it is no operator: its place is the whole program."""
    near = frozenset() if finding.place is None else frozenset(item.op for item in finding.place.operators)
    if finding.oracle == CRASH:
        return Aim(finding.oracle, finding.kind, finding.target, (), near, finding.bucket)
    return Aim(finding.oracle, finding.kind, finding.target, ops_of(finding.place), near)


def ops_of(place: Place | None) -> tuple[str, ...]:
    """The operators at a place, where it could be told."""
    if place is None or place.facts.get("told") == 0:
        return ()
    return tuple(sorted({place.operators[index].op for index in place.here}))


def reduced(
    program: Program,
    finding: Finding,
    *,
    same: Same = lambda finding: True,
    enough: Same = lambda finding: False,
    seconds: float = SECONDS,
    most: int | None = None,
    judging: Judge = judge,
    vela: Path | None = None,
) -> Reduced | None:
    """Cut a program while it shows a finding.

    :param same: what else must hold for a candidate's finding.
    :param enough: says of what a smaller program shows that it need not become any smaller.
    :param seconds: processor time after which to stop, with what there is.
    :param most: candidates after which to stop.
    :param judging: how programs are judged; tests plant faults into it.
    :param vela: a folder with another Vela than the installed one; the caller has imported none then.
    :returns: None if the program itself does not show the finding under any of a few seeds.
    """
    before = children_seconds()
    shown = _shown(program, finding, same, judging, vela)
    if shown is None:
        return None
    seed, aim, first = shown
    so_far = _SoFar(program, first)
    ended = False
    while not ended and (most is None or so_far.tried < most) and (left := before + seconds - children_seconds()) > 0:
        ended = _went_on(so_far, _Terms(aim, seed, same, judging, vela, left, most, enough))
    return Reduced(
        canonical(so_far.program), so_far.finding, so_far.tried, so_far.kept, children_seconds() - before, ended
    )


def _shown(
    program: Program, finding: Finding, same: Same, judging: Judge, vela: Path | None
) -> tuple[int, Aim, Finding] | None:
    """A seed with which the program shows the finding, and the aim; where its place is named otherwise in another
    run, or what is wrong with it (Vela lays out memory otherwise), what is named then is kept.
    """
    aim, alike = aim_of(finding), None
    plan = Plan(lambda _: (finding.target, [program]), most=_SEEDS * BLOCK, judge=judging, vela=vela)
    for result in run(plan):
        for found in result.findings:
            if same(found) and aim.met_by(found):
                return result.block, aim_of(found), found
            if alike is None and same(found) and shown_kind(found) == shown_kind(finding):
                alike = result.block, aim_of(found), found
    return alike


@dataclass(frozen=True)
class _Terms:
    """Under which conditions candidates are judged; ``left`` is the processor time that the next child has."""

    aim: Aim
    seed: int
    same: Same
    judging: Judge
    vela: Path | None
    left: float
    most: int | None = None
    enough: Same = lambda finding: False


@dataclass
class _SoFar:
    """How far a search has come.

    :ivar hopeless: digests of programs that do not show the finding.
    """

    program: Program
    finding: Finding
    tried: int = 0
    kept: int = 0
    hopeless: set[str] = field(default_factory=set)


class _At(msgspec.Struct, frozen=True, tag=True):
    """A candidate is judged next; ``stage`` begins."""

    program: Program
    stage: str = ""


class _Hopeless(msgspec.Struct, frozen=True, tag=True):
    digest: str


class _Kept(msgspec.Struct, frozen=True, tag=True):
    program: Program
    finding: Finding
    cuts: int


class _Over(msgspec.Struct, frozen=True, tag=True):
    """Nothing more goes."""


_Message = _At | _Hopeless | _Kept | _Over
_MESSAGE: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_Message)


def _went_on(so_far: _SoFar, terms: _Terms) -> bool:
    """Search in a child until it ends; whether nothing more goes."""
    at: _At | None = None
    ended = False
    with Children(_PATIENCE, MEMORY) as children:
        children.start(lambda say: _Search(so_far, terms, say).run())
        for event in children.events():
            if isinstance(event, Ended):
                if event.how and at is None:
                    raise RuntimeError(f"a child of the reducer ended with {event.how} before its first program")
                if event.how and at is not None:
                    _died(so_far, terms, at, event.how)
                continue
            message = _MESSAGE.decode(event.message)
            if isinstance(message, _At):
                so_far.tried += not message.stage
                at = message
            elif isinstance(message, _Hopeless):
                so_far.hopeless.add(message.digest)
            elif isinstance(message, _Kept):
                so_far.program, so_far.finding = message.program, message.finding
                so_far.kept += message.cuts
            else:
                ended = True
    return ended


def _died(so_far: _SoFar, terms: _Terms, at: _At, how: str) -> None:
    """A candidate ended the child: it is the next smaller program if that is the finding, and else hopeless."""
    so_far.hopeless.add(digest(at.program))
    if at.stage == REFERENCE or terms.aim.oracle != CRASH:
        return
    found = finding_of(death(at.program, how), at.program, terms.aim.target, "")
    if terms.aim.nearly_met_by(found, at.program) and terms.same(found):
        so_far.program, so_far.finding, so_far.kept = at.program, found, so_far.kept + 1


Look = Callable[[Program], tuple[Finding, ...]]
Fits = Callable[[Finding, Program], bool]


@dataclass
class _Search:
    """What the child does.

    :ivar is_enough: what is kept need not become smaller.
    :ivar placed: digest of a candidate -> what it showed, with places; ``unplaced``: without.
    """

    so_far: _SoFar
    terms: _Terms
    say: Say
    is_enough: bool = False
    placed: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    unplaced: dict[str, tuple[Finding, ...]] = field(default_factory=dict)

    def run(self) -> None:
        """Cut without asking for places, then with the finding at its operators, then at neighbours too."""
        if self.terms.vela is not None:
            use_vela(self.terms.vela)
        self._guess()
        for fits in (self._meets, self._nearly_meets) if self.terms.aim.ops else ():
            hits = self._cut_down(self.so_far.program, self._placed, fits)
            while not self.is_enough and (hit := next(hits, None)) is not None:
                self._keep(*hit)
        if not self.is_enough:
            self._name_plainly()
        if self._has_time():
            self.say(msgspec.json.encode(_Over()))

    def _has_time(self) -> bool:
        enough = self.terms.most is None or self.so_far.tried < self.terms.most
        return enough and time.process_time() < self.terms.left

    def _guess(self) -> None:
        """Cut while anything of the finding's kind shows, and look now and then whether it is at its place still.

        Finding the wrong operator of a large program takes a hundred times as long as judging it. The looks become
        rarer as long as they say yes; after a no the cut that lost the finding is left out.
        """
        lost: set[str] = set()
        stride = 1

        def fits(finding: Finding, program: Program) -> bool:
            return self.terms.aim.perhaps_met_by(finding, program) and digest(program) not in lost

        while True:
            hits = self._cut_down(self.so_far.program, self._unplaced, fits)
            guesses = [program for program, _ in islice(hits, stride)]
            kept = self._kept_of(guesses)
            if self.is_enough:
                return
            if kept < len(guesses):
                lost.add(digest(guesses[kept]))
                stride = 1
            elif len(guesses) < stride or not self._has_time():
                return
            else:
                stride *= 2

    def _kept_of(self, guesses: Sequence[Program]) -> int:
        """How many of the guesses have the finding at its place: the last of them is kept."""
        least, most = 0, len(guesses)  # those before ``least`` have it, those from ``most`` on do not
        middle = most - 1
        found: tuple[Program, Finding] | None = None
        while least < most:
            if (shown := self._at_its_place(guesses[middle])) is None:
                most = middle
            else:
                least, found = middle + 1, (guesses[middle], shown)
            middle = (least + most) // 2
        if found is not None:
            self._keep(*found, cuts=least)
        return least

    def _at_its_place(self, program: Program) -> Finding | None:
        shown = self._placed(program)
        return next((item for item in shown if self._nearly_meets(item, program)), None)

    def _name_plainly(self) -> None:
        """The smallest program in canonical form, with what it shows under its names, if it shows the same."""
        program = canonical(self.so_far.program)
        finding = self._at_its_place(program)
        if finding is not None:
            self._keep(program, finding, cuts=0)

    def _keep(self, program: Program, finding: Finding, cuts: int = 1) -> None:
        self.so_far.program, self.so_far.finding = program, finding
        self.is_enough = self.terms.enough(finding)
        self.say(msgspec.json.encode(_Kept(program, finding, cuts)))

    def _meets(self, finding: Finding, program: Program) -> bool:
        return self.terms.aim.met_by(finding) and self.terms.same(finding)

    def _nearly_meets(self, finding: Finding, program: Program) -> bool:
        return self.terms.aim.nearly_met_by(finding, program) and self.terms.same(finding)

    def _cut_down(self, program: Program, look: Look, fits: Fits) -> Iterator[tuple[Program, Finding]]:
        """Smaller and smaller programs until no cut goes any more."""
        went = True
        while went:
            went = False
            for cut in CUTS:
                while (hit := self._first(candidates(program, cut), look, fits)) is not None:
                    yield hit
                    program, went = hit[0], True

    def _first(self, programs: Iterable[Program], look: Look, fits: Fits) -> tuple[Program, Finding] | None:
        for program in programs:
            if not self._has_time():
                return None
            for finding in look(program):
                if fits(finding, program):
                    return program, finding
        return None

    def _placed(self, program: Program) -> tuple[Finding, ...]:
        return self._looked(program, self.placed, placed=True)

    def _unplaced(self, program: Program) -> tuple[Finding, ...]:
        return self._looked(program, self.unplaced, placed=False)

    def _looked(self, program: Program, shown: dict[str, tuple[Finding, ...]], *, placed: bool) -> tuple[Finding, ...]:
        """What a candidate shows; each is judged once."""
        key = digest(program)
        if key in self.so_far.hopeless:
            return ()
        if key not in shown:
            self.so_far.tried += 1
            self.say(msgspec.json.encode(_At(program)))
            shown[key] = self._judged(program, placed=placed)
            if not shown[key]:
                self.so_far.hopeless.add(key)
                self.say(msgspec.json.encode(_Hopeless(key)))
        return shown[key]

    def _judged(self, program: Program, *, placed: bool) -> tuple[Finding, ...]:
        target = self.terms.aim.target

        def announce(stage: str, other: Program | None = None) -> None:
            self.say(msgspec.json.encode(_At(program, stage)))

        try:
            twice = placed or self.terms.aim.oracle == BY_CHANCE
            words = {"announce": announce, "placed": placed, "vetted": False, "twice": twice}
            found = self.terms.judging(program, target, self.terms.seed, **words).mismatches
        except MemoryError:
            found = (death(program, "OutOfMemory"),)
        return tuple(finding_of(item, program, target, "") for item in found)
