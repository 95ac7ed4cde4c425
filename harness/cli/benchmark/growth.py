"""How armdiff's cost grows with a graph: chains of 1 to 64 operators, each a case for every target.

A chain repeats conv2d, relu, maximum, sigmoid, each reading the one before it, so that the mix is the same from four
operators on and the compiled program neither branches nor falls apart. *Own* seconds are what armdiff adds to the
stages that upstream has: snapshots, legs, envelopes, oracles, blame, everything but the probes that run on some cases
only. Growth is the exponent k of seconds ~ operators^k, fitted to the sizes from ``FITTED`` on (below it, what is
spent once a case decides); 1 is linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from harness.campaign.campaign import write_case
from harness.case.case import Attributes, Case, Distribution, Graph, Input, Node
from harness.cli.benchmark.contest import Contest, Contestant
from harness.cli.benchmark.contestant import ARMDIFF
from harness.cli.benchmark.figures import UPSTREAM_STAGES, Sample, stages_of
from harness.cli.benchmark.subjects import Subject

SIZES = (1, 2, 4, 8, 16, 32, 64)
FITTED = 8
PROBE = "probe:"
"""Begins the stages of probes; which sizes they run on is a matter of the cases' digests."""
_CONV = {
    "out_channels": 4,
    "kernel": [3, 3],
    "stride": [1, 1],
    "padding": [1, 1],
    "dilation": [1, 1],
    "groups": 1,
    "bias": True,
}

_MIX: tuple[tuple[str, tuple[str, ...], Attributes], ...] = (
    ("conv2d", (), _CONV),
    ("relu", (), {}),
    ("maximum", ("x",), {}),
    ("sigmoid", (), {}),
)
"""Operators of a chain, over and over: what each reads beside the one before it, and its attributes."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Chains of one length, all targets together.

    :param seconds: of processor time, the median of the rounds.
    :param own: seconds of what armdiff adds; ``upstream``: of the stages that the plain sequence has.
    :param stages: own stage -> seconds.
    """

    operators: int
    seconds: float
    own: float
    upstream: float
    stages: dict[str, float]


def chain(operators: int, target: str) -> Case:
    """A graph of so many operators in a row."""
    nodes: list[Node] = []
    for place in range(operators):
        operator, beside, attributes = _MIX[place % len(_MIX)]
        before = nodes[-1].name if nodes else "x"
        nodes.append(Node(name=f"n{place}", operator=operator, inputs=(before, *beside), attributes=attributes))
    return Case(
        graph=Graph(inputs=(Input(name="x", shape=(1, 4, 8, 8)),), nodes=tuple(nodes), outputs=(nodes[-1].name,)),
        calibration={"x": Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})},
        target=target,
    )


def chains(targets: Sequence[str], folder: Path, sizes: Sequence[int] = SIZES) -> list[Subject]:
    """The chains as subjects, named by their length."""
    return [
        Subject(str(size), tuple(write_case(chain(size, target), folder / "chains") for target in targets))
        for size in sizes
    ]


def measure(subjects: Sequence[Subject], rounds: int, report: Callable[[Sample], None]) -> list[Sample]:
    """Every chain in every round, after one of the longest that does not count."""
    samples = []
    with Contest([Contestant(ARMDIFF, ARMDIFF)]) as contest:
        contest.warm_up(subjects[-1])
        for sample in contest.run(subjects, rounds):
            samples.append(sample)
            report(sample)
    return samples


def sizes_of(samples: Sequence[Sample]) -> list[Size]:
    """A row for every length, the shortest first; a chain that failed is left out."""
    by_size: dict[int, list[Sample]] = {}
    for sample in samples:
        if not sample.failed:
            by_size.setdefault(int(sample.subject), []).append(sample)
    found = []
    for operators, group in sorted(by_size.items()):
        middle = sorted(group, key=lambda item: item.processor)[(len(group) - 1) // 2]
        own = {
            stage: spent
            for stage, spent in stages_of([middle], middle.wall).items()
            if stage not in UPSTREAM_STAGES and not stage.startswith(PROBE)
        }
        found.append(
            Size(
                operators=operators,
                seconds=middle.processor,
                own=math.fsum(own.values()),
                upstream=math.fsum(spent for stage, spent in middle.stages.items() if stage in UPSTREAM_STAGES),
                stages=own,
            )
        )
    return found


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """The slope of a straight line through the logarithms (least squares); None for fewer than two lengths."""
    logs = [(math.log(size), math.log(max(seconds, 1e-6))) for size, seconds in points]
    if len(logs) < 2:
        return None
    middle_x, middle_y = (math.fsum(values) / len(logs) for values in zip(*logs, strict=True))
    spread = math.fsum((x - middle_x) ** 2 for x, _ in logs)
    return math.fsum((x - middle_x) * (y - middle_y) for x, y in logs) / spread


def table(found: Sequence[Size]) -> list[str]:
    """A line for every length, and the exponents."""
    said = [f"{'operators':>10}{'seconds':>10}{'upstream':>10}{'own':>10}{'own/operator':>15}   the most of it"]
    for size in found:
        most = sorted(size.stages.items(), key=lambda pair: -pair[1])[:3]
        said.append(
            f"{size.operators:10}{size.seconds:10.2f}{size.upstream:10.2f}{size.own:10.3f}"
            f"{1000 * size.own / size.operators:12.1f} ms   "
            + ", ".join(f"{stage} {spent:.3f}" for stage, spent in most)
        )
    fitted = [size for size in found if size.operators >= FITTED]
    for words, value in (
        ("what armdiff adds grows", exponent([(size.operators, size.own) for size in fitted])),
        ("upstream's stages grow", exponent([(size.operators, size.upstream) for size in fitted])),
    ):
        if value is not None:
            said.append(f"{words} with operators^{value:.2f} (from {FITTED} operators on; 1 is linear)")
    return said
