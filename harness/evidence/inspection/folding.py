"""Values of the start graph's constant sub-expressions, as quantized eager computes them.

A node is constant if everything it reads is; ``full_like`` and its kin read only a shape. Float
operators run in torch as the quantized graph would run them; quantize and dequantize nodes are
evaluated here, so that a code near a tie keeps both its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.case.arrays import Array
from harness.compat.snapshots import SPLITS, NodeState, Qparams, Ref, Snapshot, base
from harness.evidence.inspection.decisions import is_dequantize, is_quantize, qparams_of

TIE = 8 * 2.0**-24
"""Relative float32 error of a few operations: how near to a tie a code may go either way."""
_FILLED = ("float32", "bool", "int8", "int16", "int32", "int64")
_LIKE = {"full_like": None, "zeros_like": 0.0, "ones_like": 1.0}
_COPIES = ("_to_dim_order_copy", "_clone_dim_order", "clone", "alias_copy", "lift_fresh_copy", "detach_copy")


_PLACEMENT = ("device", "layout", "pin_memory", "memory_format", "dim_order", "non_blocking")
"""Keyword arguments that say where a value lies, not what it is."""


@dataclass(frozen=True)
class Folded:
    """A constant value: lowest and highest that it may be (equal except for codes near a tie)."""

    low: Array
    high: Array

    @property
    def value(self) -> Array:
        return self.low


def folded(graph: Snapshot) -> Mapping[str, Folded]:
    """Every node of the start graph whose value is constant, by name."""
    found: dict[str, Folded] = {}
    for node in graph.nodes.values():
        value = _value(node, graph, found)
        if value is not None:
            found[node.name] = value
    return found


def quantized(value: Array, qparams: Qparams, axis: int | None = None) -> Folded:
    """Codes of a float value."""
    steps = value.astype(np.float64) / _along(qparams.scales, value.ndim, axis)
    slack = np.where(np.isfinite(steps), np.abs(steps) * TIE, 0.0)
    return codes_within(steps, slack, _along(qparams.zero_points, value.ndim, axis), qparams)


def computed(value: Folded) -> Folded:
    """A float constant that operators compute: passes may take them apart, and round otherwise (``x / 7``)."""
    slack = TIE * np.abs(value.value[np.isfinite(value.value)]).max(initial=0.0)
    return Folded((value.low - slack).astype(value.low.dtype), (value.high + slack).astype(value.high.dtype))


def codes_within(steps: Array, slack: Array, zero_points: Array | int, qparams: Qparams) -> Folded:
    """Codes of values that may be off a little. NaN may become any: no standard says what its cast to an integer is.

    :param steps: the values, in units of the scale.
    :param slack: how far off, in the same unit.
    """
    ends = np.ceil(steps - slack - 0.5), np.floor(steps + slack + 0.5)
    low, high = (
        np.clip(np.nan_to_num(end + zero_points, nan=0.0), qparams.qmin, qparams.qmax).astype(np.int64) for end in ends
    )
    undefined = np.isnan(steps)
    return Folded(np.where(undefined, qparams.qmin, low), np.where(undefined, qparams.qmax, high))


def _along(values: tuple[float, ...], rank: int, axis: int | None) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 1:
        return array.reshape(())
    shape = [1] * rank
    shape[axis or 0] = array.size
    return array.reshape(shape)


def _value(node: NodeState, graph: Snapshot, found: Mapping[str, Folded]) -> Folded | None:
    if node.op == "placeholder":
        return None if node.value is None else Folded(node.value, node.value)
    if node.op != "call_function":
        return None
    if is_quantize(node) or is_dequantize(node):
        return _crossed(node, graph, found)
    name = base(node)
    if name in _LIKE:
        return _filled(node, _LIKE[name])
    place = 0
    if node.target == "getitem" and base(graph.nodes[node.refs[0]]) in SPLITS:
        node, place = graph.nodes[node.refs[0]], node.args[1]
    elif name in SPLITS:
        return None  # several values: its getitems have one each
    if not all(ref in found for ref in node.refs):
        return None
    if any(not np.array_equal(found[ref].low, found[ref].high) for ref in node.refs):
        return None  # a code near a tie upstream of it: nothing exact to say
    if name in _COPIES or (node.target == "getitem" and node.args[1] == 0):
        return _cast(found[node.refs[0]], node.dtype)
    return _evaluated(node, found, place)


def _cast(value: Folded, dtype: str) -> Folded:
    """A copy in the type that it has."""
    if dtype in ("", "bfloat16", str(value.low.dtype)):  # numpy has no bfloat16
        return value
    return Folded(value.low.astype(dtype), value.high.astype(dtype))


def _crossed(node: NodeState, graph: Snapshot, found: Mapping[str, Folded]) -> Folded | None:
    source, qparams = found.get(node.refs[0]), qparams_of(node, graph)
    if source is None or qparams is None:
        return None
    axis = qparams.axis if "per_channel" in node.target else None
    if is_quantize(node):
        low = quantized(source.low, qparams, axis)
        return low if source.high is source.low else Folded(low.low, quantized(source.high, qparams, axis).high)
    scales, zero_points = (_along(part, source.low.ndim, axis) for part in (qparams.scales, qparams.zero_points))
    return Folded(*(((end - zero_points) * scales).astype(np.float32) for end in (source.low, source.high)))


def _filled(node: NodeState, fill: float | None) -> Folded | None:
    value = node.args[1] if fill is None else fill
    if not isinstance(value, (int, float)) or -1 in node.shape or node.dtype not in _FILLED:
        return None
    array = np.full(node.shape, value, np.dtype(node.dtype))
    return Folded(array, array)


def overload(node: NodeState) -> Any:
    """The ATen overload that a node calls (edge operators have their names).

    :raises AttributeError: torch has none of that name.
    """
    import torch

    namespace, name, variant = node.target.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), variant)


def _evaluated(node: NodeState, found: Mapping[str, Folded], place: int) -> Folded | None:
    """One operator in torch; None where it has no ATen form or needs what is no tensor here.

    :param place: which of several results.
    """
    import torch

    words = node.target.split(".")
    if len(words) != 3 or words[0] != "aten":
        return None
    kwargs = {key: item for key, item in node.kwargs.items() if key not in _PLACEMENT}
    if "dtype" in kwargs and kwargs["dtype"] is not None:
        kwargs["dtype"] = getattr(torch, str(kwargs["dtype"]).removeprefix("torch."))

    def live(item: Any) -> Any:
        if isinstance(item, Ref):
            return torch.from_numpy(np.ascontiguousarray(found[item.name].value))
        return [live(part) for part in item] if isinstance(item, tuple) else item

    try:
        result = overload(node)(*map(live, node.args), **{key: live(item) for key, item in kwargs.items()})
        one = result[place] if isinstance(result, (tuple, list)) else result  # max_pool2d_with_indices: values first
        array = one.detach().contiguous().numpy()
    except (RuntimeError, TypeError, AttributeError, NotImplementedError, IndexError):
        return None
    return Folded(array, array)
