"""What became of upstream's tests: a row a test file, and the reasons for what was refused.

A case is in one column or several: *judged* (every output of it was), *stopped* (a crash, which is a finding of the
case, left nothing to compare), *unjudged* (something else of it was not judged), *known*, *new*, *resembling* (it has
such a finding), *failed* (armdiff itself cannot run it) and *invalid* (its module fails in plain eager). A test is
*refused* if there is no case of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.campaign.summary import counted
from harness.case.wording import counted_as
from harness.triage.findings import Finding
from harness.triage.unjudged.execution import all_stopped
from harness.workers.protocol import CaseResult, SuiteFile

COLUMNS = ("cases", "judged", "stopped", "unjudged", "known", "new", "resembling", "failed", "invalid")


@dataclass
class Row:
    """One test file.

    :ivar refused: reason -> tests.
    :ivar counting: tests of cases with a finding that counts, each with why upstream expects it to fail, if it does.
    """

    file: str
    tests: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    counting: dict[str, str] = field(default_factory=dict)

    def add(self, other: Row) -> None:
        """Count another row's in this one."""
        self.tests += other.tests
        self.counts.update(other.counts)
        self.refused.update(other.refused)
        self.counting.update(other.counting)


def rows(taken: Sequence[SuiteFile], results: Iterable[CaseResult], findings: Sequence[Finding]) -> list[Row]:
    """The rows, in the order of the files. A case that several files have counts for the first.

    :param findings: of the results, in the state that the corpus gives them.
    """
    by_case: dict[str, CaseResult] = {Path(result.case).name: result for result in results}
    states: dict[str, set[str]] = {}
    for finding in counted(findings, strict=False):
        states.setdefault(Path(finding.case).name, set()).add(finding.state)
    found, seen = [], set[str]()
    for item in taken:
        row = Row(item.file, tests=len(item.tests))
        if item.problem is not None:
            row.refused[item.problem.removeprefix(f"{item.file}: ")] += 1
        row.refused.update(test.why for test in item.tests if test.why)
        for test in item.tests:
            for case in test.cases.values():
                if case in by_case and case not in seen:
                    seen.add(case)
                    row.counts.update(outcomes(by_case[case], states.get(case, set())))
                    if states.get(case, set()) - {"known"}:
                        row.counting[test.test] = _expected(item, case)
        found.append(row)
    return found


def _expected(taken: SuiteFile, case: str) -> str:
    """Why upstream expects one of the tests of a case to fail; empty if it expects of none."""
    return next((test.expected for test in taken.tests if case in test.cases.values() and test.expected), "")


def outcomes(result: CaseResult, states: set[str]) -> list[str]:
    """The columns that a case counts in."""
    if result.problem is not None:
        return ["cases", "failed"]
    if result.invalid is not None:
        return ["cases", "invalid"]
    if not result.unjudged:
        judged = "judged"
    else:
        judged = "stopped" if states and all_stopped(result.unjudged) else "unjudged"
    return ["cases", judged, *sorted(states)]


def share(counts: Counter[str]) -> str:
    """How much of what has an answer in plain eager was judged, or ended in a crash that is reported."""
    judged, stopped, valid = counts["judged"], counts["stopped"], counts["cases"] - counts["invalid"]
    percent = 100 * (judged + stopped) / valid if valid else 100.0
    crashed = f" or stopped by a crash that is a finding ({stopped})" if stopped else ""
    return f"judged{crashed}: {judged + stopped} of {counted_as(valid, 'case')} ({percent:.1f} %)"


def lines(found: Sequence[Row]) -> list[str]:
    """The table as text, its sum, and the reasons for refusals, the most frequent first."""
    total = Row("all")
    for row in found:
        total.add(row)
    shown = [row for row in (*found, total) if row.tests or row.refused]
    width = max([len("test file"), *(len(row.file) for row in shown)])
    head = ("tests", *COLUMNS, "refused")
    table = [f"{'test file':<{width}}  " + "  ".join(head)]
    for row in shown:
        cells = (row.tests, *(row.counts[name] for name in COLUMNS), sum(row.refused.values()))
        told = (f"{cell or '-':>{len(name)}}" for name, cell in zip(head, cells, strict=True))
        table.append(f"{row.file:<{width}}  " + "  ".join(told))
    table += ["", share(total.counts)]
    if total.counting:
        table += ["", "new and resembling findings are of:"]
        for test, why in total.counting.items():
            table.append(f"  {test}" + (f" (upstream expects it to fail: {why})" if why else ""))
    if total.refused:
        table += ["", "refused:"]
        table += [f"  {counted_as(number, 'test')}: {why}" for why, number in total.refused.most_common()]
    return table


def as_data(found: Sequence[Row], taken: Sequence[SuiteFile]) -> list[dict[str, Any]]:
    """The rows as JSON data, each with its tests."""
    tests: Mapping[str, SuiteFile] = {item.file: item for item in taken}
    import msgspec

    return [
        {
            "file": row.file,
            "tests": msgspec.to_builtins(tests[row.file].tests),
            **{name: row.counts[name] for name in COLUMNS},
            "refused": dict(row.refused),
            "counting": row.counting,
        }
        for row in found
    ]
