"""The verb ``bench``: how fast armdiff is beside upstream's tester and the plain sequence (``harness.cli.benchmark``).

Exit status 0 whatever the figures are: they are for people and CI to judge; with ``--same`` 1 if warm workers emit
other programs than cold ones. Writes ``bench/`` in ``--out``: the cases, ``bench.json`` and ``bench.html``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from harness.campaign.holding import hold
from harness.case.errors import CannotRun
from harness.case.target import parse_target
from harness.case.wording import counted_as
from harness.cli.benchmark import memory as worker_memory
from harness.cli.benchmark import vela_engine
from harness.cli.benchmark.contest import Contest, Contestant
from harness.cli.benchmark.contestant import ARMDIFF, PLAIN_SEQUENCE, UPSTREAM_TESTER
from harness.cli.benchmark.figures import Sample
from harness.cli.benchmark.growth import chains, measure, sizes_of
from harness.cli.benchmark.growth import table as growth_table
from harness.cli.benchmark.output import Outcome, as_json, lines, page
from harness.cli.benchmark.rediscovery import figures as rediscovery
from harness.cli.benchmark.rediscovery import running
from harness.cli.benchmark.rediscovery.contestants import CONTESTANTS
from harness.cli.benchmark.rediscovery.course import answer_key, told_by_cause
from harness.cli.benchmark.same_programs import compare
from harness.cli.benchmark.same_programs import lines as same_programs_lines
from harness.cli.benchmark.subjects import Subject, drawn, models
from harness.cli.benchmark.tricks import gains, table
from harness.cli.environment import installed_line, need_engine, need_environment
from harness.cli.options import jobs_option, json_option, out_option, read_seconds, seed_option, target_option
from harness.cli.results import write_json
from harness.triage.corpus import corpus_folders, entries


@click.command()
@click.option("--graphs", default=40, show_default=True, type=click.IntRange(1), help="Generated graphs.")
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1), help="Times that each is measured.")
@click.option("--models/--no-models", "with_models", default=True, help="Also four small models. Default: yes.")
@click.option("--tricks", is_flag=True, help="Measure what each warm trick gains instead (generated graphs only).")
@click.option("--growth", is_flag=True, help="Measure chains of 1 to 64 operators instead.")
@click.option(
    "--same", is_flag=True, help="Compare what workers with and without warm tricks emit instead, corpus too."
)
@click.option(
    "--vela",
    "vela_programs",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=1000,
    metavar="[PROGRAMS]",
    help="Measure how many programs a minute 'armdiff vela' judges instead, of so many on each Ethos-U. Default: 1000.",
)
@click.option(
    "--memory", is_flag=True, help="Measure what one worker holds after each case instead, and whether it grows."
)
@click.option(
    "--rediscover",
    "processor",
    is_flag=False,
    flag_value="20m",
    callback=read_seconds,
    metavar="[DURATION]",
    help="Measure how soon each of the corpus's root causes is found again instead, with so much processor time for "
    "each contestant and seed. Given again with more, it goes on. Default: 20m, ten minutes on two cores.",
)
@click.option(
    "--contestant",
    "contestants",
    multiple=True,
    metavar="NAME",
    help=f"Of --rediscover, repeatable: {', '.join(CONTESTANTS)}. Default: all that know nothing of the corpus.",
)
@click.option(
    "--seeds", default=3, show_default=True, type=click.IntRange(1), help="Of --rediscover: from --seed on, so many."
)
@click.option("--no-warm", is_flag=True, help="armdiff without any warm trick.")
@jobs_option
@seed_option
@target_option
@out_option
@json_option
def bench(
    graphs: int,
    rounds: int,
    with_models: bool,
    tricks: bool,
    growth: bool,
    same: bool,
    vela_programs: int | None,
    memory: bool,
    processor: float | None,
    contestants: tuple[str, ...],
    seeds: int,
    no_warm: bool,
    jobs: int,
    seed: int,
    targets: tuple[str, ...],
    out: Path,
    json_file: str | None,
) -> None:
    """Measure armdiff against upstream's own tester and the plain sequence of upstream calls, in turn.

    Example: armdiff bench --graphs 6 --rounds 2 --json -
    """
    need_environment()
    need_engine("default", targets)
    if vela_programs is not None:
        _measure_vela(targets, jobs, vela_programs, seed, json_file)
        return
    folder = out / "bench"
    hold(folder)
    if processor is not None:
        _measure_rediscovery(contestants, range(seed, seed + seeds), processor, targets, folder, json_file, jobs)
        return
    if growth:
        _measure_growth(chains(targets, folder), rounds, json_file)
        return
    warm_up, *subjects = drawn(graphs + 1, targets, seed, folder)
    if memory:
        _measure_memory(subjects, json_file)
        return
    if tricks:
        _measure_tricks([warm_up, *subjects], rounds, json_file)
        return
    if with_models:
        subjects += models(targets, folder)
    if same:
        _compare([file for subject in (warm_up, *subjects) for file in subject.cases], json_file)
    if importlib.util.find_spec("pytest") is None:
        raise CannotRun("upstream's tester imports pytest, which is not installed; 'pip install pytest'")
    without = ("all",) if no_warm else ()
    compared = (
        Contestant(UPSTREAM_TESTER, UPSTREAM_TESTER),
        Contestant(PLAIN_SEQUENCE, PLAIN_SEQUENCE),
        Contestant(ARMDIFF, ARMDIFF, without),
    )
    samples: list[Sample] = []
    with Contest(compared) as contest:
        _say("starting three contestants (torch and executorch take 5 to 9 s to import, each)")
        contest.warm_up(warm_up)
        for sample in contest.run(subjects, rounds):
            samples.append(sample)
            _say(_progress(sample, len(samples), len(subjects) * rounds * len(compared)))
    names = tuple(item.name for item in compared)
    outcome = Outcome(targets, seed, rounds, names, tuple(samples), contest.ready, without)
    data = as_json(outcome)
    write_json(str(folder / "bench.json"), data)
    (folder / "bench.html").write_text(page(outcome))
    write_json(json_file, data)
    if json_file != "-":
        click.echo("\n".join([installed_line(), *lines(outcome), "", f"plot {folder / 'bench.html'}"]))


def _measure_tricks(subjects: list[Subject], rounds: int, json_file: str | None) -> None:
    found = gains(subjects, rounds, lambda trick, sample: _say(f"{trick}: {_progress(sample)}"))
    data: dict[str, Any] = {"tricks": [msgspec.to_builtins(gain) for gain in found], "graphs": len(subjects) - 1}
    write_json(json_file, data)
    if json_file != "-":
        click.echo("\n".join([installed_line(), "seconds without a trick over seconds with all:", "", *table(found)]))


def _measure_memory(subjects: list[Subject], json_file: str | None) -> None:
    found, peak = worker_memory.readings(subjects, _say)
    write_json(json_file, worker_memory.as_json(found, peak))
    if json_file != "-":
        click.echo("\n".join([installed_line(), *worker_memory.lines(found, peak)]))


def _measure_rediscovery(
    names: Sequence[str],
    seeds: Sequence[int],
    seconds: float,
    targets: tuple[str, ...],
    folder: Path,
    file: str | None,
    jobs: int,
) -> None:
    names, corpus = running.contestants_named(names), entries(corpus_folders())
    found = running.courses(names, seeds, seconds, targets, folder, corpus, _say, jobs)
    named = running.root_causes(corpus)
    found = [told_by_cause(course, named) for course in found]
    key = answer_key(corpus, targets, named)
    write_json(file, rediscovery.as_json(found, key))
    if file != "-":
        click.echo("\n".join([installed_line(), *rediscovery.lines(found, key)]))


def _measure_growth(subjects: list[Subject], rounds: int, json_file: str | None) -> None:
    found = sizes_of(measure(subjects, rounds, lambda sample: _say(f"chain of {_progress(sample)}")))
    write_json(json_file, {"sizes": [msgspec.to_builtins(size) for size in found], "rounds": rounds})
    if json_file != "-":
        click.echo("\n".join([installed_line(), "seconds of a chain on all targets:", "", *growth_table(found)]))


def _measure_vela(targets: tuple[str, ...], jobs: int, programs: int, seed: int, json_file: str | None) -> None:
    accelerators = [name for name in targets if parse_target(name).ethos_u]
    rows = []
    for row in vela_engine.measured(accelerators, jobs, programs, seed):
        rows.append(row)
        _say(f"{row.accelerator}, {counted_as(row.jobs, 'job')}: {row.per_minute:.0f} programs a minute")
    write_json(json_file, vela_engine.as_json(rows, seed))
    if json_file != "-":
        click.echo("\n".join([installed_line(), *vela_engine.lines(rows)]))


def _compare(subjects: list[Path], json_file: str | None) -> NoReturn:
    """Compare warm and cold programs of the subjects and the corpus, and end with the verdict as exit status."""
    files = [*subjects, *(entry.folder / "case.json" for entry in entries(corpus_folders()))]
    found = []
    for row in compare(files):
        found.append(row)
        verdict = row.difference or ("not repeatable" if row.unstable else "the same")
        _say(f"{len(found)}/{len(files)} {row.case}: {verdict}")
    write_json(json_file, {"cases": [msgspec.to_builtins(row) for row in found]})
    if json_file != "-":
        click.echo("\n".join([installed_line(), *same_programs_lines(found)]))
    sys.exit(1 if any(row.difference for row in found) else 0)


def _progress(sample: Sample, done: int = 0, of: int = 0) -> str:
    count = f"{done}/{of} " if of else ""
    ended = f", failed on {', '.join(sample.failed)}" if sample.failed else ""
    return f"{count}{sample.subject} {sample.contestant}: {sample.wall:.2f} s{ended}"


def _say(line: str) -> None:
    click.echo(f"armdiff: {line}", err=True)
