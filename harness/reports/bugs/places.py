"""``python -m harness.reports.bugs.places ENTRY…``: write the places at which entries' conditions hold.

``places.json`` beside ``status.toml`` has the places of the entry's own case, of every finding that one of its
conditions proves, and of faces of the bug that campaigns met (``--from RUN.json``, results with findings). A unit test
holds every condition against them and against their siblings, without running anything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from harness.case.place import Place
from harness.triage.corpus import Entry, entries
from harness.triage.findings import Finding
from harness.triage.known import KnownBug
from harness.workers.pool import Pool
from harness.workers.protocol import Task

FILE = "places.json"
MOST = 6
"""Places that are kept for a condition."""


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from", "results", multiple=True, type=click.Path(path_type=Path), help="JSON results of a campaign.")
@click.option("--cases/--no-cases", default=True, help="Run the entries' own cases.")
def main(folders: tuple[Path, ...], results: tuple[Path, ...], cases: bool) -> None:
    """Write places.json of corpus entries that have conditions."""
    chosen = [entry for entry in entries(folders) if entry.bug is not None and entry.bug.conditions]
    own = _own(chosen) if cases else [()] * len(chosen)
    faces = [item for file in results for item in _findings(file)]
    for entry, findings in zip(chosen, own, strict=True):
        assert entry.bug is not None
        places = proved_places(entry.bug, [*findings, *faces], read(entry.folder))
        (entry.folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(places), indent=1) + b"\n")
        click.echo(f"{entry.name}: {len(places)} places")
        sys.stdout.flush()


def read(folder: Path) -> tuple[Place, ...]:
    """The places that an entry has; none without a file."""
    file = folder / FILE
    return msgspec.json.decode(file.read_bytes(), type=tuple[Place, ...]) if file.exists() else ()


def proved_places(bug: KnownBug, findings: Iterable[Finding], before: Sequence[Place]) -> list[Place]:
    """Places at which a condition of the bug proves a finding, and those of before at which one holds still."""
    proved = [item.place for item in findings if item.place is not None and bug.proof(item) is not None]
    places: list[Place] = []
    counts = [0] * len(bug.conditions)
    for place in [*before, *proved]:
        held = [number for number, condition in enumerate(bug.conditions) if condition.holds(place)]
        if place not in places and any(counts[number] < MOST for number in held):
            places.append(place)
            for number in held:
                counts[number] += 1
    return places


def _own(chosen: Sequence[Entry]) -> list[tuple[Finding, ...]]:
    tasks = [Task(case=str(entry.folder / "case.json"), confirm=False) for entry in chosen]
    with Pool(1) as pool:
        return [result.findings for result in pool.run(tasks)]


def _findings(file: Path) -> list[Finding]:
    return [msgspec.convert(item, Finding) for item in json.loads(file.read_text())["findings"]]


if __name__ == "__main__":
    main()
