"""A benchmark's figures as JSON data, as lines for a terminal, and as a page with a plot.

``ratios`` in the JSON are those of generated graphs, all targets together, by the clock; the models' stand beside
them. The page is one HTML file with inline SVG and nothing from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from markupsafe import Markup

from harness import __version__
from harness.case.wording import counted_as
from harness.cli.benchmark.contestant import ARMDIFF, PLAIN_SEQUENCE, UPSTREAM_TESTER
from harness.cli.benchmark.figures import Clock, Ratio, Sample, left_out, percentile, ratio, row
from harness.cli.benchmark.subjects import MODELS
from harness.compat.releases import installed, release_line
from harness.reports.reporting.svg import element, figure, text

RATIOS = {"vs_upstream_tester": UPSTREAM_TESTER, "vs_plain_sequence": PLAIN_SEQUENCE}
_MIB = 1 << 20
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em }
pre { overflow-x: auto; font-size: 12px }
svg { font: 11px system-ui, sans-serif; max-width: 100%; height: auto }
svg text { fill: currentColor }
.axis { stroke: currentColor; opacity: .25 }
.k0 { fill: #b3261e } .k1 { fill: #c98a00 } .k2 { fill: #1b5fc4 }
"""


@dataclass(frozen=True)
class Outcome:
    """What a benchmark was run on, and what came of it.

    :param contestants: their names, in order; the ratios are the last one's.
    :param ready: contestant -> bytes in memory before the first subject that counts.
    """

    targets: tuple[str, ...]
    seed: int
    rounds: int
    contestants: tuple[str, ...]
    samples: tuple[Sample, ...]
    ready: Mapping[str, int] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @property
    def generated(self) -> list[Sample]:
        return [item for item in self.samples if item.subject not in MODELS]

    def of_model(self, name: str) -> list[Sample]:
        return [item for item in self.samples if item.subject == name]

    @property
    def models(self) -> list[str]:
        """Models that were run."""
        return [name for name in MODELS if self.of_model(name)]


def ratios(samples: Sequence[Sample], clock: Clock = "wall") -> dict[str, Ratio | None]:
    """armdiff's ratios, by their names in the JSON."""
    return {name: ratio(samples, slow, ARMDIFF, clock) for name, slow in RATIOS.items()}


def as_json(outcome: Outcome) -> dict[str, Any]:
    """The benchmark as JSON data."""
    generated = outcome.generated
    return {
        "armdiff": __version__,
        "releases": dict(installed()),
        "line": release_line(),
        "targets": list(outcome.targets),
        "seed": outcome.seed,
        "rounds": outcome.rounds,
        "without": list(outcome.without),
        "graphs": len({item.subject for item in generated}),
        "ratios": _values(ratios(generated)),
        "ratios_processor": _values(ratios(generated, "processor")),
        "ratios_in_detail": {name: msgspec.to_builtins(found) for name, found in ratios(generated).items()},
        "contestants": {
            name: {**_built(row(generated, name)), "resident_before": outcome.ready.get(name, 0)}
            for name in outcome.contestants
        },
        "models": {
            name: {
                "ratios": _values(ratios(outcome.of_model(name))),
                "contestants": {
                    who: _built(row(outcome.of_model(name), who), "graphs_per_minute", "median", "processor_median")
                    for who in outcome.contestants
                },
            }
            for name in outcome.models
        },
        "left_out": [
            {"subject": item.subject, "round": item.round, "contestant": item.contestant, "why": dict(item.failed)}
            for item in left_out(outcome.samples)
        ],
        "samples": [msgspec.to_builtins(item) for item in outcome.samples],
    }


def lines(outcome: Outcome) -> list[str]:
    """The benchmark for people."""
    said = [
        f"{len({item.subject for item in outcome.generated})} generated graphs, each on {', '.join(outcome.targets)}; "
        f"{counted_as(outcome.rounds, 'round')}",
        "",
        f"{'':18}{'graphs':>8}{'graphs/min':>12}{'median':>10}{'p90':>10}{'processor':>12}{'memory':>12}",
    ]
    for name in outcome.contestants:
        found = row(outcome.generated, name)
        if found is None:
            said.append(f"{name:18}{'no graph counts':>20}")
            continue
        said.append(
            f"{name:18}{found.graphs:8}{found.graphs_per_minute:12.2f}{found.median:8.2f} s{found.p90:8.2f} s"
            f"{found.processor_median:10.2f} s{found.resident / _MIB:8.0f} MiB"
        )
    for name in outcome.contestants:
        if found := row(outcome.generated, name):
            shares = ", ".join(
                f"{stage} {100 * share:.0f} %" for stage, share in found.stages.items() if share >= 0.005
            )
            said += ["", f"{name}: {shares}"]
    if found := row(outcome.generated, ARMDIFF):
        said.append(f"{ARMDIFF} adds {100 * found.added:.1f} % to upstream's stages, legs, probes and oracles apart")
    said += ["", "graphs per minute, as a multiple (processor time; median, p10 to p90 of single pairs):"]
    for name, (wall, processor) in _both(outcome.generated).items():
        said.append(f"  {name}: {_told(wall, processor)}")
    for model in outcome.models:
        told = "; ".join(
            f"{name} {wall.value:.2f}" if wall else f"{name}: no pair"
            for name, (wall, _) in _both(outcome.of_model(model)).items()
        )
        said.append(f"  {model}: {told}")
    for item in left_out(outcome.samples):
        target, why = next(iter(item.failed.items()))
        said.append(f"left out: {item.contestant} on {item.subject}, {target}: {why}")
    return said


