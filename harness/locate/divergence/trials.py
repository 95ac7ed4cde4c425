"""Put guesses to the test: is everything right once a step is corrected?

A guess is good if the payload, run with it, returns what the reference does, element for element,
on every run: on those that differed and on others that must not get worse. The number of trials is
bounded by the work that one takes, so that large payloads end in reasonable time without an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.case.arrays import Array
from harness.locate.divergence.difference import signed
from harness.locate.divergence.explaining import Explanation, Run, explain
from harness.locate.divergence.guessing import Guess, corrections, wrong_elements

_MOST_TRIALS, _FEWEST_TRIALS = 120, 12
_MOST_WORK, _ELEMENTS = 8000, 10_000
"""Steps that the trials of one round execute, where storing so many elements counts as one more step."""
_REMAINING = 0.75
"""Share of the wrong elements that may stay wrong for a guess to count as an improvement."""


@dataclass(frozen=True)
class Found:
    """A guess that makes everything right.

    :param step: the first step that it corrects.
    :param elements: how many elements were wrong.
    """

    guess: Guess
    step: int
    elements: int


class Trials:
    """The runs of one comparison, what is known of them, and how many trials are left."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.main, self.runs = runs[0], runs
        self.known: Explanation = explain(runs)
        self._work = self._count = 0

    def new_round(self) -> None:
        """Allow as many trials as at first."""
        self._work = self._count = 0

    @property
    def exhausted(self) -> bool:
        return self._count >= (_FEWEST_TRIALS if self._work >= _MOST_WORK else _MOST_TRIALS)

    def repairing(self, guesses: Iterable[Guess]) -> Found | None:
        """The first guess that makes every output right on every run."""
        for guess in guesses:
            if self.exhausted:
                return None
            if all(self._repairs(guess, run) for run in self.runs):
                return self._found(guess)
        return None

    def improving(self, guesses: Iterable[Guess]) -> Found | None:
        """The first guess that makes many wrong elements right on every run and leaves what is right."""
        for guess in guesses:
            if self.exhausted:
                return None
            if all(
                (left := self._wrong(guess, run)) is not None and left <= _REMAINING * before
                for run, before in zip(self.runs, self._wrong_before, strict=True)
            ):
                return self._found(guess)
        return None

    @cached_property
    def _wrong_before(self) -> list[int]:
        return [_differing(run.player.outputs({}), run) or 0 for run in self.runs]

    def _repairs(self, guess: Guess, run: Run) -> bool:
        return self._wrong(guess, run) == 0

    def _wrong(self, guess: Guess, run: Run) -> int | None:
        """Elements of the outputs that are wrong with a guess; None if it does not run to the end."""
        self._count += 1
        first = min(guess.members)
        later = (stored for index, stored in self.known.steps.items() if index >= first)
        self._work += sum(1 + stored.values.size // _ELEMENTS for stored in later)
        outputs = run.player.outputs(corrections(self.known, guess, run))
        return _differing(outputs, run)

    def _found(self, guess: Guess) -> Found | None:
        """With the first of the corrected steps that was wrong."""
        wrong = {index: wrong_elements(guess, self.known.steps[index]) for index in guess.members}
        first = next((index for index, count in wrong.items() if count), None)
        return None if first is None else Found(guess, first, sum(wrong.values()))


def _differing(outputs: Sequence[Array] | None, run: Run) -> int | None:
    """Elements of the run's output that are wrong; None if the payload did not run to its end."""
    if outputs is None:
        return None
    one, other = outputs[run.output], run.wanted[run.output]
    return int(np.count_nonzero(signed(one).ravel() != signed(other).ravel()))
