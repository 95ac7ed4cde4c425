"""``python -m tests.streams.robustness``: 5,000 mutated payloads, each must end in a clear error or a result.

A clear error is one line of ``BadInput``, ``StreamError`` or ``Unimplemented``. A result is outputs,
with or without stream issues. Anything else is a failure and listed: another exception, a message of
several lines, more than ten seconds of processor time, more than the memory limit, a dead process. What is executed is
what the ``ethos-u-model`` leg, the ``stream`` oracle and ``armdiff disasm`` execute: decoding, the listing, the
model, the static checks.

Mutants run in a child with a limit on its address space and an alarm for each.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.artifacts.npz import decode_npz
from harness.artifacts.vela import VelaPayload, decode_vela
from harness.case.errors import BadInput
from harness.case.memory import most_held
from harness.ethosu.checks import examine
from harness.ethosu.commands import decode_commands
from harness.ethosu.disassembly import listing
from harness.ethosu.machine import execute
from harness.ethosu.records import StreamError, Unimplemented
from tests.children import Death, spread
from tests.exactness.program import Array, random_state
from tests.streams import subjects
from tests.streams.mutants import KINDS, Mutant, mutant
from tests.streams.subjects import Subject

SECONDS, MEMORY, PATIENCE = 10, 4 << 30, 120
"""Processor time, address space, and time on the clock after which a child is ended, for one mutant."""
BAD_INPUT, STREAM_ERROR, UNIMPLEMENTED, ISSUES, CHANGED, SAME = (
    "bad input",
    "stream error",
    "unimplemented",
    "result, issues",
    "result, other",
    "result, same",
)
MOST_WORK = 1 << 32
"""Multiplications: what takes less than the ten seconds; the model's own limit stands for minutes."""
CLEAR = (BAD_INPUT, STREAM_ERROR, UNIMPLEMENTED, ISSUES, CHANGED, SAME)
_MOST_ELEMENTS = 1 << 22


class TooSlow(BaseException):
    """The alarm rang. Not an ``Exception``: nothing must catch it."""


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.streams.robustness", description=__doc__)
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run the mutant of this number here, without limits")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    items = (*subjects.compiled(), subjects.loop())
    if options.only is not None:
        one = mutant(options.seed, options.only, items)
        sys.stdout.write(f"{one.kind} of {one.subject.name}: {outcome(one)}\n")
        return 0
    found = list(run(options.seed, range(options.mutants), items, options.jobs))
    sys.stdout.write("\n".join(lines(found)) + "\n")
    return 1 if any(item["outcome"] not in CLEAR for item in found) else 0


