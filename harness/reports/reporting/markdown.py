"""The report as Markdown for a CI summary page: about a hundred lines, the verdict first.

Tables hold the best bucket of each bug; the HTML beside it has the rest. Text from cases and findings is put on
one line and escaped, so that it can neither leave its cell nor become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.reports.reporting.buckets import Bug
from harness.reports.reporting.compare import Change, Comparison
from harness.reports.reporting.material import replay_command
from harness.reports.reporting.not_run import Reason
from harness.reports.reporting.report import Report
from harness.reports.reporting.words import STATES, compact, counted, duration, moment

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
    yield f"# armdiff: {plain(report.sentence)}"
    yield ""
    versions = ", ".join(f"{plain(name)} {plain(version)}" for name, version in info.releases.items())
    parts = report.judged.parts
    shard = f"{len(parts)} runs" if parts else f"shard {info.asked.shard_name}"
    yield (
        f"Started {moment(info.started)}, seed {info.asked.seed}, {shard}, "
        f"on {plain(', '.join(info.asked.targets))}; {duration(timing.seconds)}, "
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
    yield from _undone(report)
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
            plain(report.judged.name_of(part), 60),
            plain(info.line_name),
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
        more = f" (+{counted(len(bug.buckets) - 1, 'bucket')})" if len(bug.buckets) > 1 else ""
        name = _linked(first.entry, first.upstream) if known else plain(first.final, 160)
        name += f" ({plain(first.state)})" if first.resembles else ""
        cells = (
            str(place),
            plain(bug.title, 120),
            name + more,
            str(bug.hits),
            plain(", ".join(bug.targets) + (f"; on {', '.join(bug.lines)}" if several else "")),
            plain(first.sizes[0].span if first.sizes else "-"),
            plain(first.pass_name or "-"),
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
            f"{place}. {case}, on {plain(shown.finding.target)}, {plain(shown.recipe, 80)}: "
            f"{plain(shown.finding.message)} ({plain(again)})"
        )
        if worst is not shown:
            again = replay_command(run, worst.path, worst.finding.oracle, folder)
            yield f"   Largest error, in another case: {plain(worst.size)} ({plain(again)})"
    if report.new:
        yield ""


def _linked(name: str, addresses: Iterable[str]) -> str:
    address = next((item for item in addresses if re.fullmatch(r"https?://[\w./#?=&%-]+", item)), None)
    return f"[{plain(name)}]({address})" if address else plain(name)


def _previous(before: Comparison) -> Iterator[str]:
    yield f"## Since the previous run: {len(before.new)} new, {len(before.gone)} gone, {len(before.still)} still there"
    yield ""
    for title, rows in (("new", before.new), ("gone", before.gone)):
        yield from _changes(title, rows)
    for name, (old, new) in before.releases.items():
        yield f"* {plain(name)} was {plain(old)} and is {plain(new)}"
    yield from (f"* {plain(line)}" for line in before.caveats)
    yield ""


def _changes(title: str, rows: Sequence[Change]) -> Iterator[str]:
    for row in rows[:MOST_CHANGES]:
        yield f"* {title}: {plain(row.key, 160)}{' (known)' if row.known else ''}"
    if len(rows) > MOST_CHANGES:
        yield f"* {title}: {len(rows) - MOST_CHANGES} more"


def _undone(report: Report) -> Iterator[str]:
    undone = report.undone
    yield "## What did not run"
    yield ""
    yield "| leg | ran | skipped | why | unjudged |"
    yield "|---|---|---|---|---|"
    for leg in undone.legs:
        why = "; ".join(f"{reason.count}x {reason.text}" for reason in leg.why[:MOST_REASONS])
        yield f"| {plain(leg.name)} | {leg.ran} | {leg.skipped} | {plain(why)} | {plain(leg.unjudged)} |"
    yield ""
    yield from (f"* {plain(line)}" for line in undone.left[:MOST_LEFT])
    for title, reasons in (
        ("problem", undone.problems),
        ("invalid case", undone.invalid),
        ("did not show a second time", undone.unrepeated),
        ("cannot be read", undone.unreadable),
    ):
        yield from _reasons(title, reasons)
    yield ""


def _unjudged(report: Report) -> Iterator[str]:
    rows = report.undone.unjudged
    yield f"## What was not judged: {report.judged.tally.unjudged.total.amount}"
    yield ""
    if not rows:
        return
    yield "| what | outputs | cases | of them | why |"
    yield "|---|---|---|---|---|"
    for row in rows[:MOST_UNJUDGED]:
        yield f"| {plain(row.what, 120)} | {row.outputs} | {row.cases} | {plain(row.share)} | {plain(row.why)} |"
    if len(rows) > MOST_UNJUDGED:
        yield f"| and {len(rows) - MOST_UNJUDGED} more, in report.html | | | | |"
    yield ""


def _reasons(title: str, reasons: Sequence[Reason]) -> Iterator[str]:
    for reason in reasons[:MOST_REASONS]:
        yield f"* {title}, {reason.count}x: {plain(reason.text)}"
    if rest := sum(reason.count for reason in reasons[MOST_REASONS:]):
        yield f"* {title}: {rest} more"


def _coverage(report: Report) -> Iterator[str]:
    coverage = report.coverage
    yield f"## Never reached in {coverage.graphs} valid graphs"
    yield ""
    for reach in coverage.reaches:
        never = plain(", ".join(reach.never), 600) or "all reached"
        yield f"* {reach.what} ({len(reach.counts) - len(reach.never)} of {len(reach.counts)}): {never}"
    yield f"* pairs of operators: {coverage.pairs.reached} of {coverage.pairs.cells} reached"
    if found := coverage.passes.cases:
        yield (
            f"* branches of the Arm backend, measured on {counted(found, 'case')}: "
            f"{coverage.passes.taken} of {coverage.passes.ways} taken; no branch of "
            f"{plain(', '.join(coverage.passes.never), 600) or '(all were entered)'}"
        )
    for what, rates in (("operators", coverage.failures.operators), ("pairs of operators", coverage.failures.pairs)):
        often = "; ".join(
            f"{rate.name} in {rate.failing} of {counted(rate.graphs, 'graph')}" for rate in rates[:MOST_RATES]
        )
        yield f"* {what} that findings depend on most often: {plain(often) or 'none'}"
    yield ""
    yield f"| cases on target | {' | '.join(coverage.outcomes.columns)} |"
    yield f"|---|{'---|' * len(coverage.outcomes.columns)}"
    for row in coverage.outcomes.rows:
        counts = " | ".join(str(coverage.outcomes.at(row, column)) for column in coverage.outcomes.columns)
        yield f"| {plain(row)} | {counts} |"
    yield ""


def _time(report: Report) -> Iterator[str]:
    stages = report.timing.stages
    total = sum(stages.values())
    yield f"## Time: {duration(total)} of all workers"
    yield ""
    shares = (f"{plain(stage)} {duration(spent)} ({100 * spent / total:.0f} %)" for stage, spent in stages.items())
    yield ", ".join(shares) or "No stage was measured."


def plain(words: str, longest: int = LONGEST) -> str:
    """Text on one line, of at most this length, that Markdown leaves alone."""
    line = " ".join("".join(item if item.isprintable() else " " for item in words).split())
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return _MARKS.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\&", "&amp;")
