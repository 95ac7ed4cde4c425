"""A warm worker process: imports torch and executorch once, then has cases run until its input ends.

Started by ``harness.workers.pool`` as ``python -m harness.workers.worker``. Frames go over the original standard
output; everything that native code prints is sent to standard error, which the pool points at a
log file. One torch thread. ``--without=NAME`` leaves out a trick of ``harness.compat.warm.tricks``, or ``all``.
"""

from __future__ import annotations

import faulthandler
import importlib
import logging
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

import msgspec

from harness.case.errors import ArmdiffError, OwnFault, is_ours
from harness.case.interrupts import die_with_parent
from harness.case.processor_time import processor_seconds
from harness.compat.releases import arm_folder
from harness.compat.runtime import end_running
from harness.compat.warm.collecting import before_forks, between_cases
from harness.compat.warm.tricks import names, warm_up
from harness.evidence.observation import Unjudged
from harness.triage.proving import Remembered
from harness.triage.unjudged.execution import of_own_fault
from harness.workers.branches import ways_out
from harness.workers.forks import needs_fork, passed_on
from harness.workers.frames import Answer, Question, asked, graph_of, named_by, refused, send
from harness.workers.processes import WITHOUT
from harness.workers.protocol import (
    CaptureTask,
    CaseResult,
    CompareTask,
    EmitTask,
    MaskTask,
    Run,
    Stage,
    SuiteTask,
    SweepTask,
    Task,
    WholeTask,
)

if TYPE_CHECKING:
    from harness.compat.warm.stage_cache import WorkerCache

STACK = 8 << 20
"""Bytes of the main thread's stack: what Linux gives by default."""
_HANDLERS = {
    CompareTask: ("harness.campaign.certify.comparing", "compare"),
    EmitTask: ("harness.workers.emission", "emit_program"),
    MaskTask: ("harness.workers.emission", "mask_case"),
    SuiteTask: ("harness.campaign.suite.taking", "take"),
    SweepTask: ("harness.campaign.breadth.sweeping", "sweep"),
    WholeTask: ("harness.campaign.certify.whole.going", "go_through"),
}
"""Module and function that answer a kind of task. Named, not imported: some are above this room."""
UNCORRECTED = (CompareTask, MaskTask, SuiteTask, WholeTask)
"""Tasks that no correction applies to from beginning to end."""


def main() -> None:
    """Serve tasks until end of input."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native prints must not end up between frames
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that owns the terminal decides
    die_with_parent()
    limit_stack()
    send(answers, Stage("import"))
    get_ready(sys.argv[1:])
    send(answers, Stage("ready"))
    task = serve(sys.stdin.buffer, answers, needs_fork)
    if task is None:
        return
    if isinstance(task, Task) and task.probes == "default":  # some of these cases have their branches measured
        ways_out(arm_folder())
    before_forks()
    while task is not None:
        task = passed_on(task, sys.stdin.buffer, answers, serve)


def serve(
    questions: IO[bytes], answers: IO[bytes], leaves: Callable[[Question, int], bool] = lambda task, graphs: False
) -> Question | None:
    """Answer questions until they end, or come to one that is left to others.

    :param leaves: is a question left to others, with so many graphs begun? One that is about none counts as one.
    :returns: the question that is left to others.
    """
    from harness.compat.warm.stage_cache import WorkerCache

    cache, remembered, counted = WorkerCache(), Remembered(), 0.0
    graphs, last = 0, ""
    while (task := asked(questions)) is not None:
        graphs, last = graphs + (not last or graph_of(task) != last), graph_of(task)
        if leaves(task, graphs):
            break
        answer = _serve(task, _Announced(answers), cache, remembered)
        if isinstance(answer, CaseResult):
            spent = processor_seconds()
            answer, counted = msgspec.structs.replace(answer, processor=round(spent - counted, 3)), spent
        send(answers, answer)
        between_cases(done=False)
    end_running()
    return task


class _Announced:
    """Tells the parent each stage before it starts (a call), and each run of a case after the first."""

    def __init__(self, answers: IO[bytes]) -> None:
        self._answers = answers

    def __call__(self, stage: str) -> None:
        send(self._answers, Stage(stage))

    def run(self, name: str) -> None:
        send(self._answers, Run(name))


def get_ready(words: Sequence[str]) -> None:
    """Import what a case needs, and warm up.

    :param words: the process's own arguments.
    """
    import torch

    torch.set_num_threads(1)
    from harness.workers import case_run

    logging.disable(logging.WARNING)
    assert case_run
    # Tricks come last: the imports leave some two million objects that never die, and one trick freezes them.
    warm_up(names([word.removeprefix(WITHOUT) for word in words if word.startswith(WITHOUT)]))


def limit_stack() -> None:
    """Let endless recursion in native code end as SIGSEGV everywhere, also where the stack is unlimited.

    There it ends with the memory, after a minute, and perhaps somebody else's (seen: ``vela-u55-amin-segfault``).
    """
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK if most == resource.RLIM_INFINITY else min(STACK, most), most))


def _serve(task: object, announce: _Announced, cache: WorkerCache, remembered: Remembered) -> Answer:
    """The answer to a question; bad input, what cannot be done here, or a fault of armdiff's is one in one line.

    What the toolchain raises where that is not expected ends the process: the pool makes a finding of it.
    """
    assert isinstance(task, (Task, CaptureTask, SuiteTask, EmitTask, CompareTask, WholeTask, SweepTask, MaskTask))
    lost: tuple[Unjudged, ...] = ()
    try:
        return _answer(task, announce, cache, remembered)
    except ArmdiffError as error:
        problem = str(error)
    except Exception as error:
        if not is_ours(error):
            raise
        traceback.print_exc()
        problem = f"{named_by(task)}: {OwnFault(error, 'on it')}"
        lost = of_own_fault(task.case, str(OwnFault(error, "on it"))) if isinstance(task, Task) else ()
    answer = refused(task, problem)
    return msgspec.structs.replace(answer, unjudged=lost) if isinstance(answer, CaseResult) else answer


def _answer(
    task: Task | CaptureTask | SuiteTask | EmitTask | CompareTask | WholeTask | SweepTask | MaskTask,
    announce: _Announced,
    cache: WorkerCache,
    remembered: Remembered,
) -> Answer:
    from harness.corrections import chosen
    from harness.corrections.applying import applied
    from harness.workers.case_run import run_task

    if isinstance(task, CaptureTask):
        from harness.workers.capture import capture_file

        faulthandler.dump_traceback_later(task.seconds, exit=True)  # the pool reads the line from it
        try:
            return capture_file(task)
        finally:
            faulthandler.cancel_dump_traceback_later()
    with applied(chosen(() if isinstance(task, UNCORRECTED) else task.corrections)):
        if isinstance(task, Task):
            return run_task(task, announce, cache, remembered, announce.run)
        module, function = _HANDLERS[type(task)]
        answer: Answer = getattr(importlib.import_module(module), function)(task, announce)
        return answer


if __name__ == "__main__":
    main()
