"""The verb ``suite``: upstream's own Arm tests as the subjects of a campaign (``harness.campaign.suite``).

A test is run up to its pipeline, and what the pipeline holds (a module, inputs, the recipe that the test means) is
captured and run as any case, on every target that takes the recipe: upstream's assertions and its choice of a target do
not matter. Identical subjects run once.
"""

from __future__ import annotations

import importlib.util
import time
from functools import partial
from pathlib import Path

import click

from harness.campaign.campaign import Options, nothing_more, run_campaign
from harness.campaign.holding import hold
from harness.campaign.run_folder import read_run, set_aside
from harness.campaign.suite import table
from harness.campaign.suite.source import UpstreamTests
from harness.case.errors import CannotRun
from harness.case.target import DEFAULT_TARGETS, FLOAT_TARGET
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
    read_targets,
    strict_option,
    verbose_option,
)
from harness.cli.results import finish
from harness.compat.releases import basis_of, installed
from harness.compat.suite_files import selected_files, upstream_tests
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.reports.concluding import Concluding
from harness.triage.corpus import corpus_folders, judged_by, with_corrections
from harness.triage.given import known_entries
from harness.workers.pool import Pool


@click.command()
@click.argument("paths", nargs=-1)
@click.option("-k", "words", multiple=True, metavar="WORD", help="Only tests whose name has WORD, repeatable.")
@click.option(
    "--time", "seconds", callback=read_seconds, metavar="DURATION", help="Begin no further test after this long."
)
@click.option("--shard", default="1/1", callback=read_shard, show_default=True, help="This machine's part, e.g. 2/8.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=(*DEFAULT_TARGETS, FLOAT_TARGET),
    callback=read_targets,
    metavar="TARGET",
    help=f"Compile target, repeatable. Default: {', '.join(DEFAULT_TARGETS)}, and {FLOAT_TARGET} for tests without "
    "quantization.",
)
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
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@out_option
@json_option
@click.pass_context
def suite(
    context: click.Context,
    paths: tuple[str, ...],
    words: tuple[str, ...],
    seconds: float | None,
    shard: tuple[int, int],
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
    resume: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Run every leg and oracle on the modules of upstream's own Arm tests; a table by test file.

    PATHS are files or folders of executorch/backends/arm/test in the installed wheel (default: ops, models, modules,
    passes and misc). A shard has every n-th file.

    Example: armdiff suite ops/test_add.py ops/test_bmm.py -k tosa_INT
    """
    need_environment()
    need_engine(engine, targets)
    if importlib.util.find_spec("pytest") is None:
        raise CannotRun("upstream's tests need pytest, which is not installed; 'pip install pytest' beside armdiff")
    options = Options(
        targets,
        None,
        seconds,
        jobs=jobs,
        shard=shard,
        out=out,
        probes=probes,
        strict=strict,
        ethos_u_engine=engine,
        corrections=corrections,
        resume=resume,
        suite=paths,
        words=words,
    )
    folder = upstream_tests()
    selected_files(folder, paths)  # a wrong path is said before anything of a run is touched
    hold(out)
    earlier = read_run(out) if resume else None
    if earlier is None:
        set_aside(out)
    else:
        options = resumed(options, earlier, context)
    files = selected_files(folder, options.suite or ())
    source = UpstreamTests(files, options.words, tuple(options.targets), options.shard, out)
    started = time.monotonic()
    tell_unknown(None)
    with Reporter(None) as reporter:
        entries = judged_by(known_entries(corpus_folders(), known, ignored), basis_of(installed(), ""))
        corpus = with_corrections(entries, chosen(options.corrections))
        conclude = Concluding(options, corpus, earlier, reporter.say) if minimize else nothing_more
        tally = run_campaign(
            options,
            corpus,
            reporter.case,
            conclude,
            workers=partial(Pool, command=worker),
            goes_on=goes_on,
            source=source,
        )
    report = reported(out, corpus)
    found = table.rows(source.taken, [item.result for item in read_run(out).done], tally.findings)
    title = (
        f"{counted_as(sum(row.tests for row in found), 'test')} of {counted_as(len(found), 'file')}: "
        f"{counted_as(tally.graphs, 'subject')}, {counted_as(tally.cases, 'case')} on {', '.join(options.targets)} "
        f"in {time.monotonic() - started:.0f} s"
    )
    finish(
        tally,
        json_file,
        "\n".join([title, report, "", *table.lines(found), ""]),
        verbose=verbose,
        targets=list(options.targets),
        corrections=list(options.corrections),
        files=table.as_data(found, source.taken),
    )
