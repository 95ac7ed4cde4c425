"""``python -m harness.reports.bugs FOLDER…``: repro.py and REPORT.md for entries of a corpus, or again for bug folders.

Each case runs once in a worker, for the finding that its status names on the installed release line; then every
script is tried in a fresh process. ``status.toml`` is read, never written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from harness.case.errors import ArmdiffError, CannotRun
from harness.pipeline.doctor import required_missing
from harness.reports.bugs.writing import write_bug
from harness.triage.buckets import any_pass, pass_of
from harness.triage.corpus import Entry, Expectation, default_corpus, entries
from harness.triage.findings import Finding
from harness.workers.pool import Pool
from harness.workers.protocol import Task

_PLACE = ("output", "input", "bound", "unit")
"""What a script needs to know to show wrong values."""


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    help="Folder with certificates, LINE/CORRECTION.json. Default: certificates/ of the checkout's corpus.",
)
def main(folders: tuple[Path, ...], certificates: Path | None) -> None:
    """Write repro.py and REPORT.md into corpus entries or bug folders."""
    corpus = default_corpus()
    try:
        _write(folders, certificates or (corpus / "certificates" if corpus else None))
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


def named(entry: Entry, findings: Sequence[Finding]) -> Finding | None:
    """The finding that an entry's status names, with the pass that it names (one run does not look for it)."""
    expected = entry.expected
    assert expected is not None
    for finding in findings:
        if any_pass(finding.bucket) == any_pass(expected.bucket):
            return msgspec.structs.replace(
                finding,
                bucket=expected.bucket,
                pass_name=pass_of(expected.bucket),
                measured={**_where_it_shows(expected, findings), **finding.measured},
            )
    return None


def _where_it_shows(expected: Expectation, findings: Sequence[Finding]) -> dict[str, Any]:
    """Output, input and allowed distance of the wrong values in which the very bug shows as well, if it does.

    A finding about qparams has none of these; its script would look at every input, and allow one step for each.
    """
    for finding in findings:
        if "distance" in finding.measured and finding.bucket in expected.also:
            return {name: finding.measured[name] for name in _PLACE if name in finding.measured}
    return {}


if __name__ == "__main__":
    main()
