"""Do clamps, and the qmin and qmax of quantize nodes, still bound the codes?

A clamp that a fusion moved into a quantize node's qmin must exist in the flatbuffer: as CLAMP, or
as the bound at which a RESCALE saturates. The dimensional analysis carries the range of codes that
each tensor can hold; what stands for the clamped value must stay inside the clamp's codes.

A range that is left open between a convolution and the TABLEs that read it is a kind of its own:
there is no place for a CLAMP, since Vela 5.1.0 fuses it and drops the TABLE.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.artifacts.tosa import TosaBlock, TosaOperator
from harness.case.traits import TOSA_ARRANGING
from harness.compat.snapshots import NodeState, Qparams, base
from harness.evidence.inspection.analysis import Analysis
from harness.evidence.inspection.decisions import (
    CLAMPS,
    MOVERS,
    RANGES,
    clamp_bounds,
    decided,
    is_dequantize,
    is_quantize,
)
from harness.evidence.inspection.origins import behind_moves
from harness.evidence.inspection.units import Problem

CLAMP_LOST, NOT_ENFORCED, BEFORE_TABLE = "clamp lost", "qmin not enforced", "qmin not enforced before table"

_CONVOLUTIONS = frozenset({"CONV2D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
"""What the correction ``qmin-clamped`` looks through and at, where it leaves a range open (CONV3D is not among it)."""


def range_problems(analysis: Analysis) -> Iterator[Problem]:
    """Tensors that can hold codes which the start graph rules out."""
    for node in analysis.trace.start.nodes.values():
        if node.op != "call_function" or is_quantize(node) or is_dequantize(node):
            continue
        choices = decided(node.name, analysis.trace.start)
        if len(choices) != 1 or len(choices[0].scales) != 1:
            continue
        bounds = clamp_bounds(node)
        if bounds is not None:
            yield from _clamp_problems(analysis, node, choices[0], bounds)
        elif base(node) not in MOVERS:
            yield from _bound_problems(analysis, node, choices[0])


def _clamp_problems(
    analysis: Analysis, node: NodeState, qparams: Qparams, bounds: tuple[float, float]
) -> Iterator[Problem]:
    low, high = (code_of(bound, qparams) for bound in bounds)
    for tensor, operator in _standing_for(analysis, node, qparams):
        meaning = analysis.meanings[tensor]
        if meaning.low < low or meaning.high > high:
            only_qmin = low == qparams.qmin and meaning.low == low - 1 and meaning.high <= high
            yield Problem(
                NOT_ENFORCED if only_qmin else CLAMP_LOST,
                operator,
                tensor,
                f"{node.name} ({node.target}) keeps codes in [{low}, {high}] ({qparams}); {tensor} can hold "
                f"[{meaning.low:g}, {meaning.high:g}] and no CLAMP or saturation bounds it",
                {"node": node.name, "low": low, "high": high, "seen_low": meaning.low, "seen_high": meaning.high},
            )
            return


def _bound_problems(analysis: Analysis, node: NodeState, qparams: Qparams) -> Iterator[Problem]:
    ends = RANGES.get(qparams.dtype)
    if ends is None or (qparams.qmin, qparams.qmax) == ends or _only_clamped(analysis, node):
        return
    for tensor, operator in _standing_for(analysis, node, qparams):
        meaning = analysis.meanings[tensor]
        if meaning.low < qparams.qmin or meaning.high > qparams.qmax:
            between = between_convolution_and_table(analysis.block, tensor)
            yield Problem(
                BEFORE_TABLE if between else NOT_ENFORCED,
                operator,
                tensor,
                f"PT2E bounds {node.name} to codes [{qparams.qmin}, {qparams.qmax}]; {tensor} can hold "
                f"[{meaning.low:g}, {meaning.high:g}]",
                {"node": node.name, "low": qparams.qmin, "seen_low": meaning.low},
            )
            return


def between_convolution_and_table(block: TosaBlock, tensor: str) -> bool:
    """Is a tensor the rescaled result of a convolution that only TABLEs read, moved on the way or not?"""
    return _of_convolution(block, tensor) and _of_tables(block, tensor)


def _of_convolution(block: TosaBlock, tensor: str) -> bool:
    maker = behind_moves(block.producers.get(tensor), block, TOSA_ARRANGING)
    if maker is None or maker.op != "RESCALE":
        return False
    source = block.producers.get(maker.inputs[0])
    return source is not None and source.op in _CONVOLUTIONS


def _of_tables(block: TosaBlock, tensor: str) -> bool:
    readers = block.readers(tensor)
    return (
        bool(readers)
        and tensor not in block.outputs
        and all(
            reader.op == "TABLE" or (reader.op in TOSA_ARRANGING and _of_tables(block, reader.outputs[0]))
            for reader in readers
        )
    )


def _only_clamped(analysis: Analysis, node: NodeState) -> bool:
    """Is an activation fused into this node? Its own bounds are judged there."""
    users = analysis.trace.start.users.get(node.name, ())
    return any(base(user) in CLAMPS for user in users)


def _standing_for(analysis: Analysis, node: NodeState, qparams: Qparams) -> Iterator[tuple[str, TosaOperator]]:
    """Tensors in the decided type that leave the node's group, or its producer's if it was fused."""
    start = analysis.trace.start
    origin = node.name
    if not analysis.origins.group(origin):
        source = start.nodes.get(node.refs[0]) if node.refs else None
        if source is None or is_dequantize(source) or source.op != "call_function":
            return
        if len(start.users.get(source.name, ())) != 1:
            return
        origin = source.name
    readers = start.users.get(node.name, ())
    if any(base(user) in CLAMPS for reader in readers for user in start.users.get(reader.name, ())):
        return  # adjacent clamps are merged by design (#21013)
    block, producers = analysis.block, analysis.block.producers
    for tensor in analysis.origins.results(origin):
        meaning = analysis.meanings.get(tensor)
        if meaning is None or block.tensors[tensor].dtype.lower() != qparams.dtype:
            continue
        if all(reader.op == "CLAMP" for reader in block.readers(tensor)) and tensor not in block.outputs:
            continue
        yield tensor, producers[tensor]


def code_of(bound: float, qparams: Qparams) -> int:
    """The code of a real bound, kept inside qmin and qmax."""
    if math.isinf(bound):
        return qparams.qmin if bound < 0 else qparams.qmax
    code = round(bound / qparams.scales[0]) + qparams.zero_points[0]
    return max(qparams.qmin, min(qparams.qmax, code))
