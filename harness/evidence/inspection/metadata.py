"""Quantization parameters in the graph: as PT2E decided them, and as the passes carry them.

A start node's decision is compared with the ``input_qparams`` and ``output_qparams`` that the
passes keep on the node that still computes it (same origin, same operator), while they are of the
decided integer type: InsertRescaleInt32Pass replaces them by int32 ones later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.compat.snapshots import NodeState, PassTrace, Qparams, Snapshot, base
from harness.evidence.inspection.decisions import (
    MOVERS,
    RANGES,
    decided,
    is_dequantize,
    is_quantize,
    operands,
    qparams_of,
    same_domain,
)

KERNELS = ("convolution", "linear", "addmm", "mm", "bmm")
"""Operators whose TOSA form needs the qparams of its result for a RESCALE."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with qparams in the graph.

    :param pass_name: the first pass after which it shows; None if the start graph has it.
    :param operator: the start operator, for the bucket.
    """

    kind: str
    node: str
    operator: str
    message: str
    pass_name: str | None = None


def start_faults(trace: PassTrace) -> Iterator[Fault]:
    """What is wrong before the first pass."""
    graph = trace.start
    for node in graph.nodes.values():
        if is_quantize(node) or is_dequantize(node):
            qparams = qparams_of(node, graph)
            wrong = _unsound(qparams) if qparams is not None else ""
            if wrong:
                yield Fault("unsound qparams", node.name, node.target, f"{node.name} has {qparams}: {wrong}")
        elif base(node) in MOVERS:
            yield from _moved(node, graph)


def _unsound(qparams: Qparams) -> str:
    low, high = RANGES.get(qparams.dtype, (-math.inf, math.inf))
    if not all(math.isfinite(scale) and scale > 0 for scale in qparams.scales):
        return "a scale is not a finite positive number"
    if not all(low <= zero_point <= high for zero_point in qparams.zero_points):
        return f"a zero point lies outside {qparams.dtype}"
    if qparams.dtype in ("int16", "int32") and any(qparams.zero_points):
        return f"{qparams.dtype} is symmetric, its zero point must be 0"
    if not low <= qparams.qmin < qparams.qmax <= high:
        return f"qmin and qmax are no range inside {qparams.dtype}"
    return ""


def _moved(node: NodeState, graph: Snapshot) -> Iterator[Fault]:
    """An operator that moves elements has one domain on both sides, list arguments included (#18999)."""
    inside = list(operands(node, graph))
    outside = decided(node.name, graph)
    if not inside or not outside:
        return
    for operand in inside:
        for result in outside:
            if not same_domain(operand.qparams, result):
                yield Fault(
                    "domain changed by data movement",
                    node.name,
                    node.target,
                    f"{node.name} only moves elements: operand {operand.argument}.{operand.place} ({operand.source}) "
                    f"is {operand.qparams}, its result {result}",
                )
                return


def metadata_faults(trace: PassTrace) -> Iterator[Fault]:
    """Decisions that a pass lost or altered; each start node at the first pass where it shows."""
    pending = [node for node in trace.start.nodes.values() if _checked(node)]
    for snapshot in trace.changes[1:]:
        by_origin: dict[str, list[NodeState]] = {}
        for state in snapshot.nodes.values():
            if state.origin is not None:
                by_origin.setdefault(state.origin, []).append(state)
        for start in tuple(pending):
            states = [state for state in by_origin.get(start.name, ()) if state.target == start.target]
            fault = next((item for state in states for item in _altered(start, state, trace.start, snapshot)), None)
            if fault is not None:
                yield fault
                pending.remove(start)


def _checked(node: NodeState) -> bool:
    return node.op == "call_function" and not is_quantize(node) and not is_dequantize(node)


def _altered(start: NodeState, state: NodeState, graph: Snapshot, snapshot: Snapshot) -> Iterator[Fault]:
    if not state.input_qparams and not state.output_qparams:
        return
    inside = list(operands(start, graph))
    by_argument: dict[int, set[Qparams]] = {}
    for operand in inside:
        by_argument.setdefault(operand.argument, set()).add(operand.qparams)
    arguments = {position for position, value in enumerate(start.args) if position in by_argument}
    for position, held in state.input_qparams.items():
        wanted = by_argument.get(position)
        if position not in arguments and inside:
            yield _fault("input qparams of another argument", start, snapshot, _keys(state, sorted(arguments)))
        elif wanted and all(item.dtype == held.dtype for item in wanted) and not _among(held, wanted):
            chosen = " or ".join(map(str, sorted(wanted, key=str)))
            yield _fault(
                "input qparams altered", start, snapshot, f"argument {position} is {held}, PT2E chose {chosen}"
            )
    outside = decided(start.name, graph)
    for held in state.output_qparams.values():
        if outside and all(item.dtype == held.dtype for item in outside) and not _among(held, set(outside)):
            chosen = " or ".join(map(str, outside))
            yield _fault("output qparams altered", start, snapshot, f"its result is {held}, PT2E chose {chosen}")


def _keys(state: NodeState, arguments: list[int]) -> str:
    return f"input qparams are keyed {sorted(state.input_qparams)}, its dequantized arguments are {arguments}"


def _fault(kind: str, start: NodeState, snapshot: Snapshot, message: str) -> Fault:
    return Fault(kind, start.name, start.target, f"after {snapshot.name} {start.name}: {message}", snapshot.name)


def _among(held: Qparams, wanted: set[Qparams]) -> bool:
    return any(same_domain(held, item) or _close(held, item) or _part(held, item) for item in wanted)


def _part(held: Qparams, wanted: Qparams) -> bool:
    """A grouped convolution becomes several: each takes the parameters of its share of the channels."""
    count = len(held.scales)
    places = range(0, len(wanted.scales) - count + 1, count) if count < len(wanted.scales) else range(0)
    return any(
        _close(
            held, replace(wanted, scale=wanted.scales[at : at + count], zero_point=wanted.zero_points[at : at + count])
        )
        for at in places
    )


def _close(held: Qparams, wanted: Qparams) -> bool:
    """Per-channel scales are kept as float32 tensors in one place and as lists in another."""
    return (
        held.dtype == wanted.dtype
        and len(held.scales) == len(wanted.scales)
        and set(held.zero_points) == set(wanted.zero_points)
        and all(math.isclose(a, b, rel_tol=2.0**-22) for a, b in zip(held.scales, wanted.scales, strict=True))
    )


def unfinished_faults(trace: PassTrace) -> Iterator[Fault]:
    """A kernel without the qparams of its result when a pass raised (seed 001).

    Only asked of a trace that did not end: some releases let RewriteConvPass take them from the
    clamp behind the convolution, so the lack alone is no fault. The pass to blame is the first
    after which the node has input qparams and no output qparams.
    """
    for name, node in trace.last.nodes.items():
        start = trace.start.nodes.get(node.origin or "")
        if start is None or base(start) not in KERNELS or node.target != start.target:
            continue
        if not node.input_qparams or node.output_qparams or not decided(start.name, trace.start):
            continue
        first = next(item for item in trace.changes if _lacks(item, start))
        holder = next((user for user in trace.last.users.get(name, ()) if user.output_qparams), None)
        where = f"; {holder.name} holds them: {next(iter(holder.output_qparams.values()))}" if holder else ""
        yield _fault(
            "no output qparams",
            start,
            first,
            f"{start.target} has input qparams and no output qparams, which its RESCALE needs{where}; "
            f"{trace.passes[len(trace.snapshots)]} raised",
        )


def _lacks(snapshot: Snapshot, start: NodeState) -> bool:
    return any(
        state.origin == start.name and state.target == start.target and state.input_qparams and not state.output_qparams
        for state in snapshot.nodes.values()
    )
