"""A fork of the worker for each graph: whatever its cases leave behind, or die of, ends with the fork.

A worker answers its first questions itself (``FIRST`` graphs), which fills the caches that serve any graph. Each graph
after these, each question that names none, and each network (``Task.apart``) has a fork of the worker as it is then. So
a worker does not grow with what it has run, no graph sees what an earlier one left, and after a crash nothing is
imported anew. A fork takes 20 ms where a worker takes five to nine seconds to get ready.

The worker passes questions and answers on, whole frames at a time, and is quiet meanwhile. If its fork ends without an
answer, it says how (``Ended``), and lives on.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from harness.case.interrupts import die_with_parent
from harness.workers.frames import Answer, Question, asked, graph_of, receive, send
from harness.workers.protocol import Ended, Serves, Task

FIRST = 8
"""Graphs that a worker answers itself. Behind them a fork is as fast as a worker that goes on (docs/benchmark.md)."""

Serve = Callable[[IO[bytes], IO[bytes]], object]
"""Answers the questions of one stream over another, until there are no more."""


@dataclass(frozen=True)
class _Fork:
    pid: int
    questions: IO[bytes]
    answers: IO[bytes]

    def ended(self) -> int:
        """Let it end; its exit status, negative for a signal."""
        with suppress(BrokenPipeError):
            self.questions.close()
        self.answers.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def needs_fork(task: Question, graphs: int) -> bool:
    """Is a question for a fork, and not for the worker itself?

    :param graphs: how many the worker has begun, this one's included.
    """
    return graphs > FIRST or (isinstance(task, Task) and task.apart)


def passed_on(task: Question, questions: IO[bytes], answers: IO[bytes], serve: Serve) -> Question | None:
    """Have a fork answer a question, and those of the same graph that follow it.

    :param serve: what the fork runs.
    :returns: the first question that is not of this graph; None if there are no more.
    """
    fork = _forked(serve)
    send(answers, Serves(pid=fork.pid))
    following: Question | None = task
    while following is not None and graph_of(following) == graph_of(task):
        if not _answered(following, fork, answers):
            send(answers, Ended(status=fork.ended()))
            return asked(questions)
        if not graph_of(task):
            fork.ended()  # nothing that follows is for it
            return asked(questions)
        following = asked(questions)
    fork.ended()
    return following


def _answered(task: Question, fork: _Fork, answers: IO[bytes]) -> bool:
    """Pass on a question, and what the fork says; False if it ended instead of answering."""
    with suppress(BrokenPipeError):
        send(fork.questions, task)
    while (message := receive(fork.answers)) is not None:
        send(answers, message)
        if isinstance(message, Answer):
            return True
    return False


def _forked(serve: Serve) -> _Fork:
    (taken, given), (read, written) = os.pipe(), os.pipe()
    sys.stderr.flush()  # or both print what waits in the buffer
    pid = os.fork()
    if not pid:
        os.close(given)
        os.close(read)
        _be_fork(serve, taken, written)
    os.close(taken)
    os.close(written)
    return _Fork(pid, os.fdopen(given, "wb"), os.fdopen(read, "rb"))


def _be_fork(serve: Serve, questions: int, answers: int) -> None:
    """Serve and end the process; never returns: the worker's own frames must not run on in it."""
    status = 1
    try:
        die_with_parent()
        with os.fdopen(questions, "rb") as taken, os.fdopen(answers, "wb") as given:
            serve(taken, given)
        status = 0
    except BaseException:  # noqa: BLE001 - as it would end any process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
