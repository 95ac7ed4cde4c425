"""The verb ``replay``: corpus entries against the status that they record for the installed releases.

An entry that fails where it should pass counts, and so does one that passes where it should
fail: then its ``status.toml`` wants an update.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click
import msgspec

from harness.case import read_case
from harness.cli.environment import installed_line, need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    jobs_option,
    json_option,
    no_warm_option,
    probes_option,
    strict_option,
)
from harness.cli.results import write_json
from harness.corpus import corpus_folders, entries, judged, with_corrections
from harness.corrections import chosen
from harness.engines import EngineChoice
from harness.pool import Pool
from harness.probes import ProbeMode
from harness.protocol import Task
from harness.summary import Tally, as_json, counted, with_unjudged
from harness.triage import DOMAINS
from harness.unjudged import counting


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@engine_option
@jobs_option
@probes_option("default")
@correction_option
@strict_option
@no_warm_option
@json_option
def replay(
    paths: tuple[Path, ...],
    engine: EngineChoice,
    jobs: int,
    probes: ProbeMode,
    corrections: tuple[str, ...],
    strict: bool,
    worker: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Run corpus entries against their recorded status for the installed releases.

    PATHS default to the checkout's corpus. Unexpected passes and unexpected failures both count. With --correction
    the bugs that it removes must be gone.

    Example: armdiff replay corpus/seeds
    """
    selected = entries(paths or corpus_folders(required=True))
    need_environment()
    if engine != "default":
        need_engine(engine, (read_case(entry.folder).target for entry in selected))
    selected = with_corrections(selected, chosen(corrections))
    tally, rows = Tally(selected, strict=strict), []
    with Pool(min(jobs, len(selected)), command=worker) as pool:
        tasks = [
            Task(case=str(entry.folder / "case.json"), probes=probes, ethos_u_engine=engine, corrections=corrections)
            for entry in selected
        ]
        for entry, result in zip(selected, pool.run(tasks), strict=True):
            tally.add(result)
            told = msgspec.structs.replace(result, findings=tuple(counted(result.findings, strict)))
            row = judged(entry, told, datetime.date.today())
            rows.append(row)
            if json_file != "-":
                click.echo(f"{'UNEXPECTED ' if row.counts else ''}{row.outcome}: {row.entry} ({row.title})")
                click.echo(f"    expected {row.expected}; {row.what}")
                for line in {item.detail.split("\n", 1)[0] for item in row.findings if item.detail.startswith(DOMAINS)}:
                    click.echo(f"    {line}")
    against = [row for row in rows if row.counts]
    tally.graphs = len(selected)
    write_json(json_file, as_json(tally, entries=[msgspec.to_builtins(row) for row in rows]))
    if json_file != "-":
        outcome = f"{len(rows)} entries on {installed_line()}: {len(against)} against expectation"
        click.echo("\n".join((*counting.lines(tally.unjudged), with_unjudged(outcome, tally))))
    sys.exit(1 if against else 0)
