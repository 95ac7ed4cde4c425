"""Ctrl-C and SIGTERM, in the process that owns the terminal: noticed in one place, raised where it is safe.

A handler that raises does so between any two bytecodes: inside an import, or inside a callback of the garbage
collector (Hypothesis has one), where Python prints the exception and goes on. So the handler here never raises.

* While there is nothing to keep (``end_at_once``) a signal ends the process, with one line.
* Inside ``deferred`` a signal is remembered. ``check``, and the waits here that call it, raise ``KeyboardInterrupt``
  in the code that called them. What leaves the block is ``Interrupted``: exit status 130, and the command that goes
  on. A second signal ends the process at once.

Workers lead sessions of their own, which Ctrl-C does not reach; whatever does work for this process dies with it.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from harness.case.errors import ArmdiffError

STATUS = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
EVERY = 0.1
"""Seconds after which a wait looks whether there was a signal."""
_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""
_SHOW_CURSOR = "\x1b[?25h"

_Result = TypeVar("_Result")


class Interrupted(ArmdiffError):
    """A signal ended what was going on; the message ends with what goes on."""

    exit_status = STATUS


def command(
    adding: Sequence[str] = (), dropping: Collection[str] = (), instead: Mapping[str, Sequence[str]] | None = None
) -> str:
    """This process's command line, quoted for a shell.

    :param adding: further words at its end, each once.
    :param dropping: words to leave out.
    :param instead: option -> the values to give it, in place of those that it has.
    """
    replaced = instead or {}
    kept: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, equals, _ = word.partition("=")
        if name in replaced:
            if not equals:
                next(words, None)
        elif word not in dropping:
            kept.append(word)
    kept += [part for name, values in replaced.items() for value in values for part in (name, value)]
    return shlex.join(["armdiff", *kept, *(word for word in adding if word not in kept)])


def again() -> str:
    """What there is to say where nothing goes on."""
    return f"the same command begins again: {command()}"


@dataclass
class _State:
    """What the handler knows.

    :ivar deferred: a signal is only remembered.
    :ivar asked: there was one.
    :ivar goes_on: says what goes on.
    """

    deferred: bool = False
    asked: bool = False
    goes_on: Callable[[], str] = again


_state = _State()


def end_at_once() -> None:
    """Let a signal end this process with one line: nothing is lost yet. Ignored signals stay ignored (nohup)."""
    for number in _heeded():
        signal.signal(number, _received)


@contextmanager
def deferred(goes_on: Callable[[], str] = again) -> Iterator[None]:
    """Remember signals instead of ending: what is kept inside is worth a last step.

    Outside the main thread, and inside another such block, nothing changes.

    :param goes_on: what there is to say of how to go on, at the moment of the signal.
    :raises Interrupted: there was a signal, and something inside raised it.
    """
    if _state.deferred or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _received) for number in _heeded()}
    _state.deferred, _state.asked, _state.goes_on = True, False, goes_on
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {goes_on()}") from None
    finally:
        _state.deferred = False
        for number, handler in before.items():
            signal.signal(number, handler)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends: nobody else would stop a hang."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def check() -> None:
    """Raise a signal that was remembered.

    :raises KeyboardInterrupt: there was one.
    """
    if _state.deferred and _state.asked and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def result_of(future: Future[_Result]) -> _Result:
    """A future's result, unless a signal comes first.

    :raises KeyboardInterrupt: it came first.
    """
    check()
    while not wait([future], EVERY).done:
        check()
    return future.result()


def communicated(process: subprocess.Popen[bytes], timeout: float | None = None) -> tuple[bytes, bytes]:
    """``process.communicate``, unless a signal comes first.

    :raises KeyboardInterrupt: it came first; the process still runs.
    :raises subprocess.TimeoutExpired: likewise.
    """
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        check()
        try:
            return process.communicate(timeout=EVERY)
        except subprocess.TimeoutExpired:
            if until is not None and time.monotonic() >= until:
                raise


def _heeded() -> list[signal.Signals]:
    return [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _received(number: int, frame: FrameType | None) -> None:
    if not _state.deferred or _state.asked:
        _say(f"armdiff: interrupted; {_state.goes_on()}")
        os._exit(STATUS)
    _state.asked = True
    _say("armdiff: interrupted: keeping what was done (once more ends it at once)")


def _say(line: str) -> None:
    """Write a line past all buffers; a terminal may be in the middle of a line, with its cursor hidden."""
    text = f"\r\x1b[2K{_SHOW_CURSOR}{line}\n" if os.isatty(2) else f"{line}\n"
    try:
        os.write(2, text.encode(errors="replace"))
    except OSError:
        return  # nobody reads any more
