"""What a run reached of what can be drawn, counted in graphs, and how its cases came out, by target.

A graph that is no test (it fails in plain eager) reaches nothing. *Pairs* are operators next to each other: a
producer (an operator, or the kind of a constant) and the operator that reads its result. An operator meets a
*calibration kind* if a value calibrated so reaches it through the graph. What can be reached is what the
generators draw; some pairs fit no shape, so that "never reached" is a hint for pairs and a fact for the rest.

*Outcomes* of a case exclude each other, in this order: problem, invalid, new, known, clean; ``crash`` counts
beside them the cases in which something raised or died.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.campaign.steering import pairs
from harness.case.case import Case, maker_of
from harness.case.checking import value_types
from harness.case.constants import CONSTANT_KINDS
from harness.case.recipe import WIDTHS, parse_recipe
from harness.case.registry import calibration_kinds, operators
from harness.evidence.observation import CRASH
from harness.reports.reporting.failure_rates import FailureRates, failure_rates
from harness.reports.reporting.material import Drawn, JudgedRun
from harness.reports.reporting.passes import Passes, passes
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult

OUTCOMES = ("clean", "known", "new", "invalid", "problem")
ANY_NODES = "…"


@dataclass(frozen=True)
class Reach:
    """One kind of thing that graphs have: how many graphs have each."""

    what: str
    counts: Mapping[str, int]

    @property
    def never(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.counts.items() if not count)


@dataclass(frozen=True)
class Grid:
    """Two kinds of things together: row -> column -> graphs (or cases), zero where absent.

    :param rows: names in order, those without a count as well; ``columns`` likewise.
    """

    what: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Mapping[str, Mapping[str, int]]

    def at(self, row: str, column: str) -> int:
        return self.counts.get(row, {}).get(column, 0)

    @property
    def reached(self) -> int:
        return sum(count > 0 for found in self.counts.values() for count in found.values())

    @property
    def cells(self) -> int:
        return len(self.rows) * len(self.columns)

    @cached_property
    def largest(self) -> int:
        return max((count for found in self.counts.values() for count in found.values()), default=0)

    def never(self) -> dict[str, tuple[str, ...]]:
        """Row -> the columns that it never met, for rows that met some."""
        absent = {row: tuple(column for column in self.columns if not self.at(row, column)) for row in self.rows}
        return {row: missing for row, missing in absent.items() if missing and len(missing) < len(self.columns)}


@dataclass(frozen=True)
class Coverage:
    """Everything that this module counts.

    :param graphs: graphs that were looked at.
    :param recipes: recipe -> graphs, as census prints them.
    :param passes: branches of the Arm backend.
    :param failures: how often operators and pairs failed.
    """

    graphs: int
    reaches: tuple[Reach, ...]
    recipes: Mapping[str, int]
    pairs: Grid
    calibrated: Grid
    outcomes: Grid
    passes: Passes
    failures: FailureRates


def coverage(judged: JudgedRun, drawn: Drawn) -> Coverage:
    """Count what the valid graphs of a run have."""
    cases = [case for graph, case in sorted(drawn.cases.items()) if graph in drawn.valid]
    names = tuple(operators())
    constants = tuple(name for name, kind in CONSTANT_KINDS.items() if not kind.stored)
    kinds = tuple(name for name, kind in calibration_kinds().items() if "stored" not in kind.tags)
    ranks, words = _drawn_by_generators()
    met = _together("producer", names + constants, names, (pairs(case.graph) for case in cases))
    reaches = (
        _reach("operators", names, ({node.operator for node in case.graph.nodes} for case in cases)),
        _reach("constant kinds", constants, ({item.kind for item in case.graph.constants} for case in cases)),
        _reach("calibration kinds", kinds, ({item.kind for item in case.calibration.values()} for case in cases)),
        _reach("recipe words", words, (set(recipe_words(case)) for case in cases)),
        _reach("ranks", ranks, ({str(item.rank) for item in value_types(case.graph).values()} for case in cases)),
    )
    return Coverage(
        graphs=len(cases),
        reaches=reaches,
        recipes=dict(Counter(",".join(recipe_words(case)) for case in cases).most_common()),
        pairs=met,
        calibrated=_together("operator", names, kinds, (calibrated(case) for case in cases)),
        outcomes=outcomes(judged),
        passes=passes(judged.run.done),
        failures=failure_rates(judged, drawn),
    )


def _drawn_by_generators() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ranks of inputs and words of recipes that the generators draw."""
    from generators.recipes import DRAWN_WORDS
    from generators.sizes import RANKS

    return tuple(map(str, sorted(set(RANKS)))), DRAWN_WORDS


def _reach(what: str, universe: Sequence[str], graphs: Iterable[set[str]]) -> Reach:
    counts = Counter(name for names in graphs for name in names)
    beyond = sorted(set(counts) - set(universe))
    return Reach(what, {name: counts[name] for name in (*universe, *beyond)})


def _together(what: str, rows: Sequence[str], columns: Sequence[str], graphs: Iterable[set[tuple[str, str]]]) -> Grid:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for met in graphs:
        for row, column in met:
            counts[row][column] += 1
    more_rows = sorted(set(counts) - set(rows))
    more_columns = sorted({column for row in counts.values() for column in row} - set(columns))
    return Grid(
        what, (*rows, *more_rows), (*columns, *more_columns), {row: dict(found) for row, found in counts.items()}
    )


def calibrated(case: Case) -> set[tuple[str, str]]:
    """(operator, calibration kind) for every input that reaches a node of the operator."""
    reaching: dict[str, set[str]] = {name: {item.kind} for name, item in case.calibration.items()}
    for node in case.graph.nodes:
        reaching[node.name] = {kind for name in node.inputs for kind in reaching.get(maker_of(name), ())}
    return {(node.operator, kind) for node in case.graph.nodes for kind in reaching[node.name]}


def recipe_words(case: Case) -> tuple[str, ...]:
    """The words of a case's recipe; which nodes stay float or have widths of their own does not matter."""
    words = [word.partition("=") for word in str(parse_recipe(case.recipe)).split(",")]
    return tuple(f"{key}={ANY_NODES if key in WIDTHS else value}" if equals else key for key, equals, value in words)


def outcomes(judged: JudgedRun) -> Grid:
    """Target x outcome, in cases."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for item in judged.seen:
        found[item.number].append(item.finding)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for done in judged.run.done:
        rows[done.result.target or "no target"].update(_outcomes(done.result, found[done.number]))
    names = tuple(target for target in judged.targets if target in rows)
    beyond = tuple(sorted(set(rows) - set(names)))
    return Grid("target", (*names, *beyond), (*OUTCOMES, CRASH), {row: dict(count) for row, count in rows.items()})


def _outcomes(result: CaseResult, findings: Sequence[Finding]) -> Iterator[str]:
    if result.problem is not None:
        yield "problem"
    elif result.invalid is not None:
        yield "invalid"
    elif any(not finding.known for finding in findings):
        yield "new"
    else:
        yield "known" if findings else "clean"
    if any(finding.oracle == CRASH for finding in findings):
        yield CRASH
