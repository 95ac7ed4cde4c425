"""Whole cases: a graph with calibration, recipe and seeds, once for each target.

``draw_block`` is what a campaign calls: the examples of one numbered block, the same in every
process and on every machine. Blocks make shards and resuming simple: a graph is named by
(seed, block, place).

Hypothesis picks the examples; its database is off and its seed derived from (seed, block). Every
strategy here draws from short lists and from ranges below 100, which Hypothesis does not mix with
numbers that it finds in local source files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

import hypothesis
import msgspec
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from generators.adversarial import draw_calibration
from generators.graphs import graphs, graphs_with
from generators.recipes import recipes
from harness.case import Case, Graph, Seeds
from harness.operators import Draw
from harness.target import parse_target
from harness.triage import has_pattern

SAMPLES = (2, 1, 2, 3)
SEEDS = st.integers(0, 99)
RUN = 10


@st.composite
def cases(draw: Draw, targets: Sequence[str], graph_strategy: SearchStrategy[Graph]) -> tuple[Case, ...]:
    """One case a target; they share everything else (without quantization the recipe is "float")."""
    graph = draw(graph_strategy)
    calibration = draw_calibration(draw, graph)
    recipe = draw(recipes(graph))
    samples = draw(st.sampled_from(SAMPLES))
    seeds = Seeds(weights=draw(SEEDS), calibration=draw(SEEDS), evaluation=draw(SEEDS))
    return tuple(
        Case(
            graph=graph,
            calibration=calibration,
            samples=samples,
            seeds=seeds,
            target=target,
            recipe=recipe if parse_target(target).quantized else "float",
        )
        for target in targets
    )


def graph_digest(graph: Graph) -> str:
    """Twelve hex digits that identify a graph."""
    text = json.dumps(msgspec.to_builtins(graph), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def run_seed(seed: int, block: int, run: int) -> int:
    """The Hypothesis seed of one run of a block."""
    return int.from_bytes(hashlib.sha256(f"armdiff {seed} {block} {run}".encode()).digest()[:8], "big")


def draw_block(seed: int, block: int, count: int, targets: Sequence[str]) -> list[tuple[Case, ...]]:
    """The first ``count`` graphs of a block with their cases, no graph twice.

    A larger ``count`` appends to what a smaller one returns.
    """
    strategy = cases(tuple(targets), graphs())
    return _first(count, (_fresh_examples(run_seed(seed, block, run), strategy) for run in range(count + 1)))


def draw_with(
    patterns: Sequence[Sequence[str]], seed: int, count: int, targets: Sequence[str]
) -> list[tuple[Case, ...]]:
    """Up to ``count`` graphs with their cases that contain one of several operator patterns, no graph twice.

    The same arguments give the same graphs; a larger ``count`` appends to what a smaller one returns.

    :param patterns: operators in order, ``relu|hardtanh`` for either; ``()`` is in every graph.
    """
    strategy = cases(tuple(targets), graphs_with(patterns))
    runs = (_fresh_examples(run_seed(seed, -1, run), strategy) for run in range(4 * count))
    return _first(count, ([item for item in drawn if has_pattern(item[0].graph, patterns)] for drawn in runs))


def _first(count: int, runs: Iterable[list[tuple[Case, ...]]]) -> list[tuple[Case, ...]]:
    """The first ``count`` different graphs of several runs, no more of which are made than it takes."""
    found: dict[str, tuple[Case, ...]] = {}
    for drawn in runs:
        for item in drawn:
            found.setdefault(graph_digest(item[0].graph), item)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def _fresh_examples(seed: int, strategy: SearchStrategy[tuple[Case, ...]]) -> list[tuple[Case, ...]]:
    """Examples of one short Hypothesis run.

    Short, because after ten examples Hypothesis goes over to mutating what it has: good for
    finding coincidences, but most of a long run is then variations of a few graphs.
    """
    examples: list[tuple[Case, ...]] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None, phases=[Phase.generate], deadline=None, max_examples=RUN, suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(strategy)
    def collect(drawn: tuple[Case, ...]) -> None:
        examples.append(drawn)

    collect()
    return examples[1:]  # the first one is the same simplest example in every run
