"""Which pass a wrong parameter, constant or bound comes from, told by the snapshots alone.

The pass to blame is the first after which the property is broken. For a parameter of a TOSA
operator that is the first snapshot that holds a node of the same origin, target and literal
arguments; if the last snapshot disagrees with the file, the serializer wrote something else. For
a clamp it is the pass after the last snapshot that still bounds the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator
from harness.case.traits import TOSA_MOVING
from harness.compat.snapshots import NodeState, PassTrace, Qparams, Ref, Snapshot, base
from harness.evidence.inspection.analysis import Analysis
from harness.evidence.inspection.decisions import CLAMPS, clamp_bounds, decided, is_quantize
from harness.evidence.inspection.origins import behind_moves
from harness.evidence.inspection.ranges import CLAMP_LOST, code_of
from harness.evidence.inspection.rules import JOINS
from harness.evidence.inspection.units import Problem

SERIALIZER = "serializer"


def parameters_blame(problem: Problem, analysis: Analysis) -> str:
    """The pass (or the serializer) that a problem of the flatbuffer comes from."""
    trace = analysis.trace
    if problem.kind == CLAMP_LOST:
        return _bound_blame(problem, analysis)
    if problem.kind == "round mode":
        return SERIALIZER
    if problem.operator.op == "TABLE":
        return constant_blame(problem.operator.inputs[1], trace)
    found = [_operator_blame(operator, analysis) for operator in _culprits(problem.operator, analysis.block)]
    order = {snapshot.name: snapshot.index for snapshot in trace.changes}
    return SERIALIZER if SERIALIZER in found else max(found, key=lambda name: order.get(name, -1))


def _culprits(operator: TosaOperator, block: TosaBlock) -> list[TosaOperator]:
    """The RESCALEs that gave an operator's value, or its operands, their unit; else the operator itself."""
    moves = TOSA_MOVING - {"CONCAT"}
    own = behind_moves(operator, block, moves)
    if own is not None and own.op == "RESCALE":
        return [own]
    operands = [behind_moves(block.producers.get(name), block, moves) for name in operator.inputs]
    rescales = [item for item in operands if item is not None and item.op == "RESCALE"]
    return rescales if rescales and operator.op in JOINS else [operator]


def _operator_blame(operator: TosaOperator, analysis: Analysis) -> str:
    """The first snapshot that holds an operator with the very literals it has in the file."""
    final = analysis.trace.last.nodes.get(operator.outputs[0]) if operator.outputs else None
    if final is None or not _agrees(operator, final, analysis):
        return SERIALIZER
    return literals_blame(final, analysis.trace)


def literals_blame(final: NodeState, trace: PassTrace) -> str:
    """The first pass after which a node of this origin and target has these literals."""
    wanted = _literals(final)

    def holds(snapshot: Snapshot) -> bool:
        return any(
            state.origin == final.origin and state.target == final.target and _literals(state) == wanted
            for state in snapshot.nodes.values()
        )

    return first_where(trace, holds)


def constant_blame(name: str, trace: PassTrace) -> str:
    """The first pass after which a constant of this name has the value that it has at the end."""
    final = trace.last.nodes.get(name)
    wanted = None if final is None else final.value
    if wanted is None:
        return SERIALIZER

    def holds(snapshot: Snapshot) -> bool:
        state = snapshot.nodes.get(name)
        held = None if state is None else state.value
        return held is not None and wanted is not None and np.array_equal(held, wanted)

    return first_where(trace, holds)


def first_where(trace: PassTrace, holds: Callable[[Snapshot], bool]) -> str:
    """Name of the first pass after which something holds; "quantizer" if it held before the first."""
    for snapshot in trace.changes:
        if holds(snapshot):
            return snapshot.name if snapshot.index >= 0 else "quantizer"
    return SERIALIZER


def _agrees(operator: TosaOperator, final: NodeState, analysis: Analysis) -> bool:
    """Does the last snapshot's RESCALE say what the file says? True for other operators."""
    if operator.op != "RESCALE" or not final.target.startswith("tosa.RESCALE"):
        return True
    multipliers, shifts, zero_in, zero_out = (
        analysis.block.tensors[name].values().reshape(-1).astype(np.float64) for name in operator.inputs[1:5]
    )
    scales = np.asarray(final.args[2], dtype=np.float64).reshape(-1)
    ratio = multipliers * np.exp2(-shifts)
    if scales.size != ratio.size or not np.allclose(
        ratio, scales, rtol=float(np.max(1.0 / np.abs(multipliers))), atol=0
    ):
        return False
    return bool(zero_in[0] == final.args[3] and zero_out[0] == final.args[4])


def _literals(state: NodeState) -> tuple[Any, ...]:
    return tuple(_without_refs(state.args)) + tuple(sorted((key, str(item)) for key, item in state.kwargs.items()))


def _without_refs(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, tuple):
            yield tuple(_without_refs(item))
        elif not isinstance(item, Ref):
            yield item


def _bound_blame(problem: Problem, analysis: Analysis) -> str:
    """The pass after the last snapshot in which a clamp, a quantize node or qparams still bound the value.

    Qparams bind while the node is an ATen operator: a kernel of the TOSA dialect does not read them.
    """
    trace = analysis.trace
    bounded = str(problem.measured["node"])
    start = trace.start.nodes[bounded]
    origins = {bounded, analysis.origins.of[problem.operator.index], *start.refs}
    codes = int(problem.measured["low"]), int(problem.measured["high"])
    [qparams] = decided(bounded, trace.start)
    in_codes = trace.passes.index(_CLAMP_CODES) if _CLAMP_CODES in trace.passes else len(trace.passes)
    for snapshot in trace.changes:
        binding = _Binding(bounded, origins, codes, qparams, snapshot.index >= in_codes)
        if not any(binding.holds(state, snapshot) for state in snapshot.nodes.values()):
            return "quantizer" if snapshot.index < 0 else snapshot.name
    return SERIALIZER


_CLAMP_CODES = "QuantizeClampArgumentsPass"


@dataclass(frozen=True)
class _Binding:
    """What still keeps a value inside ``codes``.

    :param in_codes: are the bounds of an ATen clamp codes already?
    """

    bounded: str
    origins: set[str | None]
    codes: tuple[int, int]
    qparams: Qparams
    in_codes: bool

    def holds(self, state: NodeState, snapshot: Snapshot) -> bool:
        if state.origin in self.origins and (base(state) in CLAMPS or state.target.startswith("tosa.CLAMP")):
            return self._clamp(state)
        if is_quantize(state):
            sources = {snapshot.nodes[name].origin for name in state.refs if name in snapshot.nodes}
            return bool(sources & self.origins) and self._inside(state.args[3], state.args[4])
        if state.origin in self.origins and state.target.startswith("aten."):
            return any(self._inside(item.qmin, item.qmax) for item in state.output_qparams.values())
        return False

    def _clamp(self, state: NodeState) -> bool:
        if state.target.startswith("tosa.CLAMP") or (base(state) == "clamp" and self.in_codes):
            low, high = (*state.args[1:], None, None)[:2]
            return self._inside(low, high)
        bounds = clamp_bounds(state)
        return bounds is not None and self._inside(*(code_of(bound, self.qparams) for bound in bounds))

    def _inside(self, low: object, high: object) -> bool:
        least, most = self.codes
        below = isinstance(low, (int, float)) and low >= least
        above = isinstance(high, (int, float)) and high <= most
        return (below or least == self.qparams.qmin) and (above or most == self.qparams.qmax)
