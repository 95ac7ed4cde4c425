"""How often graphs with an operator, or with two operators in a row, showed a finding that depends on it.

Counted in graphs that are a test. An operator *fails* in a graph if a finding of one of the graph's cases names it in
the chain of operators that the wrong output depends on; a pair (producer, reader) fails if both are in one chain. So
an operator that only stands beside a bug does not fail, and one that stands on the way to it does: a high rate is a
place to look at, not a proof.

One graph of one that failed says little. Rows are ordered by the rate that is *at least* there with 95 % confidence
(the lower end of Wilson's interval).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.campaign.steering import pairs
from harness.case.case import Case
from harness.reports.reporting.material import Drawn, JudgedRun

CONFIDENCE = 1.96
"""Standard deviations that hold 95 %."""


@dataclass(frozen=True)
class Rate:
    """An operator, or a pair ``producer → reader``.

    :param graphs: graphs that have it; ``failing`` of them show a finding that depends on it, ``new`` one that counts.
    :param at_least: the share of failing graphs that it has at least, with 95 % confidence.
    """

    name: str
    graphs: int
    failing: int
    new: int
    at_least: float

    @property
    def share(self) -> float:
        return self.failing / self.graphs


@dataclass(frozen=True)
class FailureRates:
    """Operators and pairs that failed, the surest first.

    :param graphs: graphs that are a test; ``failing`` of them show a finding.
    :param clean: how many operators occurred and never failed; ``clean_pairs`` likewise.
    """

    graphs: int
    failing: int
    operators: tuple[Rate, ...]
    pairs: tuple[Rate, ...]
    clean: int
    clean_pairs: int


def failure_rates(judged: JudgedRun, drawn: Drawn) -> FailureRates:
    """Count a run's graphs and those of them that failed."""
    cases = {graph: case for graph, case in drawn.cases.items() if graph in drawn.valid}
    chains: dict[int, set[tuple[bool, frozenset[str]]]] = defaultdict(set)
    for item in judged.seen:
        if item.graph in cases:
            chains[item.graph].add((not item.finding.known, frozenset(item.finding.chain)))
    operators = _rates(
        ((graph, (node.operator,)) for graph, case in cases.items() for node in case.graph.nodes), chains
    )
    joined = _rates(((graph, pair) for graph, case in cases.items() for pair in _pairs(case)), chains)
    return FailureRates(
        graphs=len(cases),
        failing=len(chains),
        operators=tuple(rate for rate in operators if rate.failing),
        pairs=tuple(rate for rate in joined if rate.failing),
        clean=sum(not rate.failing for rate in operators),
        clean_pairs=sum(not rate.failing for rate in joined),
    )


def _pairs(case: Case) -> Iterable[tuple[str, str]]:
    """Producers and readers that are both operators."""
    operators = {node.operator for node in case.graph.nodes}
    return {pair for pair in pairs(case.graph) if pair[0] in operators}


def _rates(
    occurrences: Iterable[tuple[int, tuple[str, ...]]], chains: dict[int, set[tuple[bool, frozenset[str]]]]
) -> list[Rate]:
    graphs: Counter[tuple[str, ...]] = Counter()
    failing: Counter[tuple[str, ...]] = Counter()
    new: Counter[tuple[str, ...]] = Counter()
    for graph, words in set(occurrences):
        blamed = [counts for counts, chain in chains.get(graph, ()) if chain.issuperset(words)]
        graphs[words] += 1
        failing[words] += bool(blamed)
        new[words] += any(blamed)
    made = [
        Rate(" → ".join(words), count, failing[words], new[words], at_least(failing[words], count))
        for words, count in graphs.items()
    ]
    return sorted(made, key=lambda rate: (-rate.at_least, -rate.graphs, rate.name))


def at_least(failing: int, graphs: int) -> float:
    """The lower end of Wilson's interval for a share.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    share, z = failing / graphs, CONFIDENCE
    middle = share + z * z / (2 * graphs)
    half = z * math.sqrt(share * (1 - share) / graphs + z * z / (4 * graphs * graphs))
    return max(0.0, (middle - half) / (1 + z * z / graphs))
