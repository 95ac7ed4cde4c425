"""Memory that values of a graph share: in-place operators and views, as ``torch.export`` leaves them in a graph.

A view's *owner* is the operand whose memory it shares, and the owner of an in-place operator's result is its first
operand. Who writes into a view writes into its owner, and into every other view of it.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.case.traits import ATEN_VIEWS
from harness.evidence.rounding.call import base_name
from harness.evidence.rounding.interval import Codes, Interval


def is_write(target: Any) -> bool:
    """Does an operator write into its first operand? ``detach_`` changes no element."""
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.is_mutable) and base_name(target) != "aten.detach_"


def owner_of(node: torch.fx.Node) -> torch.fx.Node | None:
    """The node whose memory a node's value shares; None for a value of its own."""
    if node.op != "call_function" or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    name = base_name(node.target)
    shares = is_write(node.target) or name in ATEN_VIEWS or name in ("getitem", "aten.detach_")
    return node.args[0] if shares else None


def written_into(owner: Any, value: Any, view: torch.fx.Node) -> Any:
    """The owner's value, after ``value`` was written into a view of it."""
    if isinstance(owner, tuple):  # results of a split: the getitem has one of them
        index: Any = view.args[1]
        return tuple(value if at == index % len(owner) else item for at, item in enumerate(owner))
    if isinstance(value, tuple):
        for at, item in enumerate(value):
            owner = _merged(owner, item, _positions(owner, view)[at])
        return owner
    return _merged(owner, value, _positions(owner, view))


def _positions(owner: Any, view: torch.fx.Node) -> Any:
    """Where in the owner the elements of a view are."""
    shape = owner.low.shape if isinstance(owner, Interval) else owner.shape
    target: Any = view.target
    numbers = torch.arange(shape.numel()).reshape(shape)
    return numbers if base_name(target) == "aten.detach_" else target(numbers, *view.args[1:], **view.kwargs)


def _merged(owner: Any, value: Any, positions: torch.Tensor) -> Any:
    if isinstance(owner, Interval) or isinstance(value, Interval):
        one, other = _sides(owner), _sides(value)
        return Interval(*(_put(a, b, positions) for a, b in zip(one, other, strict=True)))
    return _put(owner, value, positions)


def _sides(item: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(item, Codes):
        item = item.codes
    return (item.low, item.high) if isinstance(item, Interval) else (item.to(torch.float64), item.to(torch.float64))


def _put(owner: torch.Tensor, value: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    flat = owner.reshape(-1).clone()
    flat[positions.reshape(-1)] = value.to(flat.dtype).expand(positions.shape).reshape(-1)
    return flat.reshape(owner.shape)
