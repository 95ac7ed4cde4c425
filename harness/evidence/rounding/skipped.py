"""Where upstream, by design, leaves out a requantization that the quantized graph has.

Three documented liberties of the Arm passes. In each the value between two operators may keep
what it was before rounding (and, in the last two, before saturating, rounded or not), which is closer to the
float model and no defect; so the envelope holds both.

* ``between_clamps``: adjacent clamps are merged (FuseConsecutiveClampsPass, #21013).
* ``same_int32_unit``: two operators that compute in int32 with one unit pass the int32 value on;
  the RESCALE pair between them has the composed scale 1 and is dropped (FuseConsecutiveRescalesPass).
* ``wide_convolution``: an int16 convolution feeds an int32 operator, directly or through one
  permute, from its accumulator (RewriteConvPass, #21910, first in 1.5.1).

Everything here looks at the graph only: a dequantize node, the quantize node before it, and what
stands on either side.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from harness.case.traits import DEQUANTIZE, QUANTIZE
from harness.evidence.observation import Domain
from harness.evidence.rounding.rules import base_name

CLAMPS = {f"aten.{name}{suffix}" for name in ("relu", "relu6", "hardtanh", "clamp") for suffix in ("", "_")}
CLAMPS |= {"aten.clamp_min", "aten.clamp_max"}
WRITE = "aten.copy_"
_ADDING = {"aten.add", "aten.add_", "aten.sub", "aten.sub_"}
_SMALLEST = {"aten.abs", "aten.minimum", "aten.maximum", "aten.eq", "aten.ge", "aten.gt", "aten.le", "aten.lt"}
_OWN = {"aten.mul", "aten.mul_", "aten.sum"}
INT32_OPERATORS = _ADDING | _SMALLEST | _OWN
CONVOLUTIONS = {f"aten.{name}" for name in ("conv1d", "conv2d", "conv3d", "conv_transpose2d", "linear")}
SCALE_TOLERANCE = 1.0e-6
"""How close to 1 a composed scale must be for upstream to drop the pair."""


def name_of(node: object) -> str:
    """Base name of a call node's operator; empty for anything else."""
    return base_name(node.target) if isinstance(node, torch.fx.Node) and node.op == "call_function" else ""


def literal_domain(node: torch.fx.Node) -> Domain | None:
    """Domain of a (de)quantize node whose parameters are literals, not tensors."""
    scale, zero_point, qmin, qmax = node.args[1:5]
    if isinstance(scale, float) and all(isinstance(code, int) for code in (zero_point, qmin, qmax)):
        return Domain(scale, zero_point, qmin, qmax)
    return None


def source_of(dequantize: torch.fx.Node) -> torch.fx.Node | None:
    """What the quantize node before a dequantize node reads; what is written into state, in the state's place."""
    quantize = dequantize.args[0]
    if name_of(quantize) != QUANTIZE:
        return None
    source = quantize.args[0]
    if name_of(source) == WRITE and name_of(source.args[1]) == DEQUANTIZE and _same_domain(source.args[1], quantize):
        return source_of(source.args[1])
    return source if isinstance(source, torch.fx.Node) else None


def _readers(dequantize: torch.fx.Node) -> Iterator[tuple[torch.fx.Node, torch.fx.Node]]:
    """What reads a value, also from the state that it is written into, with the dequantize node that it reads."""
    for user in dequantize.users:
        if name_of(user) != WRITE or user.args[1] is not dequantize:
            yield user, dequantize
            continue
        for quantize in user.users:
            if name_of(quantize) == QUANTIZE and _same_domain(dequantize, quantize):
                for other in quantize.users:
                    yield from _readers(other)


def _same_domain(one: torch.fx.Node, other: torch.fx.Node) -> bool:
    return bool(one.args[1:3] == other.args[1:3])


def passed_on(dequantize: torch.fx.Node) -> bool:
    """May what reads a value compute with another one than was quantized?"""
    return saturation_skipped(dequantize) or between_clamps(dequantize)


def between_clamps(dequantize: torch.fx.Node) -> bool:
    """Is the value produced by a clamp and read by a clamp?"""
    return name_of(source_of(dequantize)) in CLAMPS and any(name_of(user) in CLAMPS for user in dequantize.users)


def saturation_skipped(dequantize: torch.fx.Node) -> bool:
    """May the value be passed on as int32, neither rounded nor saturated?"""
    source = source_of(dequantize)
    if source is None:
        return False
    return _same_int32_unit(source, dequantize) or _wide_convolution(source, dequantize)


def _same_int32_unit(source: torch.fx.Node, dequantize: torch.fx.Node) -> bool:
    unit = _int32_unit(source, result=True)
    if unit is None:
        return False
    others = (_int32_unit(user, result=False, operand=operand) for user, operand in _readers(dequantize))
    return any(other is not None and abs(unit / other - 1.0) < SCALE_TOLERANCE for other in others)


def _int32_unit(node: torch.fx.Node, *, result: bool, operand: torch.fx.Node | None = None) -> float | None:
    """Unit of the int32 form of an operator's result, or of one of its operands."""
    name = name_of(node)
    scales = [_scale(item) for item in node.all_input_nodes if name_of(item) == DEQUANTIZE]
    known = [scale for scale in scales if scale is not None]
    if name not in INT32_OPERATORS or not known or len(known) < len(scales):
        return None
    if name in _ADDING:
        wide = any(_is_int16(item) for item in node.all_input_nodes)
        return 2.0 * max(known) / (1 << (12 if wide else 20))
    if name in _SMALLEST:
        return min(known)
    if not result:
        return _scale(operand)
    return known[0] if name == "aten.sum" else known[0] * known[-1]


def _scale(dequantize: torch.fx.Node | None) -> float | None:
    scale = dequantize.args[1] if dequantize is not None else None
    return scale if isinstance(scale, float) else None


def _is_int16(node: torch.fx.Node) -> bool:
    return name_of(node) == DEQUANTIZE and node.args[5] == torch.int16


def _wide_convolution(source: torch.fx.Node, dequantize: torch.fx.Node) -> bool:
    if not _is_int16(dequantize):
        return False
    if name_of(source) == "aten.permute":  # the convolution stands one permute further up
        before = source.args[0]
        return (
            name_of(before) == DEQUANTIZE
            and name_of(source_of(before)) in CONVOLUTIONS
            and any(name_of(user) in INT32_OPERATORS for user in dequantize.users)
        )
    if name_of(source) not in CONVOLUTIONS:
        return False
    return any(name_of(user) in INT32_OPERATORS or _permute_to_int32(user) for user in dequantize.users)


def _permute_to_int32(node: torch.fx.Node) -> bool:
    if name_of(node) != "aten.permute":
        return False
    after = [user for quantize in node.users for user in quantize.users]
    return any(name_of(user) in INT32_OPERATORS for dequantize in after for user in dequantize.users)
