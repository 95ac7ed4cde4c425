"""The values that the walk carries: intervals, quantized codes, and how to apply a function.

Float values are ``Interval`` (float64 ends). Truth values are ``Interval`` of bool: ``low`` is
"certainly", ``high`` is "possibly". A quantized activation is ``Codes``; everything else
(indices, sizes, None) passes through as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

FLOAT32_EPSILON = 2.0**-24
"""Relative error of one float32 operation (round to nearest)."""


@dataclass(frozen=True)
class Interval:
    """Lowest and highest value of each element. A value that is known exactly has one tensor for both.

    :param scale: step of the activation that this value is the plain dequantization of, or None.
    :param bits: width of that activation's codes.
    """

    low: torch.Tensor
    high: torch.Tensor
    scale: float | None = None
    bits: int = 8

    @property
    def exact(self) -> bool:
        return bool(torch.equal(self.low, self.high))

    @property
    def finite(self) -> bool:
        return _is_finite(self.low) and (self.low is self.high or _is_finite(self.high))

    @property
    def center(self) -> torch.Tensor:
        return self.low if self.low is self.high else (self.low + self.high) / 2

    @property
    def radius(self) -> torch.Tensor:
        return (self.high - self.low) / 2

    @property
    def magnitude(self) -> torch.Tensor:
        return self.low.abs() if self.low is self.high else torch.maximum(self.low.abs(), self.high.abs())

    def widened(self, by: torch.Tensor | float) -> Interval:
        """Both ends moved outward by ``by`` (non-negative)."""
        return Interval(self.low - by, self.high + by)


@dataclass(frozen=True)
class Codes:
    """A quantized activation: integer codes (as float64 ends) and the reals before rounding."""

    codes: Interval
    before: Interval


def _is_finite(end: torch.Tensor) -> bool:
    """Is every element finite? Asked of the least and the greatest: ``isfinite`` of all holds three more tensors."""
    return not end.numel() or bool(torch.isfinite(torch.stack(torch.aminmax(end))).all())


def point(tensor: torch.Tensor) -> Interval:
    """A value that is known exactly."""
    value = tensor if tensor.dtype == torch.bool else tensor.to(torch.float64)
    return Interval(value, value)


def unbounded_like(tensor: torch.Tensor) -> Interval:
    """No claim about a value of this shape; of a truth value, that it is one."""
    if tensor.dtype == torch.bool:
        return Interval(torch.zeros(tensor.shape, dtype=torch.bool), torch.ones(tensor.shape, dtype=torch.bool))
    infinite = torch.full(tensor.shape, torch.inf, dtype=torch.float64)
    return Interval(-infinite, infinite)


def ordered(first: torch.Tensor, second: torch.Tensor) -> Interval:
    """The interval between two tensors, whichever is lower; NaN means no claim."""
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    return Interval(
        torch.nan_to_num(low, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf),
        torch.nan_to_num(high, nan=torch.inf, posinf=torch.inf, neginf=-torch.inf),
    )


def hull(first: Interval, second: Interval) -> Interval:
    """The smallest interval that holds both."""
    return Interval(torch.minimum(first.low, second.low), torch.maximum(first.high, second.high))


def swap(argument: Any, function: Callable[[Interval], Any]) -> Any:
    """``argument`` (nested lists and tuples) with every interval replaced by ``function`` of it."""
    if isinstance(argument, Interval):
        return function(argument)
    if isinstance(argument, (list, tuple)):
        return type(argument)(swap(item, function) for item in argument)
    if isinstance(argument, dict):
        return {key: swap(item, function) for key, item in argument.items()}
    return argument


def intervals_in(argument: Any) -> list[Interval]:
    """Every interval inside an argument, in order."""
    found: list[Interval] = []
    swap(argument, found.append)
    return found


def known(value: Any) -> Any:
    """What an operator returned: floats and truth values as exact intervals; integers stay (codes, indices, sizes)."""
    if isinstance(value, (tuple, list)):
        return tuple(known(item) for item in value)
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dtype == torch.bool):
        return point(value.detach())
    return value


def unclaimed(value: Any) -> Any:
    """No claim about results of these shapes and dtypes."""
    if isinstance(value, (tuple, list)):
        return tuple(unclaimed(item) for item in value)
    return unbounded_like(value) if isinstance(value, torch.Tensor) else value
