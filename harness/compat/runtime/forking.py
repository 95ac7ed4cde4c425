"""A fork of this process that is a runtime: it need not import torch again, which takes one to two seconds.

What the process was must not run in it any more: its pipes are closed, so that whoever waits for their end is not kept
waiting, and it leaves without the exits of Python.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import IO, NoReturn

_inherited: list[object] = []
"""In a fork: the other process's streams. Whoever drops one has it write what it holds, and close descriptor 1."""


class Forked:
    """A fork of this process that serves, with what is used of ``subprocess.Popen``."""

    def __init__(self, log: IO[bytes]) -> None:
        (questions, asking), (answering, answers) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            _serve_for_ever(questions, answers, log.fileno())
        os.close(questions)
        os.close(answers)
        self.stdin, self.stdout = os.fdopen(asking, "wb"), os.fdopen(answering, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its status if it has ended: the negative number of a signal that ended it."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        """Its status once it has ended."""
        status = self._waited(0)
        assert status is not None
        return status

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)

    def _waited(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def _serve_for_ever(questions: int, answers: int, log: int) -> NoReturn:
    """Be a runtime, in a fork: nothing of the process that it was may run any more, its pipes and exits included."""
    try:
        for descriptor, number in ((questions, 0), (answers, 1), (log, 2)):
            os.dup2(descriptor, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _inherited[:] = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 - for what the binding prints
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        from harness.compat.runtime.serving import main

        main()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever it is, the log tells it
        traceback.print_exc()
        os._exit(1)
