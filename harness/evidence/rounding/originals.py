"""The float originals of a quantized graph's constants, noted before they are lost.

``convert_pt2e`` folds a constant and its quantize node into integer codes. A code says its original
up to half a step, an end code nothing at all, since an observer may have clipped. The prepared
graph still has the originals: what a constant is there, after every transform for annotation, at
the same argument of the same operator. Both graphs name their operators alike.

An original is kept in the metadata of the dequantize node that reads the codes, so that it goes
where the graph goes. Only arguments without any input behind them have one.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch

from harness.case.traits import DEQUANTIZE, DEQUANTIZE_CHANNELS
from harness.evidence.rounding.call import base_name
from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval

_ORIGINAL = "armdiff_original"
ELEMENTS = 1 << 16
"""Elements of a constant that are looked at together: float64 ends of a network's weights are many times the model."""
_Places = Mapping[tuple[str, int], torch.Tensor]
"""A constant by the name of the node that reads it and its position among that node's arguments."""


def constants_of(prepared: torch.fx.GraphModule) -> _Places:
    """Every constant argument of a prepared graph's operators (copies: lowering may change a user's weights)."""
    known: dict[torch.fx.Node, Any] = {}
    found: dict[tuple[str, int], torch.Tensor] = {}
    with torch.no_grad():
        for node in prepared.graph.nodes:
            _evaluate(prepared, node, known)
            if node.op == "call_function":
                for position, source in enumerate(_sources(node)):
                    if isinstance(known.get(source), torch.Tensor) and known[source].is_floating_point():
                        found[node.name, position] = known[source].detach().clone()
    return found


def note_originals(converted: torch.fx.GraphModule, constants: _Places) -> None:
    """Attach its float original to every dequantize node of a converted graph that reads codes of a constant."""
    for node in converted.graph.nodes:
        for position, source in enumerate(_sources(node)):
            original = constants.get((node.name, position))
            if original is not None and _reads_codes(source):
                source.meta[_ORIGINAL] = original


def known_original(dequantize: torch.fx.Node) -> torch.Tensor | None:
    """The float original that a dequantize node stands for, if it was noted."""
    original: torch.Tensor | None = dequantize.meta.get(_ORIGINAL)
    return original


def stood_for(
    codes: torch.Tensor,
    scale: torch.Tensor,
    zero_point: Any,
    original: torch.Tensor | None,
    *,
    ends: tuple[int, int],
    clips: bool,
) -> Interval:
    """What codes of a constant stand for: the original where they can, or half a step around them.

    :param scale: and ``zero_point``, of the codes' shape or one that broadcasts to it.
    :param original: of the codes' shape.
    :param ends: the lowest and the highest code.
    :param clips: may the observer have given the ends to values that lie beyond?
    """
    flat = torch.atleast_1d(codes)
    operands = [flat, scale, torch.as_tensor(zero_point), *([] if original is None else [original])]
    operands = [operand.expand_as(flat) for operand in operands]
    low, high = torch.empty_like(flat), torch.empty_like(flat)
    step = max(1, ELEMENTS * len(flat) // max(1, flat.numel()))
    for start in range(0, len(flat), step):
        rows = slice(start, start + step)
        low[rows], high[rows] = _ends_of(*(operand[rows] for operand in operands), ends=ends, clips=clips)
    return Interval(low.reshape(codes.shape), high.reshape(codes.shape))


def _ends_of(
    codes: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    original: torch.Tensor | None = None,
    *,
    ends: tuple[int, int],
    clips: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    center = (codes - zero_point) * scale
    low, high = center - 0.5 * scale, center + 0.5 * scale
    # an end code of an observer that clips stands for all that lies beyond
    least, most = torch.where(codes <= ends[0], -torch.inf, low), torch.where(codes >= ends[1], torch.inf, high)
    if original is None:
        return (least, most) if clips else (low, high)
    original = original.to(torch.float64)
    slack = original.abs() * FLOAT32_EPSILON * 4 + scale * 1e-3
    stands = (original >= least - slack) & (original <= most + slack)
    return torch.where(stands, original, low), torch.where(stands, original, high)


def _evaluate(prepared: torch.fx.GraphModule, node: torch.fx.Node, known: dict[torch.fx.Node, Any]) -> None:
    """Note a node's value if no input of the graph has a part in it."""
    if node.op == "get_attr":
        value: Any = prepared
        for part in str(node.target).split("."):
            value = getattr(value, part)
        known[node] = value
    elif node.op == "call_module" and node.args and node.args[0] in known:
        known[node] = known[node.args[0]]  # an observer
    elif node.op == "call_function" and all(source in known for source in node.all_input_nodes):
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
        target: Any = node.target
        if not _changes_operand(target):
            known[node] = target(*args, **kwargs)


def _changes_operand(target: Any) -> bool:
    """Does an operator write into an operand? A constant that it may write to is none."""
    schema = getattr(target, "_schema", None)
    return target is not operator.getitem if schema is None else bool(schema.is_mutable)


def _sources(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes among a node's arguments in order, each as often as it occurs."""
    found: list[torch.fx.Node] = []
    torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def _reads_codes(node: torch.fx.Node) -> bool:
    if node.op != "call_function" or base_name(node.target) not in (DEQUANTIZE, DEQUANTIZE_CHANNELS):
        return False
    source = node.args[0]
    return isinstance(source, torch.fx.Node) and source.op == "get_attr"
