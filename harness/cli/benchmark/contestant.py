"""One contestant: a warm process that processes the cases of a graph and says how long it took.

Started as ``python -m harness.cli.benchmark.contestant NAME``; speaks the workers' frames. All have torch, executorch
and what they call imported, one torch thread, the same environment, and quiet logs. Beyond that:

- ``upstream-tester`` and ``plain-sequence`` are processes as Python makes them: no warm trick, stock collection;
- ``armdiff`` is a campaign's worker (``harness.workers.worker``): the same tricks (``--without=NAME`` leaves one out),
  every leg and oracle, probes and branch coverage at their rates, new findings run a second time, and what follows a
  case. As there, a graph's first target leaves what it made for the next one (``harness.compat.warm.stage_cache``).

Reading the case and building its module are in everybody's time. Imports torch; runs in a process of its own.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.interrupts import die_with_parent
from harness.case.memory import resident
from harness.case.processor_time import processor_seconds
from harness.case.reading import read_case
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.compat.warm.collecting import between_cases
from harness.evidence.observation import headline
from harness.triage.corpus import corpus_folders
from harness.workers.frames import receive, send
from harness.workers.protocol import Stage, Task, Timed, TimeTask
from harness.workers.worker import get_ready

if TYPE_CHECKING:
    import torch

    from harness.pipeline.lowering import StageClock

UPSTREAM_TESTER, PLAIN_SEQUENCE, ARMDIFF = "upstream-tester", "plain-sequence", "armdiff"

Process = Callable[[str, "StageClock"], str]
"""Processes a case (its path) and adds to the clock; returns why nothing was compiled, or an empty text."""


def upstream_tester() -> Process:
    """The tester's pipeline for the case's target."""
    from harness.compat.tester import run_pipeline

    def process(path: str, clock: StageClock) -> str:
        case, model, samples = _built(path, clock)
        run_pipeline(model, samples, parse_target(case.target), parse_recipe(case.recipe), clock.stage)
        return ""

    return process


def plain_sequence() -> Process:
    """Export, quantize, lower and emit, call by call as upstream's examples do; nothing is executed."""
    import torch

    from harness.compat.stack import convert_pt2e, edge_config, prepare_pt2e, stack_for, to_edge_transform_and_lower

    def process(path: str, clock: StageClock) -> str:
        case, model, samples = _built(path, clock)
        stack = stack_for(parse_target(case.target), parse_recipe(case.recipe))
        with clock.stage("export"):
            exported = torch.export.export(model, samples[0])
        if stack.quantizer is not None:
            with clock.stage("prepare"):
                prepared = prepare_pt2e(exported.module(check_guards=False), stack.quantizer)
            with clock.stage("calibrate"):
                for sample in samples:
                    prepared(*sample)
            with clock.stage("convert"):
                converted = convert_pt2e(prepared)
            with clock.stage("export-quantized"):
                exported = torch.export.export(converted, samples[0])
        with clock.stage("lower"):
            edge = to_edge_transform_and_lower(exported, partitioner=[stack.partitioner], compile_config=edge_config())
        with clock.stage("emit"):
            assert edge.to_executorch().buffer
        return ""

    return process


def armdiff() -> Process:
    """A campaign's worker, which is told the bugs of the corpus and the buckets that showed twice before."""
    from harness.compat.warm.stage_cache import WorkerCache
    from harness.triage.corpus import bugs_of
    from harness.triage.given import known_entries
    from harness.triage.proving import Remembered
    from harness.workers.case_run import run_task

    known = bugs_of(known_entries(corpus_folders()))
    confirmed: set[str] = set()
    cache, remembered = WorkerCache(), Remembered()

    def process(path: str, clock: StageClock) -> str:
        task = Task(case=path, confirmed=tuple(sorted(confirmed)), known=known)
        result = run_task(task, clock.enter, cache, remembered)
        confirmed.update(finding.bucket for finding in result.findings)
        for stage, seconds in result.seconds.items():
            clock.seconds[stage] = clock.seconds.get(stage, 0.0) + seconds
        with clock.stage("between cases"):
            between_cases(done=not cache.holds)
        failed = [reason for reason in result.legs.values() if reason.endswith(" failed")]
        return result.problem or result.invalid or (failed[0] if failed else "")

    return process


CONTESTANTS: Mapping[str, Callable[[], Process]] = {
    UPSTREAM_TESTER: upstream_tester,
    PLAIN_SEQUENCE: plain_sequence,
    ARMDIFF: armdiff,
}


def timed(process: Process, paths: Sequence[str], announce: Callable[[str], None] = lambda _: None) -> Timed:
    """Process the cases of one graph, in order."""
    from harness.pipeline.lowering import StageClock

    clock = StageClock(announce)
    failed: dict[str, str] = {}
    began, spent = time.perf_counter(), processor_seconds()
    for path in paths:
        try:
            why = process(path, clock)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever upstream raises
            why = f"{clock.current}: {type(error).__name__}: {headline(str(error))[:200]}"
        if why:
            failed[read_case(Path(path)).target] = why
    return Timed(
        wall=time.perf_counter() - began,
        processor=processor_seconds() - spent,
        stages=dict(clock.seconds),
        failed=failed,
        resident=resident(os.getpid()),
    )


def _built(path: str, clock: StageClock) -> tuple[Case, torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    from harness.case.building import load_tensors, module_of
    from harness.case.sampling import calibration_samples
    from harness.pipeline.lowering import tensors_of

    with clock.stage("build"):
        case = read_case(Path(path))
        tensors = load_tensors(case, Path(path).parent)
        samples = [tensors_of(sample) for sample in calibration_samples(case, tensors)]
        return case, module_of(case, tensors), samples


def main() -> None:
    """Serve questions until end of input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native prints must not end up between frames
    warnings.filterwarnings("ignore")
    die_with_parent()
    name, *words = sys.argv[1:]
    if name not in CONTESTANTS:
        raise BadInput("contestant", f"unknown {name!r}", f"use one of {', '.join(CONTESTANTS)}")
    process = CONTESTANTS[name]()
    if name == ARMDIFF:
        get_ready(words)
    else:
        import torch

        torch.set_num_threads(1)
        logging.disable(logging.WARNING)
    send(answers, Stage("ready"))
    while (task := receive(sys.stdin.buffer)) is not None:
        assert isinstance(task, TimeTask)
        send(answers, timed(process, task.cases, lambda stage: send(answers, Stage(stage))))


if __name__ == "__main__":
    main()
