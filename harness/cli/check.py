"""The verb ``check``: a user's own model, captured as one case a target, and run as any other case.

The user's file is executed in a worker only. A model that fails in eager, or a file that defines
no model, is bad input and no finding.

The verdict is about this model: whether a bug is known is no comfort to whoever ships it. So every finding makes the
exit status 1, unless ``--allow-known`` says otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from harness.campaign.holding import hold
from harness.campaign.replay_command import Again
from harness.campaign.summary import Tally, as_json, until_interrupted
from harness.case.call_sites import read_call_sites
from harness.case.errors import ArmdiffError, BadInput
from harness.case.interrupts import STATUS, Interrupted, command
from harness.case.memory import is_large
from harness.case.reading import read_case
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.cli.environment import need_engine, need_environment
from harness.cli.options import (
    correction_option,
    engine_option,
    jobs_option,
    json_option,
    no_warm_option,
    out_option,
    read_seconds,
    strict_option,
    target_option,
)
from harness.cli.results import write_json
from harness.cli.stages import Stages
from harness.corrections import chosen
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.reports.answer import Answer, Detail
from harness.reports.linting import Subject
from harness.triage.corpus import bugs_of, corpus_folders, with_corrections
from harness.triage.given import known_entries
from harness.workers.frames import Question, named_by
from harness.workers.pool import Pool
from harness.workers.protocol import CaptureTask, Task

PROBED = 150
"""Operators up to which a model is probed unasked: probes compile it some three times more."""
LIMIT = 1800.0
"""Seconds that one target may take, with all runs that prove its findings: somebody watches, and may interrupt."""
FIRST_GUESS = (4.0, 0.25)
"""Seconds that a target takes, and each operator of the model: what the first estimate rests on."""


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
@click.option(
    "--probes",
    type=click.Choice(["default", "all", "none"]),
    help=f"Extra compiles that some oracles need. Default: all for a model of up to {PROBED} operators; else the one "
    "without which values would not be judged.",
)
@correction_option
@click.option("--allow-known", is_flag=True, help="Exit status 0 if every finding is proved to be a known bug.")
@strict_option
@click.option("-v", "--verbose", is_flag=True, help="Show each finding in full below its line, and what ran.")
@click.option("-q", "--quiet", is_flag=True, help="Show findings and the verdict only.")
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
    probes: ProbeMode | None,
    corrections: tuple[str, ...],
    allow_known: bool,
    strict: bool,
    verbose: bool,
    quiet: bool,
    worker: tuple[str, ...],
    out: Path,
    json_file: str | None,
) -> None:
    """Run every leg and oracle on a user's own model; exit status 1 if anything is found.

    FILE is Python and defines model (an nn.Module) and calibration (a list of input tuples); optionally
    inputs (tuples to evaluate) and configure (a function that receives the quantizer).

    Example: armdiff check my_model.py --target TOSA-1.0+INT --recipe a8w8,qmin=-127
    """
    from harness.pipeline.legs import legs as known_legs

    for leg in legs:
        if leg not in known_legs():
            raise BadInput("--leg", f"unknown leg {leg!r}", f"use one of {', '.join(known_legs())}")
    if verbose and quiet:
        raise BadInput("-q", "contradicts -v", "give one of them")
    if not file.is_file():
        raise BadInput(str(file), "is no file", "give a Python file that defines model and calibration")
    if file.suffix == ".json":
        raise BadInput(str(file), "is a case, no Python file", f"run it with 'armdiff replay {file}'")
    parse_recipe(recipe, "--recipe")
    need_environment()
    need_engine(engine, targets)
    corpus = with_corrections(known_entries(corpus_folders()), chosen(corrections))
    tally = Tally(corpus, strict=strict)
    folders = {name: out / "check" / f"{file.stem}-{name}" for name in targets}
    hold(*folders.values())
    labels: dict[str, str] = {}
    stages = Stages(lambda task: _label(task, labels))
    jobs = min(jobs, len(targets))
    tasks: list[Task] = []
    profiles, size = {}, 0

    def goes_on() -> str:
        return f"go on with: {command(instead={'--target': targets[tally.cases :]})}"

    with until_interrupted(tally, goes_on), Pool(jobs, limit=LIMIT, command=worker, told=stages.told) as pool, stages:
        for name, folder in folders.items():
            spelled = recipe if parse_target(name).quantized else "float"
            captured = pool.capture(
                CaptureTask(file=str(file), folder=str(folder), target=name, recipe=spelled, seconds=capture_seconds)
            )
            if captured.problem is not None:
                raise ArmdiffError(captured.problem)
            labels[captured.case] = name
            taken = read_case(Path(captured.case))
            size = len(taken.graph.nodes)
            tasks.append(
                Task(
                    case=captured.case,
                    legs=legs,
                    user_file=str(file),
                    probes=probes or ("all" if size <= PROBED else "judging"),
                    ethos_u_engine=engine,
                    corrections=corrections,
                    known=bugs_of(corpus),
                    apart=is_large(taken),
                    profile=True,
                )
            )
        stages.expect(len(tasks), jobs, FIRST_GUESS[0] + FIRST_GUESS[1] * size)
        tally.again = Again(corrections, engine, tasks[0].probes)
        tally.graphs = 1
        for result in pool.run(tasks):
            tally.add(result)
            profiles[labels[result.case]] = result.profile
    for result in tally.invalid:
        tally.problems.append(f"{file}: the model {result.invalid}; make it run in eager first")
    if not tasks:
        raise Interrupted(tally.interrupted)
    case = Path(tasks[0].case)
    subject = Subject(str(file), read_case(case).graph, read_call_sites(case))
    notes = [] if probes or size <= PROBED else [_unprobed(size)]
    answer = Answer(tally, subject, tuple(targets), profiles, tuple(notes), allow_known)
    told = {name: msgspec.to_builtins(profile) for name, profile in profiles.items() if profile is not None}
    data = as_json(
        tally, interrupted=bool(tally.interrupted), targets=list(targets), corrections=list(corrections), profiles=told
    )
    if json_file != "-":
        detail: Detail = "full" if verbose else "quiet" if quiet else "normal"
        click.echo("\n".join(answer.lines(detail)))
    write_json(json_file, data)
    if tally.interrupted:
        click.echo(tally.interrupted, err=json_file == "-")
        sys.exit(STATUS)
    if tally.problems:
        raise ArmdiffError(tally.problems[0])
    sys.exit(1 if answer.fails else 0)


def _label(task: Question, labels: dict[str, str]) -> str:
    """What a question is called while it is answered: its target."""
    return (
        f"capturing for {task.target}" if isinstance(task, CaptureTask) else labels.get(named_by(task), named_by(task))
    )


def _unprobed(size: int) -> str:
    return (
        f"probes (deterministic, metamorphic, model-unchanged) did not run: {size} operators are more than {PROBED}; "
        "'--probes all' runs them, with some three compiles more a target"
    )
