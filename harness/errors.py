"""The errors that armdiff raises on purpose, each one line that ends with the remedy.

``BadInput`` is the user's to mend (exit status 2), ``CannotRun`` the environment's (exit
status 3). Everything else that escapes is a defect of armdiff itself and keeps its traceback.
"""

from __future__ import annotations


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
