"""The census of a run: what was drawn, lowered and judged.

Counts graphs (one case each: a census runs on one target). *Delegated* means that at least one
delegate was made; *caught* that two planted steps in one element of the reference model's output
were seen by the ``numeric`` oracle.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.case.constants import CONSTANT_KINDS
from harness.case.reading import read_case
from harness.case.registry import calibration_kinds, operators
from harness.workers.protocol import CaseResult

ENOUGH = 5


@dataclass
class Census:
    """Adds up what a run drew and how it went."""

    graphs: int = 0
    valid: int = 0
    delegated: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    constants: Counter[str] = field(default_factory=Counter)
    calibrations: Counter[str] = field(default_factory=Counter)
    recipes: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    bounds: list[float] = field(default_factory=list)
    planted: Counter[bool] = field(default_factory=Counter)

    def add(self, result: CaseResult) -> None:
        """Count one graph."""
        case = read_case(Path(result.case))
        self.graphs += 1
        self.valid += result.invalid is None
        self.delegated += result.delegates > 0
        self.operators.update(node.operator for node in case.graph.nodes)
        self.constants.update(constant.kind for constant in case.graph.constants)
        self.calibrations.update(item.kind for item in case.calibration.values())
        self.recipes.update([",".join(word for word in case.recipe.split(",") if not word.startswith("float="))])
        self.sizes[len(case.graph.nodes)] += 1
        if result.tightness is not None:
            self.bounds.append(result.tightness.bound)
            if result.tightness.caught is not None:
                self.planted[result.tightness.caught] += 1

    def lines(self) -> list[str]:
        """The table for people."""
        drawn = {
            **{name: self.operators[name] for name in operators()},
            **{f"constant {name}": self.constants[name] for name, kind in CONSTANT_KINDS.items() if not kind.stored},
            **{
                f"calibration {name}": self.calibrations[name]
                for name, kind in calibration_kinds().items()
                if "stored" not in kind.tags
            },
        }
        rare = [name for name, count in drawn.items() if count < ENOUGH]
        lines = [
            f"graphs {self.graphs}: {self._share(self.valid)} valid in eager, "
            f"{self._share(self.delegated)} with a delegate",
            "nodes a graph: " + ", ".join(f"{size}: {self.sizes[size]}" for size in sorted(self.sizes)),
        ]
        if self.bounds:
            lines.append(
                f"rounding envelope, widest per graph: median {statistics.median(self.bounds):.3g} steps, "
                f"within 2 steps in {sum(bound <= 2 for bound in self.bounds)} of {len(self.bounds)}"
            )
        if self.planted:
            total = sum(self.planted.values())
            lines.append(
                f"two planted steps in one element: caught in {self.planted[True]} of {total} graphs "
                f"({100 * self.planted[True] / total:.0f} %)"
            )
        lines += [
            "",
            *_columns(drawn),
            "",
            "recipes: " + ", ".join(f"{name} {count}" for name, count in self.recipes.most_common()),
        ]
        lines.append(f"drawn fewer than {ENOUGH} times: {', '.join(rare) if rare else 'none'}")
        return [*lines, ""]

    def data(self) -> dict[str, Any]:
        """The table as JSON data."""
        return {
            "graphs": self.graphs,
            "valid": self.valid,
            "delegated": self.delegated,
            "operators": dict(self.operators),
            "constants": dict(self.constants),
            "calibrations": dict(self.calibrations),
            "recipes": dict(self.recipes),
            "median_bound": statistics.median(self.bounds) if self.bounds else None,
            "planted_caught": self.planted[True],
            "planted": sum(self.planted.values()),
        }

    def _share(self, count: int) -> str:
        return f"{count} ({100 * count / max(self.graphs, 1):.1f} %)"


def _columns(counts: dict[str, int], wide: int = 4) -> list[str]:
    cells = [f"{name:<26}{count:>4}" for name, count in counts.items()]
    return ["   ".join(cells[row : row + wide]) for row in range(0, len(cells), wide)]
