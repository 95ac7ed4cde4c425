"""The errors that armdiff raises on purpose, each one line that ends with the remedy.

``BadInput`` is the user's to mend (exit status 2), ``CannotRun`` the environment's (exit
status 3). Everything else that escapes from a command is a defect of armdiff itself and keeps its
traceback. Where that happens to one case of many it is an ``OwnFault``: a problem of the run that is
told in one line, never a finding, since it says nothing about the toolchain.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import msgspec

UPSTREAM = ("executorch", "torchao", "ethosu", "tosa_serializer", "tosa_reference_model", "tosa")
"""Packages of the toolchain, by the first component of their modules' names."""
OURS = ("harness", "oracles", "generators")
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError)
"""What msgspec raises for data that cannot be decoded; it looks at the text of a string when it comes to it."""


class ArmdiffError(Exception):
    """Base of the errors that end a command with one line instead of a traceback."""

    exit_status = 2


class BadInput(ArmdiffError):
    """Something the user gave cannot be used.

    :param where: the file, and the JSON path or line inside it.
    :param problem: what is wrong, naming the offending value.
    :param remedy: what to do about it, as an imperative.
    """

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        self.where, self.problem, self.remedy = where, problem, remedy
        super().__init__(f"{where}: {problem}; {remedy}")

    def inside(self, prefix: str) -> BadInput:
        """The same error with ``where`` placed inside ``prefix`` (a file name)."""
        return BadInput(f"{prefix}: {self.where}", self.problem, self.remedy)


class CannotRun(ArmdiffError):
    """The environment lacks what was asked for; the message says what to install."""

    exit_status = 3


class OwnFault(ArmdiffError):
    """armdiff itself failed on a case.

    :param error: what was raised where nothing may be raised.
    :param what: what armdiff was doing.
    """

    exit_status = 3

    def __init__(self, error: BaseException, what: str) -> None:
        places = [place for place in _places(error) if _package(place) in OURS]
        at = f" at {places[-1]}" if places else ""
        said = " ".join(str(error).split())
        super().__init__(
            f"armdiff itself fails {what}: {type(error).__name__}{at}: {said}; report it to armdiff with this case: "
            "it says nothing about the toolchain"
        )


def is_ours(error: BaseException) -> bool:
    """Was it raised in armdiff's own code, or in a library that armdiff called, and not in the toolchain?"""
    known = [place for place in _places(error) if _package(place) in (*UPSTREAM, *OURS)]
    return bool(known) and _package(known[-1]) in OURS


def _places(error: BaseException) -> Iterator[str]:
    """``module:line`` of every frame, the innermost of the first cause last."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield f"{frame.f_globals.get('__name__', '')}:{line}"
    if error.__cause__ is not None:
        yield from _places(error.__cause__)


def _package(place: str) -> str:
    return place.partition(":")[0].partition(".")[0]
