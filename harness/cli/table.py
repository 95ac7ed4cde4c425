"""The verb ``table``: the corpus on every release line, as one table (``harness.triage.release_table``).

Lines are replayed one after the other in their own environments (``harness.triage.release_environments``), read
from the JSON that ``armdiff replay --json`` wrote there, or taken from what the corpus records of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.campaign.certify.evidence import certified_on
from harness.campaign.holding import hold
from harness.case.errors import BadInput, CannotRun
from harness.case.interrupts import command, deferred
from harness.cli.line_options import environments_of, lines_options
from harness.cli.options import jobs_option, json_option
from harness.cli.results import write_json
from harness.compat.releases import LINES
from harness.corrections import corrections
from harness.triage.corpus import corpus_folders, entries
from harness.triage.release_changes import ORDER, Changes, changes, told
from harness.triage.release_environments import OLDEST_FIRST, replayed
from harness.triage.release_records import recorded
from harness.triage.release_table import html, markdown, merged, spans


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=Path))
@lines_options
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    default=Path("armdiff-out/certify"),
    show_default=True,
    help="Folder of certificates (armdiff certify --out).",
)
@click.option(
    "--since", metavar="LINE|FILE", help="Say what the newest line changed since this one, or since this replay's JSON."
)
@click.option("--recorded", "records", is_flag=True, help="Take what the corpus records of each line; replay nothing.")
@jobs_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("armdiff-out/table"), show_default=True, help="Folder."
)
@json_option
def table(
    results: tuple[Path, ...],
    environments: tuple[str, ...],
    make: bool,
    lines: tuple[str, ...],
    certificates: Path,
    since: str | None,
    records: bool,
    jobs: int,
    out: Path,
    json_file: str | None,
) -> None:
    """Replay the corpus on every release line and merge the results: bug x release, Markdown and HTML.

    RESULTS are files of 'armdiff replay --json', one a line, named like it (et120.json); their lines are not
    replayed again. Writes table.md, table.html and each line's JSON into OUT. With --since, since.md and the last
    lines say what is fixed, what broke, what came back and what is left.

    Example: armdiff table --make

    Example: armdiff table --since et141 --line et141 --line default --make

    Example: armdiff table --recorded
    """
    replays = {_line_of(file): _read(file) for file in results}
    if records:
        corpus = entries(corpus_folders(required=True))
        replays |= {line: recorded(corpus, line) for line in lines if line not in replays}
    found = environments_of(environments, make)
    hold(out)
    made: list[str] = []
    covers = {item.name: item.entries for item in corrections().values()}
    certified = [row for item in corrections().values() for row in certified_on(item, certificates)]
    try:
        with deferred(lambda: f"go on with: {command(adding=made)}"):
            for line in (item for item in OLDEST_FIRST if item in lines and item not in replays):
                with found.python(line) as python:
                    if python is None:
                        found.report(f"{line}: not installed; left out (--make makes it, --env {line}=PYTHON names it)")
                        continue
                    found.report(f"{line}: replaying the corpus")
                    replays[line] = replayed(python, corpus_folders(required=True), jobs)
                    (out / f"{line}.json").write_text(json.dumps(replays[line], indent=1))
                    made.append(str(out / f"{line}.json"))
        merged_table = merged(replays, certified, covers=covers)
        changed = _changes(since, replays) if since else None
        summary = "\n".join(told(changed)) + "\n" if changed else ""
        if summary:
            (out / "since.md").write_text(summary)
        (out / "table.md").write_text(markdown(merged_table))
        (out / "table.html").write_text(html(merged_table))
    except OSError as error:
        raise CannotRun(f"{out}: cannot be written ({error.strerror}); give another --out") from None
    rows = [
        {
            "entry": row.entry,
            "lines": {line: str(cell) for line, cell in row.cells.items()},
            "versions": spans(row, merged_table),
        }
        for row in merged_table.rows
    ]
    data: dict[str, Any] = {"lines": list(merged_table.lines), "releases": dict(merged_table.releases), "bugs": rows}
    if changed:
        kinds = {kind: [{"entry": bug.entry, "upstream": bug.upstream} for bug in changed.of(kind)] for kind in ORDER}
        data["changes"] = {"before": dict(changed.before), "now": dict(changed.now), **kinds}
    write_json(json_file, data)
    if json_file != "-":
        click.echo(markdown(merged_table))
        click.echo(summary, nl=bool(summary))
        click.echo(f"{out / 'table.md'}, {out / 'table.html'}")


def _changes(since: str, replays: Mapping[str, Any]) -> Changes:
    """What the newest line that was replayed changed since an older one, or since a replay that was stored.

    :raises BadInput: there is nothing to compare with.
    """
    lines = [line for line in OLDEST_FIRST if line in replays]
    if since.endswith(".json"):
        return changes(_read(Path(since)), replays[lines[-1]], [replays[line] for line in lines[:-1]])
    if since not in LINES:
        raise BadInput("--since", f"'{since}' is no release line", f"use one of {', '.join(LINES)}, or a .json file")
    if since not in lines or since == lines[-1]:
        raise BadInput("--since", f"{since} and a newer line must be replayed", f"add --line {since}, or its JSON")
    return changes(replays[since], replays[lines[-1]], [replays[line] for line in lines[: lines.index(since)]])


def _line_of(file: Path) -> str:
    line = next((item for item in LINES if file.stem == item or file.stem.endswith(f"-{item}")), None)
    if line is None:
        raise BadInput(str(file), "its name is no release line's", f"name it {', '.join(LINES[:2])}… .json")
    return line


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(str(file), f"cannot be read ({error})", "give JSON that armdiff wrote") from None
