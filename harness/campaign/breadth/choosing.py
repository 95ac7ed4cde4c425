"""What a sweep found so far, and which of its variants the full pipeline has to run.

One variant confirms a bucket on a graph, and ``CONFIRMED`` graphs are enough for a bucket; what the corpus knows
needs no confirmation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.triage.corpus import Entry, known_by
from harness.workers.protocol import CaseResult, Swept

CONFIRMED = 3
"""Graphs on which a bucket is confirmed."""


@dataclass
class Sweep:
    """Adds up what the pass-level mode says.

    :ivar variants: that were run; ``graphs`` likewise.
    :ivar edge_programs: edge programs that served them.
    :ivar known: bucket -> variants, for what the corpus knows; ``suspected`` for all else.
    :ivar invalid: graphs that are no test.
    """

    corpus: Sequence[Entry] = ()
    graphs: int = 0
    variants: int = 0
    edge_programs: int = 0
    invalid: int = 0
    known: Counter[str] = field(default_factory=Counter)
    suspected: Counter[str] = field(default_factory=Counter)
    confirmed: set[str] = field(default_factory=set)
    seconds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _graphs_of: Counter[str] = field(default_factory=Counter)

    def add(self, swept: Swept) -> tuple[str, ...]:
        """Count one graph's variants; the paths of those that the full pipeline has to run."""
        self.seconds.update(swept.seconds)
        if swept.problem is not None:
            self.problems.append(swept.problem)
        if swept.problem is not None or swept.invalid is not None:
            self.invalid += swept.invalid is not None
            return ()
        self.graphs += 1
        self.variants += len(swept.cases)
        self.edge_programs += swept.edge_programs
        first: dict[str, str] = {}
        for row in swept.cases:
            for finding in row.findings:
                if known_by(self.corpus, finding) is not None:
                    self.known[finding.bucket] += 1
                else:
                    self.suspected[finding.bucket] += 1
                    first.setdefault(finding.bucket, row.case)
        wanted = [path for bucket, path in first.items() if self._graphs_of[bucket] < CONFIRMED]
        self._graphs_of.update(first.keys())
        return tuple(dict.fromkeys(wanted))

    def confirm(self, result: CaseResult) -> None:
        """The full pipeline ran a variant."""
        self.confirmed |= {item.bucket for item in result.findings} & set(self.suspected)

    @property
    def refuted(self) -> tuple[str, ...]:
        """Buckets that the full pipeline did not show: the pass-level mode's own faults, or bugs that do not repeat."""
        return tuple(bucket for bucket in self.suspected if bucket not in self.confirmed)
