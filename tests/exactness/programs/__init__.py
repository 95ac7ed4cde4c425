"""TOSA programs of one operator, or of a few that Vela fuses: every operator of TOSA's integer profile.

``FAMILIES`` lists them by operator; ``single_programs`` builds them. Several programs in every family
are outside what a target accepts: the table counts what Vela refuses and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.exactness.building import Graph, Value
from tests.exactness.program import Program, random_state
from tests.exactness.programs import chains, conversions, convolutions, elementwise, movement, networks, pooling
from tests.exactness.programs.family import Family

FAMILIES: tuple[Family, ...] = tuple(
    family
    for module in (convolutions, pooling, elementwise, movement, conversions, chains, networks)
    for family in module.FAMILIES
)


def names(seed: int) -> Iterator[tuple[str, Family, int]]:
    """Name, family and number of every program; those of other seeds than 0 say so."""
    mark = f"s{seed}-" if seed else ""
    for family in FAMILIES:
        for number in range(family.count):
            yield f"{family.name}-{mark}{number:03d}", family, number


def build(name: str, family: Family, number: int, seed: int) -> Program:
    """One program."""
    graph = Graph()
    results = family.build(graph, random_state(seed, family.name, number), number)
    return replace(graph.finish(name, *([results] if isinstance(results, Value) else results)), group="single-op")


def single_programs(seed: int) -> Iterator[Program]:
    """Every program of a seed, family by family."""
    for name, family, number in names(seed):
        yield build(name, family, number, seed)
