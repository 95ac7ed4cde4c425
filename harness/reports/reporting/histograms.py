"""How large an error is over the hits of a bucket, in powers of two of its unit.

A bug that is off by one step everywhere and one that returns another tensor's values are told apart at a
glance: bars for up to 1, 2, 4, 8… steps. Oracles measure in steps (a quantized output's last place), in units
(integers of a delegate) or in epsilons (float outputs); each unit has a histogram of its own. Where the range
is wide (epsilons), a bar spans several powers, so that there are never more than ``MOST``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.reports.reporting.words import compact

MOST = 9


@dataclass(frozen=True)
class Histogram:
    """Sizes of one unit.

    :param bars: (largest size that it holds, count), from the smallest without a gap.
    :param without: hits whose size is no finite number.
    """

    unit: str
    bars: tuple[tuple[float, int], ...]
    smallest: float
    largest: float
    without: int = 0

    @property
    def count(self) -> int:
        return sum(count for _, count in self.bars) + self.without

    @property
    def span(self) -> str:
        """From the smallest to the largest size, with the unit: ``3 to 86 steps``, ``1 step``; empty without sizes."""
        if not self.bars:
            return ""
        low, high = compact(self.smallest), compact(self.largest)
        unit = self.unit.removesuffix("s") if high == "1" else self.unit
        return f"{low if low == high else f'{low} to {high}'} {unit}".rstrip()


def histograms(measured: Iterable[Mapping[str, Any]]) -> tuple[Histogram, ...]:
    """Histograms of ``measured["distance"]`` (or ``"excess"``), the most frequent unit first.

    Measurements without either do not count; those whose size is not finite are in ``without``.
    """
    sizes: dict[str, list[float]] = defaultdict(list)
    for item in measured:
        if "distance" in item or "excess" in item or "unit" in item:
            size = item.get("distance", item.get("excess"))
            number = isinstance(size, (int, float)) and not isinstance(size, bool)
            sizes[str(item.get("unit", ""))].append(float(size) if number and size is not None else math.nan)
    made = (_histogram(unit, values) for unit, values in sizes.items())
    return tuple(sorted(made, key=lambda item: (-item.count, item.unit)))


def _histogram(unit: str, values: list[float]) -> Histogram:
    finite = [abs(value) for value in values if math.isfinite(value)]
    without = len(values) - len(finite)
    if not finite:
        return Histogram(unit, (), 0.0, 0.0, without)
    powers = [max(0, math.ceil(math.log2(value))) if value > 0 else 0 for value in finite]
    low, high = min(powers), max(powers)
    span = (high - low) // MOST + 1
    bars = []
    for first in range(low, high + 1, span):
        last = min(first + span - 1, high)
        bars.append((2.0**last, sum(first <= power <= last for power in powers)))
    return Histogram(unit, tuple(bars), min(finite), max(finite), without)
