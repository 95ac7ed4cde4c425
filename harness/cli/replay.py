"""The verb ``replay``: corpus entries against the status that they record, and what any case shows now.

An entry (a folder with ``status.toml``) that fails where it should pass counts, and so does one that passes where
it should fail: then its ``status.toml`` wants an update. Anything else is a case: a file, or a folder with
``case.json``, of a run or from elsewhere. It runs through every leg and oracle; its findings are listed as those of
a campaign, and known is what the checkout's corpus knows.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import click
import msgspec

from harness.campaign.recording import expectation_of, record
from harness.campaign.replay_command import Again
from harness.campaign.replaying import Replayed, held_against_status
from harness.campaign.summary import Tally, as_json, counted, until_interrupted
from harness.case.building import load_tensors
from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.interrupts import Interrupted, command
from harness.case.reading import file_of, read_case
from harness.case.wording import counted_as
from harness.cli.environment import installed_line, need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    jobs_option,
    json_option,
    no_warm_option,
    probes_option,
    strict_option,
    verbose_option,
)
from harness.cli.results import finish, write_json
from harness.compat.releases import release_line
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.reports.listing import with_unjudged
from harness.reports.programs import keep, programs_of
from harness.triage.corpus import STATUS, Entry, bugs_of, corpus_folders, entries, with_corrections
from harness.triage.findings import DOMAINS
from harness.triage.given import known_entries
from harness.triage.unjudged import counting
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, Task

UNUSABLE = 2
"""Exit status if a case could not be run, and nothing new was found in the others."""
MOST_NAMED = 20
"""Cases that are named in the command that goes on; where more are left it is the same command."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@engine_option
@jobs_option
@probes_option("default")
@correction_option
@strict_option
@verbose_option
@no_warm_option
@click.option(
    "--keep",
    "kept_in",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the .pte and .tosa files of each case there.",
)
@click.option(
    "--record", "recording", is_flag=True, help="Write what a line shows into entries that say nothing of it."
)
@json_option
def replay(
    paths: tuple[Path, ...],
    engine: EngineChoice,
    jobs: int,
    probes: ProbeMode,
    corrections: tuple[str, ...],
    strict: bool,
    verbose: bool,
    worker: tuple[str, ...],
    kept_in: Path | None,
    recording: bool,
    json_file: str | None,
) -> None:
    """Run corpus entries against their recorded status for the installed releases, and show what a case shows now.

    PATHS are corpus folders or entries (default: the checkout's corpus), case files, and folders with a case.json
    and no status.toml. Of entries, unexpected passes and unexpected failures both count; of cases, every finding
    that the checkout's corpus does not know. With --correction the bugs that it removes must be gone.

    Example: armdiff replay corpus/seeds

    Example: armdiff replay armdiff-out/cases/1f2e3d4c5b6a.json --probes all

    Example: armdiff replay armdiff-out/cases/1f2e3d4c5b6a.json --keep armdiff-out/files

    Example: armdiff replay corpus --record
    """
    if recording and (release_line() is None or corrections):
        raise BadInput("--record", "needs a release line, and no corrections", "install a line of docs/releases.md")
    folders, files = sorted_out(paths or corpus_folders(required=True))
    selected, cases = entries(folders), {file: _readable(file) for file in files}
    targets = [case.target for case in cases.values()]
    need_environment()
    if engine != "default":
        need_engine(engine, [*(read_case(entry.folder).target for entry in selected), *targets])
    selected = with_corrections(selected, chosen(corrections), known_entries(corpus_folders()))
    tally, shown = Tally(selected, strict=strict), _tally_of_cases(corrections, engine, probes, strict)
    known = bugs_of(shown.corpus)
    tasks = [
        Task(case=str(file), probes=probes, ethos_u_engine=engine, corrections=corrections, known=bugs)
        for files, bugs in (((entry.folder / "case.json" for entry in selected), ()), (cases, known))
        for file in files
    ]
    rows: list[Replayed] = []

    def goes_on() -> str:
        left = [str(item) for item in (*(entry.folder for entry in selected), *cases)][tally.cases :]
        shorter = command(adding=left, dropping={str(path) for path in paths})
        return f"go on with: {shorter if len(left) <= MOST_NAMED else command()}"

    with until_interrupted(tally, goes_on), Pool(min(jobs, len(tasks)), command=worker) as pool:
        results = pool.run(tasks)
        for entry, result in zip(selected, islice(results, len(selected)), strict=True):
            tally.add(result)
            told = msgspec.structs.replace(result, findings=tuple(counted(result.findings, strict)))
            rows.append(held_against_status(entry, told, datetime.date.today()))
            recorded = _recorded(entry, rows[-1]) if recording else ""
            if json_file != "-":
                click.echo("\n".join((*_told(rows[-1]), *([recorded] if recorded else []))))
        tally.corpus = shown.corpus
        for result in results:
            for each in (tally, shown):
                each.add(_explained(result))
        if kept_in is not None:
            _keep(pool, [*(entry.folder / "case.json" for entry in selected), *cases], kept_in, corrections)
    shown.interrupted = tally.interrupted
    tally.graphs, shown.graphs = len(tasks), len(cases)
    against = sum(row.counts for row in rows)
    data = {"entries": [msgspec.to_builtins(row) for row in rows], "corrections": list(corrections)}
    if rows and json_file != "-":
        outcome = f"{counted_as(len(rows), 'entry')} on {installed_line()}: {against} against expectation"
        click.echo("\n".join((*counting.lines(tally.unjudged), with_unjudged(outcome, tally))))
    if cases:
        status = 1 if against else UNUSABLE if shown.problems else 0
        finish(tally, json_file, _title(list(cases)), listed=shown, verbose=verbose, otherwise=status, **data)
    write_json(json_file, as_json(tally, interrupted=bool(tally.interrupted), **data))
    if tally.interrupted:
        raise Interrupted(tally.interrupted)
    sys.exit(1 if against else 0)


