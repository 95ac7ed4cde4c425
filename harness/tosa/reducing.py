"""A smaller program with the same finding: cuts are tried until nothing more goes.

The *aim* says what must stay: oracle, kind, target, and the operators at which the finding is; where the first wrong
operator could not be told, oracle and kind alone. Whoever reduces may ask for more (``same``): that the corpus says the
same of it, so that a new bug does not end as a known one.

Every candidate is judged by the engine, in a child: Vela dies of some. Validity is the reference model's word.
Candidates come in a fixed order, the inputs have a fixed seed, and the first one that shows the finding is taken, so
the same program gives the same result unless the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harness.case.place import Place
from harness.tosa.cutting import CUTS, candidates, canonical
from harness.tosa.engine import BLOCK, Judge, Plan, run
from harness.tosa.judging import Judged, judge
from harness.tosa.program import Program, encode
from harness.triage.findings import Finding

SECONDS = 60.0
"""A reduction takes no longer."""
_SEEDS = 4
"""Seeds of inputs under which the finding is looked for before the first cut."""
Same = Callable[[Finding], bool]


@dataclass(frozen=True)
class Aim:
    """What must stay.

    :param ops: the operators at the finding's place; none if it could not be told.
    """

    oracle: str
    kind: str
    target: str
    ops: tuple[str, ...]

    def met_by(self, finding: Finding) -> bool:
        """Is this the same kind of finding at the same kind of place?"""
        if (finding.oracle, finding.kind, finding.target) != (self.oracle, self.kind, self.target):
            return False
        return not self.ops or self.ops == ops_of(finding.place)


@dataclass(frozen=True)
class Reduced:
    """What came of a reduction.

    :param program: the smallest one, in canonical form.
    :param finding: what it shows.
    :param tried: candidates that were judged; ``kept``: cuts that stayed.
    :param ended: nothing more could be cut; otherwise the time was over.
    """

    program: Program
    finding: Finding
    tried: int
    kept: int
    seconds: float
    ended: bool


def aim_of(finding: Finding) -> Aim:
    """What a reduction of a finding keeps."""
    return Aim(finding.oracle, finding.kind, finding.target, ops_of(finding.place))


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
    seconds: float = SECONDS,
    judging: Judge = judge,
) -> Reduced | None:
    """Cut a program while it shows a finding.

    :param same: what else must hold for a candidate's finding.
    :param seconds: when to stop, with what there is.
    :param judging: how programs are judged; tests plant faults into it.
    :returns: None if the program itself does not show the finding under any of a few seeds.
    """
    started = time.monotonic()
    found = _shown(program, finding, same, judging)
    if found is None:
        return None
    search, first = found
    best, last, tried, kept = program, first, 0, 0
    judged = {encode(program)}
    over, changed = False, True
    while changed and not over:
        changed = False
        for cut in CUTS:
            while not over:
                fresh = [item for item in candidates(best, cut) if encode(item) not in judged]
                hit, count, over = search.first(fresh, started + seconds)
                judged |= {encode(item) for item in (fresh if hit is None else fresh[:count])}
                tried += count
                if hit is None:
                    break
                best, last = hit
                kept, changed = kept + 1, True
    return Reduced(canonical(best), last, tried, kept, time.monotonic() - started, not over)


def _shown(program: Program, finding: Finding, same: Same, judging: Judge) -> tuple[_Search, Finding] | None:
    """A search under a seed with which the program shows the finding; where its place is named otherwise in another
    run, what is named then is kept.
    """
    for exact in (True, False):
        for seed in range(_SEEDS):
            aim = aim_of(finding)
            if not exact:
                aim = Aim(aim.oracle, aim.kind, aim.target, ())
            search = _Search(aim, same, partial(_seeded, judging, seed))
            hit, _, _ = search.first([program], float("inf"))
            if hit is not None:
                found = hit[1]
                return (search if exact else _Search(aim_of(found), same, search.judging)), found
    return None


def _seeded(
    judging: Judge, seed: int, program: Program, accelerator: str, block: int, *, announce: Callable[[str], None]
) -> Judged:
    """Judge with a seed of the reduction's own, whatever the block."""
    return judging(program, accelerator, seed, announce=announce)


@dataclass(frozen=True)
class _Search:
    """Judges candidates.

    :param judging: with a fixed seed.
    """

    aim: Aim
    same: Same
    judging: Judge

    def first(self, programs: Sequence[Program], until: float) -> tuple[tuple[Program, Finding] | None, int, bool]:
        """The first program that shows the finding, with it; how many were judged; whether the time is over."""
        count = 0
        for part in (programs[at : at + BLOCK] for at in range(0, len(programs), BLOCK)):
            for found in self._judged(part, until):
                count += 1
                fitting = next((item for item in found if self.aim.met_by(item) and self.same(item)), None)
                if fitting is not None:
                    return (programs[count - 1], fitting), count, False
            if time.monotonic() >= until:
                return None, count, True
        return None, count, False

    def _judged(self, programs: Sequence[Program], until: float) -> Iterator[tuple[Finding, ...]]:
        """What each of them shows, in order."""
        plan = Plan(lambda _: (self.aim.target, programs), 1, len(programs), until, self.judging)
        for result in run(plan):
            if result.accelerator:
                yield result.findings
