"""A pool whose workers are forks of this process, one for each question.

A worker takes five seconds to get ready, a fork of a warm process none; whatever native code does, and whatever a case
leaves behind, ends with the fork. What a death means is the pool's own code.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import tempfile
import traceback

from harness.triage.proving import Remembered
from harness.workers import worker
from harness.workers.pool import Pool
from harness.workers.processes import Death
from harness.workers.protocol import Answer, Question, Stage, receive, send

LIMIT = 600
"""Seconds that a question may take; the kernel ends its process then."""


class Forked(Pool):
    """Asks forks of this process, which must be as warm as a worker."""

    def _ask_once(self, task: Question) -> Answer | Death:
        answers, answer = os.pipe()
        with tempfile.TemporaryFile() as log, os.fdopen(answers, "rb") as stream:
            child = os.fork()
            if not child:
                _serve(task, answer, log.fileno())
            os.close(answer)
            stage, result = "start", None
            while (message := receive(stream)) is not None:
                if isinstance(message, Stage):
                    stage = message.name
                elif isinstance(message, Answer):
                    result = message
            _, status = os.waitpid(child, 0)
            if result is not None:
                return result
            code = os.waitstatus_to_exitcode(status)
            log.seek(0)
            kind = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return Death(kind, stage, log.read().decode(errors="replace"))


def _serve(task: Question, answer: int, log: int) -> None:
    """Answer in a fork and end the process; never returns.

    :param answer: file descriptor for stages and the answer.
    :param log: file descriptor for what is printed.
    """
    faulthandler.disable()  # of whoever started this process: the log tells enough
    gc.disable()  # the process ends before there is much
    signal.alarm(LIMIT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        with os.fdopen(answer, "wb") as stream:
            send(stream, worker._serve(task, worker._Announced(stream), None, Remembered()))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever it is: the parent's frames must not run on in the fork
        traceback.print_exc()
        os._exit(1)
