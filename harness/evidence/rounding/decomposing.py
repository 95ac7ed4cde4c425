"""Operators without a rule, as the operators with rules that PyTorch itself makes of them.

``einsum``, ``lerp`` or attention of a float model err by what their products and sums err by, and no two backends take
these in the same order. The value that PyTorch computes is therefore one of many. ``decomposed`` gives the graph that
export would put in the operator's place; the walk goes on inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from harness.case.traits import ATEN_MOVING
from harness.evidence.rounding.call import base_name
from harness.evidence.rounding.interval import Interval


@cache
def _table() -> dict[Any, Any]:
    """Export's own, and those of two operators that export keeps."""
    aten = torch.ops.aten
    return {**core_aten_decompositions(), **get_decompositions([aten.linalg_vector_norm, aten._log_softmax])}


def computes_floats(node: torch.fx.Node) -> bool:
    """Has the operator a float result that is more than operands moved?"""
    value = node.meta.get("val")
    results = value if isinstance(value, (tuple, list)) else [value]
    floating = any(isinstance(item, torch.Tensor) and item.is_floating_point() for item in results)
    return floating and base_name(node.target) not in ATEN_MOVING


def decomposed(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.fx.GraphModule | None:
    """A graph that takes the call's intervals, in order, and computes what the operator does; None if there is none."""
    leaves, form = tree_flatten((tuple(args), kwargs), is_leaf=lambda item: isinstance(item, Interval))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Interval)]

    def call(*tensors: torch.Tensor) -> Any:
        given = dict(zip(places, tensors, strict=True))
        positional, named = tree_unflatten([given.get(place, leaf) for place, leaf in enumerate(leaves)], form)
        return target(*positional, **named)

    try:
        graph = make_fx(call, decomposition_table=_table())(*(leaves[place].low for place in places))
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):  # what torch raises for operands
        return None
    return None if any(node.target is target for node in graph.graph.nodes) else graph
