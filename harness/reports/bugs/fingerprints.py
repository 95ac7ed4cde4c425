"""``python -m harness.reports.bugs.fingerprints ENTRY…``: write the fingerprints of entries of Vela's bugs.

The TOSA files beside each entry's case are judged and reduced by the Vela engine. The fingerprint of the smallest
program goes into ``status.toml``, the program beside it (``smallest.tosa``) and into ``REPORT.md``. A second one is
that of a reduction in which the entry's conditions need not hold, as for a finding that nothing proves yet, if it comes
to the same operators. Fingerprints that an entry has are kept: a bug may have several faces. A reduction that was cut
short says nothing. At the end it says which entries have one fingerprint: they are one bug, or the fingerprint says too
little.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import click

from harness.campaign.recording import add_fingerprint
from harness.case.errors import ArmdiffError
from harness.case.reading import read_case
from harness.evidence.observation import CRASH
from harness.reports.bugs.smallest import TOSA, keep_smallest, with_smallest
from harness.tosa.causes import Cause
from harness.tosa.program import chain
from harness.tosa.reducing import SECONDS
from harness.tosa.smallest import smallest_program
from harness.triage.corpus import Entry, entries, read_entry
from harness.triage.findings import Finding


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--seconds", default=SECONDS, show_default=True, help="CPU seconds for each reduction.")
def main(folders: tuple[Path, ...], seconds: float) -> None:
    """Write fingerprints into corpus entries of Vela's bugs."""
    try:
        chosen = [entry for entry in entries(folders) if entry.status.package == "ethos-u-vela"]
        having: dict[str, list[str]] = defaultdict(list)
        for entry in chosen:
            cause = cause_of(entry, seconds)
            if cause is not None and cause.ended:
                free = cause_of(entry, seconds, freely=True)
                if free is not None and free.ended and chain(free.program) == chain(cause.program):
                    add_fingerprint(entry, free.fingerprint)
                    entry = read_entry(entry.folder)
                add_fingerprint(entry, cause.fingerprint)
                keep_smallest(entry.folder, cause)
                report = entry.folder / "REPORT.md"
                if report.exists():
                    report.write_text(with_smallest(report.read_text(), cause))
                having[cause.fingerprint].append(entry.name)
            click.echo(f"{entry.name}: {_told(cause)}")
            sys.stdout.flush()
    except ArmdiffError as error:
        click.echo(f"armdiff: {error}", err=True)
        sys.exit(error.exit_status)
    for fingerprint, names in having.items():
        if len(names) > 1:
            click.echo(f"one fingerprint: {', '.join(names)}: {fingerprint}")


def _told(cause: Cause | None) -> str:
    if cause is None:
        return "its TOSA files show nothing without the module"
    words = "" if cause.ended else ", cut short and not kept (more --seconds would end it)"
    return f"{len(cause.program.operators)} operators after {cause.seconds:.1f} s{words}: {cause.fingerprint}"


def cause_of(entry: Entry, seconds: float = SECONDS, *, freely: bool = False) -> Cause | None:
    """The smallest program of what an entry says that it shows; None if its TOSA files do not.

    :param freely: the entry's conditions need not hold at the smallest program, as for a finding that nothing proves.
    """
    files = {file.name: file.read_bytes() for file in entry.folder.glob("*.tosa") if file.name != TOSA}
    expected, bug = entry.expected, entry.bug
    if expected is None or bug is None or not files:
        return None
    words = expected.bucket.split("/")
    finding = Finding(
        bucket=expected.bucket,
        oracle=words[1],
        kind=words[2],
        target=read_case(entry.folder / "case.json").target,
        stage=words[3],
        pass_name=words[4],
        message=expected.message,
        case="",
        measured={"type": words[6].partition("|")[0]} if words[1] == CRASH else {},
    )
    return smallest_program(files, finding, () if freely else (bug,), seconds)


if __name__ == "__main__":
    main()
