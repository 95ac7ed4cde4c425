"""What each warm trick gains: armdiff with all of them against armdiff without one, in turn, on the same graphs.

The contestants are two processes at a time, started anew for each trick. What a graph leaves for its next target gains
nothing where there is one target only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from harness.cli.benchmark.contest import Contest, Contestant
from harness.cli.benchmark.contestant import ARMDIFF
from harness.cli.benchmark.figures import Ratio, Sample, ratio
from harness.cli.benchmark.subjects import Subject
from harness.compat.warm.tricks import TRICKS

ALL = "all"


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """How much longer graphs take without a trick (1.0: no longer), by the clock and in processor time."""

    trick: str
    wall: Ratio | None
    processor: Ratio | None


def gains(
    subjects: Sequence[Subject], rounds: int, report: Callable[[str, Sample], None], tricks: Sequence[str] = ()
) -> list[Gain]:
    """Measure the tricks one at a time, and all together.

    :param subjects: the first one warms up and does not count.
    :param report: called with the trick after every sample.
    :param tricks: only these; by default all.
    """
    found = []
    for name in tricks or (*(trick.name for trick in TRICKS), ALL):
        slower = f"without {name}"
        with Contest([Contestant(ARMDIFF, ARMDIFF), Contestant(slower, ARMDIFF, (name,))]) as contest:
            contest.warm_up(subjects[0])
            samples = []
            for sample in contest.run(subjects[1:], rounds):
                samples.append(sample)
                report(name, sample)
        wall, processor = ratio(samples, slower, ARMDIFF), ratio(samples, slower, ARMDIFF, "processor")
        found.append(Gain(trick=name, wall=wall, processor=processor))
    return found


def table(found: Sequence[Gain]) -> list[str]:
    """A line a trick: seconds without it over seconds with it."""
    said = [f"{'without':20}{'processor':>12}{'wall':>8}{'median pair':>14}{'pairs':>8}"]
    for gain in found:
        if gain.wall is None or gain.processor is None:
            said.append(f"{gain.trick:20}{'no pair':>12}")
            continue
        said.append(
            f"{gain.trick:20}{gain.processor.value:12.3f}{gain.wall.value:8.3f}{gain.processor.median:14.3f}"
            f"{gain.processor.pairs:8}"
        )
    return said
