"""``python -m tests.faults.blame_survey [plant…]``: which pass the blame of wrong values names.

Plants each value fault of ``value_plants`` on its cases and holds what the ``numeric`` finding
names against the culprit: *exact* (the culprit alone), *bracket* (it lies in a bracket that says
so), *none* (no pass is named) or *WRONG*. Exit status 1 if a single wrong name was given, or if
less than nine in ten findings were named or bracketed.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from harness.case.case import Case, Constant
from harness.case.errors import ArmdiffError
from harness.evidence.observation import Observation
from harness.evidence.references import QUANTIZED, TOSA
from harness.locate.blame.bracket import AFTER, BEFORE
from harness.pipeline.lowering import StageClock
from harness.workers.observing import Options, examine
from tests.attributes import CONV_3X3
from tests.faults.cases import _case
from tests.faults.planted import verdict_of
from tests.faults.value_plants import PLANTS, ValuePlant
from tests.integration.conftest import node, uniform

_SUM = {"scalar": None, "side": None}
_POOL = {"kernel": [3, 3], "stride": [2, 2], "padding": [1, 1], "ceil_mode": False}
_SMALL = {"x": ((1, 3, 6, 6), uniform(-1.0, 1.0))}
_ROWS = {"x": ((1, 4, 6), uniform(-2.0, 2.0))}


def _literal(name: str, *values: float) -> Constant:
    return Constant(name=name, shape=(1, len(values)), kind="literal", parameters={"values": list(values)})


def _means(recipe: str = "a8w8") -> Case:
    return _case(
        _SMALL,
        node("n0", "conv2d", "x", **CONV_3X3),
        node("n1", "hardtanh", "n0", min=-0.5, max=0.75),
        node("n2", "mean", "n1", dims=[2, 3], keepdim=False),
        node("n3", "sigmoid", "n2"),
        recipe=recipe,
    )


def _probabilities(recipe: str = "a8w8") -> Case:
    return _case(_SMALL, node("n0", "conv2d", "x", **CONV_3X3), node("n1", "softmax", "n0", dim=-1), recipe=recipe)


def _constant_cases(last: object) -> Case:
    return _case(
        {"x": ((1, 6), uniform(-1.0, 1.0))},
        node("n0", "cat", "k0", "k1", dim=1),
        node("n1", "add", "x", "n0", **_SUM, alpha=1),
        last,
        constants=(_literal("k0", -0.8, 0.1, 0.8), _literal("k1", 0.5, -0.2, -0.6)),
    )


CASES = {
    "softmax": _probabilities(),
    "wide-softmax": _probabilities("a16w8"),
    "mean": _means(),
    "wide-mean": _means("a16w8"),
    "attention": _case(
        _ROWS,
        node("n0", "linear", "x", out_features=6, bias=True),
        node("n1", "transpose", "n0", dim0=1, dim1=2),
        node("n2", "matmul", "x", "n1"),
        node("n3", "softmax", "n2", dim=-1),
        node("n4", "matmul", "n3", "x"),
    ),
    "matmul-mean": _case(
        _ROWS,
        node("n0", "permute", "x", dims=[0, 2, 1]),
        node("n1", "matmul", "x", "n0"),
        node("n2", "mean", "n1", dims=[-1], keepdim=True),
    ),
    "two-delegates": _case(
        _SMALL,
        node("n0", "conv2d", "x", **CONV_3X3),
        node("n1", "mul", "n0", "n0", **_SUM),
        node("n2", "sigmoid", "n1"),
        node("n3", "conv2d", "n2", **CONV_3X3),
        node("n4", "softmax", "n3", dim=-1),
        recipe="a8w8,float=n2",
    ),
    "norm": _case(
        _SMALL,
        node("n0", "conv2d", "x", **CONV_3X3),
        node("n1", "mean", "n0", dims=[3], keepdim=True),
        node("n2", "sub", "n0", "n1", **_SUM, alpha=1),
        node("n3", "mul", "n2", "n2", **_SUM),
        node("n4", "mean", "n3", dims=[3], keepdim=True),
        node("n5", "add", "n2", "n4", **_SUM, alpha=1),
    ),
    "arithmetic": _case(
        {"x": ((1, 4, 6), uniform(-1.0, 1.0)), "y": ((1, 4, 6), uniform(-0.5, 2.0))},
        node("n0", "sub", "x", "y", **_SUM, alpha=1),
        node("n1", "abs", "n0"),
        node("n2", "clamp", "n1", min=0.25, max=1.5),
        node("n3", "sum", "n2", dims=[1], keepdim=True),
        node("n4", "maximum", "n3", "x"),
    ),
    "pools": _case(
        _SMALL,
        node("n0", "conv2d", "x", **CONV_3X3),
        node("n1", "relu6", "n0"),
        node("n2", "avg_pool2d", "n1", **_POOL, count_include_pad=True),
        node("n3", "max_pool2d", "n2", **_POOL, dilation=[1, 1]),
    ),
    "pool-softmax": _case(
        {"x": ((1, 3, 8, 8), uniform(-2.0, 2.0))},
        node("n0", "max_pool2d", "x", **_POOL, dilation=[1, 1]),
        node("n1", "avg_pool2d", "n0", **{**_POOL, "stride": [1, 1]}, count_include_pad=False),
        node("n2", "softmax", "n1", dim=1),
    ),
    "moves": _case(
        {"x": ((1, 4, 4, 4), uniform(0.0, 2.0))},
        node("n0", "split", "x", sizes=2, dim=1),
        node("n1", "permute", "n0.1", dims=[0, 2, 3, 1]),
        node("n2", "clamp", "n1", min=0.25, max=1.25),
        node("n3", "pad", "n2", pad=[1, 1], value=0.5),
        node("n4", "sigmoid", "n3"),
        outputs=("n4", "n0.0"),
    ),
    "split-mean": _case(
        {"x": ((1, 4, 6), uniform(-1.0, 3.0))},
        node("n0", "split", "x", sizes=2, dim=1),
        node("n1", "mean", "n0.1", dims=[1], keepdim=True),
        node("n2", "mul", "n1", "n0.0", **_SUM),
    ),
    "pad-softmax": _case(_ROWS, node("n0", "pad", "x", pad=[1, 2], value=0), node("n1", "softmax", "n0", dim=-1)),
    "tables": _case(_ROWS, node("n0", "gelu", "x"), node("n1", "tanh", "n0"), node("n2", "hardswish", "n1")),
    "constants-softmax": _constant_cases(node("n2", "softmax", "n1", dim=-1)),
    "constants-mean": _constant_cases(node("n2", "mean", "n1", dims=[1], keepdim=True)),
}
"""Graphs with softmax, mean and their like among them, by name."""


@dataclass(frozen=True)
class Row:
    """One plant on one case.

    :param verdict: exact, bracket, none or WRONG; None if nothing numeric was found.
    """

    plant: ValuePlant
    case: str
    named: str
    verdict: str | None


def survey_row(plant: ValuePlant, name: str) -> Row:
    """Plant, observe, judge, and hold the name against the culprit."""
    changed: list[str] = []
    try:
        with plant.planted(changed):
            observation, found = examine(CASES[name], StageClock(), Options(only_legs=(QUANTIZED, TOSA)))
    except ArmdiffError as error:
        return Row(plant, name, str(error), None)
    numeric = next((item for item in found if item.oracle == "numeric"), None)
    if numeric is None or not changed:
        return Row(plant, name, _why(changed, observation), None)
    return Row(plant, name, numeric.pass_name or "-", verdict_of(plant.culprit, numeric.pass_name, _steps(observation)))


def _why(changed: list[str], observation: Observation) -> str:
    if observation.failure is not None:
        return f"failed: {observation.failure.message[:60]}"
    return "no effect on values" if changed else "nothing to change"


def _steps(observation: Observation) -> list[str]:
    """What can be named, in order."""
    passes = [trace.passes for item in observation.lowering.delegates if (trace := item.trace) is not None]
    return [BEFORE, *(passes[0] if passes else ()), AFTER]


def main(names: list[str]) -> int:
    """Survey all plants, or those named, and print the table."""
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 160)
    table = Table("plant", "case", "culprit", "named", "verdict")
    counts: Counter[str] = Counter()
    for plant in PLANTS:
        for case in plant.cases if not names or plant.name in names else ():
            row = survey_row(plant, case)
            progress.print(f"{plant.name} on {case}: {row.verdict or 'no finding'} ({row.named})", highlight=False)
            if row.verdict is not None:
                counts[row.verdict] += 1
                table.add_row(plant.name, case, plant.culprit, row.named, row.verdict)
    console.print(table, highlight=False)
    total = counts.total()
    console.print(f"{total} numeric findings: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return 0 if total and not counts["WRONG"] and 10 * (counts["exact"] + counts["bracket"]) >= 9 * total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
