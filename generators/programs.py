"""TOSA programs for the Vela engine: chains and diamonds of one to eight entries of ``generators/tosa_ops``.

A program starts from one input and goes on from its last value, or from an earlier one, which makes diamonds and
several outputs. Half of the steps move elements (reshape, transpose, slice, pad, concat, tile), the other half
compute, each kind as often as another: most of Vela's bugs are where these meet. What multiplies may stand between the
two TRANSPOSEs with which ExecuTorch writes PyTorch's channels-first. Now and then a step does again what one before it
did: tables, weights and blocks of memory have few places, which two of a kind share.

``draw_programs`` is what the engine calls: a numbered block is the same on every machine. A program is valid by
construction; the reference model's status is the check on that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from generators.cases import RUN, run_seed
from generators.tosa_graph import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    RANKS,
    Kind,
    TosaGraph,
    TosaOperator,
    Value,
    choose,
    draw_shape,
    one_in,
)
from harness.case.operators import Draw
from harness.case.registry import entries
from harness.tosa.findings import digest
from harness.tosa.program import Program

COUNTS = (1, 2, 2, 3, 3, 4, 5, 6, 8)
FIRST = ("INT8", "INT8", "INT8", "INT16", "INT16", "INT32")
KINDS: tuple[Kind, ...] = (*("moves",) * 4, "multiplies", "combines", "reduces", "converts")
"""What a step does: half of them move elements, the others take turns, however many entries a kind has."""
ELEMENTS = (64, 64, 1024)
"""At most, of the first input: most bugs need few, and what is small is judged sooner; some need many."""
ACTIVATIONS = ("clamp", "table", "table-int16")
"""Entries that ExecuTorch leaves behind the TRANSPOSE of a window."""
FIRST_INT32 = (-(1 << 20), 1 << 20)
"""Range of an int32 input: what further operators may add to and multiply."""


@cache
def tosa_operators() -> Mapping[str, TosaOperator]:
    """Every entry of ``generators.tosa_ops``, by name."""
    return entries("TOSA operator", "generators.tosa_ops", "TOSA_OPERATORS")


@st.composite
def programs(draw: Draw, family: str) -> Program:
    """One program for an accelerator family: ``u55``, ``u65`` or ``u85``."""
    graph = TosaGraph(family)
    dtype = choose(draw, FIRST)
    shape = draw_shape(draw, choose(draw, RANKS), choose(draw, ELEMENTS))
    graph.values.append(graph.input(shape, dtype, FIRST_INT32 if dtype == "INT32" else None))
    drawn: list[TosaOperator] = []
    for _ in range(choose(draw, COUNTS)):
        value = choose(draw, graph.values[::-1]) if one_in(draw, 4) else graph.values[-1]
        again = [item for item in drawn if item.accepts(value)]
        options = again if again and one_in(draw, 5) else fitting(draw, family, value)
        if options:
            drawn.append(choose(draw, options))
            graph.values.append(_step(draw, graph, drawn[-1], value))
    more = [choose(draw, graph.values[1:])] if len(graph.values) > 1 and one_in(draw, 8) else []
    return graph.program(more)


def _step(draw: Draw, graph: TosaGraph, entry: TosaOperator, value: Value) -> Value:
    """What an entry makes of a value; one that multiplies sometimes between two TRANSPOSEs, half of these with an
    activation behind.
    """
    if entry.kind != "multiplies" or value.rank != 4 or not one_in(draw, 3):
        return entry.draw(draw, graph, value)
    result = entry.draw(draw, graph, graph.transpose(value, CHANNELS_LAST))
    if not (graph.u85 or result.quantized):
        return result  # of int32, Ethos-U55 and U65 turn few axes
    back = graph.transpose(result, CHANNELS_FIRST)
    activations = [item for item in _supported(graph.family) if item.name in ACTIVATIONS and item.accepts(back)]
    return choose(draw, activations).draw(draw, graph, back) if activations and one_in(draw, 2) else back


def fitting(draw: Draw, family: str, value: Value) -> tuple[TosaOperator, ...]:
    """Entries of one kind that can start from a value; every one that can, if none of the kind does."""
    kind = choose(draw, KINDS)
    found = [item for item in _supported(family) if item.accepts(value)]
    return tuple(item for item in found if item.kind == kind) or tuple(found)


@cache
def _supported(family: str) -> tuple[TosaOperator, ...]:
    return tuple(item for item in tosa_operators().values() if family in item.families)


def draw_programs(seed: int, block: int, count: int, family: str) -> list[Program]:
    """The first ``count`` programs of a block, none twice. A larger count appends to what a smaller one returns."""
    return programs_of(programs(family), seed, block, count)


def programs_of(
    strategy: st.SearchStrategy[Program], seed: int, block: int, count: int, others: Collection[str] = ()
) -> list[Program]:
    """The first ``count`` programs that a strategy draws in a block, none twice.

    :param others: digests of programs that do not count.
    """
    found: dict[str, Program] = {}
    for run in range(count + 1):
        for program in _fresh(run_seed(seed, block, run), strategy):
            if (key := digest(program)) not in others:
                found.setdefault(key, program)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def _fresh(seed: int, strategy: st.SearchStrategy[Program]) -> Sequence[Program]:
    """Examples of one short Hypothesis run, as in ``generators.cases.fresh_examples``."""
    examples: list[Program] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        database=None, phases=[Phase.generate], deadline=None, max_examples=RUN, suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(strategy)
    def collect(drawn: Program) -> None:
        examples.append(drawn)

    collect()
    return [program for program in examples[1:] if program.operators]
