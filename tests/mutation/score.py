"""The mutation score of the value oracles: how many random mutants of TOSA graphs are seen.

Graphs come from the generator (TOSA-1.0+INT, its own recipes), each lowered once and clean; a
mutant runs only the TOSA leg, on the same evaluation inputs, and is judged by ``numeric``,
``outputs`` and ``crash``. *Seen* is every mutant for which one of them speaks; a mutant that the
reference model rejects is seen, but counted apart, since such a graph would never pass unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from generators.cases import draw_block
from harness.case.case import Case
from harness.evidence.observation import LegResult, Mismatch
from harness.pipeline.legs.tosa_reference import ReferenceModelError
from tests.children import Death, isolated
from tests.mutation.explain import UNSEEN, explain
from tests.mutation.mutate import Mutation, mutate
from tests.mutation.subject import Subject, judged, run_mutant, subject_of, with_leg

TARGET = "TOSA-1.0+INT"
BLOCK = 10
TRIES = 6
"""Draws a mutant before a small graph is taken to have no other one."""

INVALID_GRAPH = "Invalid TOSA graph"
"""What the reference model's binding raises (as ValueError) where shapes do not fit."""
NUMERIC, OUT_OF_RANGE, OUTPUTS, REJECTED, FAILED, DIED = (
    "numeric",
    "numeric, out-of-range input only",
    "outputs",
    "rejected by the reference model",
    "the leg fails otherwise",
    "native death or hang",
)
SEEN = (NUMERIC, OUT_OF_RANGE, OUTPUTS, REJECTED, FAILED, DIED)


@dataclass(frozen=True)
class Verdict:
    """One mutant and what became of it: one of ``SEEN`` or ``UNSEEN``, with the facts behind it."""

    graph: int
    operators: str
    mutation: Mutation
    verdict: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def seen(self) -> bool:
        return self.verdict in SEEN


@dataclass
class Score:
    """All verdicts of a run, and what became of the graphs that were drawn."""

    verdicts: list[Verdict] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)

    def data(self) -> dict[str, Any]:
        """Everything as JSON data."""
        counts = Counter(item.verdict for item in self.verdicts)
        return {
            "drawn": dict(self.drawn),
            "mutants": len(self.verdicts),
            "seen": sum(item.seen for item in self.verdicts),
            "verdicts": {name: counts[name] for name in (*SEEN, *UNSEEN)},
            "all": [asdict(item) for item in self.verdicts],
        }


def score(graphs: int, mutants: int, seed: int, announce: Callable[[str], None] = lambda line: None) -> Score:
    """Draw graphs until ``graphs`` of them have mutants, and judge the mutants."""
    result = Score()
    for case in _cases(seed):
        if result.drawn["scored"] >= graphs:
            return result
        subject, why = subject_of(case)
        if subject is None:
            result.drawn[why] += 1
            continue
        number = result.drawn["scored"]
        wanted = min(mutants * (number + 1) - len(result.verdicts), 2 * mutants)  # makes up for small graphs
        verdicts = judge_mutants(subject, mutants_of(subject, wanted, [seed, number]), number)
        result.drawn["scored" if verdicts else "nothing to change"] += 1
        result.verdicts += verdicts
        if verdicts:
            announce(f"graph {number}: {sum(item.seen for item in verdicts)} of {len(verdicts)} seen")
    return result


def _cases(seed: int) -> Iterator[Case]:
    block = 0
    while True:
        for (case,) in draw_block(seed, block, BLOCK, (TARGET,)):
            yield case
        block += 1


def mutants_of(subject: Subject, count: int, seed: Iterable[int]) -> list[tuple[str, bytes, Mutation]]:
    """Up to ``count`` different mutants of a subject: delegate, flatbuffer, what was changed."""
    rng = np.random.default_rng(list(seed))
    delegates = sorted(subject.lowered.tosa)
    found: dict[bytes, tuple[str, bytes, Mutation]] = {}
    for _ in range(count * TRIES):
        name = delegates[int(rng.integers(len(delegates)))]
        drawn = mutate(subject.lowered.tosa[name], rng)
        if drawn is not None:
            found.setdefault(drawn[0], (name, *drawn))
        if len(found) == count:
            break
    return list(found.values())


def judge_mutants(subject: Subject, mutants: list[tuple[str, bytes, Mutation]], graph: int = 0) -> list[Verdict]:
    """Run mutants in forked children and judge each."""
    chain = " -> ".join(node.operator for node in subject.observation.case.graph.nodes)

    def work(number: int) -> dict[str, Any]:
        return _judge(subject, *mutants[number][:2])

    verdicts = []
    for (_, _, mutation), answer in zip(mutants, isolated(len(mutants), work), strict=True):
        if isinstance(answer, Death):
            answer = {"verdict": DIED, "how": answer.how}
        facts = {**answer, "recipe": subject.observation.case.recipe}
        verdicts.append(Verdict(graph, chain, mutation, facts.pop("verdict"), facts))
    return verdicts


def _judge(subject: Subject, delegate: str, mutant: bytes) -> dict[str, Any]:
    result = run_mutant(subject.lowered, delegate, mutant, subject.observation.inputs)
    found = judged(with_leg(subject.observation, result))
    if found:
        return {"verdict": _kind(found, result), "message": found[0].message[:300], **_distance(found)}
    facts = explain(subject, delegate, mutant, result)
    return {"verdict": facts.pop("why"), **facts}


def _kind(found: list[Mismatch], result: LegResult) -> str:
    if result.failure is not None:
        failure = result.failure
        refused = failure.type == ReferenceModelError.__name__ or failure.message.startswith(INVALID_GRAPH)
        return REJECTED if refused else FAILED
    ranges = {bool(item.measured["in_range"]) for item in found if item.oracle == "numeric"}
    return NUMERIC if True in ranges else OUT_OF_RANGE if ranges else OUTPUTS


def _distance(found: list[Mismatch]) -> dict[str, Any]:
    return {key: found[0].measured[key] for key in ("distance", "bound", "elements") if key in found[0].measured}
