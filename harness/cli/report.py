"""The verb ``report``: HTML, Markdown, JUnit and JSON from the folder of a run (``harness.reporting``).

Needs none of the packages that the run was made with: what is known is looked up for the run's own release
line, so that a CI job may collect the folders of others and report on them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.environment import corpus_folders
from harness.cli.options import json_option, known_option
from harness.cli.results import write_json
from harness.corpus import Entry, on_line, with_corrections
from harness.corrections import corrections
from harness.known import known_entries
from harness.reporting import make_report, write
from harness.reporting.words import counted
from harness.runs import Run, previous_run, read_run


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--previous", type=click.Path(path_type=Path), help="The run to compare with. Default: RUN/previous.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the reports. Default: RUN.")
@known_option
@json_option
def report(run: Path, previous: Path | None, out: Path | None, known: tuple[Path, ...], json_file: str | None) -> None:
    """Write report.html, report.md, report.xml (JUnit) and report.json of a run.

    RUN is the --out folder of 'armdiff fuzz'; the run may be over, interrupted or still going on.

    Example: armdiff report armdiff-out --previous armdiff-yesterday
    """
    from harness.reporting.plain import data

    this, former = read_run(run), previous_run(run, previous)
    made = make_report(this, _corpus(this, known), former)
    verdict = write(made, out or run)
    write_json(json_file, data(made))
    if json_file != "-":
        click.echo(verdict.sentence)
        for place, bug in enumerate(made.new, 1):
            click.echo(f"  {place}. {bug.title}: {counted(bug.hits, 'case')} on {', '.join(bug.targets)}")
        for file in verdict.files:
            click.echo(str(file))
    sys.exit(verdict.exit_status)


def _corpus(run: Run, known: Sequence[Path]) -> list[Entry]:
    """What is known on the run's release line, without the bugs that its corrections remove."""
    words, registered = run.info.asked.corrections, corrections()
    applied = [registered[word] for word in words if word in registered]
    for word in words:
        if word not in registered:  # a file is not executed again just to read about a run
            click.echo(f"armdiff: correction {word} is not in the tree: its bugs count as known if they show", err=True)
    return with_corrections(on_line(known_entries(corpus_folders(), known), run.info.line), applied)
