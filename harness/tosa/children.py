"""Child processes that work through numbered pieces, so that a native death costs one piece.

A child is forked from the caller, has its own address-space limit, and writes messages to a pipe, one JSON line each.
What native code prints goes to the null device. On its search path is nothing but a debugger that does nothing. A child
that says nothing for ``patience`` seconds is ended. A signal to the terminal's processes is for the caller alone, and
children die with it.

``run_children`` yields what the children say. It does not know what they do: ``harness.tosa.engine`` does.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from harness.case.interrupts import EVERY, SIGNALS, check, die_with_parent
from harness.compat.tosa import without_debugger

PATIENCE = 60.0
"""Seconds without a message after which a child counts as hanging."""
MEMORY = 6 << 30
"""Bytes of address space that a child may have beside those of its parent (torch alone takes as much)."""
Say = Callable[[bytes], None]
Work = Callable[[Say], None]


@dataclass(frozen=True)
class Said:
    """A message."""

    child: int
    message: bytes


@dataclass(frozen=True)
class Ended:
    """A child ended: in good order (``how`` is empty), by a signal, with an exit status, or because it hung."""

    child: int
    how: str


@dataclass
class _Child:
    number: int
    pid: int
    pipe: int
    received: bytes = b""
    heard: float = field(default_factory=time.monotonic)


class Children:
    """A set of running children; leaving the context ends them."""

    def __init__(self, patience: float = PATIENCE, memory: int = MEMORY) -> None:
        self._patience, self._memory = patience, memory
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._number = 0

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in [*self._children.values()]:
            self._stop(child)
        self._selector.close()

    def start(self, work: Work) -> int:
        """Fork a child that does some work; returns its number."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            for other in self._children.values():
                os.close(other.pipe)
            _live(work, writing, self._memory)
        os.close(writing)
        self._number += 1
        child = _Child(self._number, pid, reading)
        self._children[child.number] = child
        self._selector.register(reading, selectors.EVENT_READ, child)
        return child.number

    def events(self) -> Iterator[Said | Ended]:
        """What children say, and how they end, until there are none left.

        :raises KeyboardInterrupt: a signal was remembered (``harness.case.interrupts``).
        """
        while self._children:
            check()
            for key, _ in self._selector.select(EVERY):
                yield from self._read(key.data)
            for child in [*self._children.values()]:
                if time.monotonic() - child.heard > self._patience:
                    self._stop(child)
                    yield Ended(child.number, "Hang")

    def _read(self, child: _Child) -> Iterator[Said | Ended]:
        data = os.read(child.pipe, 1 << 16)
        child.heard = time.monotonic()
        if not data:
            yield Ended(child.number, self._stop(child, kill=False))
            return
        *messages, child.received = (child.received + data).split(b"\n")
        for message in messages:
            yield Said(child.number, message)

    def _stop(self, child: _Child, *, kill: bool = True) -> str:
        """End it if it runs; how it ended."""
        if kill:
            os.kill(child.pid, signal.SIGKILL)
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        del self._children[child.number]
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _live(work: Work, pipe: int, memory: int) -> None:
    """What a child does from its first moment to its last; never returns."""
    code = 1
    try:
        faulthandler.disable()
        die_with_parent()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        limit = _own() + memory
        if (given := resource.getrlimit(resource.RLIMIT_AS)[1]) != resource.RLIM_INFINITY:
            limit = min(limit, given)  # a child's child has what its parent has
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        errors = os.dup(2)
        os.dup2(nowhere, 2)
        os.environ["PATH"] = without_debugger()
        work(lambda message: _write(pipe, message + b"\n"))
        code = 0
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        os.write(errors, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _own() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]
