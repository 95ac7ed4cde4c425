"""Charts of a report as inline SVG: histograms of errors, and a rate over time.

Drawn about 340 pixels wide, so that text keeps its size on a phone. Numbers stand beside the marks: nothing
is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from harness.reports.reporting.histograms import Histogram
from harness.reports.reporting.svg import element, figure, text
from harness.reports.reporting.words import compact, duration

WIDE = 340.0
_TOP, _BOTTOM = 18.0, 32.0


def histogram(data: Histogram, name: str) -> Markup:
    """Bars for the hits whose error is up to 1, 2, 4… of its unit."""
    high, most = 132.0, max((count for _, count in data.bars), default=1) or 1
    room = high - _TOP - _BOTTOM
    step = min(52.0, WIDE / max(len(data.bars), 1))
    parts: list[Markup] = []
    for place, (limit, count) in enumerate(data.bars):
        tall = max(1.5, room * count / most) if count else 0.0
        left, middle = place * step + step * 0.12, (place + 0.5) * step
        floor = high - _BOTTOM
        parts.append(element("rect", x=left, y=floor - tall, width=step * 0.76, height=tall, class_="c-bar"))
        parts.append(text(str(count) if count else "", middle, floor - tall - 4, "c-count", "middle"))
        parts.append(text(f"≤{compact(limit)}", middle, floor + 14, "c-label", "middle"))
    parts.append(element("path", d=f"M0 {high - _BOTTOM:g}H{len(data.bars) * step:g}", class_="c-axis"))
    unit = data.unit or "units"
    parts.append(text(f"error in {unit}; {data.count} hits", 0, high - 4, "c-label"))
    said = "; ".join(f"{count} up to {compact(limit)}" for limit, count in data.bars)
    lost = f"; {data.without} not finite" if data.without else ""
    return figure(name, f"Histogram of the error in {unit}", f"{said or 'no finite error'}{lost}", WIDE, high, *parts)


def rates(values: Sequence[float], slice_seconds: float, mean: float, name: str) -> Markup:
    """A rate (per minute) over a run, one point a slice, and its mean as a dashed line."""
    high, left = 150.0, 30.0
    most = max([*values, mean, 1e-9])
    total = slice_seconds * len(values)
    floor, room, wide = high - _BOTTOM, high - _TOP - _BOTTOM, WIDE - left - 8

    def at(number: int, value: float) -> tuple[float, float]:
        return left + wide * (number + 0.5) / len(values), floor - room * value / most

    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(number, value) for number, value in enumerate(values)))
    level = floor - room * mean / most
    parts = [
        element("path", d=f"M{left:g} {_TOP:g}V{floor:g}H{left + wide:g}", class_="c-axis"),
        element("path", d=f"M{left:g} {level:.1f}H{left + wide:g}", class_="c-mean"),
        element("polyline", points=points, class_="c-line"),
        *(element("circle", cx=x, cy=y, r=2.2, class_="c-dot") for x, y in map(at, range(len(values)), values)),
        text(compact(most), left - 4, _TOP + 4, "c-label", "end"),
        text("0", left - 4, floor + 4, "c-label", "end"),
        text("0", left, floor + 14, "c-label"),
        text(duration(total), left + wide, floor + 14, "c-label", "end"),
        text(f"graphs per minute; dashed: mean {compact(mean)}", left, high - 4, "c-label"),
    ]
    said = ", ".join(compact(value) for value in values)
    return figure(
        name,
        "Graphs per minute over the run",
        f"{duration(slice_seconds)} a point: {said}",
        WIDE,
        high,
        *parts,
        class_="chart",
    )
