"""Outputs whose envelope judges nothing: by element, by output, and by the operator that is to blame.

An element is not judged if an end of its envelope is infinite, or if the envelope covers every code from qmin to
qmax: a program cannot return anything else, so no value of it could be wrong. It is not judged either if the
reference itself lies outside (an unsound envelope: a flaw of armdiff).

An operator without a rule of rounding that met inexact operands is unjudged itself, whatever became of the envelope
behind it: quantizing clamps what is infinite, and further operators may narrow it. Every output that depends on
it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.compat.snapshots import NodeState
from harness.evidence.agreement import legs_to_judge
from harness.evidence.comparing import covering
from harness.evidence.observation import Domain, Envelope, LegResult, Observation, OutputType, Unjudged
from harness.evidence.references import EAGER, QUANTIZED, reference_leg
from harness.pipeline.probes.results import Pieces

NO_RULE = "no rule of rounding"
NO_COST = "no rule for what quantization may cost"
UNSOUND = "unsound envelope"
COVERS = "envelope covers all codes"
ENDLESS = "envelope without an end"
MISFIT = "legs that do not fit"
QUALITY = "quality: "
"""Begins the reasons that are about float eager against quantized eager."""


class Held(Protocol):
    """How many elements of one output a comparison with its envelope did not judge.

    ``unsound``: the reference lies outside; ``unjudged``: an end is infinite.
    """

    @property
    def unsound(self) -> int: ...

    @property
    def unjudged(self) -> int: ...


Compare = Callable[[EvaluationInput, int, Array, Array, Envelope, Domain | None], Held]
"""Holds one output against its envelope: (input, output's index, values, reference, envelope, domain)."""


@dataclass(frozen=True)
class Loose:
    """Elements of one output on one evaluation input that its envelope does not judge, by reason.

    :param of: elements of the output.
    """

    endless: int
    covering: int
    unsound: int
    of: int

    @property
    def free(self) -> int:
        return self.endless + self.covering


def of_rounding(observation: Observation, compare: Compare) -> Iterator[Unjudged]:
    """What the ``numeric`` oracle's envelopes could not judge of the first leg that is held against them.

    Where values inside were judged, it is what no piece could judge; a value inside may concern every output.
    """
    pieces = observation.probes.get("inside")
    if isinstance(pieces, Pieces):
        for row in of_rounding(pieces.seen(observation), compare):
            within = all(index < pieces.outputs for index in row.outputs)
            yield row if within else replace(row, outputs=tuple(range(pieces.outputs)))
        return
    reference = observation.legs.get(reference_leg(observation))
    legs = legs_to_judge(observation)
    if not legs or reference is None or not reference.ran or observation.rounding is None:
        return  # what did not run is told by ``execution``
    held = _Held(observation, observation.rounding, reference, observation.legs[legs[0]], compare)
    yield from _rows(held, legs[0], "", NO_RULE)


def of_quantization(observation: Observation, compare: Compare) -> Iterator[Unjudged]:
    """What the ``quality`` oracle could not judge on calibration inputs."""
    eager, quantized = (observation.legs.get(name) for name in (EAGER, QUANTIZED))
    if not eager or not quantized or not eager.ran or not quantized.ran or observation.quantization is None:
        return
    # quantized eager is the value that lies inside by construction
    held = _Held(observation, observation.quantization, quantized, eager, compare)
    yield from _rows(held, QUANTIZED, QUALITY, NO_COST)


@dataclass
class _Held:
    """The outputs of one leg, held against the envelopes of one policy.

    :ivar loose: output -> what was not judged of it, on each evaluation input.
    :ivar operators: output -> operators without a rule that it depends on.
    :ivar misfits: outputs that could not be compared.
    """

    observation: Observation
    envelopes: Sequence[tuple[Envelope, ...] | None]
    reference: LegResult
    leg: LegResult
    compare: Compare
    loose: dict[int, list[Loose]] = field(default_factory=dict)
    operators: dict[int, set[str]] = field(default_factory=dict)
    misfits: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        runs = (self.observation.inputs, self.envelopes, self.reference.outputs, self.leg.outputs)
        if len({len(run) for run in runs}) != 1:
            self.misfits.update(range(len(self.types)))
            return
        eager = self.observation.legs.get(EAGER)
        floats = eager.outputs if eager and eager.ran and len(eager.outputs) == len(runs[0]) else [()] * len(runs[0])
        for item, allowed, wanted, got, real in zip(*runs, floats, strict=True):
            if allowed is not None:
                self._add(item, allowed, wanted, got, real)
        states = self.observation.lowering.reference
        for index, names in self.operators.items():
            above = operators_above(states, index, len(self.types))
            self.operators[index] = names if above is None else names & above

    @property
    def types(self) -> tuple[OutputType, ...]:
        return self.observation.lowering.outputs

    def _add(
        self,
        item: EvaluationInput,
        allowed: tuple[Envelope, ...],
        wanted: Sequence[Array],
        got: Sequence[Array],
        real: Sequence[Array],
    ) -> None:
        """:param real: of the float model; where it is NaN an output has no value, and nothing is to be judged."""
        if not len(allowed) == len(wanted) == len(got) == len(self.types):
            self.misfits.update(range(len(self.types)))
            return
        for index, (envelope, output) in enumerate(zip(allowed, self.types, strict=True)):
            if wanted[index].shape != got[index].shape or wanted[index].dtype.kind not in "fiub":
                self.misfits.add(index)
                continue
            held = self.compare(item, index, got[index], wanted[index], envelope, output.domain)
            void = np.zeros(wanted[index].shape, dtype=bool)
            if len(real) == len(self.types) and real[index].shape == void.shape and real[index].dtype.kind == "f":
                void = np.isnan(real[index])
            endless = held.unjudged - int(np.sum(void & ~(np.isfinite(envelope.low) & np.isfinite(envelope.high))))
            row = Loose(endless, covering(envelope, output, ~void), held.unsound, wanted[index].size)
            self.loose.setdefault(index, []).append(row)
            self.operators.setdefault(index, set()).update(envelope.unjudged)


def _rows(held: _Held, leg: str, about: str, no_rule: str) -> Iterator[Unjudged]:
    """One row a reason.

    :param about: begins the reasons; operators have the same name for both policies.
    :param no_rule: what operators lack.
    """
    if held.misfits:
        why = "the legs return other shapes, other numbers of outputs, or no numbers"
        yield Unjudged(what=f"{about}{MISFIT}", why=why, leg=leg, outputs=tuple(sorted(held.misfits)))
    for name in sorted(set().union(*held.operators.values())):
        concerned = {index: rows for index, rows in held.loose.items() if name in held.operators[index]}
        yield _row(name, no_rule, leg, concerned, lambda row: row.free)
    others = {index: rows for index, rows in held.loose.items() if not held.operators[index]}
    for reason, (why, count) in _REASONS.items():
        rows_of = held.loose if reason == UNSOUND else others
        concerned = {index: rows for index, rows in rows_of.items() if any(count(row) for row in rows)}
        if concerned:
            yield _row(f"{about}{reason}", why, leg, concerned, count)


_REASONS: Mapping[str, tuple[str, Callable[[Loose], int]]] = {
    ENDLESS: ("it is infinite on one side or on both", lambda row: row.endless),
    COVERS: ("it allows every code from qmin to qmax", lambda row: row.covering),
    UNSOUND: ("the reference lies outside of it (a flaw of armdiff: please report)", lambda row: row.unsound),
}
"""Reason -> why, and the elements that it counts."""


def _row(
    what: str, why: str, leg: str, concerned: Mapping[int, Sequence[Loose]], count: Callable[[Loose], int]
) -> Unjudged:
    rows = [row for each in concerned.values() for row in each]
    return Unjudged(
        what=what,
        why=why,
        leg=leg,
        outputs=tuple(sorted(concerned)),
        parts=sum(count(row) for row in rows),
        of=sum(row.of for row in rows),
    )


def operators_above(states: Mapping[str, NodeState], output: int, outputs: int) -> set[str] | None:
    """Operators that one output of a graph depends on, overloads left out (``aten.sin``).

    :param outputs: how many the program has.
    :returns: None if the graph does not tell its outputs apart.
    """
    refs = states["output"].refs if "output" in states else ()
    if len(refs) != outputs:
        return None
    found: set[str] = set()
    waiting, seen = [refs[output]], {refs[output]}
    while waiting:
        state = states.get(waiting.pop())
        if state is None:
            return None
        found |= {state.target, state.target.rsplit(".", 1)[0]}
        fresh = set(state.refs) - seen
        seen |= fresh
        waiting += fresh
    return found
