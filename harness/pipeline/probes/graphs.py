"""Differences between two readings of one quantized graph, as data.

Nodes are matched by position and arguments by the position of what they refer to, so the names
that fx gives do not count. Everything else does: operators, literal arguments (scales, zero
points, ranges, shapes), result types, and every bit of every constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.case.arrays import Array
from harness.compat.snapshots import NodeState, Ref

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
SHOWN = 80


@dataclass(frozen=True)
class Difference:
    """One place where two graphs differ.

    :param what: ``nodes`` (other operators or another number of them), ``arguments`` or ``constant``.
    """

    what: Literal["nodes", "arguments", "constant"]
    node: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.node}: {self.first} and then {self.second}"


def differences(first: Mapping[str, NodeState], second: Mapping[str, NodeState]) -> list[Difference]:
    """Every difference, in graph order; where the nodes themselves differ, only the first such place."""
    ones, others = list(first.values()), list(second.values())
    for one, other in zip(ones, others, strict=False):
        if _operator(one) != _operator(other):
            return [Difference("nodes", one.name, _operator(one), _operator(other))]
    if len(ones) != len(others):
        longer = ones if len(ones) > len(others) else others
        return [
            Difference("nodes", longer[min(len(ones), len(others))].name, f"{len(ones)} nodes", f"{len(others)} nodes")
        ]
    places = [{node.name: index for index, node in enumerate(nodes)} for nodes in (ones, others)]
    found = []
    for one, other in zip(ones, others, strict=True):
        texts = _details(one, places[0]), _details(other, places[1])
        if texts[0] != texts[1]:
            at = _first_difference(*texts)
            found.append(Difference("arguments", one.name, *(text[at : at + SHOWN] for text in texts)))
        elif not same_bits(one.value, other.value):
            found.append(Difference("constant", one.name, _shown(one.value), _shown(other.value)))
    return found


def same_bits(one: Array | None, other: Array | None) -> bool:
    """Equality of shape, dtype and every bit (NaN equals itself, zeros of two signs differ)."""
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _operator(node: NodeState) -> str:
    return (
        node.target if node.op in ("call_function", "call_module", "call_method") else f"{node.op} {node.kind}".strip()
    )


def _details(node: NodeState, places: Mapping[str, int]) -> str:
    plain = (_placed(node.args, places), _placed(tuple(sorted(node.kwargs.items())), places))
    qparams = [f"{index}: {item}" for held in (node.input_qparams, node.output_qparams) for index, item in held.items()]
    return _ADDRESS.sub("0x", f"{plain} {node.dtype} {list(node.shape)} {list(node.dim_order)} {' '.join(qparams)}")


def _placed(value: Any, places: Mapping[str, int]) -> Any:
    if isinstance(value, Ref):
        return f"%{places.get(value.name, value.name)}"
    if isinstance(value, tuple):
        return tuple(_placed(item, places) for item in value)
    return value


def _first_difference(one: str, other: str) -> int:
    """Where two texts part, moved back to the beginning of the word."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return max(one.rfind(" ", 0, at), 0)


def _shown(value: Array | None) -> str:
    if value is None:
        return "no value"
    flat = ", ".join(str(item) for item in value.reshape(-1)[:4])
    return f"{value.dtype} {list(value.shape)} [{flat}{', …' if value.size > 4 else ''}]"