def run(seed: int, numbers: Sequence[int], items: tuple[Subject, ...], jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Number, kind, subject, outcome, detail, seconds, memory (bytes) of each mutant."""

    def work(place: int) -> dict[str, Any]:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        return measured(mutant(seed, numbers[place], items))

    for place, answer in spread(len(numbers), work, jobs, PATIENCE):
        one = mutant(seed, numbers[place], items)
        if isinstance(answer, Death):
            answer = {"outcome": "DEATH", "detail": answer.how, "seconds": 0.0, "memory": 0}
        name = f"{one.subject.name} {one.subject.accelerator.name}"
        yield {"number": numbers[place], "kind": one.kind, "subject": name, **answer}


def measured(one: Mutant) -> dict[str, Any]:
    """Outcome, detail, processor seconds and memory of one mutant, under the alarm."""

    def ring(*_: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, ring)
    _forget_peak()
    before, used = most_held(os.getpid()), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        word, detail = outcome(one)
    except TooSlow:
        word, detail = "SLOW", f"more than {SECONDS} s"
    except Exception as error:  # noqa: BLE001 - this is what the command looks for
        word, detail = type(error).__name__.upper(), _place(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - used
    memory = max(most_held(os.getpid()) - before, 0)
    return {"outcome": word, "detail": detail, "seconds": seconds, "memory": memory}


def outcome(one: Mutant) -> tuple[str, str]:
    """A word and a line of detail.

    :raises Exception: what must not escape.
    """
    try:
        payload = decode_npz(one.data) if one.form == "npz" else decode_vela(one.data)
        accelerator = one.subject.accelerator
        commands = decode_commands(payload.commands, accelerator)
        for _ in listing(payload, accelerator):
            pass
        inputs = _inputs(one.subject, payload)
        execution = execute(payload, inputs, accelerator, commands=commands, most_work=MOST_WORK)
        issues = (*execution.issues, *examine(execution.steps, commands, accelerator))
        if execution.stopped is not None:
            raise execution.stopped
    except (BadInput, StreamError) as error:
        if "\n" in str(error) or len(str(error)) > 500 or not str(error).isprintable():
            return "UNCLEAR", str(error)
        word = BAD_INPUT if isinstance(error, BadInput) else STREAM_ERROR
        return UNIMPLEMENTED if isinstance(error, Unimplemented) else word, str(error)
    if issues:
        return ISSUES, issues[0].message
    wanted = _good(one.subject)
    same = len(wanted) == len(execution.outputs or ()) and all(
        np.array_equal(*pair) for pair in zip(wanted, execution.outputs or (), strict=True)
    )
    return SAME if same else CHANGED, ""


_KNOWN: dict[tuple[str, str], tuple[Array, ...]] = {}


def _good(subject: Subject) -> tuple[Array, ...]:
    key = subject.name, subject.accelerator.name
    if key not in _KNOWN:
        _KNOWN[key] = execute(subject.payload, subject.draw(0), subject.accelerator).outputs or ()
    return _KNOWN[key]


def _inputs(subject: Subject, payload: VelaPayload) -> list[Array]:
    """The subject's inputs, or others of the size that the mutant asks for, where that is possible."""
    arrays: list[Array] = list(subject.draw(0))
    for index, slot in enumerate(payload.inputs):
        fits = index < len(arrays) and (arrays[index].size, arrays[index].itemsize) == (
            slot.elements,
            slot.element_size,
        )
        if not fits and slot.element_size in (1, 2, 4, 8) and slot.elements <= _MOST_ELEMENTS:
            data = random_state("input", index).bytes(slot.bytes)
            arrays[index : index + 1] = [np.frombuffer(data, f"<i{slot.element_size}")]
    return arrays


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}" if trace else ""
    return f"{where} {error}"


def _forget_peak() -> None:
    """Start the count of the largest resident size anew (Linux)."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """The table by kind, what was not clear, and the largest."""
    words = [*CLEAR, *sorted({item["outcome"] for item in found} - set(CLEAR))]
    yield (
        f"{'mutation':20}" + "".join(f"{word:>16}" for word in words) + f"{'all':>8}{'slowest, s':>12}{'most, MiB':>11}"
    )
    for kind in (*KINDS, "all"):
        mine = [item for item in found if kind in (item["kind"], "all")]
        if not mine:
            continue
        counts = Counter(item["outcome"] for item in mine)
        slowest, most = max(item["seconds"] for item in mine), max(item["memory"] for item in mine)
        row = f"{kind:20}" + "".join(f"{counts[word]:16}" for word in words)
        yield f"{row}{len(mine):8}{slowest:12.2f}{most / 2**20:11.0f}"
    yield ""
    yield "seconds are the process's own; the slowest and the largest:"
    for key in ("seconds", "memory"):
        for item in sorted(found, key=lambda item: -item[key])[:3]:
            yield "  " + _line(item)
    failures = [item for item in found if item["outcome"] not in CLEAR]
    yield f"{len(failures)} of {len(found)} ended in neither a clear error nor a result"
    yield from ("  " + _line(item) for item in failures)


def _line(item: dict[str, Any]) -> str:
    return (
        f"{item['number']:5} {item['kind']} of {item['subject']}: {item['outcome']}, {item['seconds']:.2f} s, "
        f"{item['memory'] / 2**20:.0f} MiB: {item['detail']}"
    )


if __name__ == "__main__":
    sys.exit(main())
