"""The report as JUnit XML, for whatever shows test results: a suite a target, a test case a bucket.

A new bucket is a failure with its worst case on that target, and the shown one beside it; a known one is skipped, and
the reason names its corpus entry. Properties of a suite say what was not judged. One more test case holds the counts;
it passes if a case was run, and is skipped otherwise, so that an empty run does not look like a passed one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from harness.case.wording import counted_as
from harness.reports.reporting.buckets import Bucket
from harness.reports.reporting.material import replay_command
from harness.reports.reporting.report import Report
from harness.triage.unjudged.counting import UnjudgedTally

COUNTS = "counts"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report, folder: Path | None = None) -> bytes:
    """The file.

    :param folder: where it will lie, which paths are relative to; None stands for the run's folder.
    """
    document = JUnitXml("armdiff")
    for target in report.coverage.outcomes.rows or report.judged.targets:
        suite = TestSuite(clean(target))
        suite.add_testcases([*_buckets(report, target, folder), _counts(report, target)])
        for name, value in _unjudged(report, target):
            suite.add_property(clean(name), clean(value))
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    file = io.BytesIO()
    document.write(file)
    return file.getvalue()


def clean(words: str) -> str:
    """Text that XML can hold: control characters become a mark."""
    return _NOT_XML.sub("\ufffd", words)


def _buckets(report: Report, target: str, folder: Path | None) -> Iterator[TestCase]:
    for bucket in report.buckets:
        if target not in bucket.targets:
            continue
        name = f"{bucket.final} ({bucket.entry})" if bucket.known else bucket.final
        case = TestCase(clean(name), clean(f"armdiff.{bucket.oracle}"))
        case.result = [_known(bucket) if bucket.known else _failure(report, bucket, target, folder)]
        yield case


def _known(bucket: Bucket) -> Skipped:
    where = ", ".join((f"corpus entry {bucket.entry}", *bucket.upstream))
    return Skipped(clean(f"known: {bucket.title} ({where}); {bucket.first.proof}"))


def _failure(report: Report, bucket: Bucket, target: str, folder: Path | None) -> Failure:
    failure = Failure(clean(f"{bucket.title}: {counted_as(bucket.targets[target], 'case')}"), clean(bucket.kind))
    worst = bucket.worst_on[target]
    run, shown = report.judged.run, bucket.shown
    smallest = "minimized" if shown.minimized else "smallest"
    lines = (
        worst.message,
        bucket.state if bucket.resembles else "",
        f"on {worst.target}, {worst.recipe}",
        f"seen on {', '.join(bucket.lines)}" if len(report.judged.lines) > 1 else "",
        f"replay: {replay_command(run, worst.case, worst.oracle, folder)}",
        f"{smallest} case, on {shown.finding.target}, {shown.recipe}: {shown.finding.message}",
        f"replay: {replay_command(run, shown.path, shown.finding.oracle, folder)}",
        worst.detail,
    )
    failure.text = clean("\n".join(line for line in lines if line))
    return failure


def _unjudged(report: Report, target: str) -> Iterator[tuple[str, str]]:
    """Properties: how much of the target's outputs was not judged, and one for each reason."""
    tally = UnjudgedTally()
    for item in report.judged.run.done:
        if item.result.target == target:
            tally.add(item.result.unjudged)
    yield "unjudged", tally.total.amount
    for what, reason in tally.ranked():
        yield f"unjudged: {what}", f"{reason.amount}: {reason.why}"


def _counts(report: Report, target: str) -> TestCase:
    outcomes = report.coverage.outcomes
    counts = {column: outcomes.at(target, column) for column in outcomes.columns}
    spent = sum(sum(item.result.seconds.values()) for item in report.judged.run.done if item.result.target == target)
    case = TestCase(COUNTS, "armdiff", spent)
    case.system_out = clean("\n".join((report.sentence, *(f"{name}: {count}" for name, count in counts.items()))))
    if not any(counts.values()):
        case.result = [Skipped("no case was run on this target")]
    return case
