"""Workers that are forks of this process: a worker takes five seconds to get ready, a fork of a warm process none.

``Forked`` is a pool that asks a new fork each question: whatever native code does, and whatever a case leaves behind,
ends with the fork. Inside ``forked_workers()`` any pool's workers are forks: processes that serve, are watched, killed
and replaced like others, in all but how they start. What a death means is the pool's own code.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import IO, ClassVar
from unittest import mock

from harness.triage.proving import Remembered
from harness.workers import worker
from harness.workers.frames import Answer, Question, receive, send
from harness.workers.pool import Pool
from harness.workers.processes import Death
from harness.workers.protocol import Stage

PIPE = subprocess.PIPE
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
    _alone(log)
    try:
        with os.fdopen(answer, "wb") as stream:
            send(stream, worker._serve(task, worker._Announced(stream), None, Remembered()))
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever it is: the parent's frames must not run on in the fork
        traceback.print_exc()
        os._exit(1)


def in_fork(make: Callable[[], bytes]) -> bytes | None:
    """What a function returns in a fork of this process; None if the fork ends before."""
    return in_forks([make])[0]


def in_forks(makes: Sequence[Callable[[], bytes]]) -> list[bytes | None]:
    """What functions return, one after the other in a fork; None for one that ends it. Another fork goes on behind."""
    made: list[bytes | None] = []
    while len(made) < len(makes):
        made += _made_in_fork(makes[len(made) :])
        if len(made) < len(makes):
            made.append(None)
    return made


def _made_in_fork(makes: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """What the first few functions return, up to one that ends the fork."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if not child:
            try:
                _alone(log.fileno())
                with os.fdopen(write, "wb") as stream:
                    for make in makes:
                        signal.alarm(LIMIT)
                        answer = make()
                        stream.write(len(answer).to_bytes(8, "little") + answer)
                        stream.flush()
            finally:
                os._exit(1)
        os.close(write)
        made = []
        with os.fdopen(read, "rb") as stream:
            while head := stream.read(8):
                answer = stream.read(length := int.from_bytes(head, "little"))
                if len(answer) == length:  # else the fork ended amid it
                    made.append(answer)
        os.waitpid(child, 0)
        return made


def _alone(log: int) -> None:
    """In a fork: what a worker is set to, within a time limit.

    :param log: file descriptor for what is printed.
    """
    faulthandler.disable()  # of whoever started this process: the log tells enough
    gc.disable()  # the process ends before there is much
    signal.alarm(LIMIT)
    os.dup2(log, 1)
    os.dup2(log, 2)


class ForkedProcess:
    """What ``subprocess.Popen`` is to a pool, for ``python -m MODULE ARGUMENT…``: a fork that runs the module's main.

    :ivar all: every one since ``forked_workers()`` was entered.
    """

    all: ClassVar[list[ForkedProcess]] = []
    _starting = threading.Lock()

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: IO[bytes],
        start_new_session: bool,
        env: Mapping[str, str],
    ) -> None:
        assert (stdin, stdout, start_new_session) == (PIPE, PIPE, True)
        _, option, module, *words = command
        assert option == "-m", command
        self.returncode: int | None = None
        self._ending = threading.Lock()
        with ForkedProcess._starting:  # a fork of another thread would hold this one's ends of the pipes open
            (taken, given), (read, written) = os.pipe(), os.pipe()
            self.stdin, self.stdout = os.fdopen(given, "wb"), os.fdopen(read, "rb")
            ForkedProcess.all.append(self)
            self.pid = os.fork()
            if not self.pid:
                for process in ForkedProcess.all:
                    process._leave()
                _work(module, words, (taken, written, stderr.fileno()), env)
            os.close(taken)
            os.close(written)
            self._process = os.pidfd_open(self.pid)

    def _leave(self) -> None:
        """In another fork: close the parent's ends of the pipes, whose objects another thread may have locked."""
        for stream in (self.stdin, self.stdout):
            with suppress(ValueError):  # it is closed
                os.close(stream.fileno())

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; negative for a signal.

        :raises subprocess.TimeoutExpired: it did not end in time.
        """
        if self.returncode is None and not select.select([self._process], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        with self._ending:
            if self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self.returncode

    def forget(self) -> None:
        """Close what it is waited for with. Not in ``wait``: another thread may be waiting, too."""
        os.close(self._process)


@contextmanager
def forked_workers() -> Iterator[list[ForkedProcess]]:
    """Have all pools fork their workers from this process, which must be as warm as a worker.

    :returns: the workers, as they are started.
    """
    ForkedProcess.all = []
    popen = SimpleNamespace(Popen=ForkedProcess, PIPE=PIPE, TimeoutExpired=subprocess.TimeoutExpired)
    try:
        with mock.patch("harness.workers.processes.subprocess", popen):
            yield ForkedProcess.all
    finally:
        for process in ForkedProcess.all:
            process.forget()


def _work(module: str, words: Sequence[str], streams: tuple[int, int, int], env: Mapping[str, str]) -> None:
    """Be a worker in a fork and end the process; never returns.

    :param streams: file descriptors for its standard input, output and error.
    """
    status = 1
    try:
        faulthandler.disable()
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
        sys.stderr.reconfigure(line_buffering=True)  # as it is in any process
        sys.argv = [module, *words]
        os.environ.clear()
        os.environ.update(env)
        tempfile.tempdir = None  # it may have looked where that is
        gc.disable()  # as in a worker
        with mock.patch("harness.workers.worker.get_ready"):  # it is
            importlib.import_module(module).main()
        status = 0
    except BaseException:  # noqa: BLE001 - likewise
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
