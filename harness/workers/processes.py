"""One worker process: started, asked, watched, and described when it dies.

A worker leads its own process group and session, so that killing it takes whatever it started along, and it
dies with its parent. While it answers, a thread looks after its limits: the time that one question may take,
and the memory that the process may hold (resident, as the kernel counts it). A *death* says how it ended
instead of answering: by a signal, with an exit status (``exit()`` in native code), ``Hang`` or ``OutOfMemory``;
with the last stage that it announced and the last lines of what it printed. What it prints goes to a file
without a name, which is gone when nobody has it open, whatever ends whom. What it leaves in its temporary folder goes
with it: a compiler that is killed tidies nothing up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from harness.case.errors import CannotRun
from harness.case.memory import resident
from harness.compat.tosa import without_debugger
from harness.workers.frames import Answer, Question, receive, send
from harness.workers.protocol import AGAIN, CaptureTask, Ended, Run, Serves, Stage, SuiteTask

Listener = Callable[[Question, str, str], None]
"""Is told the question, the stage that begins, and the run of the case that it belongs to (empty for the first); an
empty stage when the question is answered.
"""


def nobody(task: Question, stage: str, run: str) -> None:
    """Listens to nothing."""


HANG, OUT_OF_MEMORY = "Hang", "OutOfMemory"
KILLED = "SIGKILL"
"""No program does this to itself: somebody else killed it, the kernel out of memory or a person."""
WORKER = (sys.executable, "-m", "harness.workers.worker")
WITHOUT = "--without="
"""Begins an argument of a worker: the name of a trick that it leaves out (``harness.compat.warm.tricks``)."""
GIB = 1 << 30
_LARGE = 1 << 20
"""Bytes from which on memory goes back to the system when it is freed."""
_LOG_LINES = 200
_WATCHED_EVERY = 0.2
_STARTS = 4
_DUMPING = 10.0
"""Seconds that a worker gets to say where it is when a capture's time is over."""


@dataclass(frozen=True)
class Limits:
    """What a worker may use.

    :param seconds: one question (the stock histogram observer was seen to need 23).
    :param memory: resident bytes of the process, above which it is killed.
    """

    seconds: float = 300.0
    memory: int = 8 * GIB


def worker_command(without: Sequence[str] = ()) -> tuple[str, ...]:
    """What is started as a worker.

    :param without: tricks that it leaves out.
    """
    return (*WORKER, *(f"{WITHOUT}{name}" for name in without))


