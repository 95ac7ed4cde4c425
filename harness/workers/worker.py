"""A warm worker process: imports torch and executorch once, then runs cases until its input ends.

Started by ``harness.workers.pool`` as ``python -m harness.workers.worker``. Frames go over the original standard
output; everything that native code prints is sent to standard error, which the pool points at a
log file. One torch thread. ``--without=NAME`` leaves out a trick of ``harness.compat.warm.tricks``, or ``all``.
"""

from __future__ import annotations

import copy
import ctypes
import importlib
import logging
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.case.errors import ArmdiffError, OwnFault, is_ours
from harness.compat.warm.collecting import between_cases
from harness.compat.warm.tricks import names, warm_up
from harness.evidence.observation import CRASH, Mismatch, Observation, Unjudged, oracle_named
from harness.triage.findings import DOMAINS, Finding
from harness.triage.proving import Prover, Remembered
from harness.triage.unjudged.execution import of_own_fault
from harness.workers.processes import WITHOUT
from harness.workers.protocol import (
    Answer,
    Captured,
    CaptureTask,
    CaseResult,
    Compared,
    CompareTask,
    EmitTask,
    Emitted,
    Masked,
    MaskTask,
    Stage,
    SweepTask,
    Swept,
    Task,
    Tightness,
    receive,
    send,
)

if TYPE_CHECKING:
    from harness.compat.warm.keeping import Keeper

PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""
STACK = 8 << 20
"""Bytes of the main thread's stack: what Linux gives by default."""
_HANDLERS = {
    CompareTask: ("harness.campaign.certify.comparing", "compare"),
    EmitTask: ("harness.workers.emission", "emit_program"),
    MaskTask: ("harness.workers.emission", "mask_case"),
    SweepTask: ("harness.campaign.breadth.sweeping", "sweep"),
}
"""Module and function that answer a kind of task. Named, not imported: some are above this room."""


