"""What the float profile folds into a convolution from behind it: batch norms and products with constants.

Each multiplies the output channels and adds to them, and so do weights and bias after the folding (FuseBatchNorm2dPass,
FoldScalarMulIntoConvPass). A quantized graph has a quantize node in between, and nothing is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.case.arrays import Array
from harness.compat.snapshots import NodeState, Ref, Snapshot, base
from harness.evidence.inspection.folding import Folded

SLACK = 2.0**-20
"""Relative error of a factor that a few float32 operations make."""
BATCH_NORM = "_native_batch_norm_legit_no_training"


@dataclass(frozen=True)
class Channels:
    """What each output channel is multiplied by and what is added then, with the magnitude of what that is a sum of."""

    factor: Array
    summand: Array
    magnitude: Array

    def weight(self, weight: Array, groups: int | None = None) -> Folded:
        """A weight after the folding, whose first axis is the output's.

        :param groups: of a transposed convolution: its first axis is the input's, its second an output channel's place
            in its group.
        """
        factor = self.factor
        if factor.size > 1 and groups is not None:
            factor = np.repeat(factor.reshape(groups, -1), weight.shape[0] // groups, axis=0)
        elif factor.size > 1:
            factor = factor[:, None]
        scaled = weight.astype(np.float64) * factor.reshape(*factor.shape, *[1] * (weight.ndim - factor.ndim))
        return _around(scaled, np.abs(scaled))

    def bias(self, bias: Array) -> Folded:
        """A bias after it."""
        scaled = bias.astype(np.float64) * self.factor
        return _around(scaled + self.summand, np.abs(scaled) + self.magnitude)


def folded_into(start: NodeState, graph: Snapshot, values: Mapping[str, Folded]) -> Iterator[Channels]:
    """What may have been folded into a convolution: what follows it directly, one, two and more of them."""
    so_far = Channels(np.ones(1), np.zeros(1), np.zeros(1))
    node, axis = start, -1 if base(start) in ("linear", "addmm") else 1
    while len(users := graph.users.get(node.name, ())) == 1:
        node = users[0]
        if node.target == "getitem":
            continue
        follower = _channels(node, [_number(item, values) for item in node.args], axis)
        if follower is None:
            return
        factor = follower.factor
        so_far = Channels(
            so_far.factor * factor,
            so_far.summand * factor + follower.summand,
            so_far.magnitude * np.abs(factor) + follower.magnitude,
        )
        yield so_far


def _channels(node: NodeState, numbers: Sequence[Array | None], axis: int) -> Channels | None:
    """What a product with a constant, or a batch norm of constants, does to each channel; None for anything else.

    A quotient is a product, also where it is rounded behind it.
    """
    if base(node) == "div":
        divisor = None if numbers[0] is not None or numbers[1] is None else _by_channel(numbers[1], node, axis)
        return None if divisor is None or not divisor.all() else Channels(1 / divisor, np.zeros(1), np.zeros(1))
    if base(node) == "mul":
        known = [_by_channel(item, node, axis) for item in numbers[:2] if item is not None]
        factor = known[0] if known else None
        return None if factor is None else Channels(factor, np.zeros(1), np.zeros(1))
    if base(node) != BATCH_NORM or numbers[3] is None or numbers[4] is None:
        return None
    weight = np.ones(1) if numbers[1] is None else numbers[1]
    bias = np.zeros(1) if numbers[2] is None else numbers[2]
    factor = weight / np.sqrt(numbers[4] + float(node.args[6]))
    mean = numbers[3] * factor
    return Channels(factor, bias - mean, np.abs(bias) + np.abs(mean))


def _by_channel(factor: Array, node: NodeState, axis: int) -> Array | None:
    """A factor as one number or one a channel; None if it is anything else."""
    if factor.size == 1:
        return factor.reshape(1)
    sizes = (*[1] * (len(node.shape) - factor.ndim), *factor.shape)
    return factor.reshape(-1) if factor.size == sizes[axis] == node.shape[axis] else None


def _number(item: Any, values: Mapping[str, Folded]) -> Array | None:
    if isinstance(item, Ref):
        return values[item.name].value.astype(np.float64) if item.name in values else None
    return np.asarray(item, np.float64) if isinstance(item, (int, float)) else None


def _around(value: Array, magnitude: Array) -> Folded:
    return Folded(value - magnitude * SLACK, value + magnitude * SLACK)
