"""The verb ``report``: HTML, Markdown, JUnit and JSON from the folders of runs (``harness.reports.reporting``).

Several runs (the shards of a campaign, or one on several release lines) become one report. It needs none of the
packages that a run was made with: what is known is looked up for the run's own release line, so that a CI job
may collect the folders of others and report on them. ``--issues`` also writes the issues that are worth filing
(``harness.reports.reporting.issues``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.campaign.run_folder import Run, previous_run, read_evidence, unfinished
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.cli.options import json_option, known_option
from harness.cli.results import write_json
from harness.compat.velas import PACKAGE
from harness.corrections import corrections
from harness.reports.reporting import Report, report_on, tallied, write
from harness.reports.reporting.issues import MOST, Filed, issues, read_filed, write_issues
from harness.reports.reporting.merging import missing_shards
from harness.triage.corpus import Entry, corpus_folders, judged_by, with_corrections
from harness.triage.given import known_entries

TOGETHER = Path("armdiff-report")


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--previous", type=click.Path(path_type=Path), help="The run to compare with. Default: RUN/previous.")
@click.option(
    "--out", type=click.Path(path_type=Path), help=f"Folder for the reports. Default: RUN; {TOGETHER} for several."
)
@click.option("--issues", "issues_folder", type=click.Path(path_type=Path), help="Folder for issues worth filing.")
@click.option(
    "--filed",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Issues that exist, open or closed, repeatable: 'gh issue list --json number,state,body', or lines "
    "'BUCKET URL STATE'.",
)
@click.option("--most-issues", default=MOST, show_default=True, type=click.IntRange(0), help="Issues at a time.")
@known_option
@json_option
def report(
    runs: tuple[Path, ...],
    previous: Path | None,
    out: Path | None,
    issues_folder: Path | None,
    filed: tuple[Path, ...],
    most_issues: int,
    known: tuple[Path, ...],
    json_file: str | None,
) -> None:
    """Write report.html, report.md, report.xml (JUnit) and report.json of a run, or of several together.

    RUN is the --out folder of 'armdiff fuzz'; the run may be over, interrupted or still going on. Exit status 2: a
    run or a shard is missing, damaged or did not end, whatever the others found.

    Example: armdiff report armdiff-out --previous armdiff-yesterday

    Example: armdiff report night/shard-* --out night/report --issues night/issues --filed issues.json
    """
    from harness.reports.reporting.json_data import data

    exists = [item for file in filed for item in read_filed(file)]
    read, bad = _read(runs)
    several = len(runs) > 1
    folder = out or (TOGETHER if several else runs[0])
    former = previous_run(runs[0], previous) if previous or not several else None
    parts = [tallied(run, _corpus(run, known)) for run in read]
    before = tallied(former, _corpus(read[0], known)) if former else None
    made = report_on(parts, before)
    verdict = write(made, folder)
    write_json(json_file, data(made, folder))
    if json_file != "-":
        click.echo(verdict.sentence)
        for place, bug in enumerate(made.new, 1):
            click.echo(f"  {place}. {bug.title}: {counted_as(bug.hits, 'case')} on {', '.join(bug.targets)}")
        for file in verdict.files:
            click.echo(str(file))
    if issues_folder is not None:
        _write_issues(made, exists, most_issues, issues_folder, quiet=json_file == "-")
    partial = [
        *filter(None, map(unfinished, read)),
        *(f"not among the runs: {shards}; give their folders, too" for shards in missing_shards(made.judged.infos)),
    ]
    for line in partial:
        click.echo(f"armdiff: {line}", err=True)
    sys.exit(BadInput.exit_status if bad or partial else verdict.exit_status)


def _read(folders: Sequence[Path]) -> tuple[list[Run], bool]:
    """The runs of the folders, each once, and whether one could not be read; what is wrong with it is told.

    :raises BadInput: none can be read; those before the last one are told.
    """
    once = {os.path.realpath(folder): folder for folder in reversed(folders)}
    found: list[Run] = []
    errors: list[BadInput] = []
    for folder in reversed(once.values()):
        try:
            found.append(read_evidence(folder))
        except BadInput as error:
            errors.append(error)
    told = errors if found else errors[:-1]
    for wrong in told:
        click.echo(f"armdiff: {wrong}", err=True)
    if not found:
        raise errors[-1]
    return found, bool(errors)


def _write_issues(made: Report, exists: Sequence[Filed], most: int, folder: Path, *, quiet: bool) -> None:
    to_file, held = issues(made, exists, most)
    files = write_issues(to_file, folder)
    if quiet:
        return
    for file, issue in zip(files, to_file, strict=True):
        click.echo(f"issue {file}: {issue.title}")
    for item in held:
        click.echo(f"no issue for {item.key}: {item.why}")


def _corpus(run: Run, known: Sequence[Path]) -> list[Entry]:
    """What is known on the run's release line, without the bugs that its corrections remove."""
    words, registered = run.info.asked.corrections, corrections()
    applied = [registered[word] for word in words if word in registered]
    for word in words:
        if word not in registered:  # a file is not executed again just to read about a run
            click.echo(f"armdiff: correction {word} is not in the tree: its bugs count as known if they show", err=True)
    found = known_entries(corpus_folders(), known, vela=run.info.releases.get(PACKAGE, ""))
    return with_corrections(judged_by(found, run.info.judged_as), applied)
