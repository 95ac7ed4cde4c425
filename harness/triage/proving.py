"""Proof by correction: a finding is an entry's bug if the entry's correction, applied alone, takes it away.

The case runs again with the correction and nothing else. The finding must be gone, and nothing may have come that was
not there before and is not known by a condition; other findings may stay or go, but not a wrong value of the same pass
where the finding is of the program's structure: then evidence went, and not the bug. Where a failure had ended the case
early, what comes behind it is not held against the correction; nor is what Vela makes of the corrected program, since
its commands are held against that very program.

First the corrections of entries that the finding resembles are tried, one by one; then, for a finding that is not
Vela's, all whose code the case came to at once, and if they take it away, a smallest part that does, beginning
with those of entries that show after the same pass. So a known bug in a new bucket is recognised without anybody having
listed the bucket. Several may be needed together, where one known bug shows once another is gone. A correction is not
tried alone if the case never came to the code that it changes; but the corrections of all that the finding resembles
are tried together, since a corrected case may come there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from harness.corrections import corrections
from harness.evidence.observation import CRASH, oracle_named
from harness.triage.buckets import STAGES, any_range, oracle_of, pass_of
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, proved

MOST_RUNS = 24
"""Runs with corrections that one case may cost."""
MOST_TOGETHER = 3
"""Corrections that may be needed together for a proof."""
Names = tuple[str, ...]
Key = tuple[str, ...]
Again = Callable[[tuple[str, ...]], Sequence[Finding] | None]
"""Runs the case with corrections; None if it cannot run with them."""


def key_of(finding: Finding) -> Key:
    """What makes a finding the same with and without a correction: not its pass, nor what Vela's steps are called."""
    words = any_range(finding.bucket).split("/")
    output = str(finding.measured.get("output", ""))
    if finding.pass_name == "Vela":
        return (*words[1:4], output)
    return (*words[1:4], *words[6:], output, *finding.legs)


def same_finding(one: Finding, other: Finding) -> bool:
    """Do two runs of a case show the same? A run that takes a stage from another target may blame another pass."""
    if one.bucket == other.bucket:
        return all(one.measured.get(name) == other.measured.get(name) for name in ("output", "delegate"))
    return key_of(one) == key_of(other)


@dataclass
class Remembered:
    """What corrections proved on one target of a graph: on the others they need not be tried for the same finding.

    A graph's targets share all that corrections touch; what Vela does is not proved by corrections.
    """

    graph: str = ""
    found: dict[Key, tuple[str, tuple[str, ...], str]] = field(default_factory=dict)

    def of(self, graph: str) -> Remembered:
        """What is remembered of a graph; everything else is forgotten."""
        if graph != self.graph or not graph:
            self.graph = graph
            self.found.clear()
        return self


