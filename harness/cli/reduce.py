"""The verb ``reduce``: a smaller case in the same bucket (``harness.campaign.reduction``).

FINDING is a case file, or a folder with ``case.json``: a corpus entry, or what a report names. It is run first,
to see what it shows. The search keeps a checkpoint in OUT, so that the same command goes on where it was.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import msgspec

from harness.campaign.holding import hold
from harness.campaign.reduction.harm import harm_of, sharing
from harness.campaign.reduction.minimizing import Terms, minimize
from harness.campaign.reduction.search import Reduction
from harness.campaign.replay_command import Again
from harness.campaign.run_folder import Minimized
from harness.campaign.summary import by_cause
from harness.case.case import case_digest
from harness.case.errors import BadInput
from harness.case.interrupts import command, deferred
from harness.case.reading import read_case
from harness.case.wording import counted_as
from harness.cli.environment import installed_line, need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    ignore_option,
    jobs_option,
    json_option,
    known_option,
    read_seconds,
)
from harness.cli.results import write_json
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.reports.bugs.smallest import JSON, keep_smallest
from harness.reports.programs import programs_of
from harness.tosa.causes import Cause, marked
from harness.tosa.program import lines as program_lines
from harness.tosa.smallest import of_vela, smallest_program
from harness.triage.corpus import Entry, bugs_of, corpus_folders, known_by, with_corrections
from harness.triage.findings import Finding
from harness.triage.given import known_entries
from harness.workers.pool import Pool
from harness.workers.protocol import Task

PROGRESS_EVERY = 10.0
"""Seconds between lines of progress."""


@click.command()
@click.argument("finding", type=click.Path(path_type=Path))
@click.option("--bucket", help="Which of the case's findings. Default: the first new one, or else the first.")
@click.option("--time", "seconds", callback=read_seconds, metavar="DURATION", help="Stop after this long, e.g. 10m.")
@jobs_option
@known_option
@ignore_option
@engine_option
@correction_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("armdiff-out/reduce"),
    show_default=True,
    help="Folder for the smallest case and the checkpoint.",
)
@json_option
def reduce(
    finding: Path,
    bucket: str | None,
    seconds: float | None,
    jobs: int,
    known: tuple[Path, ...],
    ignored: tuple[str, ...],
    engine: EngineChoice,
    corrections: tuple[str, ...],
    out: Path,
    json_file: str | None,
) -> None:
    """Make a case smaller while the same bug shows, twice each time.

    Example: armdiff reduce armdiff-out/cases/1f2e3d4c5b6a.json --time 5m
    """
    started = time.monotonic()
    case = read_case(finding)
    need_environment()
    need_engine(engine, (case.target,))
    corpus = with_corrections(known_entries(corpus_folders(), known, ignored), chosen(corrections))
    bugs, folder, progress = bugs_of(corpus), out / case_digest(case), _Progress()
    hold(folder)
    with deferred(lambda: f"{progress.told}; go on with: {command()}"), Pool(jobs) as pool:
        task = Task(case=str(finding), probes="all", ethos_u_engine=engine, corrections=corrections, known=bugs)
        result = pool.run_one(task)
        trouble = result.problem or result.invalid
        if trouble is not None:
            raise BadInput(str(finding), trouble, "give a case that runs")
        wanted = _wanted(finding, result.findings, bucket, corpus)
        terms = Terms(corpus, corrections, engine, None if seconds is None else started + seconds)
        harm = harm_of([*filter(sharing(wanted, corpus), result.findings)])
        start = msgspec.structs.replace(wanted, case=str(finding))
        made, smallest = minimize(start, pool, folder, terms, progress, harm=harm)
        cause = None
        if of_vela(smallest) and made.state != "lost":
            files = programs_of(pool, Path(made.case), corrections=corrections)
            cause = None if isinstance(files, str) else smallest_program(files, smallest, bugs)
        if cause is not None:
            keep_smallest(folder, cause)
            smallest = smallest if smallest.known else marked(smallest, cause)
    write_json(json_file, {**msgspec.to_builtins(made), "finding": msgspec.to_builtins(smallest)})
    if json_file != "-":
        told = [] if cause is None else _program_listing(folder, cause)
        click.echo("\n".join([*_listing(made, smallest, Again(corrections, engine, "all")), *told]))
        click.echo(installed_line())
    sys.exit(0 if made.state != "lost" else 1)


def _wanted(file: Path, findings: tuple[Finding, ...], bucket: str | None, corpus: list[Entry]) -> Finding:
    """The finding to look for.

    :raises BadInput: the case does not show it.
    """
    counted = [item for item in findings if not item.information] or list(findings)
    if bucket is not None:
        named = [item for item in findings if item.bucket == bucket]
        if not named:
            shown = ", ".join(dict.fromkeys(item.bucket for item in findings)) or "nothing"
            raise BadInput("--bucket", f"{bucket!r} is not what {file} shows", f"it shows {shown}")
        return named[0]
    if not counted:
        raise BadInput(str(file), "shows nothing on the installed releases", "give a case with a finding")
    new = [item for item in counted if known_by(corpus, item) is None]
    return next(iter(by_cause(new or counted).values()))[0]


class _Progress:
    """Lines on standard error.

    :ivar told: how far the search has come.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.told = "no case tried yet"

    def __call__(self, reduction: Reduction) -> None:
        tries, operators = reduction.tries, len(reduction.case.graph.nodes)
        self.told = f"{counted_as(tries, 'case')} tried, {counted_as(operators, 'operator')} left"
        if time.monotonic() - self._last >= PROGRESS_EVERY:
            self._last = time.monotonic()
            click.echo(f"armdiff: {self.told}", err=True)


def _listing(made: Minimized, finding: Finding, again: Again) -> list[str]:
    words = {
        "minimized": "no cut makes it smaller",
        "stopped": "the time was over; the same command goes on",
        "lost": "it did not show a second time",
    }
    lines = [
        f"{' -> '.join(made.operators) or 'no operator'} on {finding.target} ({words[made.state]})",
        f"    {made.final}",
        f"    {finding.message}",
        f"    {_state(finding)}",
        f"    {counted_as(made.tries, 'case')} tried in {made.seconds:.0f} s",
        f"    replay: {again.command(made.case, finding.oracle)}",
    ]
    if made.neighbour is not None:
        lines.append(f"    runs clean with {made.distinguishes}: {made.neighbour}")
    return lines


def _state(finding: Finding) -> str:
    if finding.known:
        return f"known: {finding.entry}, {finding.proof or 'as --known says'}"
    return (
        f"resembles {finding.entry}, which nothing proves"
        if finding.entry
        else "new: no entry of the corpus explains it"
    )


def _program_listing(folder: Path, cause: Cause) -> list[str]:
    return [
        "    the smallest TOSA program that shows it:",
        *(f"      {line}" for line in program_lines(cause.program)),
        f"    again: armdiff vela {folder / JSON} --accelerator {cause.finding.target}",
    ]
