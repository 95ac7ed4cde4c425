"""The verb ``fuzz``: a campaign of drawn graphs (``harness.campaign.campaign``), ended by number or by time.

Without either limit it draws 100 graphs. What the corpus and ``--known`` hold is known and does not count as
new. New buckets are minimized within the time (``harness.reports.concluding``). ``--resume`` goes on with the run in
``--out``: what it was asked for is taken from there, and an option that says otherwise is refused. With
``--cluster`` the cases run on other machines (``harness.workers.cluster``), and all else is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from harness.campaign.campaign import Options, nothing_more, run_campaign
from harness.campaign.holding import hold
from harness.campaign.mutating import check_sources, mutated
from harness.campaign.run_folder import read_run, set_aside
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.cli.campaigns import goes_on, reported, resumed, tell_unknown
from harness.cli.console import Reporter
from harness.cli.environment import need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    ignore_option,
    jobs_option,
    json_option,
    known_option,
    no_warm_option,
    out_option,
    probes_option,
    read_seconds,
    read_shard,
    seed_option,
    strict_option,
    target_option,
    verbose_option,
)
from harness.cli.results import finish
from harness.compat.releases import LINES, basis_of, installed
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.reports.concluding import Concluding
from harness.triage.corpus import corpus_folders, judged_by, with_corrections
from harness.triage.given import known_entries
from harness.workers.pool import CaseRunner, Pool


@click.command()
@click.option(
    "--max-examples",
    type=click.IntRange(1),
    help="Graphs to draw, all shards together, each for every target. Without it the targets take turns.",
)
@click.option(
    "--time", "seconds", callback=read_seconds, metavar="DURATION", help="Stop drawing after this long, e.g. 10m."
)
@click.option("--shard", default="1/1", callback=read_shard, show_default=True, help="This machine's part, e.g. 2/8.")
@seed_option
@target_option
@jobs_option
@known_option
@ignore_option
@engine_option
@probes_option("default")
@correction_option
@strict_option
@verbose_option
@no_warm_option
@click.option("--minimize/--no-minimize", default=True, help="Make the cases of new findings small. Default: yes.")
@click.option(
    "--steer/--no-steer",
    default=None,
    help="Of every eight graphs drawn, run the one that has the rarest forms. Default: without --max-examples.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="Mutate instead of drawing: 'suite' (upstream's own tests), 'blocks' (of real networks), a model's .py, a "
    "case, or a folder with cases (a run, corpus/). Repeatable.",
)
@click.option(
    "--database",
    multiple=True,
    metavar="PLACE",
    help="Example database: DIR, ro:DIR (only read) or redis://HOST:PORT/N. Its graphs run first. Repeatable.",
)
@click.option(
    "--expect",
    type=click.Choice(LINES),
    help="The release line whose expectations all hold if the installed packages form no known line. Default: those of "
    "the nearest line that depend on no package that differs.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run the cases on the nodes of a Dask cluster, e.g. tcp://HOST:8786, instead of on this machine.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@out_option
@json_option
@click.pass_context
def fuzz(
    context: click.Context,
    max_examples: int | None,
    seconds: float | None,
    shard: tuple[int, int],
    seed: int,
    targets: tuple[str, ...],
    jobs: int,
    known: tuple[Path, ...],
    ignored: tuple[str, ...],
    engine: EngineChoice,
    probes: ProbeMode,
    corrections: tuple[str, ...],
    strict: bool,
    verbose: bool,
    worker: tuple[str, ...],
    minimize: bool,
    steer: bool | None,
    sources: tuple[str, ...],
    database: tuple[str, ...],
    expect: str | None,
    cluster: str | None,
    resume: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Generate graphs, run every leg and oracle on each, list what disagrees.

    Example: armdiff fuzz --max-examples 60 --target TOSA-1.0+INT --seed 7

    Example: armdiff fuzz --from model.py --from suite --time 10m
    """
    need_environment()
    need_engine(engine, targets)
    if max_examples is None and seconds is None:
        max_examples = 100
    if steer is None:
        steer = max_examples is None
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
        resume=resume,
        database=database,
        expect=expect or "",
        steer=steer,
        sources=sources,
    )
    check_sources(sources)
    if database:
        from generators.search import database_at

        database_at(database)  # what is wrong with a place is said before anything runs
    workers = partial(Pool, command=worker) if cluster is None else _workers_of(cluster, corrections, context)
    hold(out)
    earlier = read_run(out) if resume else None
    if earlier is None:
        set_aside(out)
    else:
        options = resumed(options, earlier, context)
    reporter = Reporter(options.max_examples)
    started = time.monotonic()
    tell_unknown(expect)
    with reporter:
        entries = judged_by(known_entries(corpus_folders(), known, ignored), basis_of(installed(), options.expect))
        corpus = with_corrections(entries, chosen(options.corrections))
        afterwards = Concluding(options, corpus, earlier, reporter.say) if minimize else nothing_more
        source = mutated(options, options.sources) if options.sources else None
        tally = run_campaign(
            options, corpus, reporter.case, afterwards, workers=workers, goes_on=goes_on, source=source
        )
    report = reported(out, corpus)
    finish(
        tally,
        json_file,
        f"{counted_as(tally.graphs, 'graph')}, {counted_as(tally.cases, 'case')} in {time.monotonic() - started:.0f} s "
        f"on {', '.join(options.targets)} (seed {options.seed})\n{report}",
        verbose=verbose,
        seed=options.seed,
        targets=list(options.targets),
        corrections=list(options.corrections),
    )


def _workers_of(address: str, corrections: Sequence[str], context: click.Context) -> Callable[[int], CaseRunner]:
    """What makes the pool of a campaign on a cluster, which is connected to before anything of a run is touched.

    :raises BadInput: an option that means this machine.
    :raises CannotRun: the cluster cannot be used.
    """
    from harness.workers.cluster.runner import connected

    if context.get_parameter_source("jobs") is not click.core.ParameterSource.DEFAULT:
        raise BadInput("--jobs", "is for this machine, and --cluster was given", "give --nworkers to 'dask worker'")
    for word in corrections:
        if word.endswith(".py"):
            raise BadInput("--correction", f"{word} is a file that the nodes do not have", "run it without --cluster")
    pool = connected(address, lambda text: click.echo(f"armdiff: {text}", err=True))
    return lambda _: pool
