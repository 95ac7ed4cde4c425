"""What PT2E decided for one delegate: the quantization of every value of its start graph.

A value's *decided* qparams are those of the quantize nodes that read it; for a value that only
an activation reads (conv -> relu -> quantize) they are the activation's, because Arm fuses the
two. A placeholder's are those of the dequantize nodes that read it. A call's *operands* are the
qparams of the dequantize nodes among its arguments, by top-level argument, lists flattened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.compat.snapshots import ARRANGING, SPLITS, NodeState, Qparams, Ref, Snapshot, base

QUANTIZE = ("quantized_decomposed.quantize_per_tensor.", "quantized_decomposed.quantize_per_channel.")
DEQUANTIZE = ("quantized_decomposed.dequantize_per_tensor.", "quantized_decomposed.dequantize_per_channel.")
CLAMPS = ("relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "relu_", "hardtanh_", "clamp_")
MOVERS = (
    *ARRANGING,
    *SPLITS,
    "cat",
    "slice",
    "slice_copy",
    "select",
    "select_copy",
    "flip",
    "stack",
    "max_pool2d",
    "pixel_shuffle",
    "constant_pad_nd",
)
"""Operators that only move or select elements: their domains are equal on both sides."""
RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
    "int4": (-8, 7),
}
"""Codes of each integer type."""


@dataclass(frozen=True)
class Operand:
    """A dequantized argument of a call: position of the top-level argument, place in its list."""

    argument: int
    place: int
    source: str
    qparams: Qparams


def is_quantize(node: NodeState) -> bool:
    return node.target.startswith(QUANTIZE)


def is_dequantize(node: NodeState) -> bool:
    return node.target.startswith(DEQUANTIZE)


def qparams_of(node: NodeState, graph: Snapshot) -> Qparams | None:
    """Qparams of a (de)quantize node; None where they are computed at run time."""
    if "per_channel" in node.target:
        scales, zero_points = (_constant(argument, graph) for argument in node.args[1:3])
        if scales is None or zero_points is None:
            return None
        axis, qmin, qmax, dtype = node.args[3:7]
        return Qparams(scales, tuple(map(int, zero_points)), qmin, qmax, _dtype(dtype), axis)
    scale, zero_point, qmin, qmax, dtype = node.args[1:6]
    if not isinstance(scale, (int, float)) or not isinstance(zero_point, (int, float)):
        return None
    return Qparams(float(scale), int(zero_point), qmin, qmax, _dtype(dtype))


def _constant(argument: object, graph: Snapshot) -> tuple[float, ...] | None:
    value = graph.nodes[argument.name].value if isinstance(argument, Ref) else None
    return None if value is None else tuple(value.reshape(-1).tolist())


def _dtype(name: object) -> str:
    return str(name).removeprefix("torch.")


def decided(name: str, graph: Snapshot) -> tuple[Qparams, ...]:
    """Qparams that a value of the start graph was given; several if it is quantized several ways."""
    node = graph.nodes.get(name)
    if node is None:
        return ()
    if is_quantize(node):
        own = qparams_of(node, graph)
        return (own,) if own is not None else ()
    users = graph.users.get(name, ())
    wanted = is_dequantize if node.op == "placeholder" else is_quantize
    found = [qparams_of(user, graph) for user in users if wanted(user)]
    if not found and len(users) == 1 and base(users[0]) in CLAMPS:
        return decided(users[0].name, graph)
    if not found:  # several results: each is taken by a getitem and quantized on its own
        found = [item for user in users if user.target == "getitem" for item in decided(user.name, graph)]
    return tuple(dict.fromkeys(item for item in found if item is not None))


def operands(node: NodeState, graph: Snapshot) -> Iterator[Operand]:
    """Dequantized arguments of a call, in order."""
    for position, argument in enumerate(node.args):
        items = argument if isinstance(argument, tuple) else (argument,)
        for place, item in enumerate(items):
            source = graph.nodes.get(item.name) if isinstance(item, Ref) else None
            if source is None or not is_dequantize(source):
                continue
            qparams = qparams_of(source, graph)
            if qparams is not None:
                yield Operand(position, place, source.args[0].name, qparams)


def clamp_bounds(node: NodeState) -> tuple[float, float] | None:
    """Lowest and highest real value that an activation lets through; None if it is none."""
    name = base(node).rstrip("_")
    if name not in CLAMPS:
        return None
    if name == "relu":
        return 0.0, float("inf")
    if name == "relu6":
        return 0.0, 6.0
    low, high = (*node.args[1:], None, None)[:2]
    if name == "hardtanh":
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    elif name == "clamp_max":
        low, high = None, low
    if any(not isinstance(bound, (int, float, type(None))) for bound in (low, high)):
        return None
    return float("-inf") if low is None else float(low), float("inf") if high is None else float(high)


def same_domain(first: Qparams, second: Qparams) -> bool:
    """Equal scale, zero point and type; qmin and qmax are bounds, not part of the unit."""
    return (first.scale, first.zero_point, first.dtype) == (second.scale, second.zero_point, second.dtype)
