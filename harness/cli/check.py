"""The verb ``check``: a user's own model, captured as one case a target, and run as any other case.

The user's file is executed in a worker only. A model that fails in eager, or a file that defines
no model, is bad input and no finding.
"""

from __future__ import annotations

from pathlib import Path

import click

from harness.campaign.campaign import Progress
from harness.campaign.holding import hold
from harness.campaign.replay_command import Again
from harness.campaign.summary import Tally, until_interrupted
from harness.case.errors import ArmdiffError, BadInput
from harness.case.interrupts import command
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.cli.console import Reporter
from harness.cli.environment import need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    jobs_option,
    json_option,
    no_warm_option,
    out_option,
    probes_option,
    read_seconds,
    strict_option,
    target_option,
    verbose_option,
)
from harness.cli.results import finish
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.reports.listing import counted_as
from harness.triage.corpus import bugs_of, corpus_folders, entries, with_corrections
from harness.workers.pool import Pool
from harness.workers.protocol import CaptureTask, Task


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--recipe", default="a8w8", show_default=True, help="Quantization recipe, e.g. a8w8,per-tensor,qmin=-127."
)
@click.option("--leg", "legs", multiple=True, help="Only this leg (and its reference), repeatable.")
@click.option(
    "--capture-time",
    "capture_seconds",
    callback=read_seconds,
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long FILE, its forward and torch.export may take together.",
)
@target_option
@engine_option
@jobs_option
@probes_option("all")
@correction_option
@strict_option
@verbose_option
@no_warm_option
@out_option
@json_option
def check(
    file: Path,
    recipe: str,
    legs: tuple[str, ...],
    capture_seconds: float,
    targets: tuple[str, ...],
    engine: EngineChoice,
    jobs: int,
    probes: ProbeMode,
    corrections: tuple[str, ...],
    strict: bool,
    verbose: bool,
    worker: tuple[str, ...],
    out: Path,
    json_file: str | None,
) -> None:
    """Run every leg and oracle on a user's own model.

    FILE is Python and defines model (an nn.Module) and calibration (a list of input tuples); optionally
    inputs (tuples to evaluate) and configure (a function that receives the quantizer).

    Example: armdiff check my_model.py --target TOSA-1.0+INT --recipe a8w8,qmin=-127
    """
    from harness.pipeline.legs import legs as known_legs

    for leg in legs:
        if leg not in known_legs():
            raise BadInput("--leg", f"unknown leg {leg!r}", f"use one of {', '.join(known_legs())}")
    if not file.is_file():
        raise BadInput(str(file), "is no file", "give a Python file that defines model and calibration")
    parse_recipe(recipe, "--recipe")
    need_environment()
    need_engine(engine, targets)
    corpus = with_corrections(entries(corpus_folders()), chosen(corrections))
    tally, reporter = Tally(corpus, strict=strict), Reporter(None)
    tally.again = Again(corrections, engine, probes)
    folders = {name: out / "check" / f"{file.stem}-{name}" for name in targets}
    hold(*folders.values())

    def goes_on() -> str:
        return f"go on with: {command(instead={'--target': targets[tally.cases :]})}"

    with until_interrupted(tally, goes_on), Pool(min(jobs, len(targets)), command=worker) as pool, reporter:
        tasks = []
        for name, folder in folders.items():
            spelled = recipe if parse_target(name).quantized else "float"
            captured = pool.capture(
                CaptureTask(file=str(file), folder=str(folder), target=name, recipe=spelled, seconds=capture_seconds)
            )
            if captured.problem is not None:
                raise ArmdiffError(captured.problem)
            tasks.append(
                Task(
                    case=captured.case,
                    legs=legs,
                    user_file=str(file),
                    probes=probes,
                    ethos_u_engine=engine,
                    corrections=corrections,
                    known=bugs_of(corpus),
                )
            )
        progress = Progress(tally)
        tally.graphs = 1
        for result in pool.run(tasks):
            tally.add(result)
            reporter.case(progress, result)
    for result in tally.invalid:
        tally.problems.append(f"{file}: the model {result.invalid}; make it run in eager first")
    if tally.problems:
        raise ArmdiffError(tally.problems[0])
    finish(
        tally,
        json_file,
        f"{file}: {counted_as(tally.cases, 'case')} on {', '.join(targets)}",
        verbose=verbose,
        targets=list(targets),
        corrections=list(corrections),
    )