def main() -> None:
    """Serve tasks until end of input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native prints must not end up between frames
    warnings.filterwarnings("ignore")
    die_with_parent()
    limit_stack()
    send(answers, Stage("import"))
    get_ready(sys.argv[1:])
    send(answers, Stage("ready"))
    from harness.compat.warm.keeping import Keeper

    keeper, remembered = Keeper(), Remembered()
    while (task := receive(sys.stdin.buffer)) is not None:
        send(answers, _serve(task, lambda stage: send(answers, Stage(stage)), keeper, remembered))
        between_cases(done=not keeper.holds)


def get_ready(words: Sequence[str]) -> None:
    """Import what a case needs, and warm up.

    :param words: the process's own arguments.
    """
    import torch

    torch.set_num_threads(1)
    from harness.workers import running

    logging.disable(logging.WARNING)
    assert running
    # Tricks come last: the imports leave some two million objects that never die, and one trick freezes them.
    warm_up(names([word.removeprefix(WITHOUT) for word in words if word.startswith(WITHOUT)]))


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends: nobody else would stop a hang."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_stack() -> None:
    """Let endless recursion in native code end as SIGSEGV everywhere, also where the stack is unlimited.

    There it ends with the memory, after a minute, and perhaps somebody else's (seen: ``vela-u55-amin-segfault``).
    """
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK if most == resource.RLIM_INFINITY else min(STACK, most), most))


def _serve(task: object, announce: Callable[[str], None], keeper: Keeper, remembered: Remembered) -> Answer:
    """The answer to a question; bad input, what cannot be done here, or a fault of armdiff's is one in one line.

    What the toolchain raises where that is not expected ends the process: the pool makes a finding of it.
    """
    assert isinstance(task, (Task, CaptureTask, EmitTask, CompareTask, SweepTask, MaskTask))
    lost: tuple[Unjudged, ...] = ()
    try:
        return _answer(task, announce, keeper, remembered)
    except ArmdiffError as error:
        problem = str(error)
    except Exception as error:
        if not is_ours(error):
            raise
        traceback.print_exc()
        problem = f"{_named_by(task)}: {OwnFault(error, 'on it')}"
        lost = of_own_fault(task.case, str(OwnFault(error, "on it"))) if isinstance(task, Task) else ()
    match task:
        case EmitTask():
            return Emitted(problem=problem)
        case CaptureTask():
            return Captured(problem=problem)
        case CompareTask():
            return Compared(case=task.case, problem=problem)
        case SweepTask():
            return Swept(problem=problem)
        case MaskTask():
            return Masked(problem=problem)
    return CaseResult(case=task.case, problem=problem, unjudged=lost)


def _named_by(task: Task | CaptureTask | EmitTask | CompareTask | SweepTask | MaskTask) -> str:
    match task:
        case CaptureTask():
            return task.file
        case SweepTask():
            return task.cases[0] if len(task.cases) == 1 else f"{task.cases[0]} and {len(task.cases) - 1} more"
    return task.case


def _answer(
    task: Task | CaptureTask | EmitTask | CompareTask | SweepTask | MaskTask,
    announce: Callable[[str], None],
    keeper: Keeper,
    remembered: Remembered,
) -> Answer:
    from harness.corrections import chosen
    from harness.corrections.applying import applied

    if isinstance(task, CaptureTask):
        from harness.workers.capture import capture_file

        return capture_file(task)
    with applied(chosen(() if isinstance(task, (CompareTask, MaskTask)) else task.corrections)):
        if isinstance(task, Task):
            return run_task(task, announce, keeper, remembered)
        module, function = _HANDLERS[type(task)]
        answer: Answer = getattr(importlib.import_module(module), function)(task, announce)
        return answer


def run_task(
    task: Task, announce: Callable[[str], None], keeper: Keeper | None = None, remembered: Remembered | None = None
) -> CaseResult:
    """Run one case, re-run it if something was found that is not settled yet, and keep what shows twice.

    :param keeper: has what the graph's case before this one left. Only the first run takes it, and none whose
        branches are measured: a finding that taking it caused does not show again, and is told as such.
    :param remembered: what was proved on the graph's other targets.
    """
    import torch

    from harness.case.building import load_tensors
    from harness.case.case import case_digest
    from harness.case.reading import file_of, read_case
    from harness.compat.releases import arm_folder
    from harness.compat.warm.keeping import ANEW, Stages
    from harness.corrections import chosen
    from harness.corrections.applying import applied
    from harness.pipeline.lowering import StageClock
    from harness.triage.findings import finding_of
    from harness.triage.known import judged
    from harness.triage.proving import Prover, applicable_corrections, counts, same_finding
    from harness.triage.unjudged import unjudged
    from harness.workers.branches import is_measured, measured
    from harness.workers.running import InvalidCase, examine

    path = Path(task.case)
    case = read_case(path)
    tensors = load_tensors(case, file_of(path).parent)
    configure, original = None, None
    if task.user_file is not None:
        from harness.workers.capture import load_file

        names = load_file(Path(task.user_file))
        if names.get("configure") is not None:  # names of the user's own submodules: only the original has them
            configure, original = names["configure"], names["model"]
    clock = StageClock(announce)
    measuring = task.probes == "default" and is_measured(case, task.corrections)
    first = ANEW
    if keeper is not None and task.user_file is None and not task.corrections and case.tensors is None:
        first = keeper.stages(case, takes=not measuring)

    def once(stages: Stages = ANEW, *, blame: bool = True) -> tuple[Observation, list[Mismatch]]:
        torch.compiler.reset()  # upstream's tracing caches must not carry over from another case
        return examine(
            case,
            clock,
            tensors,
            only_legs=task.legs or None,
            engine=task.ethos_u_engine,
            configure=configure,
            model=copy.deepcopy(original),
            probes=task.probes,
            blame=blame,
            stages=stages,
        )

    def described(observation: Observation, mismatches: Sequence[Mismatch]) -> list[Finding]:
        found = [finding_of(item, case, task.case, _detail(item, observation)) for item in mismatches]
        return [judged(item, task.known) for item in found]

    def again(corrections: tuple[str, ...]) -> list[Finding] | None:
        try:
            with clock.stage("prove"), applied(chosen(corrections)):
                observation, mismatches = once(blame=False)
        except (InvalidCase, ArmdiffError):  # it cannot be tried so: a correction's file is not on this machine
            return None
        return described(observation, mismatches)

    try:
        with ExitStack() as stack:
            taken = stack.enter_context(measured(arm_folder())) if measuring else []
            observation, mismatches = once(stages=first)
    except InvalidCase as error:
        return CaseResult(case=task.case, target=case.target, invalid=str(error))
    stock = described(observation, mismatches)
    applicable = applicable_corrections(case.graph, task.corrections, task.known)
    graph = case_digest(msgspec.structs.replace(case, target=""))
    prover = Prover(task.known, applicable, again, stock, (remembered or Remembered()).of(graph))
    settled = [_settled(item, task, prover) for item in stock]
    confirmed = [item for item in settled if item is not None]
    waiting = [item for item, done in zip(stock, settled, strict=True) if done is None]
    unrepeated: list[Finding] = []
    if waiting:
        second = described(*once())
        for item in waiting:
            shown = [other for other in second if same_finding(item, other)]
            if shown:  # what was made from scratch speaks
                confirmed.append(prover.unlike_any(shown[0]) if counts(shown[0]) else shown[0])
            else:
                unrepeated.append(item)
    record = observation.lowering
    return CaseResult(
        case=task.case,
        target=case.target,
        problem="; ".join(f"{task.case}: {text}" for text in _faults(observation)) or None,
        findings=tuple(confirmed),
        unrepeated=tuple(unrepeated),
        legs={name: leg.skipped or ("failed" if leg.failure else "ran") for name, leg in observation.legs.items()},
        seconds=dict(clock.seconds),
        delegates=len(record.delegates),
        delegated=tuple(
            name
            for delegate in record.delegates
            for name in delegate.operators
            if not name.startswith("quantized_decomposed.")
        ),
        fallback=record.fallback,
        tightness=_tightness(observation, task.plant),
        unjudged=unjudged(observation, mismatches),
        branches=taken[0] if taken else None,
    )


def _settled(finding: Finding, task: Task, prover: Prover) -> Finding | None:
    """The finding in its last state, or None if a second run has to show it first."""
    if finding.information or finding.known or not task.confirm:
        return finding
    proved = prover.resembling(finding)
    if proved.known:
        return proved
    told = finding.bucket in task.confirmed and not oracle_named(finding.oracle).values
    return prover.unlike_any(proved) if told else None


def _detail(mismatch: Mismatch, observation: Observation) -> str:
    """For a crash: what PT2E had decided by then, and the failure's own words."""
    failure = observation.failure or next((leg.failure for leg in observation.legs.values() if leg.failure), None)
    if failure is None or mismatch.oracle != CRASH:
        return ""
    domains = observation.lowering.domains.items()
    told = "; ".join(f"{name} scale={domain.scale!r} zp={domain.zero_point}" for name, domain in domains)
    return f"{DOMAINS}{told}\n{failure.detail}"


