"""The verb ``fuzz``: a campaign of drawn graphs (``harness.campaign``), ended by number or by time.

Without either limit it draws 100 graphs. What the corpus and the folders of ``--known`` hold is
known and does not count as new.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from harness.campaign import Options, run_campaign
from harness.cli.environment import corpus_folders, need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    jobs_option,
    json_option,
    known_option,
    out_option,
    probes_option,
    read_seconds,
    read_shard,
    seed_option,
    strict_option,
    target_option,
)
from harness.cli.results import finish
from harness.console import Reporter
from harness.corpus import entries, with_corrections
from harness.corrections import chosen
from harness.engines import EngineChoice
from harness.probes import ProbeMode


@click.command()
@click.option("--max-examples", type=click.IntRange(1), help="Graphs to draw (a graph on each target is a case).")
@click.option(
    "--time", "seconds", callback=read_seconds, metavar="DURATION", help="Stop drawing after this long, e.g. 10m."
)
@click.option("--shard", default="1/1", callback=read_shard, show_default=True, help="This machine's part, e.g. 2/8.")
@seed_option
@target_option
@jobs_option
@known_option
@engine_option
@probes_option("default")
@correction_option
@strict_option
@out_option
@json_option
def fuzz(
    max_examples: int | None,
    seconds: float | None,
    shard: tuple[int, int],
    seed: int,
    targets: tuple[str, ...],
    jobs: int,
    known: tuple[Path, ...],
    engine: EngineChoice,
    probes: ProbeMode,
    corrections: tuple[str, ...],
    strict: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Generate graphs, run every leg and oracle on each, list what disagrees.

    Example: armdiff fuzz --max-examples 60 --target TOSA-1.0+INT --seed 7
    """
    need_environment()
    need_engine(engine, targets)
    if max_examples is None and seconds is None:
        max_examples = 100
    options = Options(
        targets,
        max_examples,
        seconds,
        seed,
        jobs,
        shard,
        out,
        probes=probes,
        strict=strict,
        ethos_u_engine=engine,
        corrections=corrections,
    )
    reporter = Reporter(max_examples)
    started = time.monotonic()
    with reporter:
        corpus = with_corrections(entries([*corpus_folders(), *known]), chosen(corrections))
        tally = run_campaign(options, corpus, reporter.case)
    finish(
        tally,
        json_file,
        f"{tally.graphs} graphs, {tally.cases} cases in {time.monotonic() - started:.0f} s "
        f"on {', '.join(targets)} (seed {seed})",
        seed=seed,
        targets=list(targets),
        corrections=list(corrections),
    )
