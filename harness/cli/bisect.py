"""The verb ``bisect``: one case on every release line, oldest first: where does the bug begin and end?

A line has the bug if the case fails there with the bucket that is asked for; without one, with any
finding that counts. Findings of other corpus entries' bugs do not count.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from harness.case.errors import CannotRun
from harness.case.interrupts import command, deferred
from harness.case.reading import file_of, read_case
from harness.cli.line_options import environments_of, lines_options
from harness.cli.options import json_option
from harness.cli.results import write_json
from harness.triage.release_environments import OLDEST_FIRST, replayed

_UNEXPECTED = 'title = "bisected"\nexpires = 2999-01-01\n'


@click.command()
@click.argument("case", type=click.Path(path_type=Path))
@click.option("--bucket", default="", help="A part of the bucket that is the bug, e.g. numeric/outside-rounding.")
@lines_options
@json_option
def bisect(
    case: Path,
    bucket: str,
    environments: tuple[str, ...],
    make: bool,
    lines: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Run a case on the release lines and name the first and the last release that has its bug.

    CASE is a case file or a corpus entry. Lines whose environment is neither there nor made (--make) are named.

    Example: armdiff bisect corpus/found/neg-ignores-scale
    """
    found = environments_of(environments, make)
    read_case(case)
    rows: list[dict[str, Any]] = []
    wanted = [item for item in OLDEST_FIRST if item in lines]

    def goes_on() -> str:
        return f"go on with: {command(instead={'--line': wanted[len(rows) :]})}"

    with deferred(goes_on), tempfile.TemporaryDirectory(prefix="armdiff-bisect-") as folder:
        entry = _entry(case, Path(folder))
        for line in wanted:
            with found.python(line) as python:
                if python is None:
                    rows.append({"line": line, "state": "not installed", "what": "--make makes it"})
                    continue
                found.report(f"{line}: running the case")
                rows.append(_row(line, replayed(python, [entry], 1), bucket))
            if json_file != "-":
                click.echo(f"{rows[-1]['line']}: {rows[-1]['state']}: {rows[-1]['what'][:200]}")
    with_bug = [row for row in rows if row["state"] == "has it"]
    ends = {"first": with_bug[0] if with_bug else None, "last": with_bug[-1] if with_bug else None}
    write_json(json_file, {"case": str(case), "lines": rows, **ends})
    if json_file != "-":
        tried = sum(row["state"] in ("has it", "does not") for row in rows)
        if not tried:
            raise CannotRun("no release line could run the case; see the lines above")
        text = "no line has the bug"
        if with_bug:
            words = [
                f"executorch {row['releases']['executorch']} ({row['line']})" for row in (with_bug[0], with_bug[-1])
            ]
            text = f"first release with the bug: {words[0]}; last: {words[1]}"
        click.echo(f"{text}; {tried} of {len(rows)} lines tried")
    sys.exit(1 if with_bug else 0)


def _entry(case: Path, folder: Path) -> Path:
    """The case as a corpus entry without expectations, or the entry that it is."""
    if (case / "status.toml").exists():
        return case.resolve()
    source = file_of(case)
    shutil.copy(source, folder / "case.json")
    for tensors in source.parent.glob("*.safetensors"):
        shutil.copy(tensors, folder)
    (folder / "status.toml").write_text(_UNEXPECTED)
    return folder


def _row(line: str, data: dict[str, Any], bucket: str) -> dict[str, Any]:
    [entry] = data["entries"]
    hits = [item for item in entry["findings"] if bucket in item["bucket"] and not item["information"]]
    state = "cannot run" if entry["outcome"] == "cannot run" else "has it" if hits else "does not"
    what = f"{hits[0]['bucket']}: {hits[0]['message']}" if hits else entry["what"]
    return {"line": line, "state": state, "what": what, "releases": data["releases"]}
