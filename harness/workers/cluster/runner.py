"""The campaign's side of a cluster: a ``CaseRunner`` (``harness.workers.pool``) whose workers are on other machines.

Every case is sent to one node that has a free place, and to no other: so it is known which cases a lost node was
running, and only these run again, elsewhere. (Dask would run them again by itself, but it also counts the cases that
merely waited on the node, and gives them up after a few losses.) A case that was running on ``MOST_LOSSES`` nodes
when they were lost is a ``crash`` finding.

A node is asked what it is before it gets a case. If armdiff or a release there differs from the campaign's, it is
refused, which is told in one line, and the campaign goes on with the others. Nodes may come and go at any time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet  # Python 3.10 has two
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from harness.case.errors import BadInput, CannotRun
from harness.triage.unjudged.execution import of_a_lost_case
from harness.workers.cluster import node
from harness.workers.cluster.nodes import Nodes
from harness.workers.cluster.parcel import Identity, difference, own_identity, pack, unpacked_identity, unpacked_reply
from harness.workers.deaths import failure_of_death, finding_of_death
from harness.workers.pool import in_order
from harness.workers.processes import Death, Limits
from harness.workers.protocol import CaseResult, Task

LOST = "NodeLost"
MOST_LOSSES = 3
"""Nodes that may be lost while they run a case, before the case is to blame."""
CONNECTING, ASKING, LEAVING = 15.0, 60.0, 20.0
"""Seconds for the scheduler to answer, for nodes to say what they are, and for nodes to hear of the end."""
LOOKS_EVERY = 0.5
"""Seconds between two looks at who is there."""
MOST_PLACES = 1024
REMEDY = "pip install 'armdiff[cluster]'"


@dataclass
class ClusterPool:
    """Workers on the nodes of a cluster. Made by ``connected``; use as a context manager.

    :param client: Dask's.
    :param say: told a line when a node comes, goes or is refused.
    :param worker: the module that nodes run as a worker.
    :param limit: seconds one case may take.
    """

    client: Any
    address: str
    wanted: Identity
    say: Callable[[str], None]
    worker: str = "harness.workers.worker"
    limit: float = Limits.seconds
    nodes: Nodes = field(default_factory=Nodes)
    campaign: str = field(default_factory=lambda: uuid.uuid4().hex)
    _closed: threading.Event = field(default_factory=threading.Event)
    _begun: bool = False

    @property
    def jobs(self) -> int:
        """Places of the nodes that are there, at least one: a lost one may come back."""
        return max(1, self.nodes.places)

    def __enter__(self) -> ClusterPool:
        self._executor = ThreadPoolExecutor(MOST_PLACES)  # threads that wait; one begins when it is needed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.close()
        self._executor.shutdown()

    def run(self, tasks: Iterable[Task]) -> Iterator[CaseResult]:
        """Run tasks on all nodes; results come in the order of the tasks."""
        return in_order(lambda task: self._executor.submit(self.run_one, task), tasks, lambda: self.jobs)

    def run_one(self, task: Task) -> CaseResult:
        """Run one task, on another node if its node is lost.

        :raises CannotRun: no node is left, or the scheduler is lost.
        """
        parcel = pack(task, self.campaign, self.worker, self.limit)
        losses = 0
        while losses < MOST_LOSSES:
            address = self.nodes.take()
            try:
                answer = self._asked(address, parcel)
            finally:
                self.nodes.give(address)
            if answer is None:
                losses += 1
                continue
            reply = unpacked_reply(answer)
            if isinstance(reply, CaseResult):
                return reply
            self._refuse(address, reply.problem)
        death = Death(LOST, "run", f"{losses} nodes were lost while they ran it")
        finding = finding_of_death(task.case, death)
        return CaseResult(
            case=task.case,
            target=finding.target,
            findings=(finding,),
            unjudged=of_a_lost_case(task.case, failure_of_death(death)),
        )

    def _asked(self, address: str, parcel: bytes) -> bytes | None:
        """What a node answers; None if it is lost."""
        from distributed import KilledWorker

        future = self.client.submit(node.answer, parcel, workers=[address], allow_other_workers=False, pure=False)
        answer = self._fetched(future)
        try:
            while self.nodes.is_there(address):
                self.nodes.check()
                with suppress(NotYet):  # even a finished case may wait: its answer is on the node until it is fetched
                    return answer.result(timeout=LOOKS_EVERY)
            return None
        except KilledWorker:  # it came back under the same address, and was lost again
            return None
        except CancelledError:
            self.nodes.end(self._scheduler_lost())
            raise self._scheduler_lost() from None
        finally:
            with suppress(Exception):
                future.cancel()

    def _fetched(self, future: Any) -> Future[bytes]:
        """The answer, for which one may wait many times.

        (Dask fetches the answers of several cases by one request, and ``future.result(timeout)`` cancels that for all
        when one has waited long enough: the others then end in an UnboundLocalError of Dask's.)
        """
        fetching = self.client.gather(future, asynchronous=True)
        return asyncio.run_coroutine_threadsafe(fetching, self.client.loop.asyncio_loop)

    def look(self) -> None:
        """See who is there now, and ask the new ones what they are, without waiting for them.

        :raises CannotRun: the scheduler is lost.
        """
        try:
            threads = self.client.nthreads()
        except Exception as error:
            raise self._scheduler_lost() from error
        new, lost = self.nodes.see(threads)
        for address in lost:
            self.say(f"node {address} is lost; what it ran is run again on another one")
        for address in new:
            threading.Thread(target=self._vet, args=(address,), daemon=True).start()

    def watch(self) -> None:
        """Look at who is there until the pool is closed."""
        self._begun = True
        while not self._closed.wait(LOOKS_EVERY):
            try:
                self.look()
            except CannotRun as error:
                self.nodes.end(error)
                return

    def close(self) -> None:
        """Let the nodes end this campaign's workers, and go."""
        self._closed.set()
        self.nodes.end(CannotRun("the cluster's pool was closed"))
        leaving = threading.Thread(target=self._leave, daemon=True)
        leaving.start()
        leaving.join(LEAVING)
        with suppress(Exception):
            self.client.close(timeout=LEAVING)

    def _leave(self) -> None:
        with suppress(Exception):
            if there := self.nodes.accepted():
                self.client.run(node.leave, self.campaign, workers=there, on_error="ignore")

    def _vet(self, address: str) -> None:
        """Accept a node, or refuse it."""
        try:
            found = self.client.run(node.identity, workers=[address])[address]
            problem = difference(self.wanted, unpacked_identity(found))
        except Exception as error:  # noqa: BLE001 — whatever a node raises: armdiff is not there, or not this one
            problem = f"armdiff does not run there ({_line_of(error)})"
        if self._closed.is_set():  # what asked for it is over, and its output may be another's by now
            return
        if problem is None:
            self.nodes.accept(address)
            if self._begun:
                self.say(f"node {address} joins")
        else:
            self._refuse(address, f"{problem}; install the same there")

    def _refuse(self, address: str, problem: str) -> None:
        line = f"node {address} is refused: {problem}"
        if self.nodes.refuse(address, line):
            self.say(line)

    def _scheduler_lost(self) -> CannotRun:
        return CannotRun(f"{self.address}: the scheduler is lost; start it again, and go on with --resume")


def connected(
    address: str,
    say: Callable[[str], None],
    worker: str = "harness.workers.worker",
    limit: float = Limits.seconds,
    wanted: Identity | None = None,
) -> ClusterPool:
    """A pool on the nodes of the cluster whose scheduler has this address.

    :param say: told a line when a node comes, goes or is refused.
    :param wanted: what the nodes must be; by default what this machine is.
    :raises BadInput: that is no address.
    :raises CannotRun: Dask is not installed, nobody answers there, or no node can be used.
    """
    if not address.startswith(("tcp://", "tls://")) or not address.rpartition(":")[2].isdigit():
        raise BadInput("--cluster", f"{address!r} is no scheduler's address", "write for example tcp://HOST:8786")
    try:
        from distributed import Client
    except ImportError:
        raise CannotRun(f"--cluster needs Dask, which is not installed; {REMEDY}") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it reports is told in our words
    try:
        client = Client(address, timeout=CONNECTING, set_as_default=False, name="armdiff")
    except (OSError, ValueError) as error:
        raise CannotRun(
            f"{address}: no scheduler answers ({_line_of(error)}); start one with 'dask scheduler'"
        ) from None
    pool = ClusterPool(client, address, wanted or own_identity(), say, worker, limit)
    try:
        _check_scheduler(pool)
        pool.look()
        pool.nodes.settled(ASKING)
        if not pool.nodes.accepted():
            raise CannotRun(_unusable(pool))
    except BaseException:
        pool.close()
        raise
    threading.Thread(target=pool.watch, daemon=True).start()
    return pool


def _check_scheduler(pool: ClusterPool) -> None:
    """The scheduler unpacks the name of what nodes are to run, so armdiff must be there too."""
    try:
        pool.client.run_on_scheduler(node.identity)
    except Exception as error:  # noqa: BLE001 — whatever importing it raised there
        raise CannotRun(
            f"{pool.address}: armdiff does not run there ({_line_of(error)}); "
            f"start the scheduler where armdiff is installed: {REMEDY}"
        ) from None


def _unusable(pool: ClusterPool) -> str:
    if pool.nodes.refused:
        return next(iter(pool.nodes.refused.values()))
    if not pool.nodes.settled(0.0):
        return f"{pool.address}: the nodes do not answer within {ASKING:.0f} s; see what 'dask worker' prints there"
    command = f"dask worker {pool.address} --nworkers 2 --nthreads 1"
    return f"{pool.address}: the cluster has no nodes; start some with '{command}'"


def _line_of(error: Exception) -> str:
    """An error of the engine's in one line."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
