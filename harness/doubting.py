"""Is a finding really the bug that it is taken for? It is run again with the correction of that bug.

Wrong values and wrong command streams are known by their bucket and the operators of their graph
(``COARSE_ORACLES``), which is too little to tell two defects of Vela apart that meet in one operator. If the entry
that a finding is taken for has a correction, the finding must be gone with it: what *stays* is another bug, which
the known one hides. A finding whose entry has no correction cannot be tried, and is counted.

Pure data; the runs are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.corpus import Entry, known_by
from harness.protocol import CaseResult
from harness.triage import COARSE_ORACLES, Finding, any_family


@dataclass(frozen=True)
class Stays:
    """A finding that its entry's correction does not remove.

    :param entry: the entry that the case's finding was taken for.
    :param finding: what the case shows with all corrections.
    """

    entry: str
    finding: Finding


def taken_for(
    results: Iterable[CaseResult], corpus: Sequence[Entry], corrected: Sequence[Entry]
) -> tuple[dict[str, str], int]:
    """Cases to run with all corrections, each with the entry that a finding was taken for; and what cannot be tried.

    :param corrected: the corpus as all corrections leave it (``with_corrections``).
    :returns: case -> entry's name, and the number of known findings whose entry has no correction.
    """
    cases: dict[str, str] = {}
    beyond = 0
    for result in results:
        for finding in result.findings:
            entry = known_by(corpus, finding) if _is_coarse(finding) else None
            if entry is None:
                continue
            if known_by(corrected, finding) is None:
                cases.setdefault(result.case, entry.name)
            else:
                beyond += 1
    return cases, beyond


def stays(entry: str, result: CaseResult, corrected: Sequence[Entry]) -> list[Stays]:
    """What a case that was run with all corrections still shows and no entry knows then, one of each bucket."""
    found: dict[str, Stays] = {}
    for finding in result.findings:
        if _is_coarse(finding) and known_by(corrected, finding) is None:
            found.setdefault(any_family(finding.bucket), Stays(entry, finding))
    return [*found.values()]


def _is_coarse(finding: Finding) -> bool:
    return finding.oracle in COARSE_ORACLES and not finding.information
