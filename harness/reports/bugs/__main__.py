"""``python -m harness.reports.bugs FOLDER…``: repro.py and REPORT.md for entries of a corpus, or again for bug folders.

Each case runs once in a worker, for the finding that its status names on the installed release line; then every
script is tried in a fresh process. ``status.toml`` is read, never written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.case.errors import ArmdiffError, CannotRun
from harness.pipeline.doctor import required_missing
from harness.reports.bugs.of_entry import named
from harness.reports.bugs.writing import write_bug
from harness.triage.corpus import Entry, default_certificates, entries
from harness.triage.findings import Finding
from harness.workers.pool import Pool
from harness.workers.protocol import Task


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    help="Folder with certificates, LINE/CORRECTION.json. Default: certificates/ of the checkout's corpus.",
)
def main(folders: tuple[Path, ...], certificates: Path | None) -> None:
    """Write repro.py and REPORT.md into corpus entries or bug folders."""
    try:
        _write(folders, certificates or default_certificates())
    except ArmdiffError as error:
        click.echo(f"armdiff: {error}", err=True)
        sys.exit(error.exit_status)


def _write(folders: Sequence[Path], certificates: Path | None) -> None:
    if missing := required_missing():
        raise CannotRun(f"not installed: {', '.join(item.name for item in missing)}; {missing[0].remedy}")
    chosen = [entry for entry in entries(folders) if entry.expected and entry.expected.status == "reproduces"]
    found = dict(zip([entry.name for entry in chosen], _findings(chosen), strict=True))
    for entry in chosen:
        finding = found[entry.name]
        if finding is None:
            click.echo(f"{entry.name}: not found again; 'armdiff replay {entry.folder}' says what is")
            continue
        outcome = write_bug(entry.folder, entry.folder / "case.json", finding, certificates=certificates)
        click.echo(f"{entry.name}: {outcome}")
        sys.stdout.flush()


def _findings(chosen: Sequence[Entry]) -> list[Finding | None]:
    tasks = [Task(case=str(entry.folder / "case.json"), confirm=False) for entry in chosen]
    with Pool(1) as pool:
        return [named(entry, result.findings) for entry, result in zip(chosen, pool.run(tasks), strict=True)]


if __name__ == "__main__":
    main()
