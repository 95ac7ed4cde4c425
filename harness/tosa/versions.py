"""The same programs with several Velas: which version has a finding, and what changed from one to the next.

A finding is the same one in two versions if the same program shows the same kind on the same accelerator. What a
version refuses, or what could not be judged with it, says neither yes nor no. *New in* a version: the one before it
that could be judged lacks the finding, and so do all earlier ones. *Fixed in*: the one before it has it. *Came back
in*: it was fixed before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import msgspec

from harness.compat.releases import basis_of, installed
from harness.compat.velas import PACKAGE
from harness.tosa.engine import Result
from harness.tosa.program import Program
from harness.tosa.tally import VelaTally
from harness.triage.corpus import Entry, judged_by
from harness.triage.findings import Finding
from harness.triage.program_entries import program_entries

EVERYWHERE = "in every version"
_Key = tuple[str, int, int]
_Kind = tuple[str, str]


@dataclass(frozen=True)
class _Seen:
    result: Result
    findings: Mapping[_Kind, Finding]

    def state(self, kind: _Kind) -> str:
        """``yes``, ``no``, or why that cannot be told."""
        if kind in self.findings:
            return "yes"
        return self.result.without(kind[0])


@dataclass
class Versions:
    """Results of several versions, the oldest first.

    :param tallies: version -> what came of its programs.
    """

    tallies: Mapping[str, VelaTally]
    _seen: dict[str, dict[_Key, _Seen]] = field(default_factory=dict)

    def add(self, version: str, result: Result) -> None:
        """Count one result of one version."""
        tally = self.tallies[version]
        before = len(tally.findings)
        tally.add(result)
        if result.accelerator:
            found = {(item.oracle, item.kind): item for item in tally.findings[before:]}
            key = (result.accelerator, result.block, result.place)
            self._seen.setdefault(version, {})[key] = _Seen(result, found)

    def blocks(self, version: str) -> int:
        """How many blocks a version came to."""
        return 1 + max((block for _, block, _ in self._seen.get(version, {})), default=-1)

    def begun(self) -> Versions:
        """Without the versions that judged nothing, because a signal came first; the oldest stays in any case."""
        kept = [version for version in self.tallies if version in self._seen] or [*self.tallies][:1]
        return replace(self, tallies={version: self.tallies[version] for version in kept})

    def joined(self) -> VelaTally:
        """The newest version's tally with the findings of all, each once, in the words of the newest that has it.

        ``measured`` of a finding gets ``velas`` (version -> ``yes``, ``no`` or an outcome) and ``change``. Programs
        that one version did not come to are left out of all.
        """
        newest = self.tallies[[*self.tallies][-1]]
        if len(self.tallies) == 1:
            return newest
        rows = [self._seen.get(version, {}) for version in self.tallies]
        common = [key for key in rows[-1] if all(key in row for row in rows)]
        findings: list[Finding] = []
        smallest: dict[str, Program] = {}
        for key in common:
            seen = {version: row[key] for version, row in zip(self.tallies, rows, strict=True)}
            for kind in dict.fromkeys(kind for one in reversed(seen.values()) for kind in one.findings):
                states = {version: one.state(kind) for version, one in seen.items()}
                finding = next(one.findings[kind] for one in reversed(seen.values()) if kind in one.findings)
                told = {**finding.measured, "velas": states, "change": change(states)}
                findings.append(msgspec.structs.replace(finding, measured=told))
        for tally in self.tallies.values():
            smallest |= tally.smallest
        return replace(newest, findings=findings, smallest=smallest)


def change(states: Mapping[str, str]) -> str:
    """What happened to a finding: ``new in 5.1.0, fixed in 5.2.0``; ``in every version`` if nothing did.

    :param states: version -> ``yes``, ``no`` or anything else, the oldest first.
    """
    told = [(version, state) for version, state in states.items() if state in ("yes", "no")]
    steps, had = [], False
    for (_, before), (version, state) in pairwise(told):
        had = had or before == "yes"
        if state != before:
            steps.append(f"fixed in {version}" if state == "no" else f"{'came back' if had else 'new'} in {version}")
    if steps:
        return ", ".join(steps)
    if len(told) == len(states):
        return EVERYWHERE
    untold = " and ".join(version for version in states if version not in dict(told))
    return f"in every version that tells (not {untold})"


def tally_of(version: str, corpus: Sequence[Entry], folder: Path | None) -> VelaTally:
    """An empty tally that knows what the corpus expects of a version; ``folder`` as in ``VelaTally``."""
    found = [entry for entry in corpus if not entry.reduced]
    entries = [*judged_by(found, basis_of({**installed(), PACKAGE: version})), *program_entries(version)]
    return VelaTally(entries, folder)