def page(outcome: Outcome) -> str:
    """One HTML file: the lines, and a plot of every graph's time."""
    body = element("h1", "armdiff bench") + element("pre", "\n".join(lines(outcome))) + plot(outcome)
    head = Markup("<!doctype html><html lang='en'><head><meta charset='utf-8'><title>armdiff bench</title>")
    return str(head + element("style", Markup(_STYLE)) + Markup("</head><body>") + body + Markup("</body></html>\n"))


def plot(outcome: Outcome) -> Markup:
    """A line a subject, the one that takes the plain sequence longest last; a mark for each contestant's median.

    Marks differ in colour and in shape: a square, a diamond and a circle.
    """
    seconds: dict[str, dict[str, list[float]]] = {}
    for item in outcome.samples:
        seconds.setdefault(item.subject, {}).setdefault(item.contestant, []).append(item.wall)
    medians = {
        subject: {name: percentile(each[name], 50) for name in outcome.contestants if name in each}
        for subject, each in seconds.items()
    }
    if not medians:
        return Markup("")
    every = [seconds for each in medians.values() for seconds in each.values()]
    low, high = math.log2(max(min(every), 1e-3)), math.log2(max(*every, 2e-3))
    left, wide, step, top = 110.0, 560.0, 12.0, 44.0
    bottom = top + step * len(medians)

    def at(seconds: float) -> float:
        return left + wide * (math.log2(max(seconds, 1e-3)) - low) / max(high - low, 1e-9)

    parts: list[Markup] = []
    for place, name in enumerate(outcome.contestants):
        parts += [_mark(place, left + 140.0 * place, 12.0), text(name, left + 140.0 * place + 9, 16)]
    for power in range(math.ceil(low), math.floor(high) + 1):
        x = at(2.0**power)
        parts.append(element("path", d=f"M{x:.1f} {top - 6:g}V{bottom:g}", class_="axis"))
        parts.append(text(f"{2.0**power:g} s", x, top - 10, "", "middle"))
    ordered = sorted(medians, key=lambda subject: medians[subject].get(PLAIN_SEQUENCE, max(medians[subject].values())))
    for line, subject in enumerate(ordered):
        y = top + step * (line + 0.5)
        parts.append(text(subject, left - 8, y + 4, "", "end"))
        parts.append(element("path", d=f"M{left:g} {y:g}H{left + wide:g}", class_="axis"))
        parts += [
            _mark(place, at(medians[subject][name]), y)
            for place, name in enumerate(outcome.contestants)
            if name in medians[subject]
        ]
    said = "; ".join(f"{name} {_median_of(medians, name)}" for name in outcome.contestants)
    return figure("bench", "Seconds a graph, all targets", f"medians: {said}", left + wide + 20, bottom + 10, *parts)


def _mark(place: int, x: float, y: float) -> Markup:
    kind = f"k{place % 3}"
    if place % 3 == 0:
        return element("rect", x=x - 3.5, y=y - 3.5, width=7, height=7, class_=kind)
    if place % 3 == 1:
        return element("path", d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z", class_=kind)
    return element("circle", cx=x, cy=y, r=4, class_=kind)


def _median_of(medians: Mapping[str, Mapping[str, float]], name: str) -> str:
    values = [each[name] for each in medians.values() if name in each]
    return f"{percentile(values, 50):.2f} s" if values else "nothing"


def _both(samples: Sequence[Sample]) -> dict[str, tuple[Ratio | None, Ratio | None]]:
    wall, processor = ratios(samples), ratios(samples, "processor")
    return {name: (wall[name], processor[name]) for name in RATIOS}


def _told(wall: Ratio | None, processor: Ratio | None) -> str:
    if wall is None or processor is None:
        return "no pair"
    rounds = f"; rounds {', '.join(f'{value:.2f}' for value in wall.rounds)}" if len(wall.rounds) > 1 else ""
    return (
        f"{wall.value:.2f} ({processor.value:.2f}; {wall.median:.2f}, {wall.p10:.2f} to {wall.p90:.2f}; "
        f"{wall.pairs} pairs{rounds})"
    )


def _values(found: Mapping[str, Ratio | None]) -> dict[str, float | None]:
    return {name: item.value if item else None for name, item in found.items()}


def _built(found: msgspec.Struct | None, *fields: str) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(found) if found is not None else {}
    return {name: value for name, value in data.items() if not fields or name in fields}
