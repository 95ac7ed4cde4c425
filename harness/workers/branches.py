"""Which branches of ExecuTorch's Arm backend a case takes: measured by coverage.py on one case in ``RATE``.

Measuring doubles the processor time of a lowering that takes nothing from other targets, so it is done on cases whose
digest has one remainder modulo the rate, and never 0: probes have those. Whether a case is measured is a function of
the case. A *branch* is a way out of a line that has several, as (line, next line); the next line is negative where the
function ends. Modules are named by their path below the package ``executorch.backends.arm``.

Only the first lowering of a case is measured, without probes' own, and none with corrections, which change lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from coverage import Coverage

from harness.case.case import Case
from harness.pipeline.probes import digest_number
from harness.workers.protocol import Branches

RATE, REMAINDER = 40, 10
FOLDERS = ("_passes", "quantizer", "operators", "operator_support")
"""Folders of the Arm backend that are looked at."""


def is_measured(case: Case, corrections: Sequence[str]) -> bool:
    """Are a case's branches measured?"""
    return not corrections and digest_number(case) % RATE == REMAINDER


@contextmanager
def measured(root: Path) -> Iterator[list[Branches]]:
    """Measure what runs inside; the list has the one result afterwards, if any of the backend ran to its end.

    :param root: folder of the package ``executorch.backends.arm``.
    """
    recorder = _recorder(root)
    found: list[Branches] = []
    recorder.start()
    try:
        yield found
    finally:
        recorder.stop()
    data = recorder.get_data()
    if not data.has_arcs():
        return  # nothing of the backend ran
    taken = {}
    for file, lines in ways_out(root).items():
        arcs = sorted({arc for arc in data.arcs(str(root / file)) or () if arc[0] in lines})
        if arcs:
            taken[file] = tuple(arcs)
    found.append(Branches(taken=taken, ways={file: sum(lines.values()) for file, lines in ways_out(root).items()}))


def _recorder(root: Path) -> Coverage:
    include = [str(root / folder / "*") for folder in FOLDERS]
    return Coverage(data_file=None, branch=True, config_file=False, include=include, messages=False)


@cache
def ways_out(root: Path) -> dict[str, dict[int, int]]:
    """Module -> line with several ways out -> how many. Reads the installed sources, which takes two seconds.

    :param root: folder of the package ``executorch.backends.arm``.
    """
    recorder = _recorder(root)
    recorder.get_data().add_arcs({str(root / "no_such_file.py"): []})  # without any, coverage.py knows no branches
    found = {}
    for file in sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py")):
        lines = {line: ways for line, (ways, _) in recorder.branch_stats(str(file)).items()}
        if lines:
            found[str(file.relative_to(root))] = lines
    return found