@dataclass
class Prover:
    """Proves the findings of one case.

    :param bugs: what the corpus knows.
    :param applicable: corrections, by name, with the entries that each removes.
    :param again: runs the case with corrections.
    :param stock: every finding of the case without corrections.
    :param remembered: what was proved on the graph's other targets.
    :param reaches: did the case without corrections come to what a correction changes? Another takes nothing away.
    """

    bugs: Sequence[KnownBug]
    applicable: Mapping[str, Sequence[str]]
    again: Again
    stock: Sequence[Finding]
    remembered: Remembered = field(default_factory=Remembered)
    reaches: Callable[[str], bool] = lambda name: True
    _runs: dict[tuple[str, ...], Sequence[Finding] | None] = field(default_factory=dict)

    def resembling(self, finding: Finding) -> Finding:
        """The finding as known, if the correction of an entry that it resembles takes it away."""
        if (before := self.remembered.found.get(key_of(finding))) is not None and finding.pass_name != "Vela":
            entry, names, target = before
            return proved(finding, entry, names, f" on {target}")
        for bug in self.bugs:
            if not bug.corrections or not bug.resembles(finding):
                continue
            for name in bug.corrections:
                if self._takes_away(finding, (name,)):
                    return self._proved(finding, bug.entry, (name,))
        return finding

    def _proved(self, finding: Finding, entry: str, names: tuple[str, ...]) -> Finding:
        self.remembered.found[key_of(finding)] = entry, names, finding.target
        return proved(finding, entry, names)

    def unlike_any(self, finding: Finding) -> Finding:
        """The finding as known, if any correction takes it away."""
        everything = tuple(filter(self.reaches, (*self._beside(finding), *self.applicable)))
        if finding.pass_name == "Vela" or not everything:
            return finding
        for names in dict.fromkeys(names for _, names, _ in self.remembered.found.values()):
            # the same bug shows again, in the words of another target or oracle
            if len(names) == 1 and names[0] in everything and self._takes_away(finding, names):
                return self._proved(finding, self._entry(names[0], finding), names)
        if not self._takes_away(finding, everything, loosely=True):
            alike = self._removing(finding)
            if {*alike} <= {*everything} or not self._takes_away(finding, alike):
                return finding
            everything = alike
        for name in self._likely(finding, everything):  # one run, where the search takes seven
            if self._takes_away(finding, (name,)):
                return self._proved(finding, self._entry(name, finding), (name,))
        strictly = self._takes_away(finding, everything)
        needed = self._needed(finding, everything, (), loosely=not strictly)
        if len(needed) > MOST_TOGETHER or not self._takes_away(finding, needed):
            return finding
        return self._proved(finding, self._entry(needed[0], finding), needed)

    def _removing(self, finding: Finding) -> Names:
        """The corrections of entries that the finding resembles."""
        there = {bug.entry for bug in self.bugs if bug.resembles(finding)}
        return tuple(name for name, entries in self.applicable.items() if there & {*entries})

    def _beside(self, finding: Finding) -> Names:
        """Corrections without a certificate that lie beside entries: only what resembles such an entry is tried."""
        alike = (bug for bug in self.bugs if bug.resembles(finding))
        certified = {*self.applicable, *corrections()}
        return tuple(dict.fromkeys(name for bug in alike for name in bug.corrections if name not in certified))

    def _likely(self, finding: Finding, names: Names) -> Names:
        """Of these, the corrections of entries whose bug shows to the same oracle after the same pass."""
        wanted = finding.oracle, pass_of(finding.bucket)
        there = {
            bug.entry
            for bug in self.bugs
            if wanted[1] and wanted in {(oracle_of(bucket), pass_of(bucket)) for bucket in (bug.bucket, *bug.also)}
        }
        return tuple(name for name in names if there & {*self.applicable.get(name, ())})

    def _needed(self, finding: Finding, names: Names, with_: Names, *, loosely: bool, tried: bool = True) -> Names:
        """A smallest part of these corrections that takes the finding away together with those that apply anyway.

        Halves are tried before single ones (QuickXplain, Junker 2004): one correction of twelve takes seven runs.

        :param tried: do those that apply anyway fail to take it away alone?
        """
        if not tried and self._takes_away(finding, with_, loosely):
            return ()
        if len(names) == 1:
            return names
        first, second = names[: len(names) // 2], names[len(names) // 2 :]
        right = self._needed(finding, second, with_ + first, loosely=loosely, tried=False)
        left = self._needed(finding, first, with_ + right, loosely=loosely, tried=not right)
        return left + right

    def _entry(self, correction: str, finding: Finding) -> str:
        """The entry of a correction that a finding is most like: of its oracle, if there is one."""
        entries = self.applicable.get(correction, ())
        bugs = [bug for bug in self.bugs if bug.entry in entries or correction in bug.corrections]
        alike = [bug for bug in bugs if oracle_of(bug.bucket) == finding.oracle]
        return [*(bug.entry for bug in (*alike, *bugs)), *entries][0]

    def _takes_away(self, finding: Finding, names: tuple[str, ...], loosely: bool = False) -> bool:
        """:param loosely: never mind what else the corrections bring."""
        left = self._left(names) if any(map(self.reaches, names)) else None
        if left is None or key_of(finding) in {key_of(item) for item in left if not item.known}:
            return False
        before = {key_of(item) for item in self.stock}
        if self._values_stay(finding, {key_of(item) for item in left}):
            return False
        if loosely:
            return True
        ended = [_reached(item) for item in self.stock if item.oracle == CRASH]
        if finding.pass_name != "Vela":
            left = [item for item in left if item.pass_name != "Vela"]
        if not ended:
            return all(item.known or key_of(item) in before for item in left)
        # what comes behind a failure could not show before; but a failure that nobody knows, and that comes no later,
        # may be the correction's own
        strange = (item for item in left if item.oracle == CRASH and item.state == "new" and key_of(item) not in before)
        return all(_reached(item) > min(ended) for item in strange)

    def _values_stay(self, finding: Finding, left: Set[Key]) -> bool:
        """Does a wrong value of the same pass stay? Then evidence went, such as a RESCALE's place, and not the bug."""
        if oracle_named(finding.oracle).values or finding.pass_name is None:
            return False
        return any(
            oracle_named(item.oracle).values and item.pass_name == finding.pass_name and key_of(item) in left
            for item in self.stock
            if counts(item)
        )

    def _left(self, names: tuple[str, ...]) -> Sequence[Finding] | None:
        """What the case shows with corrections, in whatever order."""
        names = tuple(sorted(names))
        if names not in self._runs:
            if len(self._runs) >= MOST_RUNS:
                return None
            found = self.again(names)
            self._runs[names] = None if found is None else [item for item in found if not item.information]
        return self._runs[names]


def _reached(finding: Finding) -> int:
    """How far a case came that died."""
    return STAGES.index(finding.stage) if finding.stage in STAGES else len(STAGES)


def counts(finding: Finding) -> bool:
    """Does it need a proof: is it no mere information, and not known yet?"""
    return not finding.information and not finding.known


def applicable_corrections(applied: Sequence[str], bugs: Sequence[KnownBug]) -> Mapping[str, tuple[str, ...]]:
    """Corrections that prove a bug: name -> the entries of those bugs that it removes.

    :param applied: those that apply anyway.
    """
    there = {bug.entry: bug for bug in bugs}
    found = {}
    for name, item in corrections().items():
        entries = tuple(entry for entry in item.entries if entry in there and name in there[entry].corrections)
        if entries and name not in applied:
            found[name] = entries
    return found
