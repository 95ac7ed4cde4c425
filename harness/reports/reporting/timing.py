"""Where a run's time went, and how fast it was from beginning to end.

Seconds of stages are added up over the worker processes, so they may exceed the wall time; minimization is a
stage of its own. Throughput counts a graph when the last of its cases is done, in slices of equal length that
hold about ``PER_SLICE`` graphs: shorter ones would show chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.reports.reporting.material import JudgedRun, graph_of

PER_SLICE = 8
MOST_SLICES = 40
MINIMIZATION = "minimization"


@dataclass(frozen=True)
class Timing:
    """Seconds and rates of a run.

    :param seconds: wall time.
    :param stages: stage -> seconds of all workers, the longest first.
    :param slice_seconds: length of one slice; ``rates`` has graphs per minute for each, in order.
    """

    seconds: float
    stages: Mapping[str, float]
    graphs: int
    slice_seconds: float
    rates: tuple[float, ...]

    @property
    def per_minute(self) -> float:
        """Graphs per minute, over the whole run."""
        return 60.0 * self.graphs / self.seconds if self.seconds > 0 else 0.0


def timing(judged: JudgedRun) -> Timing:
    """The time of a run."""
    run = judged.run
    finished: dict[int, float] = {}
    for item in run.done:
        graph = graph_of(run, item.number)
        finished[graph] = max(item.at, finished.get(graph, 0.0))
    last = max(finished.values(), default=0.0)
    seconds = max(run.info.seconds, last)
    stages: dict[str, float] = {stage: spent for stage, spent in judged.tally.seconds.items() if spent > 0}
    minimizing = sum(item.seconds for item in run.minimized)
    if minimizing > 0:
        stages[MINIMIZATION] = stages.get(MINIMIZATION, 0.0) + minimizing
    slices = max(1, min(MOST_SLICES, len(finished) // PER_SLICE))
    length = last / slices
    counts = [0] * slices
    if length > 0:
        for moment in finished.values():
            counts[min(slices - 1, int(moment / length))] += 1
    return Timing(
        seconds=seconds,
        stages=dict(sorted(stages.items(), key=lambda item: (-item[1], item[0]))),
        graphs=judged.graphs,
        slice_seconds=length,
        rates=tuple(60.0 * count / length for count in counts) if length > 0 else (),
    )
