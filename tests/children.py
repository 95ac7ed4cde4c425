"""Numbered pieces of work in several forked children, so that a native death costs one piece only.

The compiler and the reference model end the process on some graphs. Each child works through its
share and writes one JSON line a result; when it dies or hangs, the piece it was at is a ``Death``
and a new child goes on behind it. What native code prints goes to the null device. On the search
path of a child is nothing but a debugger that does nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.compat.tosa import without_debugger

PATIENCE = 300.0
"""Seconds that a child may take for one piece."""


@dataclass(frozen=True)
class Death:
    """A child that ended without a result: a signal's name, ``exit 1``, or ``hang``."""

    how: str


@dataclass
class _Child:
    pid: int
    pipe: int
    numbers: list[int]
    received: bytes = b""
    last: float = field(default_factory=time.monotonic)


def spread(
    count: int, work: Callable[[int], Any], jobs: int, patience: float = PATIENCE
) -> Iterator[tuple[int, Any | Death]]:
    """``work(0)`` … ``work(count - 1)`` as they end: number and JSON data, or a ``Death``.

    :raises RuntimeError: the work itself raised; its traceback is the message.
    """
    children: dict[int, _Child] = {}
    with selectors.DefaultSelector() as selector:

        def start(numbers: Sequence[int]) -> None:
            if numbers:
                child = _start(list(numbers), work, [other.pipe for other in children.values()])
                children[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)

        def stop(child: _Child, how: str | None = None) -> str:
            selector.unregister(child.pipe)
            del children[child.pipe]
            os.close(child.pipe)
            if how is not None:
                os.kill(child.pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
            return how or (signal.Signals(-status).name if status < 0 else f"exit {status}")

        for job in range(jobs):
            start(range(job, count, jobs))
        try:
            while children:
                for key, _ in selector.select(1.0):
                    child = children[key.fd]
                    part = os.read(child.pipe, 1 << 16)
                    yield from _answers(child, part)
                    if not part:
                        how, left = stop(child), child.numbers
                        if left:
                            yield left[0], Death(how)
                            start(left[1:])
                for child in [item for item in children.values() if time.monotonic() - item.last > patience]:
                    how, left = stop(child, "hang"), child.numbers
                    yield left[0], Death(how)
                    start(left[1:])
        finally:
            for child in list(children.values()):
                stop(child, "stopped")


def _answers(child: _Child, part: bytes) -> Iterator[tuple[int, Any]]:
    *lines, child.received = (child.received + part).split(b"\n")
    for line in lines:
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the work of a child failed:\n{answer['error']}")
        child.last = time.monotonic()
        yield child.numbers.pop(0), answer["result"]


def _start(numbers: list[int], work: Callable[[int], Any], others: list[int]) -> _Child:
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        for pipe in (read, *others):
            os.close(pipe)
        _serve(write, numbers, work)
    os.close(write)
    return _Child(pid, read, numbers)


def _serve(write: int, numbers: list[int], work: Callable[[int], Any]) -> None:
    """The child: never returns."""
    faulthandler.disable()  # a native death here is a result, not worth a stack
    os.environ["PATH"] = without_debugger()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.stdout = sys.stderr = os.fdopen(null, "w")  # whatever they were: a test's capture
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


def isolated(count: int, work: Callable[[int], Any], patience: float = 60.0) -> list[Any | Death]:
    """The same in one child at a time: all answers in order."""
    return [answer for _, answer in spread(count, work, 1, patience)]
