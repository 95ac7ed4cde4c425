"""Adding up what was not judged, and telling it: a phrase for the verdict, lines for a listing, rows for JSON.

An output counts once a case, however many reasons there are for it; each reason counts its own outputs and cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.evidence.observation import Unjudged
from harness.evidence.reasons import by_kind

SHOWN = 4
"""Operators or reasons that a phrase names."""


@dataclass
class Count:
    """Outputs and cases.

    :ivar names: what was not judged of them: operators or reasons, and in how many outputs.
    """

    outputs: int = 0
    cases: int = 0
    names: Counter[str] = field(default_factory=Counter)

    def add(self, items: Sequence[Unjudged]) -> None:
        """Count one case."""
        self.cases += 1
        self.outputs += len({output for item in items for output in item.outputs})
        for item in items:
            self.names[item.what] += len(item.outputs)

    def merge(self, other: Count) -> None:
        """Add what another run counted."""
        self.outputs += other.outputs
        self.cases += other.cases
        self.names.update(other.names)

    @property
    def amount(self) -> str:
        """``3 outputs of 2 cases``."""
        return f"{self.outputs} output{'s' * (self.outputs != 1)} of {self.cases} case{'s' * (self.cases != 1)}"

    @property
    def named(self) -> str:
        """``aten.sin, lower failed``: the commonest, and how many more."""
        names = [name for name, _ in sorted(self.names.items(), key=lambda item: (-item[1], item[0]))]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return ", ".join(names[:SHOWN]) + more

    @property
    def phrase(self) -> str:
        """``3 outputs of 2 cases unjudged (aten.sin)``; empty if all was judged."""
        return f"{self.amount} unjudged ({self.named})" if self.cases else ""


@dataclass
class Reason(Count):
    """One operator or reason.

    :ivar whys: what was said of it, and in how many cases.
    :ivar parts: how much was not judged, of how much, by unit.
    """

    whys: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    of: Counter[str] = field(default_factory=Counter)

    def add(self, items: Sequence[Unjudged]) -> None:
        super().add(items)
        self.whys.update(dict.fromkeys((item.why for item in items), 1))
        for item in items:
            self.parts[item.unit] += item.parts
            self.of[item.unit] += item.of

    def merge_reason(self, other: Reason) -> None:
        """Add what another run counted under the same reason."""
        self.merge(other)
        self.whys.update(other.whys)
        self.parts.update(other.parts)
        self.of.update(other.of)

    @property
    def why(self) -> str:
        """What was said, the commonest first; how often is told where it is not the same everywhere."""
        kinds = by_kind(self.whys)
        return kinds[0][0] if len(kinds) == 1 else "; ".join(f"{count}x {text}" for text, count in kinds)

    @property
    def share(self) -> str:
        """``36 of 36 elements``; empty where nothing was measured."""
        return ", ".join(f"{self.parts[unit]} of {of} {unit}" for unit, of in self.of.items() if of)


@dataclass
class UnjudgedTally:
    """What was not judged in a run.

    :ivar total: every output once a case.
    :ivar reasons: by operator or reason.
    :ivar legs: by the leg whose outputs they are.
    """

    total: Count = field(default_factory=Count)
    reasons: dict[str, Reason] = field(default_factory=dict)
    legs: dict[str, Count] = field(default_factory=dict)

    def add(self, items: Sequence[Unjudged]) -> None:
        """Count what was not judged of one case."""
        if not items:
            return
        self.total.add(items)
        for what, rows in _grouped((item.what, item) for item in items).items():
            self.reasons.setdefault(what, Reason()).add(rows)
        for leg, rows in _grouped((item.leg, item) for item in items if item.leg).items():
            self.legs.setdefault(leg, Count()).add(rows)

    def merge(self, other: UnjudgedTally) -> None:
        """Add another run's counts."""
        self.total.merge(other.total)
        for what, reason in other.reasons.items():
            self.reasons.setdefault(what, Reason()).merge_reason(reason)
        for leg, count in other.legs.items():
            self.legs.setdefault(leg, Count()).merge(count)

    def ranked(self) -> list[tuple[str, Reason]]:
        """Reasons, the one with the most outputs first."""
        return sorted(self.reasons.items(), key=lambda item: (-item[1].outputs, item[0]))

    def leg(self, name: str) -> str:
        """``3 outputs of 2 cases (aten.sin)`` of a leg; empty if all of its outputs were judged."""
        count = self.legs.get(name)
        return f"{count.amount} ({count.named})" if count else ""


def lines(tally: UnjudgedTally) -> list[str]:
    """One line a reason."""
    return [
        f"unjudged: {what}: {reason.amount}{reason.share and f', {reason.share}'}: {reason.why}"
        for what, reason in tally.ranked()
    ]


def rows(tally: UnjudgedTally) -> dict[str, dict[str, Any]]:
    """JSON, as docs/architecture.md fixes it: operator or reason -> outputs, cases, why; and how much of them."""
    return {
        what: {
            "outputs": reason.outputs,
            "cases": reason.cases,
            "why": reason.why,
            "parts": {unit: {"unjudged": reason.parts[unit], "of": of} for unit, of in reason.of.items() if of},
        }
        for what, reason in tally.ranked()
    }


def _grouped(pairs: Iterable[tuple[str, Unjudged]]) -> dict[str, list[Unjudged]]:
    found: dict[str, list[Unjudged]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found
