"""Run numbered pieces of work in forked children, so that a native death costs one piece only.

A child works through the numbers in order and writes one JSON line a result. When it dies or
hangs, the piece it was at is reported as a ``Death`` and a new child goes on with the next one. What
native code prints goes to the null device. An exception of the work itself is a fault of
this program and is raised again in the parent.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

PATIENCE = 60.0  # seconds without a result


@dataclass(frozen=True)
class Death:
    """A child that ended without a result: a signal's name, "exit 1", or "hang"."""

    how: str


def isolated(count: int, work: Callable[[int], Any], patience: float = PATIENCE) -> list[Any]:
    """``work(0)`` … ``work(count - 1)``: JSON data, or a ``Death``, in order."""
    results: list[Any] = []
    while len(results) < count:
        answers, how = _child(range(len(results), count), work, patience)
        results += answers
        if len(results) < count:
            results.append(Death(how))
    return results


def _child(numbers: Iterable[int], work: Callable[[int], Any], patience: float) -> tuple[list[Any], str]:
    """Results of one child up to its end, and how it ended."""
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        _serve(write, numbers, work)
    os.close(write)
    try:
        received, hung = _received(read, patience)
    finally:
        os.close(read)
    if hung:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answers = [json.loads(line) for line in received.splitlines(keepends=True) if line.endswith(b"\n")]
    for answer in answers:
        if "error" in answer:
            raise RuntimeError(f"the work of a child failed:\n{answer['error']}")
    how = "hang" if hung else signal.Signals(-status).name if status < 0 else f"exit {status}"
    return [answer["result"] for answer in answers], how


def _received(read: int, patience: float) -> tuple[bytes, bool]:
    """Everything up to the end of the pipe; True if the child stayed silent for too long."""
    received, last = b"", time.monotonic()
    while (left := last + patience - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            part = os.read(read, 1 << 16)
            if not part:
                return received, False
            received, last = received + part, time.monotonic()
    return received, True


def _serve(write: int, numbers: Iterable[int], work: Callable[[int], Any]) -> None:
    """The child: never returns."""
    faulthandler.disable()  # a native death here is a result, not worth a stack
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for number in numbers:
        try:
            answer = {"result": work(number)}
        except BaseException:  # noqa: BLE001 - reported to the parent, which raises
            answer = {"error": traceback.format_exc()}
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(write, data) :]
        if "error" in answer:
            break
    os._exit(0)
