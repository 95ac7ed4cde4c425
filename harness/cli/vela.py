"""The verb ``vela``: TOSA programs, drawn or given, through Vela and armdiff's model, against the reference model."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.case.errors import BadInput
from harness.case.wording import counted_as
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
from harness.ethosu.accelerator import accelerator_named
from harness.reports.vela import listing, verdict
from harness.tosa.engine import BLOCK, Plan, Result, Source, run
from harness.tosa.program import Program, decode
from harness.tosa.tally import VelaTally, as_json
from harness.tosa.translating import from_flatbuffer
from harness.triage.corpus import corpus_folders
from harness.triage.given import known_entries

DEFAULT = ("ethos-u55-128", "ethos-u85-256", "ethos-u65-256")
MOST = 1000
"""Programs if neither number nor time is given."""
_EVERY = 10.0


def _read_accelerators(_: click.Context, __: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(value)) or DEFAULT
    for name in names:
        accelerator_named(name)
    return names


@click.command()
@click.argument("programs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--max-programs", "most", type=click.IntRange(1), help=f"Programs to draw. Default: {MOST}, or --time.")
@click.option("--time", "seconds", callback=read_seconds, metavar="DURATION", help="Begin no program after so long.")
@click.option(
    "--accelerator",
    "accelerators",
    multiple=True,
    callback=_read_accelerators,
    metavar="NAME",
    help=f"As Vela spells it, repeatable; blocks of {BLOCK} programs take turns. Default: {', '.join(DEFAULT)}.",
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
    seconds: float | None,
    accelerators: tuple[str, ...],
    seed: int,
    jobs: int,
    known: tuple[Path, ...],
    ignored: tuple[str, ...],
    verbose: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Compile TOSA programs with Vela, run its command streams on armdiff's model, compare with the reference model.

    PROGRAMS are files to judge, program.json of an earlier run or .tosa; without any, programs are drawn. Every
    difference of a bit, everything wrong with a stream, and Vela's deaths, hangs and appetite are findings. Neither
    PyTorch nor ExecuTorch takes part.

    Example: armdiff vela --time 60s --accelerator ethos-u85-256 --jobs 2
    """
    corpus = known_entries(corpus_folders(), known, ignored)
    given = [_read(file) for file in programs]
    if given:
        most = BLOCK * len(accelerators) * -(-len(given) // BLOCK)
    elif most is None and seconds is None:
        most = MOST
    tally = VelaTally(corpus, out / "vela")
    started = time.monotonic()
    until = float("inf") if seconds is None else started + seconds
    source = _given(given, accelerators) if given else _drawn(seed, accelerators)
    plan = Plan(source, jobs if not given else 1, most, until)
    interrupted = False
    try:
        for result in _reported(run(plan), tally):
            tally.add(result)
    except KeyboardInterrupt:
        interrupted = True
    spent = time.monotonic() - started
    rate = 60 * tally.programs.total() / max(spent, 1e-3)
    write_json(
        json_file,
        {**as_json(tally, seed=seed, accelerators=list(accelerators), wall=round(spent, 2), rate=round(rate, 1))},
    )
    if json_file != "-":
        where = ", ".join(f"{count} on {name}" for name, count in tally.programs.items())
        size = f"{counted_as(tally.programs.total(), 'program')} ({where}), {counted_as(tally.operators, 'operator')}"
        head = f"{size}, in {spent:.0f} s"
        click.echo("\n".join([f"{head} ({rate:.0f} a minute)", installed_line(), "", *listing(tally, verbose=verbose)]))
        click.echo(verdict(tally))
    if interrupted:
        click.echo(f"armdiff: interrupted; programs with findings are in {out / 'vela'}", err=True)
        sys.exit(130)
    sys.exit(1 if tally.new else 0)


def _drawn(seed: int, accelerators: Sequence[str]) -> Source:
    """Blocks take turns among the accelerators."""
    from generators.programs import draw_programs

    def source(block: int) -> tuple[str, Sequence[Program]]:
        accelerator = accelerators[block % len(accelerators)]
        return accelerator, draw_programs(seed, block, BLOCK, accelerator_named(accelerator).family)

    return source


def _given(programs: Sequence[Program], accelerators: Sequence[str]) -> Source:
    """Every program on every accelerator."""
    parts = [programs[at : at + BLOCK] for at in range(0, len(programs), BLOCK)]

    def source(block: int) -> tuple[str, Sequence[Program]]:
        return accelerators[block % len(accelerators)], parts[block // len(accelerators)]

    return source


def _read(file: Path) -> Program:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", "give a program.json or a .tosa file") from None
    if file.suffix == ".tosa":
        try:
            return from_flatbuffer(data)
        except BadInput as error:
            raise error.inside(str(file)) from None
    return decode(data, str(file))


def _reported(results: Iterator[Result], tally: VelaTally) -> Iterator[Result]:
    """The results, with a line on standard error now and then."""
    last = started = time.monotonic()
    for result in results:
        yield result
        if time.monotonic() - last > _EVERY:
            last = time.monotonic()
            count = tally.programs.total()
            click.echo(
                f"armdiff: {counted_as(count, 'program')}, {60 * count / (last - started):.0f} a minute, "
                f"{counted_as(len(tally.findings), 'finding')} ({len(tally.new)} not known)",
                err=True,
            )