def sorted_out(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """What is to be looked at as corpus entries, and the case files."""
    folders: list[Path] = []
    files: dict[Path, None] = {}
    for path in paths:
        bare = (path / "case.json").exists() and not (path / STATUS).exists()
        if path.suffix == ".json" or path.is_file() or bare:
            files[file_of(path)] = None
        else:
            folders.append(path)
    return folders, list(files)


def _readable(file: Path) -> Case:
    """A case whose tensors are there.

    :raises BadInput: naming the file, the field and the remedy.
    """
    case = read_case(file)
    try:
        load_tensors(case, file.parent)
    except BadInput as error:
        raise error.inside(f"{file}: $.tensors") from None
    return case


def _keep(pool: Pool, files: Sequence[Path], folder: Path, corrections: tuple[str, ...]) -> None:
    """Write what cases compile to; one in ``case.json`` is called like its folder."""
    for file in files:
        name = file.resolve().parent.name if file.name == "case.json" else file.stem
        made = programs_of(pool, file, name, corrections)
        told = [f"armdiff: nothing to keep: {made}"] if isinstance(made, str) else map(str, keep(made, folder))
        click.echo("\n".join(told), err=True)


def _tally_of_cases(corrections: tuple[str, ...], engine: EngineChoice, probes: ProbeMode, strict: bool) -> Tally:
    """Of the cases: known is what the checkout's corpus knows while corrections apply."""
    corpus = with_corrections(known_entries(corpus_folders()), chosen(corrections))
    return Tally(corpus, strict=strict, again=Again(corrections, engine, probes))


def _explained(result: CaseResult) -> CaseResult:
    """A result whose trouble names its case, and what to do about it."""
    trouble = result.problem
    if result.invalid is not None:
        trouble = f"the module {result.invalid}; give a case that runs in float eager"
    if trouble is not None and result.case not in trouble:
        trouble = f"{result.case}: {trouble}"
    return msgspec.structs.replace(result, problem=trouble)


def _recorded(entry: Entry, row: Replayed) -> str:
    """Write what an entry showed into its status; the line to say of it."""
    line = release_line()
    if row.outcome != "no expectation" or line is None:
        return ""
    expected = expectation_of(entry, row)
    if expected is None:
        return f"    not recorded: say in {entry.folder / STATUS} what this is"
    record(entry, line, expected)
    return f"    recorded: {expected.status} on {line}"


def _told(row: Replayed) -> list[str]:
    domains = {item.detail.split("\n", 1)[0] for item in row.findings if item.detail.startswith(DOMAINS)}
    return [
        f"{'UNEXPECTED ' if row.counts else ''}{row.outcome}: {row.entry} ({row.title})",
        f"    expected {row.expected}; {row.what}",
        *(f"    {line}" for line in domains),
    ]


def _title(files: Sequence[Path]) -> str:
    return f"{files[0]}: what it shows now" if len(files) == 1 else f"{len(files)} cases: what they show now"
