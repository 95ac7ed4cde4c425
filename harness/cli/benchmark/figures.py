"""Statistics of a benchmark, pure: from what every contestant took for every subject to ratios.

What counts: a contestant that compiled nothing for some target did not do the work, so its time says nothing
beside that of one that did. Where *all* contestants fail alike (on the same targets) the time until then counts
for all; else the subject is left out of every pair that the failing one is part of, and named.

A ratio is that of graphs per minute: the seconds of one contestant over those of the other, both summed over the
pairs. The ratios of single pairs are told beside it (median, tenth and ninetieth percentile). Percentiles are
nearest-rank: always a value that was measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

Clock = Literal["wall", "processor"]

UPSTREAM_STAGES = (
    *("export", "prepare", "calibrate", "convert", "export-quantized", "lower", "vela", "emit"),
    *("quantize", "to_edge_transform_and_lower", "to_executorch"),
    "between cases",
)
"""Stages that everybody has. The garbage that is collected between armdiff's cases is theirs: elsewhere it is
collected inside them."""
JUDGING = ("leg:", "probe", "oracles")
"""Stages (by how they begin) in which programs are executed and judged; ``probe`` makes the oracles' envelopes."""
REST = "rest"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant on one subject in one round.

    :param wall: seconds by the clock; ``processor``: of processor time.
    :param stages: stage -> seconds by the clock.
    :param failed: target -> why nothing was compiled for it.
    :param resident: bytes in memory afterwards.
    """

    contestant: str
    subject: str
    round: int
    wall: float
    processor: float
    stages: Mapping[str, float] = {}
    failed: Mapping[str, str] = {}
    resident: int = 0


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """How many times the graphs per minute of another a contestant handles.

    :param value: over all pairs; ``rounds``: of each round, in order.
    :param median: of the ratios of single pairs; ``p10`` and ``p90`` likewise.
    """

    value: float
    pairs: int
    median: float
    p10: float
    p90: float
    rounds: tuple[float, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant's figures over the subjects that count for it.

    :param graphs: subjects times rounds.
    :param median: seconds by the clock; ``p90`` likewise; the other two are of processor time.
    :param stages: stage -> share of the seconds by the clock, the largest first.
    :param added: seconds of what is neither an upstream stage nor judging, over those of upstream stages.
    :param resident: the most bytes that were in memory after a graph.
    """

    graphs: int
    graphs_per_minute: float
    median: float
    p90: float
    processor_median: float
    processor_p90: float
    stages: Mapping[str, float]
    added: float
    resident: int


def ratio(samples: Sequence[Sample], slow: str, fast: str, clock: Clock = "wall") -> Ratio | None:
    """How many times the graphs per minute of ``slow`` does ``fast`` handle? None without a pair."""
    found = pairs(samples, slow, fast)
    if not found:
        return None
    seconds = [(getattr(one, clock), getattr(other, clock)) for one, other in found]
    single = [one / other for one, other in seconds]
    rounds: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for (one, _), each in zip(found, seconds, strict=True):
        rounds[one.round].append(each)
    return Ratio(
        value=_of_sums(seconds),
        pairs=len(found),
        median=percentile(single, 50),
        p10=percentile(single, 10),
        p90=percentile(single, 90),
        rounds=tuple(_of_sums(rounds[number]) for number in sorted(rounds)),
    )


def pairs(samples: Sequence[Sample], one: str, other: str) -> list[tuple[Sample, Sample]]:
    """Samples of two contestants on the same subject in the same round, where both count."""
    return [
        (group[one], group[other])
        for group in _groups(samples)
        if one in group and other in group and _counts(group, group[one]) and _counts(group, group[other])
    ]


def left_out(samples: Sequence[Sample]) -> list[Sample]:
    """Samples that are in no pair because their contestant failed where another one did not."""
    return [item for group in _groups(samples) for item in group.values() if not _counts(group, item)]


def row(samples: Sequence[Sample], contestant: str) -> Row | None:
    """A contestant's figures; None if nothing counts for it."""
    counted = [
        group[contestant] for group in _groups(samples) if contestant in group and _counts(group, group[contestant])
    ]
    if not counted:
        return None
    total = math.fsum(item.wall for item in counted)
    stages = stages_of(counted, total)
    upstream = math.fsum(spent for stage, spent in stages.items() if stage in UPSTREAM_STAGES)
    added = math.fsum(
        spent for stage, spent in stages.items() if stage not in UPSTREAM_STAGES and not stage.startswith(JUDGING)
    )
    return Row(
        graphs=len(counted),
        graphs_per_minute=60.0 * len(counted) / total,
        median=percentile([item.wall for item in counted], 50),
        p90=percentile([item.wall for item in counted], 90),
        processor_median=percentile([item.processor for item in counted], 50),
        processor_p90=percentile([item.processor for item in counted], 90),
        stages={stage: spent / total for stage, spent in stages.items()},
        added=added / upstream if upstream else 0.0,
        resident=max(item.resident for item in counted),
    )


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest value that at least so many percent of the values do not exceed.

    :raises ValueError: there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values have no percentile")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _groups(samples: Sequence[Sample]) -> list[dict[str, Sample]]:
    """Contestant -> sample, for each subject of each round, in the order of the samples."""
    groups: dict[tuple[int, str], dict[str, Sample]] = defaultdict(dict)
    for item in samples:
        groups[item.round, item.subject][item.contestant] = item
    return [*groups.values()]


def _counts(group: Mapping[str, Sample], item: Sample) -> bool:
    """Did it do the whole work, or fail as everybody did?"""
    return not item.failed or all(other.failed.keys() == item.failed.keys() for other in group.values())


def _of_sums(seconds: Sequence[tuple[float, float]]) -> float:
    return math.fsum(one for one, _ in seconds) / math.fsum(other for _, other in seconds)


def stages_of(counted: Sequence[Sample], total: float) -> dict[str, float]:
    """Stage -> seconds, the most first; what is in no stage is the last."""
    found: dict[str, float] = defaultdict(float)
    for item in counted:
        for stage, spent in item.stages.items():
            found[stage] += spent
    ordered = dict(sorted(found.items(), key=lambda pair: -pair[1]))
    return {**ordered, REST: max(0.0, total - math.fsum(ordered.values()))}
