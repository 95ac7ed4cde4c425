"""What came of many programs: counts, reasons, findings in the state that the corpus gives them; as JSON data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness import __version__
from harness.compat.releases import installed
from harness.tosa.causes import Cause
from harness.tosa.engine import Result
from harness.tosa.findings import digest
from harness.tosa.program import Program, encode
from harness.tosa.translating import to_flatbuffer
from harness.triage.corpus import Entry, bugs_of
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified


@dataclass
class VelaTally:
    """Adds up results.

    :param folder: where programs with findings are stored, a folder each; None: nowhere.
    :ivar programs: judged or not, by accelerator.
    :ivar outcomes: ``clean``, ``finding``, ``refused``, ``invalid``, ``unjudged``, ``unrepeated``.
    :ivar reasons: outcome -> words -> how often, for the last four.
    """

    corpus: Sequence[Entry] = ()
    folder: Path | None = None
    programs: Counter[str] = field(default_factory=Counter)
    operators: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    refused_draws: int = 0
    findings: list[Finding] = field(default_factory=list)
    smallest: dict[str, Program] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)
    _bugs: tuple[KnownBug, ...] | None = None

    def add(self, result: Result) -> None:
        """Count one result."""
        self.seconds.update(result.seconds)
        if not result.accelerator:
            return
        self.programs[result.accelerator] += 1
        self.operators += result.operators
        self.outcomes[result.outcome] += 1
        self.refused_draws += result.refused_draws
        if result.why:
            self.reasons[result.outcome][f"{result.accelerator.rsplit('-', 1)[0]}: {result.why}"] += 1
        if result.findings and result.program is not None:
            case = self._stored(result.program)
            for finding in result.findings:
                found = classified(msgspec.structs.replace(finding, case=case), self._known())
                self.findings.append(msgspec.structs.replace(found, upstream=self._upstream(found)))
            self.smallest[case] = result.program

    @property
    def new(self) -> list[Finding]:
        """What counts: new findings, then those that only resemble a known bug."""
        return sorted((item for item in self.findings if not item.known), key=lambda item: item.state == "resembling")

    @property
    def judged(self) -> int:
        """Programs whose values were compared, or that showed why they cannot be."""
        return self.outcomes["clean"] + self.outcomes["finding"]

    def _known(self) -> tuple[KnownBug, ...]:
        if self._bugs is None:
            self._bugs = bugs_of(self.corpus)
        return self._bugs

    def _upstream(self, finding: Finding) -> str | None:
        entry = next((item for item in self.corpus if finding.known and item.name == finding.entry), None)
        return None if entry is None else (*entry.status.reports, f"corpus entry {entry.name}")[0]

    def _stored(self, program: Program) -> str:
        """Write the program's folder; its file."""
        if self.folder is None:
            return digest(program)
        folder = self.folder / digest(program)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "program.json"
        file.write_bytes(encode(program))
        (folder / "program.tosa").write_bytes(to_flatbuffer(program))
        return str(file)


def cause_as_json(cause: Cause) -> Mapping[str, Any]:
    """A root cause as JSON data."""
    return {
        "name": cause.name,
        "fingerprint": cause.fingerprint,
        "operators": list(cause.program.ops),
        "state": cause.finding.state,
        "entry": cause.finding.entry,
        "accelerators": list(cause.families),
        "velas": dict(cause.velas),
        "findings": len(cause.shown_by),
        "cases": sorted({item.case for item in cause.shown_by}),
        "tried": cause.tried,
        "seconds": round(cause.seconds, 2),
        "ended": cause.ended,
    }


def as_json(tally: VelaTally, **more: Any) -> Mapping[str, Any]:
    """The run as JSON data: as docs/architecture.md has it, with programs for graphs and cases."""
    return {
        "armdiff": __version__,
        "releases": dict(installed()),
        "graphs": tally.programs.total(),
        "cases": tally.programs.total(),
        "programs": dict(tally.programs),
        "operators": tally.operators,
        "outcomes": dict(tally.outcomes),
        "reasons": {outcome: dict(words) for outcome, words in tally.reasons.items()},
        "refused_draws": tally.refused_draws,
        "legs": {
            "tosa-reference": {"ran": tally.judged, "skipped": tally.outcomes["invalid"], "why": "invalid programs"},
            "ethos-u-model": {
                "ran": tally.judged,
                "skipped": tally.outcomes["refused"] + tally.outcomes["unjudged"],
                "why": "refused by Vela, or not implemented",
            },
        },
        "unjudged": {
            why: {"outputs": count, "cases": count, "why": why} for why, count in tally.reasons["unjudged"].items()
        },
        "findings": [{**msgspec.to_builtins(finding), "known": finding.known} for finding in tally.findings],
        "seconds": {stage: round(value, 3) for stage, value in sorted(tally.seconds.items())},
        **more,
    }
