"""One delegate, analysed: its flatbuffer, origins, decisions and the meaning of every tensor.

``analyse`` puts the start graph's decisions into the dimensional analysis of ``units``. A decision
applies to the tensor that leaves an operator's group in the decided type; what happens inside a
group is inferred. Inference is only trusted for groups whose start operator is known to be the
plain arithmetic that its TOSA operators show (``HOMOGENEOUS``): a mean that is a sum with a
RESCALE by 1/n, for example, is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator, TosaTensor, decode_tosa
from harness.case.arrays import Array
from harness.case.traits import TOSA_MOVING
from harness.compat.snapshots import PassTrace, Qparams, base
from harness.evidence.inspection.decisions import CLAMPS, MOVERS, RANGES, decided, is_quantize, operands
from harness.evidence.inspection.origins import Origins, behind_moves, constant_origin, origins_of
from harness.evidence.inspection.rules import RULES
from harness.evidence.inspection.units import Meaning, Problem, Walk
from harness.evidence.observation import DelegateRecord

MERGED = "_common"
"""How FuseEqualPlaceholdersPass ends the name of a constant that stands for several."""
CONVOLUTIONS = ("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D")
HOMOGENEOUS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("convolution", "conv1d", "conv2d", "conv3d", "linear", "addmm"), frozenset(CONVOLUTIONS)),
    **dict.fromkeys(("mm", "bmm", "matmul"), frozenset({"MATMUL"})),
    "add": frozenset({"ADD"}),
    "sub": frozenset({"SUB"}),
    "mul": frozenset({"MUL"}),
    "abs": frozenset({"ABS"}),
    "neg": frozenset({"NEGATE"}),
    "minimum": frozenset({"MINIMUM"}),
    "maximum": frozenset({"MAXIMUM"}),
    "sum": frozenset({"REDUCE_SUM"}),
    "amax": frozenset({"REDUCE_MAX"}),
    "amin": frozenset({"REDUCE_MIN"}),
    "where": frozenset({"SELECT"}),
    "avg_pool2d": frozenset({"AVG_POOL2D"}),
    "max_pool2d": frozenset({"MAX_POOL2D"}),
    **dict.fromkeys(CLAMPS, frozenset({"CLAMP"})),
    **dict.fromkeys(MOVERS, frozenset({"MAX_POOL2D"})),
}
"""Start operator -> TOSA operators, besides data movement and KEEPING_UNITS, that compute it directly."""
KEEPING_UNITS = ("RESCALE", "CLAMP")
"""Operators that any group may hold: the walk knows what a RESCALE does to a unit, and a CLAMP does nothing to it."""


@dataclass(frozen=True)
class Analysis:
    """What is known of one delegate.

    :param problems: where the flatbuffer contradicts itself or the decisions.
    """

    delegate: DelegateRecord
    trace: PassTrace
    block: TosaBlock
    origins: Origins
    meanings: Mapping[str, Meaning]
    problems: tuple[Problem, ...]


def analyse(delegate: DelegateRecord) -> Analysis | None:
    """Analyse a delegate; None without a flatbuffer, without a trace, or with control flow.

    :raises BadInput: the flatbuffer is damaged.
    """
    if delegate.tosa is None or delegate.trace is None:
        return None
    graph = decode_tosa(delegate.tosa)
    if len(graph.blocks) != 1:
        return None
    trace, block = delegate.trace, graph.main
    origins = origins_of(trace, block)
    walk = Walk(
        block,
        known_meanings(trace, block),
        lambda operator: _decided(operator, origins, trace, block),
        lambda operator: weight_scales(operator, origins, trace, block),
        lambda operator: is_homogeneous(origins.of[operator.index], origins, trace),
        RULES,
    )
    meanings = walk.run()
    walk.problems += _output_problems(trace, block, meanings)
    return Analysis(delegate, trace, block, origins, meanings, tuple(walk.problems))


def _output_problems(trace: PassTrace, block: TosaBlock, meanings: Mapping[str, Meaning]) -> Iterator[Problem]:
    """Outputs of the graph that do not stand for what the start graph's outputs are quantized to."""
    refs = trace.start.nodes["output"].refs if "output" in trace.start.nodes else ()
    if len(refs) != len(block.outputs):
        return
    producers = block.producers
    for ref, name in zip(refs, block.outputs, strict=True):
        choices, meaning = decided(ref, trace.start), meanings.get(name, Meaning())
        operator = producers.get(name)
        if not is_quantize(trace.start.nodes[ref]) or len(choices) != 1 or meaning.scale is None or operator is None:
            continue
        wanted = meaning_of(choices[0])
        assert wanted.scale is not None
        ratio = float(np.max(meaning.scale / wanted.scale))
        if abs(ratio - 1.0) > meaning.tolerance or meaning.zero_point not in (None, wanted.zero_point):
            yield Problem(
                "output domain differs",
                operator,
                name,
                f"output {name} has scale {float(np.max(meaning.scale)):.9g} and zero point {meaning.zero_point}, "
                f"PT2E chose {choices[0]}",
                {"ratio": ratio},
            )


