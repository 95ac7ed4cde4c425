"""How many programs a minute the Vela engine judges, and where its time goes.

The programs are those that ``armdiff vela`` draws for the seed, on each accelerator, with one child and with as many
as there are jobs. Everything is on: drawing, two compilations, three sets of inputs, all stream checks, and a second
look at every finding. Reductions come behind and are not measured here. The clock says programs a minute; processor
time says which stage takes it, whatever else the machine does.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.ethosu.accelerator import accelerator_named
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.program import Program

STAGES = {
    "draw": "drawing",
    "write": "writing the flatbuffer, making inputs",
    "vela": "Vela, twice",
    "reference": "TOSA reference model",
    "run": "armdiff's model of the Ethos-U, comparing",
    "checks": "stream checks",
    "again": "second look at findings, first wrong operator",
}
"""Stages of the engine, in order."""
GOAL = 2500
"""Programs a minute that two cores should judge."""


class Row(msgspec.Struct, frozen=True):
    """One measurement.

    :param wall: seconds by the clock.
    :param stages: processor seconds by stage, all programs together.
    """

    accelerator: str
    jobs: int
    programs: int
    findings: int
    wall: float
    stages: dict[str, float]

    @property
    def per_minute(self) -> float:
        return 60 * self.programs / self.wall

    @property
    def each(self) -> float:
        """Processor milliseconds a program."""
        return 1000 * sum(self.stages.values()) / self.programs


def measured(accelerators: Sequence[str], jobs: int, programs: int, seed: int) -> Iterator[Row]:
    """Each accelerator with one child, and with ``jobs``."""
    for accelerator in accelerators:
        for count in dict.fromkeys((1, jobs)):
            yield _row(accelerator, count, programs, seed)


def _row(accelerator: str, jobs: int, programs: int, seed: int) -> Row:
    from generators.programs import draw_programs

    family = accelerator_named(accelerator).family

    def source(block: int) -> tuple[str, Sequence[Program]]:
        return accelerator, draw_programs(seed, block, BLOCK, family)

    stages: Counter[str] = Counter()
    count = found = 0
    started = time.monotonic()
    for result in run(Plan(source, jobs, programs)):
        stages.update(result.seconds)
        count += bool(result.accelerator)
        found += bool(result.findings)
    return Row(accelerator, jobs, count, found, time.monotonic() - started, dict(stages))


def lines(rows: Sequence[Row]) -> list[str]:
    """For people: rates, then stages in processor milliseconds a program."""
    head = f"{'accelerator':16} {'jobs':>4} {'programs':>8} {'with findings':>13} {'a minute':>8} {'ms each':>8}"
    shown = [
        f"{row.accelerator:16} {row.jobs:>4} {row.programs:>8} {row.findings:>13}"
        f" {row.per_minute:>8.0f} {row.each:>8.1f}"
        for row in rows
    ]
    alone = [row for row in rows if row.jobs == 1]
    stages = [
        f"{words:48}" + "".join(f" {1000 * row.stages.get(stage, 0.0) / row.programs:>15.2f}" for row in alone)
        for stage, words in STAGES.items()
    ]
    names = "".join(f" {row.accelerator:>15}" for row in alone)
    return [
        f"goal: {GOAL} programs a minute on two cores, which is {2 * 60_000 / GOAL:.0f} ms of processor time each",
        "",
        head,
        *shown,
        "",
        f"{'processor milliseconds a program, one child':48}{names}",
        *stages,
    ]


def as_json(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """As data."""
    told = [{**msgspec.to_builtins(row), "per_minute": row.per_minute, "ms_each": row.each} for row in rows]
    return {"seed": seed, "goal": GOAL, "rows": told}
