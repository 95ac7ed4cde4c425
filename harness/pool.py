"""A pool of warm worker processes: one place where native code may die without harm.

Each worker is a separate process group running ``harness.worker``. A case is on disk before it
is sent. A worker that dies, or takes longer than the time limit, is killed with its group and
replaced; the case becomes a ``crash`` finding with the signal, the last stage and the last lines
of native output, and is tried once more in a fresh worker before it counts.

Results come in the order of the tasks, whichever worker finished first, so that a run's output
does not depend on timing.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from harness.case import read_case
from harness.errors import CannotRun
from harness.observation import Failure, Observation
from harness.protocol import (
    Answer,
    Captured,
    CaptureTask,
    CaseResult,
    Compared,
    CompareTask,
    EmitTask,
    Emitted,
    Question,
    Stage,
    Task,
    receive,
    send,
)
from harness.triage import finding_of

TIME_LIMIT = 300.0
"""Seconds one case may take (the stock histogram observer was seen to need 23)."""
RECYCLE_AFTER = 200
"""Cases after which a worker is replaced, to keep memory flat."""
_LOG_LINES = 200
_DETAIL_LINES = 60
_TELLING = ("[Internal]", "what():", "Assertion", "FATAL", "rror:")
"""Marks of the line that says why, the most specific first."""


_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Death:
    """How a worker ended instead of answering."""

    kind: str
    stage: str
    log: str


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    log: Path
    served: int = 0

    def ask(self, task: Question, limit: float) -> Answer | Death:
        assert self.process.stdin
        assert self.process.stdout
        stage, timed_out = "start", threading.Event()

        def expire() -> None:
            timed_out.set()
            self.kill()

        timer = threading.Timer(limit, expire)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                send(self.process.stdin, task)
            while (message := receive(self.process.stdout)) is not None:
                if isinstance(message, (CaseResult, Captured, Emitted, Compared)):
                    self.served += 1
                    return message
                if isinstance(message, Stage):
                    stage = message.name
        finally:
            timer.cancel()
        status = self.process.wait()
        kind = "Hang" if timed_out.is_set() else _signal_name(status)
        return Death(kind, stage, self.last_output())

    def last_output(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES:])

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        self.log.unlink(missing_ok=True)


def _signal_name(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"


@dataclass
class Pool:
    """Workers that are started when first needed. Use as a context manager.

    :param jobs: number of worker processes.
    :param limit: seconds one case may take.
    :param first_on_path: a folder of packages that come before the installed ones.
    """

    jobs: int = 1
    limit: float = TIME_LIMIT
    first_on_path: Path | None = None
    _idle: queue.SimpleQueue[_Worker] = field(default_factory=queue.SimpleQueue)
    _all: list[_Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Pool:
        self._executor = ThreadPoolExecutor(self.jobs)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            workers, self._all = list(self._all), []
        self._executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
            worker.close()
        self._executor.shutdown()

    def run(self, tasks: Iterable[Task]) -> Iterator[CaseResult]:
        """Run tasks on all workers; results come in the order of the tasks.

        ``tasks`` is consumed a few ahead of the workers, so that an endless iterator is fine.
        """
        return self._in_order(self.run_one, tasks)

    def compare(self, tasks: Iterable[CompareTask]) -> Iterator[Compared]:
        """Make comparisons on all workers, in order; a worker's death is a problem of its case."""
        return self._in_order(self._compare_one, tasks)

    def _compare_one(self, task: CompareTask) -> Compared:
        answer = self._ask(task)
        if isinstance(answer, Death):
            return Compared(
                case=task.case,
                target=read_case(Path(task.case)).target,
                problem=f"{task.case}: the process ended with {answer.kind} in stage {answer.stage}: "
                f"{telling_line(answer.log)}",
            )
        assert isinstance(answer, Compared)
        return answer

    def _in_order(self, ask: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> Iterator[_Result]:
        waiting: list[Future[_Result]] = []
        for task in tasks:
            waiting.append(self._executor.submit(ask, task))
            while len(waiting) > 2 * self.jobs or (waiting and waiting[0].done()):
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()

    def run_one(self, task: Task) -> CaseResult:
        """Run one task, turning a worker's death into a finding."""
        answer = self._ask(task)
        if isinstance(answer, Death):
            second = self._ask(task)
            return _result_of_death(task, answer, repeated=isinstance(second, Death) and second.kind == answer.kind)
        assert isinstance(answer, CaseResult)
        return answer

    def capture(self, task: CaptureTask) -> Captured:
        """Have a worker capture a user's file."""
        answer = self._ask(task)
        if isinstance(answer, Death):
            return Captured(
                problem=f"{task.file}: the process ended with {answer.kind} while the model was captured; "
                f"run the file by itself to see why. Last output: {answer.log[-300:]}"
            )
        assert isinstance(answer, Captured)
        return answer

    def emit(self, task: EmitTask) -> Emitted:
        """Have a worker lower a case."""
        answer = self._ask(task)
        if isinstance(answer, Death):
            return Emitted(
                problem=f"{task.case}: the process ended with {answer.kind} in stage {answer.stage}; "
                f"'armdiff fuzz' counts that as a finding. Last output: {answer.log[-300:]}"
            )
        assert isinstance(answer, Emitted)
        return answer

    def _ask(self, task: Question) -> Answer | Death:
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = self._start()
        answer = worker.ask(task, self.limit)
        if isinstance(answer, Death) or worker.served >= RECYCLE_AFTER:
            with self._lock:
                if worker in self._all:
                    self._all.remove(worker)
            worker.kill()
            worker.close()
        else:
            self._idle.put(worker)
        return answer

    def _start(self) -> _Worker:
        handle, name = tempfile.mkstemp(prefix="armdiff-worker-", suffix=".log")
        # executorch runs the flatc that lies beside the interpreter; the environment need not be activated
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        environment = {
            **os.environ,
            "PATH": path,
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "TOKENIZERS_PARALLELISM": "false",
        }
        if self.first_on_path is not None:
            words = (str(self.first_on_path.resolve()), os.environ.get("PYTHONPATH", ""))
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, words))
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=handle,
            start_new_session=True,
            env=environment,
        )
        os.close(handle)
        worker = _Worker(process, Path(name))
        assert process.stdout
        while True:
            message = receive(process.stdout)
            if isinstance(message, Stage) and message.name == "ready":
                break
            if message is None:
                process.wait()
                log = worker.last_output()
                worker.close()
                raise CannotRun(
                    f"a worker process cannot start: {log.strip().splitlines()[-1:] or 'no output'}; "
                    "run 'armdiff doctor' to see what is missing"
                )
        with self._lock:
            self._all.append(worker)
        return worker


def _result_of_death(task: Task, death: Death, *, repeated: bool) -> CaseResult:
    from harness.registry import oracles

    case = read_case(Path(task.case))
    message = "no answer within the time limit" if death.kind == "Hang" else telling_line(death.log)
    detail = "\n".join(death.log.splitlines()[-_DETAIL_LINES:])
    failure = Failure(death.stage, death.kind, message, detail=detail)
    [mismatch] = oracles()["crash"].judge(Observation(case, failure=failure))
    finding = finding_of(mismatch, case, task.case, detail)
    return CaseResult(
        case=task.case,
        target=case.target,
        findings=(finding,) if repeated else (),
        unrepeated=() if repeated else (finding,),
    )


def telling_line(log: str) -> str:
    """The line of native output that says why: a dying program prints a stack trace after it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for pattern in _TELLING:
        for line in lines:
            if pattern in line:
                return line
    return lines[-1] if lines else "no native output"


def default_jobs() -> int:
    """One worker a core that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))
