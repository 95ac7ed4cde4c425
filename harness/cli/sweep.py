"""The verb ``sweep``: the pass-level mode (``harness.campaign.breadth``), and the full pipeline for its suspects."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from harness.campaign.breadth.choosing import Sweep
from harness.campaign.campaign import Options, Progress, graph_cases, keep_hypothesis_in, write_case
from harness.campaign.replay_command import Again
from harness.campaign.summary import Tally, until_interrupted
from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.case.wording import counted_as
from harness.cli.console import Reporter
from harness.cli.environment import need_environment
from harness.cli.options import (
    correction_option,
    jobs_option,
    json_option,
    no_warm_option,
    out_option,
    read_seconds,
    seed_option,
)
from harness.cli.results import finish
from harness.corrections import chosen
from harness.triage.corpus import bugs_of, corpus_folders, entries, with_corrections
from harness.workers.pool import Pool
from harness.workers.protocol import SweepTask, Task


@click.command()
@click.argument("cases", nargs=-1, type=click.Path(path_type=Path))
@click.option("--graphs", default=20, show_default=True, type=click.IntRange(1), help="Generated graphs.")
@click.option("--variants", default=30, show_default=True, type=click.IntRange(1), help="Variants of each.")
@click.option("--target", default="TOSA-1.0+INT", show_default=True, help="Compile target, a TOSA one.")
@click.option("--time", "seconds", callback=read_seconds, help="Begin no further graph after so long, e.g. 90s or 5m.")
@seed_option
@jobs_option
@correction_option
@no_warm_option
@out_option
@json_option
def sweep(
    cases: tuple[Path, ...],
    graphs: int,
    variants: int,
    target: str,
    seconds: float | None,
    seed: int,
    jobs: int,
    corrections: tuple[str, ...],
    worker: tuple[str, ...],
    out: Path,
    json_file: str | None,
) -> None:
    """Run only the Arm passes on many calibrations and recipes of each graph; confirm what that finds.

    CASES are case files to vary; without any, graphs are generated. The edge program of a graph is made once, so
    that variants cost a fraction of a case. What the oracles of qparams, constants and crashes suspect is run by the
    full pipeline, and counts if it shows there.

    Example: armdiff sweep --graphs 40 --seed 7
    """
    need_environment()
    if parse_target(target, "--target").ethos_u or not parse_target(target).quantized:
        raise BadInput("--target", f"{target} is no TOSA target with quantization", "use TOSA-1.0+INT")
    given = [_read(file, target) for file in cases]
    campaign = Options((target,), max_examples=graphs, seed=seed, out=out)
    corpus = with_corrections(entries(corpus_folders()), chosen(corrections))
    found, tally, reporter = Sweep(corpus), Tally(corpus, again=Again(corrections)), Reporter(None)
    started = time.monotonic()
    suspects: list[str] = []
    spent = 0.0
    with until_interrupted(tally), Pool(jobs, command=worker) as pool, reporter:
        tasks = _tasks(
            given or (case for _, [case] in graph_cases(campaign)), variants, seed, corrections, out, seconds
        )
        for swept in pool.sweep(tasks):
            suspects += found.add(swept)
            reporter.say(
                f"{counted_as(found.graphs, 'graph')}, {counted_as(found.variants, 'variant')}, "
                f"{counted_as(len(found.suspected), 'suspected bucket')}"
            )
        spent = time.monotonic() - started
        tally.problems += found.problems
        progress = Progress(tally)
        known = bugs_of(corpus)
        confirming = (Task(case=path, corrections=corrections, known=known) for path in dict.fromkeys(suspects))
        for result in pool.run(confirming):
            tally.add(result)
            found.confirm(result)
            reporter.case(progress, result)
    spent = spent or time.monotonic() - started
    tally.graphs = found.graphs
    lines = _lines(found, spent, target)
    finish(
        tally,
        json_file,
        "\n".join(lines),
        seed=seed,
        target=target,
        variants=found.variants,
        beds=found.edge_programs,
        variants_per_minute=round(60 * found.variants / max(spent, 1e-3), 1),
        known=dict(found.known),
        suspected=dict(found.suspected),
        refuted=list(found.refuted),
        corrections=list(corrections),
    )


def _read(file: Path, target: str) -> Case:
    case = read_case(file)
    if case.tensors is not None or case.graph.captured or case.target != target:
        raise BadInput(
            str(file),
            f"is no generated case for {target}" if case.target == target else f"is for {case.target}, not {target}",
            f"give a case that 'armdiff fuzz --target {target}' wrote, or another --target",
        )
    return case


def _tasks(
    graphs: Iterator[Case] | Sequence[Case],
    variants: int,
    seed: int,
    corrections: tuple[str, ...],
    out: Path,
    seconds: float | None,
) -> Iterator[SweepTask]:
    """A task a graph, its cases on disk, until the time is over."""
    keep_hypothesis_in(out)
    from generators.variants import draw_variants

    end = time.monotonic() + seconds if seconds is not None else float("inf")
    for case in graphs:
        if time.monotonic() >= end:
            return
        paths = (str(write_case(item, out / "cases")) for item in draw_variants(case, seed, variants))
        yield SweepTask(cases=tuple(paths), corrections=corrections)


def _lines(found: Sweep, spent: float, target: str) -> list[str]:
    stages = ", ".join(f"{name} {value:.0f} s" for name, value in found.seconds.most_common(5) if value >= 1)
    confirmed = len(found.suspected) - len(found.refuted)
    return [
        f"{counted_as(found.graphs, 'graph')}, {counted_as(found.variants, 'variant')} on {target} in {spent:.0f} s "
        f"({60 * found.variants / max(spent, 1e-3):.0f} variants a minute, "
        f"{counted_as(found.edge_programs, 'edge program')}"
        + (f", {counted_as(found.invalid, 'graph')} invalid" if found.invalid else "")
        + ")",
        *([f"where the workers' time went: {stages}"] if stages else []),
        f"passes and serializer alone: {len(found.known)} known buckets, {len(found.suspected)} others, of which the "
        f"full pipeline confirms {confirmed}; no leg ran on the other variants, so no values of theirs were judged",
        *(f"  not confirmed: {bucket} ({counted_as(found.suspected[bucket], 'variant')})" for bucket in found.refuted),
    ]
