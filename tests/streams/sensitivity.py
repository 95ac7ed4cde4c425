"""``python -m tests.streams.sensitivity``: flip 500 bits, one at a time, and say what becomes of each.

The bits are in the commands, weights, scale records and tables of ten payloads (``subjects``). A flip
*changes the result* if an output differs on one of several random inputs of the full range, ends in a
*stream error*, or raises a *stream issue* that the good stream does not have (execution's own or a
static check's). One that does none of this differs for *sums not met* by any of the inputs, which are
counted, or is *dead* for a reason that ``dead`` checks; or it is *unexplained*, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.artifacts.vela import VelaPayload
from harness.case.errors import BadInput
from harness.ethosu.checks import examine
from harness.ethosu.commands import decode_commands
from harness.ethosu.machine import Execution, execute
from harness.ethosu.records import StreamError, StreamIssue
from tests.streams import dead
from tests.streams.flips import COMMANDS, Flip, chosen
from tests.streams.recording import trace
from tests.streams.subjects import Subject, compiled

CHANGED, ERROR, ISSUE, RARE, INFORMATION, DEAD, UNEXPLAINED = (
    "changes the result",
    "stream error",
    "stream issue",
    "sums not met",
    "information",
    "dead",
    "unexplained",
)
OUTCOMES = (CHANGED, ERROR, ISSUE, RARE, INFORMATION, DEAD, UNEXPLAINED)
_LISTED = (RARE, INFORMATION, UNEXPLAINED)
FEW, MANY = 4, 32
"""Inputs that every flip is tried on, and those that seem to be dead."""


@dataclass(frozen=True)
class Verdict:
    """What became of a flip.

    :param detail: the error, the issue, or the reason.
    """

    subject: str
    flip: Flip
    outcome: str
    detail: str


def main() -> int:
    """Parse, flip, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.streams.sensitivity", description=__doc__)
    parser.add_argument("--flips", type=int, default=500, help="of all subjects together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print every flip")
    options = parser.parse_args()
    subjects = tuple(compiled())
    verdicts = [
        verdict for subject in subjects for verdict in judged(subject, options.flips // len(subjects), options.seed)
    ]
    sys.stdout.write("\n".join(lines(verdicts, every=options.list)) + "\n")
    return 1 if any(item.outcome == UNEXPLAINED for item in verdicts) else 0


def judged(subject: Subject, count: int, seed: int) -> Iterator[Verdict]:
    """The verdicts of ``count`` flips of a subject."""
    good = Good(subject)
    for flip in chosen(subject, trace(subject.payload, subject.draw(0), subject.accelerator), count, seed):
        yield Verdict(f"{subject.name} {subject.accelerator.name}", flip, *good.verdict(flip))


class Good:
    """What the subject does when it is not flipped, computed once."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._outputs: dict[int, Execution] = {}
        self._known = {_key(issue) for issue in _issues(subject, subject.payload, self._run(0))}

    def _run(self, number: int) -> Execution:
        if number not in self._outputs:
            subject = self._subject
            self._outputs[number] = execute(subject.payload, subject.draw(number), subject.accelerator)
        return self._outputs[number]

    def verdict(self, flip: Flip) -> tuple[str, str]:
        """Outcome and detail."""
        subject = self._subject
        payload = flip.of(subject.payload)
        try:
            executions = [execute(payload, subject.draw(number), subject.accelerator) for number in range(FEW)]
        except (StreamError, BadInput) as error:
            return ERROR, str(error)
        for execution in executions:
            if execution.stopped is not None:
                return ERROR, str(execution.stopped)
        if any(_differ(execution, self._run(number)) for number, execution in enumerate(executions)):
            return CHANGED, ""
        issues = [issue for issue in _issues(subject, payload, executions[0]) if _key(issue) not in self._known]
        certain = [issue for issue in issues if issue.certain]
        if certain:
            return ISSUE, f"{certain[0].kind}: {certain[0].message}"
        if issues:
            return INFORMATION, f"{issues[0].kind}: {issues[0].message}"
        return self._dead(flip, payload)

    def _dead(self, flip: Flip, payload: VelaPayload) -> tuple[str, str]:
        subject = self._subject
        for number in range(FEW, MANY):
            if _differ(execute(payload, subject.draw(number), subject.accelerator), self._run(number)):
                return CHANGED, ""
        draws = [subject.draw(number) for number in range(FEW)]
        good = [trace(subject.payload, draw, subject.accelerator) for draw in draws]
        flipped = [trace(payload, draw, subject.accelerator) for draw in draws]
        why = dead.explained(good, flipped, flip, subject.accelerator)
        if why is None:
            return UNEXPLAINED, ""
        return RARE if why.rare else DEAD, why.detail


def _issues(subject: Subject, payload: VelaPayload, execution: Execution) -> list[StreamIssue]:
    commands = decode_commands(payload.commands, subject.accelerator)
    return [*execution.issues, *examine(execution.steps, commands, subject.accelerator)]


def _key(issue: StreamIssue) -> tuple[str, str, int | None]:
    return issue.kind, issue.message, issue.offset


def _differ(one: Execution, other: Execution) -> bool:
    if one.outputs is None or other.outputs is None:
        return one.outputs is not other.outputs
    return not all(np.array_equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True))


def lines(verdicts: list[Verdict], *, every: bool = False) -> Iterator[str]:
    """Tables: place by outcome, place by reason, and what is unexplained."""
    places = [*dict.fromkeys(item.flip.kind for item in verdicts)]
    registers = sorted({item.flip.place for item in verdicts if item.flip.kind == COMMANDS})
    yield from _table(verdicts, [("all", None), *((kind, kind) for kind in places)], registers)
    yield ""
    reasons = Counter((item.flip.kind, item.detail) for item in verdicts if item.outcome == DEAD)
    yield "dead, by reason:"
    for reason in dead.REASONS:
        counts = ", ".join(f"{reasons[kind, reason]} in {kind}" for kind in places if reasons[kind, reason])
        yield f"  {reason:24}{counts or 'none'}"
    yield f"{sum(item.outcome == UNEXPLAINED for item in verdicts)} of {len(verdicts)} unexplained"
    for item in verdicts if every else [item for item in verdicts if item.outcome in _LISTED]:
        yield f"  {item.subject}: {item.flip.place}, bit {item.flip.bit}: {item.outcome} {item.detail}"


def _table(verdicts: list[Verdict], kinds: list[tuple[str, str | None]], registers: list[str]) -> Iterator[str]:
    yield f"{'place':28}{'flips':>7}" + "".join(f"{word:>20}" for word in OUTCOMES)
    for name, kind in kinds:
        yield _row(name, [item for item in verdicts if kind in (None, item.flip.kind)])
        if kind == COMMANDS:
            for register in registers:
                mine = [item for item in verdicts if item.flip.kind == COMMANDS and item.flip.place == register]
                yield _row(f"  {register}", mine)


def _row(name: str, verdicts: list[Verdict]) -> str:
    counts = Counter(item.outcome for item in verdicts)
    return f"{name:28}{len(verdicts):7}" + "".join(f"{counts[word] or '':>20}" for word in OUTCOMES)


if __name__ == "__main__":
    sys.exit(main())
