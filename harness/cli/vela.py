"""The verb ``vela``: TOSA programs, drawn or given, through Vela and armdiff's model, against the reference model."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from harness.campaign.run_folder import BUGS
from harness.case.errors import BadInput, CannotRun
from harness.case.interrupts import STATUS, Interrupted, again, deferred
from harness.case.wording import counted_as
from harness.cli.console import LiveLine
from harness.cli.environment import installed_line
from harness.cli.options import (
    ignore_option,
    jobs_option,
    json_option,
    known_option,
    out_option,
    read_seconds,
    seed_option,
    verbose_option,
)
from harness.cli.results import write_json
from harness.cli.vela_seeds import read_program, read_seeds
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE, vela_folder
from harness.ethosu.accelerator import ACCELERATORS, accelerator_named, in_turn
from harness.reports.bugs.of_program import DRAWN, GIVEN, MUTATED, write_causes
from harness.reports.vela import by_version, concluding, listing, verdict
from harness.tosa.causes import Causes, Reducer
from harness.tosa.comparing_twins import judge_with_twins
from harness.tosa.engine import BLOCK, Plan, Result, Source, run
from harness.tosa.program import Program
from harness.tosa.tally import VelaTally, as_json, cause_as_json
from harness.tosa.versions import Versions, tally_of
from harness.triage.corpus import bugs_of, corpus_folders
from harness.triage.given import known_entries
from harness.triage.program_entries import by_age

MOST = 1000
"""Programs if neither number nor time is given."""


def _read_accelerators(_: click.Context, __: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(value)) or tuple(ACCELERATORS)
    for name in names:
        accelerator_named(name)
    return names


def _folders(versions: Sequence[str]) -> dict[str, Path | None]:
    """Version -> its folder, the oldest first; each is installed if it is not yet."""
    here = installed().get(PACKAGE)
    if here is None:
        raise CannotRun(f"{PACKAGE} is not installed; 'pip install {PACKAGE}'")
    return {version: vela_folder(version) for version in sorted(set(versions) or {here}, key=by_age)}


@click.command()
@click.argument("programs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--max-programs", "most", type=click.IntRange(1), help=f"Programs to draw. Default: {MOST}, or --time.")
@click.option(
    "--from",
    "origins",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Mutate what is there instead of drawing, repeatable: a .tosa file, a folder, corpus/, or the folder of a "
    "run, whose cases are lowered once.",
)
@click.option("--time", "seconds", callback=read_seconds, metavar="DURATION", help="Begin no program after so long.")
@click.option(
    "--accelerator",
    "accelerators",
    multiple=True,
    callback=_read_accelerators,
    metavar="NAME",
    help=f"As Vela spells it, repeatable; families take turns every {BLOCK} programs, and the sizes of one among "
    "themselves. Default: all.",
)
@click.option(
    "--vela",
    "wanted",
    multiple=True,
    metavar="VERSION",
    help="Compile with this Vela, repeatable: what is fixed, new, came back. Fetched with pip once. "
    "Default: the installed one.",
)
@click.option(
    "--minimize/--no-minimize",
    default=True,
    help="Reduce findings that are not known to their root causes, and write a folder for Vela's tracker of each. "
    "Default: yes; with --time for half as long again at the most.",
)
@seed_option
@jobs_option
@known_option
@ignore_option
@verbose_option
@out_option
@json_option
def vela(
    programs: tuple[Path, ...],
    most: int | None,
    origins: tuple[Path, ...],
    seconds: float | None,
    accelerators: tuple[str, ...],
    wanted: tuple[str, ...],
    minimize: bool,
    seed: int,
    jobs: int,
    known: tuple[Path, ...],
    ignored: tuple[str, ...],
    verbose: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Compile TOSA programs with Vela, run its command streams on armdiff's model, compare with the reference model.

    PROGRAMS are files to judge, program.json of an earlier run or .tosa; without any, programs are drawn, or with
    --from mutated. Every difference of a bit, everything wrong with a stream, and Vela's deaths, hangs and use of
    memory are findings; so are two programs that must return the same bits and do not. Neither PyTorch nor ExecuTorch
    takes part.

    Example: armdiff vela --time 60s --accelerator ethos-u85-256 --jobs 2
    """
    corpus = known_entries(corpus_folders(), known, ignored)
    if programs and origins:
        raise BadInput("--from", "does not go with files to judge", "leave out one of them")
    given = [read_program(file) for file in programs]
    seeds: list[Program] = []
    if origins:
        with deferred(), LiveLine() as line:
            seeds = read_seeds(origins, line.say)
    if given:
        most = BLOCK * len(accelerators) * -(-len(given) // BLOCK)
    elif most is None and seconds is None:
        most = MOST
    velas = _folders(wanted)
    versions = Versions({version: tally_of(version, corpus, out / "vela") for version in velas})
    started = time.monotonic()
    source = _given(given, accelerators) if given else _drawn(seed, accelerators, seeds)
    judging = partial(judge_with_twins, every=bool(given), vetted=not origins and not given)
    interrupted, causes = "", Causes([], {})
    try:
        with deferred(lambda: f"programs with findings are in {out / 'vela'}; {again()}"), LiveLine() as line:
            for number, (version, folder) in enumerate(velas.items(), 1):
                until = float("inf") if seconds is None else started + seconds * number / len(velas)
                plan = Plan(source, jobs if not given else 1, most, until, judging, vela=folder)
                for result in _reported(run(plan), versions.tallies[version], version, line):
                    versions.add(version, result)
                if seconds is not None:  # the others judge what the first one judged
                    most = versions.blocks(version) * BLOCK
            spent = time.monotonic() - started
            tally = versions.joined()
            if minimize:
                causes = Causes(tally.findings, tally.smallest)
                until = float("inf") if seconds is None else time.monotonic() + seconds / 2
                bugs = {version: bugs_of(item.corpus) for version, item in versions.tallies.items()}
                causes.tell(Reducer(bugs, velas, hasty=True), until, line.say, jobs)
    except Interrupted as error:
        interrupted, versions = str(error), versions.begun()
        if not causes.findings:
            spent, tally = time.monotonic() - started, versions.joined()
    count = sum(item.programs.total() for item in versions.tallies.values())
    rate = 60 * count / max(spent, 1e-3)
    more = {"seed": seed, "accelerators": list(accelerators), "velas": list(velas), "wall": round(spent, 2)}
    told = [cause_as_json(cause) for cause in causes.found.values()]
    more |= {"rate": round(rate, 1), "causes": told, "interrupted": bool(interrupted)}
    write_json(json_file, {**as_json(tally, **more)})
    if json_file != "-":
        click.echo(f"{_size(tally, spent, rate)}\n{installed_line()}")
        if velas != {installed().get(PACKAGE): None}:
            click.echo("\n".join([f"compiled with Vela {', '.join(versions.tallies)}", *by_version(versions, tally)]))
        click.echo("\n".join(["", *listing(tally, causes, verbose=verbose)]))
    new = [cause for cause in causes.found.values() if not cause.finding.known]
    if not interrupted:
        for text in write_causes(new, velas, out / BUGS, emitted=GIVEN if given else MUTATED if seeds else DRAWN):
            click.echo(text, err=json_file == "-")
    if json_file != "-":
        click.echo("\n".join(["", *concluding(tally, causes)]))
        click.echo(f"{'until then: ' if interrupted else ''}{verdict(tally, causes)}")
    if interrupted:
        click.echo(interrupted, err=json_file == "-")
        sys.exit(STATUS)
    sys.exit(1 if tally.new else 0)


def _size(tally: VelaTally, seconds: float, rate: float) -> str:
    sizes: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for name, programs in tally.programs.items():
        family, _, size = name.rpartition("-")
        sizes.setdefault(family, []).append(size)
        counts[family] += programs
    where = ", ".join(f"{counts[family]} on {family}-{','.join(names)}" for family, names in sizes.items())
    count = counted_as(tally.programs.total(), "program")
    return f"{count} ({where}), {counted_as(tally.operators, 'operator')}, in {seconds:.0f} s ({rate:.0f} a minute)"


def _drawn(seed: int, accelerators: Sequence[str], seeds: Sequence[Program]) -> Source:
    """Blocks take turns among the accelerators; with seeds, programs are mutated."""
    from generators.mutations import draw_mutants
    from generators.programs import draw_programs

    turns = in_turn(accelerators)

    def source(block: int) -> tuple[str, Sequence[Program]]:
        accelerator = turns[block % len(turns)]
        family = accelerator_named(accelerator).family
        if seeds:
            return accelerator, draw_mutants(seeds, seed, block, BLOCK, family)
        return accelerator, draw_programs(seed, block, BLOCK, family)

    return source


def _given(programs: Sequence[Program], accelerators: Sequence[str]) -> Source:
    """Every program on every accelerator."""
    parts = [programs[at : at + BLOCK] for at in range(0, len(programs), BLOCK)]

    def source(block: int) -> tuple[str, Sequence[Program]]:
        return accelerators[block % len(accelerators)], parts[block // len(accelerators)]

    return source


def _reported(results: Iterator[Result], tally: VelaTally, version: str, line: LiveLine) -> Iterator[Result]:
    """The results; a line on standard error says how far they are."""
    started = time.monotonic()
    for result in results:
        yield result
        count, spent = tally.programs.total(), time.monotonic() - started
        line.now(
            f"Vela {version}: {counted_as(count, 'program')}, {60 * count / max(spent, 1e-3):.0f} a minute, "
            f"{counted_as(len(tally.findings), 'finding')} ({len(tally.new)} not known)"
        )
