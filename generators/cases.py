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
import itertools
import json
import random
from collections.abc import Iterable, Sequence

import hypothesis
import msgspec
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from generators.adversarial import draw_calibration
from generators.graphs import graphs, graphs_with
from generators.motifs import MOTIFS, Motif
from generators.recipes import recipes
from harness.case.case import Case, Graph, Seeds
from harness.case.chains import has_pattern
from harness.case.operators import Draw
from harness.case.target import parse_target

SAMPLES = (2, 1, 2, 3)
SEEDS = st.integers(0, 99)
RUN = 10

PLANTED = 3
"""Patterns that ``draw_covering`` plants into one graph."""


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


def draw_block(
    seed: int, block: int, count: int, targets: Sequence[str], motifs: Sequence[Motif] = MOTIFS
) -> list[tuple[Case, ...]]:
    """The first ``count`` graphs of a block with their cases, no graph twice.

    A larger ``count`` appends to what a smaller one returns.
    """
    strategy = cases(tuple(targets), graphs(tuple(motifs)))
    return _first(count, (fresh_examples(run_seed(seed, block, run), strategy) for run in range(count + 1)))


def draw_covering(
    groups: Sequence[Sequence[Sequence[str]]], seed: int, count: int, targets: Sequence[str]
) -> list[tuple[Case, ...]]:
    """Graphs with their cases, no graph twice, until each group of operator patterns is in ``count`` of them.

    A run of draws plants one pattern of each of the ``PLANTED`` groups that lack most, so that few graphs
    serve many groups. A group that nothing fits is given up. The same arguments give the same graphs.

    :param groups: patterns as in ``has_pattern``: operators in order, ``relu|hardtanh`` for either.
    """
    found: dict[str, tuple[Case, ...]] = {}
    lacking = [count] * len(groups)
    tries = [0] * len(groups)
    seeds = (run_seed(seed, -1, run) for run in itertools.count())
    while wanted := [place for place, left in enumerate(lacking) if left > 0 and tries[place] < max(4, 2 * count)]:
        own = next(seeds)
        planted = sorted(wanted, key=lambda place: (-lacking[place], tries[place]))[:PLANTED]
        chain: list[str] = []
        for place in random.Random(own).sample(planted, len(planted)):
            chain += groups[place][tries[place] % len(groups[place])]
            tries[place] += 1
        for item in fresh_examples(own, cases(tuple(targets), graphs_with([chain]))):
            graph = item[0].graph
            serves = [place for place in wanted if has_pattern(graph, groups[place])]
            if serves and found.setdefault(graph_digest(graph), item) is item:
                for place in serves:
                    lacking[place] -= 1
    return list(found.values())


def _first(count: int, runs: Iterable[list[tuple[Case, ...]]]) -> list[tuple[Case, ...]]:
    """The first ``count`` different graphs of several runs, no more of which are made than it takes."""
    found: dict[str, tuple[Case, ...]] = {}
    for drawn in runs:
        for item in drawn:
            found.setdefault(graph_digest(item[0].graph), item)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def fresh_examples(seed: int, strategy: SearchStrategy[tuple[Case, ...]]) -> list[tuple[Case, ...]]:
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