def _faults(observation: Observation) -> list[str]:
    """What armdiff itself failed at, each once."""
    from harness.locate import streams

    compared = observation.probes.get(streams.NAME, {}).values()
    told = [leg.skipped for leg in observation.legs.values() if leg.fault and leg.skipped]
    return list(dict.fromkeys([item.fault for item in compared if item.fault] + told))


def _tightness(observation: Observation, plant: bool) -> Tightness | None:
    """How sharp the comparison was, and whether a planted error would have been seen."""
    from harness.evidence.comparing import comparisons
    from harness.evidence.judging import TOSA

    leg = observation.legs.get(TOSA)
    if observation.failure or leg is None or not leg.ran or observation.rounding is None:
        return None
    rows = list(comparisons(observation, TOSA))
    return Tightness(
        bound=max((row.bound for row in rows if row.item.in_range), default=0.0),
        caught=_plant(observation) if plant else None,
    )


def _plant(observation: Observation) -> bool | None:
    """Move one element of the reference model's first calibrated output by two steps; is it seen?

    The element is the one in the middle; the direction is the one that stays inside the codes.
    """
    from harness.evidence.judging import EAGER, QUANTIZED, TOSA, reference_leg
    from harness.evidence.observation import oracles

    domain = observation.lowering.outputs[0].domain if observation.lowering.outputs else None
    reference = observation.legs[reference_leg(observation)].outputs
    if not reference or not reference[0]:
        return None
    wanted = reference[0][0]
    if wanted.dtype.kind != "f" or wanted.size == 0:
        return None
    planted = wanted.copy()
    at = wanted.size // 2
    step = domain.scale if domain else max(float(abs(wanted).max()), 1e-30) * 2.0**-7
    top = (domain.qmax - domain.zero_point) * domain.scale if domain else float("inf")
    planted.flat[at] += 2 * step if float(wanted.flat[at]) + 2 * step <= top * (1 + 1e-6) else -2 * step
    runs = list(reference)
    runs[0] = (planted, *runs[0][1:])
    leg = replace(observation.legs[TOSA], outputs=tuple(runs))
    others = {name: observation.legs[name] for name in (EAGER, QUANTIZED)}  # an engine would see any error
    altered = replace(observation, legs={**others, TOSA: leg})
    return bool(oracles()["numeric"].judge(altered))


if __name__ == "__main__":
    main()