def meaning_of(qparams: Qparams) -> Meaning:
    """A per-tensor decision as a meaning."""
    low, high = RANGES.get(qparams.dtype, (-np.inf, np.inf))
    unsigned = qparams.dtype == "uint8"
    return Meaning(np.asarray(qparams.scales[0]), qparams.zero_points[0], low, high, bytes_unsigned=unsigned)


def known_meanings(trace: PassTrace, block: TosaBlock) -> Mapping[str, Meaning]:
    """Graph inputs and folded constants stand for what their start node was quantized to."""
    found: dict[str, Meaning] = {}
    for name, tensor in block.tensors.items():
        if tensor.data is None and name not in block.inputs:
            continue
        if name.endswith(MERGED):  # equal codes of several constants, whose scales may differ
            found[name] = _holding(Meaning(), tensor)
            continue
        origin = name if name in block.inputs else constant_origin(name, trace)
        choices = decided(origin, trace.start) if origin is not None else ()
        if len(choices) != 1 or len(choices[0].scales) != 1 or not _same_type(choices[0].dtype, tensor.dtype):
            continue
        meaning = meaning_of(choices[0])
        if tensor.data is None:  # quantized by the program in front of the delegate, which keeps qmin and qmax
            meaning = replace(meaning, low=float(choices[0].qmin), high=float(choices[0].qmax))
        elif not meaning.unsigned(tensor.dtype):
            meaning = _holding(meaning, tensor)
        found[name] = meaning
    return found


def _holding(meaning: Meaning, tensor: TosaTensor) -> Meaning:
    """A meaning with the range of what a constant holds."""
    values = tensor.values()
    return replace(meaning, low=float(values.min()), high=float(values.max())) if values.size else meaning


def _same_type(decided_dtype: str, tosa_dtype: str) -> bool:
    """TOSA has no unsigned tensors: uint8 values travel as INT8."""
    return decided_dtype.removeprefix("u") == tosa_dtype.lower()


def _decided(operator: TosaOperator, origins: Origins, trace: PassTrace, block: TosaBlock) -> Meaning | None:
    """PT2E's decision for what an operator writes, if that is the result of its group.

    Operators that only move elements decide nothing: passes carry them across others, into domains
    that are not their own, also the reshape ahead of a GATHER and the transpose that has the mark of the quantize
    node behind a change of memory format. What they hand on is judged at the graph's outputs. Nor do those that hand
    on a constant in which equal codes of several domains were merged (FuseEqualPlaceholdersPass).
    """
    origin = origins.of[operator.index]
    if origin is None or not operator.outputs or operator.outputs[0] not in origins.results(origin):
        return None
    start = trace.start.nodes[origin]
    moves = operator.op in TOSA_MOVING and (is_quantize(start) or origins.moves(origin))
    if base(start) in MOVERS or moves or _moves_merged(operator, block):
        return None
    choices = decided(origin, trace.start)
    if len(choices) != 1 or len(choices[0].scales) != 1:
        return None
    if not _same_type(choices[0].dtype, block.tensors[operator.outputs[0]].dtype):
        return None
    return meaning_of(choices[0])


def _moves_merged(operator: TosaOperator, block: TosaBlock) -> bool:
    """Does an operator hand on a merged constant? Its origin is then one of those merged, not always its own."""
    source = behind_moves(operator, block)
    return source is not None and source.outputs[0].endswith(MERGED)


def is_homogeneous(origin: str | None, origins: Origins, trace: PassTrace) -> bool:
    """May the unit of this group's result be inferred from its operands?"""
    if origin is None:
        return False
    start = trace.start.nodes[origin]
    if start.target.startswith("quantized_decomposed."):
        return True
    allowed = HOMOGENEOUS.get(base(start))
    return allowed is not None and all(
        item.op in allowed or item.op in TOSA_MOVING or item.op in KEEPING_UNITS for item in origins.group(origin)
    )


def weight_scales(operator: TosaOperator, origins: Origins, trace: PassTrace, block: TosaBlock) -> Array | None:
    """Scales of a convolution's weights as PT2E chose them: one, or one an output channel.

    A grouped convolution becomes several in order; each takes its share of the channels.
    """
    origin = origins.of[operator.index]
    if origin is None:
        return None
    start = trace.start.nodes[origin]
    position = 2 if base(start) == "addmm" else 1
    found = [item.qparams for item in operands(start, trace.start) if item.argument == position]
    if len(found) != 1:
        return None
    scales = np.asarray(found[0].scales)
    channels = block.tensors[operator.outputs[0]].shape[-1]
    if scales.size in (1, channels):
        return scales if scales.size > 1 else scales[0]
    parts = [item for item in origins.group(origin) if item.op in CONVOLUTIONS]
    if scales.size != channels * len(parts):
        return None
    first = parts.index(operator) * channels
    return scales[first : first + channels]
