"""The report as Markdown for a CI summary page: about a hundred lines, the verdict first.

Tables hold the best bucket of each bug; the HTML beside it has the rest. Text from cases and findings is put on
one line and escaped, so that it can neither leave its cell nor become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.campaign.run_folder import SMALLEST_IS
from harness.case.wording import counted_as
from harness.reports.reporting.buckets import Bug
from harness.reports.reporting.compare import Change, Comparison
from harness.reports.reporting.material import replay_command
from harness.reports.reporting.not_run import Reason
from harness.reports.reporting.report import Report
from harness.reports.reporting.words import STATES, compact, duration, moment

MOST_BUGS = 15
MOST_KNOWN = 10
MOST_IN_FULL = 3
MOST_RATES = 5
MOST_REASONS = 3
MOST_CHANGES = 5
MOST_LEFT = 5
MOST_UNJUDGED = 8
LONGEST = 240
_MARKS = re.compile(r"([\\`*_{}\[\]<|#~$&])")


def markdown(report: Report, folder: Path | None = None) -> str:
    """The page.

    :param folder: where it will lie, which paths are relative to; None stands for the run's folder.
    """
    return "\n".join(_lines(report, folder)) + "\n"


def _lines(report: Report, folder: Path | None) -> Iterator[str]:
    info, timing = report.judged.run.info, report.timing
    yield f"# armdiff: {escaped(report.sentence)}"
    yield ""
    versions = ", ".join(f"{escaped(name)} {escaped(version)}" for name, version in info.releases.items())
    parts = report.judged.parts
    shard = f"{len(parts)} runs" if parts else f"shard {info.asked.shard_name}"
    yield (
        f"Started {moment(info.started)}, seed {info.asked.seed}, {shard}, "
        f"on {escaped(', '.join(info.asked.targets))}; {duration(timing.seconds)}, "
        f"{compact(timing.per_minute)} graphs a minute. {versions}."
    )
    yield ""
    if parts:
        yield from _runs(report)
    several = len(report.judged.lines) > 1
    yield from _bugs("New bugs", report.new, MOST_BUGS, several)
    yield from _in_full(report, folder)
    yield from _bugs("Known bugs", report.known, MOST_KNOWN, several)
    if report.previous:
        yield from _previous(report.previous)
    yield from _not_run(report)
    yield from _unjudged(report)
    yield from _coverage(report)
    yield from _time(report)


def _runs(report: Report) -> Iterator[str]:
    """Each run that was merged, whatever became of it."""
    yield "| run | release line | shard | seed | graphs | cases | new findings | it |"
    yield "|---|---|---|---|---|---|---|---|"
    for part in report.judged.parts:
        info = part.run.info
        cells = (
            escaped(report.judged.name_of(part), 60),
            escaped(info.line_name),
            info.asked.shard_name,
            str(info.asked.seed),
            str(part.graphs),
            str(part.tally.cases),
            str(len(part.tally.new)),
            STATES[info.state],
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _bugs(title: str, bugs: Sequence[Bug], most: int, several: bool) -> Iterator[str]:
    yield f"## {title}: {len(bugs)}"
    yield ""
    if not bugs:
        return
    known = bugs[0].known
    yield f"| | bug | {'entry' if known else 'bucket'} | cases | targets | error in all cases | blamed |"
    yield "|---|---|---|---|---|---|---|"
    for place, bug in enumerate(bugs[:most], 1):
        first = bug.first
        more = f" (+{counted_as(len(bug.buckets) - 1, 'bucket')})" if len(bug.buckets) > 1 else ""
        name = _linked(first.entry, first.upstream) if known else escaped(first.final, 160)
        name += f" ({escaped(first.state)})" if first.resembles else ""
        cells = (
            str(place),
            escaped(bug.title, 120),
            name + more,
            str(bug.hits),
            escaped(", ".join(bug.targets) + (f"; on {', '.join(bug.lines)}" if several else "")),
            escaped(first.sizes[0].span if first.sizes else "-"),
            escaped(first.pass_name or "-"),
        )
        yield f"| {' | '.join(cells)} |"
    if len(bugs) > most:
        yield f"| | and {len(bugs) - most} more, in report.html | | | | | |"
    yield ""


def _in_full(report: Report, folder: Path | None) -> Iterator[str]:
    """What the shown case of each of the first new bugs shows, and the command for that very case."""
    run = report.judged.run
    for place, bug in enumerate(report.new[:MOST_IN_FULL], 1):
        shown, worst = bug.first.shown, bug.first.worst
        case = "minimized case" if shown.minimized else "smallest case"
        again = replay_command(run, shown.path, shown.finding.oracle, folder)
        yield (
            f"{place}. {case}, on {escaped(shown.finding.target)}, {escaped(shown.recipe, 80)}: "
            f"{escaped(shown.finding.message)} ({escaped(again)})"
        )
        if shown.minimized and shown.finding.known:
            yield f"   {SMALLEST_IS.capitalize()} {escaped(shown.finding.entry)} ({escaped(shown.finding.proof)})"
        if worst is not shown:
            again = replay_command(run, worst.path, worst.finding.oracle, folder)
            yield f"   Largest error, in another case: {escaped(worst.size)} ({escaped(again)})"
    if report.new:
        yield ""


def _linked(name: str, addresses: Iterable[str]) -> str:
    address = next((item for item in addresses if re.fullmatch(r"https?://[\w./#?=&%-]+", item)), None)
    return f"[{escaped(name)}]({address})" if address else escaped(name)


def _previous(before: Comparison) -> Iterator[str]:
    yield f"## Since the previous run: {len(before.new)} new, {len(before.gone)} gone, {len(before.still)} still there"
    yield ""
    for title, rows in (("new", before.new), ("gone", before.gone)):
        yield from _changes(title, rows)
    for name, (old, new) in before.releases.items():
        yield f"* {escaped(name)} was {escaped(old)} and is {escaped(new)}"
    yield from (f"* {escaped(line)}" for line in before.caveats)
    yield ""


def _changes(title: str, rows: Sequence[Change]) -> Iterator[str]:
    for row in rows[:MOST_CHANGES]:
        yield f"* {title}: {escaped(row.key, 160)}{' (known)' if row.known else ''}"
    if len(rows) > MOST_CHANGES:
        yield f"* {title}: {len(rows) - MOST_CHANGES} more"


def _not_run(report: Report) -> Iterator[str]:
    not_run = report.not_run
    yield "## What did not run"
    yield ""
    yield "| leg | ran | skipped | why | unjudged |"
    yield "|---|---|---|---|---|"
    for leg in not_run.legs:
        why = "; ".join(f"{reason.count}x {reason.text}" for reason in leg.why[:MOST_REASONS])
        yield f"| {escaped(leg.name)} | {leg.ran} | {leg.skipped} | {escaped(why)} | {escaped(leg.unjudged)} |"
    yield ""
    yield from (f"* {escaped(line)}" for line in not_run.left[:MOST_LEFT])
    for title, reasons in (
        ("problem", not_run.problems),
        ("invalid case", not_run.invalid),
        ("did not show a second time", not_run.unrepeated),
        ("cannot be read", not_run.unreadable),
    ):
        yield from _reasons(title, reasons)
    yield ""


def _unjudged(report: Report) -> Iterator[str]:
    rows = report.not_run.unjudged
    yield f"## What was not judged: {report.judged.tally.unjudged.total.amount}"
    yield ""
    if not rows:
        return
    yield "| what | outputs | cases | of them | why |"
    yield "|---|---|---|---|---|"
    for row in rows[:MOST_UNJUDGED]:
        yield f"| {escaped(row.what, 120)} | {row.outputs} | {row.cases} | {escaped(row.share)} | {escaped(row.why)} |"
    if len(rows) > MOST_UNJUDGED:
        yield f"| and {len(rows) - MOST_UNJUDGED} more, in report.html | | | | |"
    yield ""


def _reasons(title: str, reasons: Sequence[Reason]) -> Iterator[str]:
    for reason in reasons[:MOST_REASONS]:
        yield f"* {title}, {reason.count}x: {escaped(reason.text)}"
    if rest := sum(reason.count for reason in reasons[MOST_REASONS:]):
        yield f"* {title}: {rest} more"


def _coverage(report: Report) -> Iterator[str]:
    coverage = report.coverage
    yield f"## Never reached in {coverage.graphs} valid graphs"
    yield ""
    for reach in coverage.reaches:
        never = escaped(", ".join(reach.never), 600) or "all reached"
        yield f"* {reach.what} ({len(reach.counts) - len(reach.never)} of {len(reach.counts)}): {never}"
    yield f"* pairs of operators: {coverage.pairs.reached} of {coverage.pairs.cells} reached"
    if found := coverage.passes.cases:
        yield (
            f"* branches of the Arm backend, measured on {counted_as(found, 'case')}: "
            f"{coverage.passes.taken} of {coverage.passes.ways} taken; no branch of "
            f"{escaped(', '.join(coverage.passes.never), 600) or '(all were entered)'}"
        )
    for what, rates in (("operators", coverage.failures.operators), ("pairs of operators", coverage.failures.pairs)):
        often = "; ".join(
            f"{rate.name} in {rate.failing} of {counted_as(rate.graphs, 'graph')}" for rate in rates[:MOST_RATES]
        )
        yield f"* {what} that findings depend on most often: {escaped(often) or 'none'}"
    yield ""
    yield f"| cases on target | {' | '.join(coverage.outcomes.columns)} |"
    yield f"|---|{'---|' * len(coverage.outcomes.columns)}"
    for row in coverage.outcomes.rows:
        counts = " | ".join(str(coverage.outcomes.at(row, column)) for column in coverage.outcomes.columns)
        yield f"| {escaped(row)} | {counts} |"
    yield ""


def _time(report: Report) -> Iterator[str]:
    stages = report.timing.stages
    total = sum(stages.values())
    yield f"## Time: {duration(total)} of all workers"
    yield ""
    shares = (f"{escaped(stage)} {duration(spent)} ({100 * spent / total:.0f} %)" for stage, spent in stages.items())
    yield ", ".join(shares) or "No stage was measured."


def escaped(words: str, longest: int = LONGEST) -> str:
    """Text on one line, of at most this length, that Markdown leaves alone."""
    line = " ".join("".join(item if item.isprintable() else " " for item in words).split())
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return _MARKS.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\&", "&amp;")
