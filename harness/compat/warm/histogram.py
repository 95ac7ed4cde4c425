"""torchao's search for a histogram's range, with the same result and without its hundred thousand steps.

``HistogramObserver._non_linear_param_search`` narrows a histogram from both ends by quantiles of 1e-5,
and nearly all of its steps move nothing: each still compares two elements of a tensor, half a second
for one observer. Which step moves an end follows from the cumulative sum, so ``search`` goes from one
move to the next.

Exact: quantile limits are the same sums of 1e-5, rounded to float32 as torch does when it compares a
float32 tensor with a number, and the errors are torchao's own (``_compute_quantization_error``).
Only used where the installed function is the one that this was written for (torchao 0.15 to 0.18).

Imports torchao: only worker processes import this module.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torchao.quantization.pt2e.observer import HistogramObserver

from harness.compat.sources import unchanged

_STEP = 1e-5
_WRITTEN_FOR = {"HistogramObserver._non_linear_param_search": "9306a687ba73"}


def use_fast_search() -> bool:
    """Replace the installed search, if it is the known one; returns whether it was."""
    if not unchanged(HistogramObserver.__module__, _WRITTEN_FOR):
        return False
    HistogramObserver._non_linear_param_search = search
    return True


@cache
def _quantiles() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower quantiles going up from 0 and upper ones going down from 1, summed one step after the other."""
    steps = np.full(100_010, _STEP)
    steps[0] = 0.0
    downward = -steps
    downward[0] = 1.0
    return np.add.accumulate(steps), np.add.accumulate(downward)


@cache
def _going_up() -> NDArray[np.float64]:
    """The upper quantiles, negated, as searches want them."""
    return -_quantiles()[1]


def search(observer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The range that an observer chooses, as two tensors of one element."""
    width = (observer.max_val - observer.min_val) / observer.bins
    total = torch.sum(observer.histogram).item()
    sums = torch.cumsum(observer.histogram, dim=0).numpy()
    lower, upper = _quantiles()
    first, last, least = 0, observer.bins - 1, float("inf")
    up, down = 0, 0
    while lower[up] < upper[down]:
        # the first bin that reaches the next lower quantile, and the last one that does not exceed the next upper one
        reached = int(np.searchsorted(sums, np.float32(lower[up + 1] * total), "left"))
        within = int(np.searchsorted(sums, np.float32(upper[down + 1] * total), "right")) - 1
        left = min(max(reached, first), last)
        right = max(min(within, last), first)
        if left == first and right == last:
            # nothing moves until the upper quantile falls below what the bins up to the last one hold
            below = _first_below(float(sums[last]), total, down + 1) if last > first else len(upper)
            if int(np.searchsorted(_going_up(), -lower[up], "left")) < below:
                break
            down = below - 1
            continue
        if left - first > last - right:
            moved = left, last
            up += 1
        else:
            moved = first, right
            down += 1
        error = observer._compute_quantization_error(*moved)
        if error > least:
            break
        least = error
        first, last = moved
    return observer.min_val + width * first, observer.min_val + width * (last + 1)


def _first_below(held: float, total: float, start: int) -> int:
    """The first upper quantile from a place on whose share of the total is less than what is held."""
    upper = _quantiles()[1]
    places = range(start, len(upper))
    return start + bisect_left(places, True, key=lambda place: float(np.float32(upper[place] * total)) < held)