def limits_for(jobs: int, seconds: float) -> Limits:
    """Limits that let this many workers live on this machine together."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = min(Limits.memory, int(total * 0.8) // jobs)
    return Limits(seconds=seconds, memory=memory)


@dataclass(frozen=True)
class Death:
    """How a worker ended instead of answering.

    :param run: the run of the case in which it ended (``harness.workers.protocol.Run``); empty for the first.
    """

    kind: str
    stage: str
    log: str
    run: str = ""

    @property
    def in_a_proof(self) -> bool:
        """Did it end while it proved a finding? Then it says nothing about the case as it is."""
        return self.run not in ("", AGAIN)


@dataclass
class Worker:
    """A process that has said that it is ready.

    :ivar graph: the graph that it was asked about last (``Task.graph``).
    :ivar serves: the process that answers: the worker or a fork of it (``harness.workers.forks``).
    """

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    scratch: tempfile.TemporaryDirectory[str]
    limits: Limits
    graph: str = field(default="", init=False)
    serves: int = field(default=0, init=False)
    _broken: str = field(default="", init=False)
    _printed_before: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.serves = self.process.pid

    def ask(self, task: Question, told: Listener = nobody) -> Answer | Death:
        """Put a question and wait for the answer, or for the end of the process.

        :param told: called with each stage as it begins, and at the end.
        """
        assert self.process.stdin
        assert self.process.stdout
        self._printed_before = size_of(self.log)  # what earlier cases printed says nothing about this one
        stage, run, status, answered = "start", "", None, threading.Event()
        limit = task.seconds + _DUMPING if isinstance(task, CaptureTask | SuiteTask) else self.limits.seconds
        watch = threading.Thread(target=self._watch, args=(answered, limit), daemon=True)
        watch.start()
        try:
            with suppress(BrokenPipeError):
                send(self.process.stdin, task)
            while (message := receive(self.process.stdout)) is not None:
                if isinstance(message, Answer):
                    return message
                if isinstance(message, Ended):
                    status = message.status
                    break
                if isinstance(message, Serves):
                    self.serves = message.pid
                elif isinstance(message, Run):
                    run = message.name
                elif isinstance(message, Stage):
                    stage = message.name
                    told(task, stage, run)
        finally:
            answered.set()
            watch.join()
            told(task, "", run)
        if status is None or self._broken:
            ended = _name_of(self.process.wait())
        else:
            ended, self.serves = _name_of(status), self.process.pid
        return Death(self._broken or ended, stage, self.last_output(), run)

    def _watch(self, answered: threading.Event, seconds: float) -> None:
        """Kill the process when it breaks a limit."""
        until = time.monotonic() + seconds
        while not answered.wait(_WATCHED_EVERY):
            late = time.monotonic() >= until
            if late or resident(self.serves) > self.limits.memory:
                self._broken = HANG if late else OUT_OF_MEMORY
                self.kill()
                return

    @property
    def gone(self) -> bool:
        """Has the process ended? One lives on whose fork died."""
        return self.process.returncode is not None

    def last_output(self) -> str:
        """The last lines that it printed since it was asked (or started)."""
        with suppress(OSError, ValueError):
            printed = os.pread(self.log.fileno(), size_of(self.log), 0)[self._printed_before :]
            return "\n".join(printed.decode(errors="replace").splitlines()[-_LOG_LINES:])
        return ""

    def kill(self) -> None:
        """Kill the process and all that it started."""
        if self.process.returncode is None:  # once it was waited for, its number may be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let the process end, and close its log."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        self.log.close()
        self.scratch.cleanup()


def start_worker(
    limits: Limits,
    first_on_path: Path | None = None,
    command: Sequence[str] = WORKER,
    starting: Callable[[Worker], None] = lambda _: None,
) -> Worker:
    """Start a worker and wait until it has imported what it needs.

    :param first_on_path: a folder of packages that come before the installed ones.
    :param starting: told of the process as soon as there is one, so that it can be killed meanwhile.
    :raises CannotRun: it ends before it is ready. One that is killed from outside is started again.
    """
    for _ in range(_STARTS):
        worker, ready = _started(limits, first_on_path, command, starting)
        if ready:
            return worker
        kind, log = _name_of(worker.process.wait()), worker.last_output()
        worker.close()
        if kind != KILLED:
            break
    raise CannotRun(
        f"a worker process cannot start ({kind}): {(log.strip().splitlines() or ['no output'])[-1]}; "
        "run 'armdiff doctor' to see what is missing"
    )


def _started(
    limits: Limits, first_on_path: Path | None, command: Sequence[str], starting: Callable[[Worker], None]
) -> tuple[Worker, bool]:
    try:
        log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 -- the worker closes it
        scratch = tempfile.TemporaryDirectory(prefix="armdiff-worker-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CannotRun(
            f"{tempfile.gettempdir()}: cannot be written ({error.strerror}); free some space, or set TMPDIR"
        ) from None
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
        env=_environment(first_on_path, scratch.name),
    )
    worker = Worker(process, log, scratch, limits)
    starting(worker)
    assert process.stdout
    while (message := receive(process.stdout)) is not None:
        if isinstance(message, Stage) and message.name == "ready":
            return worker, True
    return worker, False


def _environment(first_on_path: Path | None, scratch: str) -> dict[str, str]:
    # executorch runs the flatc that lies beside the interpreter; the environment need not be activated
    path = without_debugger(os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    environment = {
        **os.environ,
        "PATH": path,
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "TMPDIR": scratch,
        "TOKENIZERS_PARALLELISM": "false",
        # glibc keeps what it has once freed for later; of a large model's tensors that is hundreds of megabytes
        "MALLOC_MMAP_THRESHOLD_": str(_LARGE),
        "MALLOC_TRIM_THRESHOLD_": str(_LARGE),
    }
    if first_on_path is not None:
        words = (str(first_on_path.resolve()), os.environ.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, words))
    return environment


def size_of(file: IO[bytes]) -> int:
    """Bytes of an open file; 0 if it is closed."""
    with suppress(OSError, ValueError):
        return os.fstat(file.fileno()).st_size
    return 0


def _name_of(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"
