"""What a rule is given and what rules have in common.

A rule is ``rule(call) -> Interval | tuple``; ``Call`` has the overload, the arguments with
intervals in the place of tensors, and the scale of the quantize node that reads the result.
Tensors of integers (indices, sizes, flags) are not intervals and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.evidence.rounding.interval import FLOAT32_EPSILON, Interval, intervals_in, swap


@dataclass(frozen=True)
class Call:
    """One operator call of the walk.

    :param result_scale: scale of the quantize node that reads the result, if one does.
    :param result_range: lowest and highest real that this quantize node can represent.
    """

    overload: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result_scale: float | None = None
    result_range: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The operator's name without its namespace and without the underscore of an in-place form."""
        return base_name(self.overload).removeprefix("aten.").rstrip("_")

    @property
    def operands(self) -> list[Interval]:
        return intervals_in([list(self.args), list(self.kwargs.values())])

    def argument(self, position: int, name: str, default: Any) -> Any:
        """An argument that may be given by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def at(self, side: str) -> Any:
        """The operator evaluated with every interval at one end."""
        return self.of(lambda item: item.low if side == "low" else item.high)

    def of(self, function: Callable[[Interval], torch.Tensor]) -> Any:
        """The operator evaluated with ``function`` of every interval."""

        def taken(item: Interval) -> torch.Tensor:
            value = function(item)
            return value.clone() if self.writes else value

        return self.overload(*swap(self.args, taken), **swap(self.kwargs, taken))

    @property
    def writes(self) -> bool:
        """Does the operator write into an operand?"""
        schema = getattr(self.overload, "_schema", None)
        return schema is not None and bool(schema.is_mutable)


Rule = Callable[[Call], Any]


def base_name(overload: Any) -> str:
    """``aten.conv2d`` for ``torch.ops.aten.conv2d.default``."""
    schema = getattr(overload, "_schema", None)
    return schema.name.replace("::", ".") if schema is not None else str(getattr(overload, "__name__", overload))


def paired(low: Any, high: Any, operand: Interval | None = None) -> Any:
    """Intervals from the two evaluations of an operator with one or several results.

    Integers that agree at both ends are known, and stay integers.
    """
    if isinstance(low, (list, tuple)):
        return tuple(paired(a, b, operand) for a, b in zip(low, high, strict=True))
    if not low.dtype.is_floating_point and low.dtype != torch.bool:
        return low if torch.equal(low, high) else Interval(low.to(torch.float64), high.to(torch.float64))
    result = Interval(low, high)
    return replace(result, scale=operand.scale, bits=operand.bits) if operand is not None else result


def with_slack(result: Any, operations: float) -> Any:
    """A result that took so many float32 operations."""
    if isinstance(result, tuple):
        return tuple(with_slack(item, operations) for item in result)
    if not isinstance(result, Interval) or result.low.dtype == torch.bool:
        return result
    by = torch.nan_to_num(result.magnitude * FLOAT32_EPSILON * operations, posinf=0.0)
    return result.widened(by)


def as_interval(item: Any) -> Interval:
    """A number or a tensor of known values as an interval."""
    if isinstance(item, Interval):
        return item
    value = torch.as_tensor(item, dtype=torch.float64)
    return Interval(value, value)


def numbers(first: Any, second: Any) -> tuple[Interval, Interval]:
    """Two operands of arithmetic; a truth value beside a number is 0 or 1."""
    left, right = as_interval(first), as_interval(second)
    if left.low.dtype == right.low.dtype:
        return left, right
    return _number(left), _number(right)


def _number(item: Interval) -> Interval:
    return item if item.low.dtype != torch.bool else Interval(item.low.double(), item.high.double())


def extremes(corners: list[torch.Tensor]) -> Interval:
    """The smallest interval that holds all of several tensors; NaN means no claim."""
    stacked = torch.stack(torch.broadcast_tensors(*corners))
    low = torch.nan_to_num(stacked, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).amin(0)
    high = torch.nan_to_num(stacked, nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).amax(0)
    return Interval(low, high)


def broadcast(first: Interval, second: Interval) -> tuple[Interval, Interval]:
    """Two intervals in their common shape."""
    a, b, c, d = torch.broadcast_tensors(first.low, first.high, second.low, second.high)
    return Interval(a, b), Interval(c, d)


def unclaimed_where(condition: torch.Tensor, result: Interval) -> Interval:
    """No claim where the condition holds."""
    return Interval(torch.where(condition, -torch.inf, result.low), torch.where(condition, torch.inf, result.high))
