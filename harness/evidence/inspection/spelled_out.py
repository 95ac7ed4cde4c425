"""Numbers that passes spell out as constants of the TOSA graph, though no node of the quantized graph is that constant.

Each function knows one way in which a pass makes such a number, by the node that the pass was rewriting.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import prod

import numpy as np

from harness.artifacts.tosa import TosaOperator, TosaTensor
from harness.case.arrays import Array
from harness.compat.snapshots import NodeState, base
from harness.evidence.inspection.analysis import Analysis
from harness.evidence.inspection.decisions import is_dequantize, is_quantize, qparams_of
from harness.evidence.inspection.folding import Folded
from harness.evidence.inspection.layout import same_elements

AVERAGING = ("native_layer_norm", "native_group_norm", "mean", "var")
INDEXING = ("index", "index_put", "index_copy", "index_select")


def made_for(analysis: Analysis, operator: TosaOperator) -> NodeState | None:
    """The node of the quantized graph that an operator was made for."""
    return analysis.trace.start.nodes.get(analysis.origins.of[operator.index] or "")


def is_filler(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, origin: str) -> bool:
    """Is it an operand of the node's own computation, not its value?

    A slice with a step becomes CONCAT with such a constant, RESHAPE and SLICE, where the step does
    not divide the length (DecomposeStridedSliceCopyPass); the SLICE drops it.
    """
    start = analysis.trace.start.nodes[origin]
    inside = analysis.origins.of[operator.index] == origin and operator.op == "CONCAT"
    return inside and base(start) in ("slice_copy", "slice") and not tensor.name.startswith(origin)


def is_share(tensor: TosaTensor, start: NodeState, analysis: Analysis) -> bool:
    """Is it what a sum is multiplied by to become a mean: one over the number of elements, or less the correction?"""
    stored = tensor.values()
    if base(start) not in AVERAGING or stored.dtype.kind != "f" or not start.refs or not stored.size:
        return False
    count = np.divide(1.0, stored.reshape(-1)[0], dtype=np.float64)
    numbers = _products(start, analysis).astype(np.float64)
    if base(start) == "native_group_norm":
        _, channels, each, groups = start.args[3:7]
        numbers = np.asarray([channels * each / groups])
    elif base(start) == "var":
        numbers = np.concatenate([numbers, numbers - float(start.kwargs.get("correction") or 0)])
    near = np.abs(numbers / count - 1.0) <= 2.0**-22
    return bool((stored == stored.reshape(-1)[0]).all() and near.any())


def is_stride(tensor: TosaTensor, start: NodeState, analysis: Analysis) -> bool:
    """Is it what an index is multiplied by to become a place among all elements: a product of the operand's sizes?

    The passes that rewrite ``index`` and ``index_put`` flatten what is indexed, in an order of their own.
    """
    stored = tensor.values()
    if base(start) not in INDEXING or stored.dtype.kind not in "iu" or not start.refs:
        return False
    return stored.size > 0 and bool((stored == stored.flat[0]).all()) and stored.flat[0] in _products(start, analysis)


def _products(start: NodeState, analysis: Analysis) -> Array:
    """All products of the sizes of a node's first operand."""
    sizes = analysis.trace.start.nodes[start.refs[0]].shape
    return np.asarray([prod(chosen) for count in range(len(sizes) + 1) for chosen in combinations(sizes, count)])


def is_zero_of_sign(tensor: TosaTensor, start: NodeState) -> bool:
    """Is it the zero that tells signs: of integer quotients that are rounded down, of floats that are cast to integers?

    ``INTDIV`` rounds to zero (DecomposeDivTensorModePass), ``CAST`` to the nearest (DecorateFp32toInt32CastingPass).
    """
    stored = tensor.values()
    if base(start) == "_to_dim_order_copy" and start.dtype.startswith("int"):
        return stored.dtype.kind == "f" and not stored.any()
    return base(start) == "div" and stored.dtype.kind in "iu" and not stored.any()


def is_window(tensor: TosaTensor, start: NodeState) -> bool:
    """Is it the places of an unfold's windows, or a part of their sum (DecomposeUnfoldToGatherPass)?"""
    stored = tensor.values()
    if base(start) != "unfold_copy" or stored.dtype.kind not in "iu" or len(start.args) != 4:
        return False
    dim, size, step = (int(item) for item in start.args[1:])
    first = np.arange(start.shape[dim % (len(start.shape) - 1)]) * step
    places = (first[:, None] + np.arange(size)).reshape(-1)
    parts = (np.arange(len(first)), first, np.arange(size), np.asarray([step]))
    whole = (
        stored.size > 0 and stored.size % places.size == 0 and bool((stored.reshape(-1, places.size) == places).all())
    )
    return whole or any(np.array_equal(stored.reshape(-1), part) for part in parts)


def of_window(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator) -> bool:
    """Is it the same, repeated and named after no node?"""
    start = made_for(analysis, operator)
    return start is not None and is_window(tensor, start)


def of_quantization(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator) -> bool:
    """Is it a number of a quantize or dequantize node that a pass spelled out in float arithmetic?"""
    start = made_for(analysis, operator)
    if start is None or not (is_quantize(start) or is_dequantize(start)):
        return False
    qparams = qparams_of(start, analysis.trace.start)
    if qparams is None or len(qparams.scales) != 1:
        return False
    scale, zero_point = qparams.scales[0], qparams.zero_points[0]
    numbers = np.asarray([scale, 1.0 / scale, zero_point, qparams.qmin, qparams.qmax, 0.5, 0.0])
    stored = tensor.values().astype(np.float64).reshape(-1, 1)
    return bool(np.all(np.any(np.abs(stored - numbers) <= np.abs(numbers) * 2.0**-22, axis=1)))


def is_operand(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, values: Mapping[str, Folded]) -> bool:
    """Is it a constant or a number that the operator's own node reads, as it is, in any shape?

    The number of ``bitwise_and.Scalar``, the ``alpha`` of a float addition, or the codes of a scalar that a pass gave
    the rank of the node's other operands.
    """
    start = made_for(analysis, operator)
    if start is None:
        return False
    stored = tensor.values()
    kinds = "f" if stored.dtype.kind == "f" else "iub"
    nodes = analysis.trace.start.nodes
    codes = [nodes[name].refs[0] for name in start.refs if is_dequantize(nodes[name])]
    read = [values[name] for name in (*start.refs, *codes) if name in values]
    wanted = [item for item in read if item.low.dtype.kind in kinds]
    if any(same_elements(item.low, item.high, stored) for item in wanted):
        return True
    numbers = [item for item in (*start.args, *start.kwargs.values()) if isinstance(item, (int, float))]
    same_kind = kinds == "f" or not start.dtype.startswith("float")  # a comparison of floats gives truth values
    held = [stored.dtype.type(number) if kinds == "f" else number for number in numbers]
    return same_kind and any(bool(np.all(stored == number)) for number in held)
