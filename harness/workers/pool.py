"""A pool of warm worker processes: one place where native code may die without harm.

A case is on disk before it is sent. A worker that dies, or breaks a limit (``harness.workers.processes``), is replaced,
and the case is tried once more in a fresh one: if it dies again it is a ``crash`` finding with the signal, the
last stage and the last lines of native output; if not, the answer counts, and the death is told beside it.
A worker that was killed from outside says nothing about its case, which is tried a few times.

Results come in the order of the tasks, whichever worker finished first, so that a run's output
does not depend on timing. The cases of one graph go to one worker where that is free (``harness.workers.affinity``).
What a campaign needs of a pool is a ``CaseRunner``: the workers may be on this machine (``Pool``) or on many
(``harness.workers.cluster``).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

import msgspec

from harness.case.errors import CannotRun
from harness.case.interrupts import check, result_of
from harness.triage.findings import Finding
from harness.triage.known import classified
from harness.triage.proving import Prover, counts
from harness.triage.unjudged.execution import of_a_lost_case
from harness.workers.affinity import next_case, worker_for
from harness.workers.deaths import MOST_KILLS, TIMEOUT, failure_of_death, finding_of_death, late_capture, told
from harness.workers.frames import Answer, Question, graph_of, refused
from harness.workers.processes import (
    HANG,
    KILLED,
    WORKER,
    Death,
    Limits,
    Listener,
    Worker,
    limits_for,
    nobody,
    start_worker,
)
from harness.workers.protocol import (
    Captured,
    CaptureTask,
    CaseResult,
    Compared,
    CompareTask,
    EmitTask,
    Emitted,
    Gone,
    Masked,
    MaskTask,
    SuiteFile,
    SuiteTask,
    SweepTask,
    Swept,
    SweptCase,
    Task,
    WholeTask,
)

AHEAD = 4
"""Cases a worker that are begun: enough for each to have a graph of its own, with as many targets."""
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class CaseRunner(Protocol):
    """Something that runs cases on several workers. Use as a context manager."""

    @property
    def jobs(self) -> int:
        """Workers that there are at the moment."""

    def run(self, tasks: Iterable[Task]) -> Iterator[CaseResult]:
        """Run tasks on all workers; results come in the order of the tasks.

        ``tasks`` is consumed a few ahead of the workers, so that an endless iterator is fine.

        :raises CannotRun: there is no worker to run them.
        """

    def __enter__(self) -> CaseRunner: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


def in_order(
    begin: Callable[[_Task], Future[_Result]], tasks: Iterable[_Task], width: Callable[[], int], ahead: int = 2
) -> Iterator[_Result]:
    """Begin tasks a few ahead of so many workers, and hand back their results in the order of the tasks.

    :param ahead: tasks a worker that are begun.
    :raises KeyboardInterrupt: a signal came (``harness.case.interrupts``).
    """
    waiting: deque[Future[_Result]] = deque()
    for task in tasks:
        check()
        waiting.append(begin(task))
        while len(waiting) > ahead * width() or (waiting and waiting[0].done()):
            yield result_of(waiting.popleft())
    for future in waiting:
        yield result_of(future)


@dataclass
class Pool:
    """Workers that are started when first needed. Use as a context manager.

    :param jobs: number of worker processes.
    :param limit: seconds one case may take.
    :param first_on_path: a folder of packages that come before the installed ones.
    :param limits: further limits of a worker; by default what the machine has room for.
    :param command: what is started as a worker.
    :param told: is told each stage of every question as it begins, from the threads that wait for the workers.
    """

    jobs: int = 1
    limit: float = Limits.seconds
    first_on_path: Path | None = None
    limits: Limits | None = None
    command: Sequence[str] = WORKER
    told: Listener = nobody
    _idle: list[Worker] = field(default_factory=list)
    _waiting: list[tuple[Task, Future[CaseResult]]] = field(default_factory=list)
    _busy: list[str] = field(default_factory=list)
    _all: list[Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def __enter__(self) -> Pool:
        self._executor = ThreadPoolExecutor(self.jobs)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            workers, self._all, self._closed = list(self._all), [], True
            waiting, self._waiting = self._waiting, []
        for unbegun in (future for _, future in waiting):
            unbegun.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
            worker.close()
        self._executor.shutdown()

    def run(self, tasks: Iterable[Task]) -> Iterator[CaseResult]:
        """Run tasks on all workers; results come in the order of the tasks.

        ``tasks`` is consumed a few ahead of the workers, so that an endless iterator is fine.
        """
        return in_order(self._begin, tasks, lambda: self.jobs, AHEAD)

    def _begin(self, task: Task) -> Future[CaseResult]:
        """Have a case run when its turn comes."""
        future: Future[CaseResult] = Future()
        with self._lock:
            self._waiting.append((task, future))
        self._executor.submit(self._run_next)
        return future

    def _run_next(self) -> None:
        """Run the case whose turn it is."""
        with self._lock:
            if not self._waiting:  # the pool was closed
                return
            graphs = [task.graph for task, _ in self._waiting]
            place = next_case(graphs, {worker.graph for worker in self._idle}, self._busy)
            task, future = self._waiting.pop(place)
            self._busy.append(task.graph)
        try:
            future.set_result(self._run_one(task))
        except BaseException as error:  # noqa: BLE001 - for whoever waits for the result
            future.set_exception(error)
        finally:
            with self._lock:
                self._busy.remove(task.graph)

    def compare(self, tasks: Iterable[CompareTask]) -> Iterator[Compared]:
        """Make comparisons on all workers, in order; a worker's death is a problem of its case."""
        return self._in_order(lambda task: self._answered(task, Compared), tasks)

    def _answered(self, task: Question, kind: type[_Result]) -> _Result:
        """A worker's answer; its death is a problem in one line."""
        answer = self._ask(task)
        if isinstance(answer, Death):
            answer = refused(task, told(task, answer))
        assert isinstance(answer, kind)
        return answer

    def _in_order(self, ask: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> Iterator[_Result]:
        return in_order(lambda task: self._executor.submit(ask, task), tasks, lambda: self.jobs)

    def sweep(self, tasks: Iterable[SweepTask]) -> Iterator[Swept]:
        """Run variants through the passes on all workers, in order.

        Where a worker dies, each variant is tried by itself; one that ends the process has that as its finding.
        """
        return self._in_order(self._sweep_one, tasks)

    def _sweep_one(self, task: SweepTask) -> Swept:
        answer = self._ask(task)
        if not isinstance(answer, Death):
            assert isinstance(answer, Swept)
            return answer
        if len(task.cases) == 1:
            [path] = task.cases
            return Swept(cases=(SweptCase(case=path, findings=(finding_of_death(path, answer),)),))
        alone = [self._sweep_one(msgspec.structs.replace(task, cases=(path,))) for path in task.cases]
        return Swept(
            cases=tuple(row for item in alone for row in item.cases),
            edge_programs=sum(item.edge_programs for item in alone),
        )

    def run_one(self, task: Task) -> CaseResult:
        """Run one task, turning a worker's death into a finding."""
        return result_of(self._executor.submit(self._run_one, task))

    def _run_one(self, task: Task) -> CaseResult:
        answer = self._ask(task)
        if not isinstance(answer, Death):
            assert isinstance(answer, CaseResult)
            return answer
        if answer.in_a_proof:
            return self._proved_apart(task)
        second = self._ask(task)
        finding = finding_of_death(task.case, answer)
        if isinstance(second, Death):
            again = finding_of_death(task.case, second)
            repeated = (second.kind, second.stage) == (answer.kind, answer.stage)
            if repeated and again.bucket != finding.bucket:  # what only one of two printed does not say why
                finding = msgspec.structs.replace(
                    finding_of_death(task.case, replace(answer, log="")), detail=finding.detail
                )
            return CaseResult(
                case=task.case,
                target=finding.target,
                findings=self._proved(task, (finding,)) if repeated else (),
                unrepeated=() if repeated else (finding, again),
                unjudged=of_a_lost_case(task.case, failure_of_death(second)),
            )
        assert isinstance(second, CaseResult)
        return msgspec.structs.replace(second, unrepeated=(*second.unrepeated, finding))

    def _proved_apart(self, task: Task) -> CaseResult:
        """What a case shows whose worker died of a correction: each of its proofs may cost a worker."""
        result = self._run_one(msgspec.structs.replace(task, known=()))
        return msgspec.structs.replace(result, findings=self._proved(task, result.findings))

    def _proved(self, task: Task, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """All that a case shows, as the known bugs have it: each is tried with the corrections of what it resembles."""
        stock = [classified(item, task.known) for item in findings]

        def again(corrections: tuple[str, ...]) -> Sequence[Finding]:
            words = (*task.corrections, *corrections)
            answer = self._ask(msgspec.structs.replace(task, corrections=words, known=(), confirm=False))
            if isinstance(answer, Death):
                return (finding_of_death(task.case, answer),)
            assert isinstance(answer, CaseResult)
            return answer.findings

        prover = Prover(task.known, {}, again, stock)
        return tuple(prover.resembling(item) if counts(item) else item for item in stock)

    def capture(self, task: CaptureTask) -> Captured:
        """Have a worker capture a user's file."""
        answer = result_of(self._executor.submit(self._ask, task))
        if isinstance(answer, Captured):
            return answer
        assert isinstance(answer, Death)
        late = answer.kind == HANG or TIMEOUT in answer.log
        captured = refused(task, late_capture(task, answer.log) if late else told(task, answer))
        assert isinstance(captured, Captured)
        return captured

    def take(self, task: SuiteTask) -> SuiteFile:
        """Have a worker capture what upstream's tests in a file are about."""
        return result_of(self._executor.submit(self._answered, task, SuiteFile))

    def emit(self, task: EmitTask) -> Emitted:
        """Have a worker lower a case."""
        return result_of(self.emit_all([task])[0])

    def go_through(self, task: WholeTask) -> Gone:
        """Have a worker go through the whole domain of what a correction changes."""
        return result_of(self._executor.submit(self._answered, task, Gone))

    def mask(self, tasks: Iterable[MaskTask]) -> Iterator[Masked]:
        """Have the workers lower cases and imagine bugs in them, in order."""
        return self._in_order(lambda task: self._answered(task, Masked), tasks)

    def emit_all(self, tasks: Iterable[EmitTask]) -> list[Future[Emitted]]:
        """Have the workers lower cases, without waiting for them."""
        return [self._executor.submit(self._answered, task, Emitted) for task in tasks]

    def _ask(self, task: Question) -> Answer | Death:
        """Ask a worker; if it is killed from outside, ask the next one."""
        answer = self._ask_once(task)
        for _ in range(MOST_KILLS - 1):
            if self._closed or not (isinstance(answer, Death) and answer.kind == KILLED):
                break
            answer = self._ask_once(task)
        return answer

    def _ask_once(self, task: Question) -> Answer | Death:
        if self._closed:
            return Death(KILLED, "start", "the pool was closed")
        graph = graph_of(task)
        worker = self._taken(graph) or self._start()
        answer = worker.ask(task, self.told)
        worker.graph = graph
        if isinstance(answer, Death) and worker.gone:
            with self._lock:
                if worker in self._all:
                    self._all.remove(worker)
            worker.kill()
            worker.close()
        else:
            with self._lock:
                self._idle.append(worker)
        return answer

    def _taken(self, graph: str) -> Worker | None:
        """An idle worker, if there is one: best the one that ran the graph last."""
        with self._lock:
            if not self._idle:
                return None
            graphs = {task.graph for task, _ in self._waiting}
            return self._idle.pop(worker_for(graph, [worker.graph for worker in self._idle], graphs))

    def _start(self) -> Worker:
        limits = self.limits or limits_for(self.jobs, self.limit)
        return start_worker(limits, self.first_on_path, self.command, self._register)

    def _register(self, worker: Worker) -> None:
        """Remember a worker that starts, so that closing the pool ends it.

        :raises CannotRun: the pool was closed.
        """
        with self._lock:
            if not self._closed:
                self._all.append(worker)
                return
        worker.kill()
        worker.close()
        raise CannotRun("the pool was closed")


def default_jobs() -> int:
    """One worker a core that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))
