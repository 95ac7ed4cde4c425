"""How much memory one worker takes, and whether that grows with the cases that it has run.

The cases are those of a campaign, in its order, and one worker has them all: nothing replaces it. After each case the
resident bytes of the process that ran it are read (the worker, or its fork for the graph: ``harness.workers.forks``),
those of its own among them, and the most that it ever had (``VmHWM``); pages that worker and fork share are in it. The
runtime that is forked for the leg ``executorch`` is a process of its own and is not counted. *Growth* compares the
median of the last tenth of the cases with that of the second tenth: the first tenth fills caches. It is that of the
process's own bytes: pages of libraries come in as their code is needed for the first time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.case.memory import Held, held, most_held
from harness.case.wording import counted_as
from harness.cli.benchmark.subjects import Subject
from harness.triage.corpus import bugs_of, corpus_folders
from harness.triage.given import known_entries
from harness.workers.processes import Death, Limits, start_worker
from harness.workers.protocol import Task

MIB = 1 << 20
FEWEST = 20
"""Cases below which nothing is said of growth."""


def readings(subjects: Sequence[Subject], told: Callable[[str], None]) -> tuple[list[Held], int]:
    """What ran each case holds after it, and the most bytes that were resident at any time.

    Another worker takes over where one dies of a case, and not only its fork. Told are the readings of the one that had
    most cases: those of both would show a fall where there was none.

    :param told: receives a line after each graph, and for a case at which the worker died.
    """
    known = bugs_of(known_entries(corpus_folders()))
    lives: list[list[Held]] = [[]]
    peak = 0
    worker = start_worker(Limits())
    try:
        for number, subject in enumerate(subjects, 1):
            for file in subject.cases:
                answer = worker.ask(Task(case=str(file), known=known, graph=subject.name))
                if isinstance(answer, Death):
                    if worker.gone:
                        told(f"{file}: the worker died ({answer.kind}); what follows is of another one")
                        worker.close()
                        worker = start_worker(Limits())
                        lives.append([])
                    else:
                        told(f"{file}: the graph's fork of the worker died ({answer.kind})")
                    continue
                lives[-1].append(held(worker.serves))
                peak = max(peak, most_held(worker.serves))
            told(f"{number}/{len(subjects)} {subject.name}: {lives[-1][-1].resident // MIB if lives[-1] else 0} MiB")
    finally:
        worker.close()
    return max(lives, key=len), peak


def growth(found: Sequence[Held]) -> float | None:
    """The worker's own bytes in the last tenth over the second one, less 1; None for too few cases."""
    if len(found) < FEWEST:
        return None
    tenth = len(found) // 10
    own = [item.own for item in found]
    return statistics.median(own[-tenth:]) / statistics.median(own[tenth : 2 * tenth]) - 1


def as_json(found: Sequence[Held], peak: int) -> dict[str, Any]:
    """For ``--json``."""
    return {
        "cases": len(found),
        "resident": [item.resident for item in found],
        "own": [item.own for item in found],
        "peak": peak,
        "growth": growth(found),
    }


def lines(found: Sequence[Held], peak: int) -> Iterator[str]:
    """For people."""
    if not found:
        yield "no case was run"
        return
    yield (
        f"one worker, {counted_as(len(found), 'case')}: {found[-1].resident // MIB} MiB at the end, of them "
        f"{found[-1].own // MIB} of its own; {peak // MIB} MiB at the most (of one case)"
    )
    grown = growth(found)
    if grown is None:
        yield f"growth needs {FEWEST} cases"
    else:
        tenth = len(found) // 10
        yield f"growth of its own from cases {tenth + 1} to {2 * tenth} to the last {tenth}: {100 * grown:+.1f} %"
