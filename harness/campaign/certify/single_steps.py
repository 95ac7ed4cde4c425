"""Try corrections on single steps of one lowering, in forked children, instead of lowering once for each.

While the stock compile runs, every step (``harness.compat.steps``) that may reach what a variant changes is
also run by a child of this process with the variant's corrections. The child starts from the very memory
that the step starts from. If it leaves the same as the stock step does, then so does all that follows, until
the next step that the variant changes. A variant is *unmoved* if each step that reaches a changed place left
the same, and no changed place was reached outside steps.

Which steps reach which places is learned from compile to compile: where a step reaches a place for the
first time in this process, no child was there, and the variant has to be compiled.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from harness.compat.sources import Place
from harness.corrections import chosen
from harness.corrections.applying import applied
from harness.corrections.touching import changed_places
from harness.workers.protocol import Variant

MOST_CHILDREN = 6
"""A variant that is changed in more steps of a compile is cheaper to compile."""

_reached: dict[str, set[Place]] = {}
"""Places that steps of a name reached in this process so far."""


class Trial:
    """The variants of one compile.

    :param variants: those to be tried.
    :param places: what ``touched`` collects.
    :param another: makes a partitioner like the compile's own, under a variant's corrections.
    """

    def __init__(self, variants: Iterable[Variant], places: set[Place], another: Callable[[], Any]) -> None:
        self._places, self._another = places, another
        self._open: dict[Variant, frozenset[Place]] = {words: _prepared(words) for words in variants}
        self._children = dict.fromkeys(self._open, 0)
        self._made: set[Place] = set()
        self.reached: set[Place] = set()
        """Places that steps of this compile reached; what was reached outside of them is in ``places``."""
        self._error: Exception | None = None

    def unmoved(self) -> frozenset[Variant]:
        """The variants that this compile is also the compile of, once it is done.

        :raises Exception: what a step left could not be described.
        """
        if self._error is not None:
            raise self._error
        return frozenset(words for words, places in self._open.items() if not places & self._places)

    def run_step(
        self, name: str, subject: Any, run: Callable[[Any], Any], remains: Callable[[Any], str], *, first: bool
    ) -> Any:
        """Run a step, as the stock compile does, and in a child for each variant that may change it."""
        if first:  # making a partitioner belongs to partitioning
            self._made |= {place for place in self._places if place[1].endswith("Partitioner.__init__")}
        outside = self._places - self._made
        made = self._made if first else frozenset()
        known = _reached.setdefault(name, set())
        known |= made
        pipes = {
            words: self._child(words, subject, run, remains, first)
            for words, places in self._open.items()
            if places & known and self._children[words] < MOST_CHILDREN
        }
        self._places.clear()
        stock = ""
        try:
            result = run(subject)
            if pipes:
                stock = self._noted(remains, result)
        finally:
            inside = self._places | made
            known |= inside
            self.reached |= inside
            self._places.clear()
            self._places |= outside
            answers = {words: _answer(pipe) for words, pipe in pipes.items()}
            for words, places in [*self._open.items()]:
                if places & inside and (not stock or answers.get(words) != stock):
                    del self._open[words]
        return result

    def _noted(self, remains: Callable[[Any], str], result: Any) -> str:
        """What the stock step leaves. If this fails it is no fault of the lowering that is going on."""
        try:
            return remains(result)
        except Exception as error:  # noqa: BLE001 - raised by ``unmoved``
            self._error = error
            return ""

    def _child(
        self, words: Variant, subject: Any, run: Callable[[Any], Any], remains: Callable[[Any], str], first: bool
    ) -> tuple[int, int]:
        """A child that runs the step with a variant's corrections, and the pipe that it answers on."""
        self._children[words] += 1
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer = b""
            try:
                faulthandler.disable()  # a native death here is an answer, too
                os.close(read)
                with applied(chosen(words)):
                    answer = remains(run(self._another() if first else subject)).encode()
            finally:
                os.write(write, answer)
                os._exit(0)
        os.close(write)
        return pid, read


@cache
def _prepared(words: Variant) -> frozenset[Place]:
    """The places that a variant changes. Applies it once, so that no child has to compile its code again."""
    corrections = chosen(words)
    with applied(corrections):
        return changed_places(corrections)


def _answer(child: tuple[int, int]) -> str:
    """What a child found; empty if it raised or died."""
    pid, read = child
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer.decode()
