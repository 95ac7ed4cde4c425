"""The walk over a quantized (or float) graph that yields an envelope for every output.

Quantize and dequantize nodes are where the two policies differ (see the package's docstring);
everything else goes through ``rules``. An operator without a rule is evaluated exactly where its
operands are exact, and is unjudged elsewhere.

Where upstream leaves out a requantization by design (``skipped``) the value before it is allowed
as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from harness.distributions import Array
from harness.observation import Envelope
from harness.rounding import tables
from harness.rounding.interval import (
    FLOAT32_EPSILON,
    Codes,
    Interval,
    hull,
    intervals_in,
    point,
    swap,
    unbounded_like,
)
from harness.rounding.rules import RULES, Call, base_name
from harness.rounding.skipped import (
    CLAMPS,
    CONVOLUTIONS,
    DEQUANTIZE,
    QUANTIZE,
    between_clamps,
    name_of,
    saturation_skipped,
)

Policy = Literal["rounding", "saturation", "quantization"]

_DEQUANTIZE_CHANNELS = "quantized_decomposed.dequantize_per_channel"

RULES_OF_TABLES = tables.table
"""Importing ``tables`` registers the unary functions; naming it keeps the import."""


def envelopes(graph: torch.fx.GraphModule, arrays: tuple[Array, ...], policy: Policy) -> tuple[Envelope, ...]:
    """One envelope for every output of ``graph`` on one tuple of inputs."""
    with torch.no_grad():
        return _Walk(graph, policy).run(arrays)


class _Walk:
    def __init__(self, module: torch.fx.GraphModule, policy: Policy) -> None:
        self.module = module
        self.policy = policy
        self.values: dict[torch.fx.Node, Any] = {}
        self.unjudged: list[str] = []

    def run(self, arrays: tuple[Array, ...]) -> tuple[Envelope, ...]:
        inputs = iter(arrays)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = _point(torch.from_numpy(next(inputs).copy()))
            elif node.op == "get_attr":
                self.values[node] = _point(_attribute(self.module, str(node.target)))
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                results = self._argument(node.args[0])
                leaves = results if isinstance(results, (tuple, list)) else (results,)
                return tuple(self._envelope(leaf) for leaf in leaves)
        raise AssertionError("the graph has no output node")

    def _argument(self, argument: Any) -> Any:
        return torch.fx.node.map_arg(argument, self.values.__getitem__)

    def _call(self, node: torch.fx.Node) -> Any:
        target: Any = node.target
        args = self._argument(node.args)
        kwargs = dict(self._argument(node.kwargs))
        name = base_name(target)
        if name == QUANTIZE:
            return self._quantize(*args[:5])
        if name == DEQUANTIZE:
            return self._dequantize(node, *args[:6])
        if name == _DEQUANTIZE_CHANNELS:
            return self._dequantize_channels(*args[:4])
        operands = intervals_in([list(args), list(kwargs.values())])
        if not operands:
            return _point_results(target(*args, **kwargs))
        scale, ends = _reading_quantize(node)
        rule = RULES.get(name)
        if rule is not None:
            return rule(Call(target, tuple(args), kwargs, scale, ends))
        if name == "getitem" or name == "_operator.getitem":
            return args[0][args[1]]
        return self._without_rule(target, args, kwargs, operands, name)

    def _without_rule(self, target: Any, args: Any, kwargs: Any, operands: list[Interval], name: str) -> Any:
        exact = target(*swap(args, _float_end), **swap(kwargs, _float_end))
        if all(operand.exact for operand in operands):
            return _point_results(exact)
        self.unjudged.append(name)
        return _unbounded_results(exact)

    def _quantize(self, value: Interval, scale: float, zero_point: int, qmin: int, qmax: int) -> Codes:
        steps_low, steps_high = value.low / scale, value.high / scale
        slack_low, slack_high = (steps.abs() * FLOAT32_EPSILON * 4 for steps in (steps_low, steps_high))
        if self.policy == "rounding":
            low = torch.ceil(steps_low - slack_low - 0.5) + zero_point
            high = torch.floor(steps_high + slack_high + 0.5) + zero_point
            codes = Interval(low.clamp(qmin, qmax), high.clamp(qmin, qmax))
        elif self.policy == "saturation":
            low = torch.ceil(steps_low - slack_low - 0.5) + zero_point
            high = torch.floor(steps_high + slack_high + 0.5) + zero_point
            codes = Interval(low.clamp(_lowest_code(qmin), qmax), high.clamp(qmin, qmax))
        else:
            low, high = steps_low - 0.5 + zero_point, steps_high + 0.5 + zero_point
            codes = hull(Interval(low, high), Interval(low.clamp(qmin, qmax), high.clamp(qmin, qmax)))
        return Codes(codes, value)

    def _dequantize(
        self, node: torch.fx.Node, value: Any, scale: float, zero_point: int, qmin: int, qmax: int, dtype: torch.dtype
    ) -> Interval:
        bits = 16 if dtype == torch.int16 else 32 if dtype == torch.int32 else 8
        if isinstance(value, Codes):
            codes = value.codes
            result = Interval((codes.low - zero_point) * scale, (codes.high - zero_point) * scale, scale, bits)
            if self.policy == "quantization":
                return result
            if between_clamps(node):
                lowest, highest = (qmin - zero_point) * scale, (qmax - zero_point) * scale
                held = Interval(value.before.low.clamp(lowest, highest), value.before.high.clamp(lowest, highest))
                return replace(hull(result, held), scale=scale, bits=bits)
            if saturation_skipped(node):
                return replace(hull(result, value.before), scale=scale, bits=bits)
            return result
        center = (value.low - zero_point) * scale  # a constant, quantized ahead of time
        if self.policy != "quantization":
            return Interval(center, center, scale, bits)
        low, high = center - 0.5 * scale, center + 0.5 * scale
        if not _is_weight(node):  # its observer may have clipped it: an end code stands for all beyond
            low = torch.where(value.low <= qmin, -torch.inf, low)
            high = torch.where(value.low >= qmax, torch.inf, high)
        return Interval(low, high, scale, bits)

    def _dequantize_channels(self, value: Interval, scales: Any, zero_points: Any, axis: int) -> Interval:
        shape = [1] * value.low.dim()
        shape[axis] = -1
        scale = scales.low.reshape(shape)
        zero_point = zero_points.low.reshape(shape) if isinstance(zero_points, Interval) else zero_points.reshape(shape)
        half = 0.5 if self.policy == "quantization" else 0.0
        center = (value.low - zero_point) * scale
        return Interval(center - half * scale, center + half * scale)

    def _envelope(self, value: Any) -> Envelope:
        if isinstance(value, Codes):
            value = value.codes
        if isinstance(value, Interval):
            low, high = (part.to(torch.float64).numpy() for part in (value.low, value.high))
        else:
            low = high = np.asarray(value)
        return Envelope(low, high, tuple(dict.fromkeys(self.unjudged)))


def _is_weight(node: torch.fx.Node) -> bool:
    """Is this value only read as a weight or bias, whose min-max observer never clips?"""
    return all(name_of(user) in CONVOLUTIONS and node is not user.args[0] for user in node.users)


def _lowest_code(qmin: int) -> int:
    """Lowest code of the integer type that ``qmin`` belongs to (qmin -127 in int8: -128)."""
    return qmin - 1 if qmin in (-127, -32767) else qmin


def _attribute(module: torch.nn.Module, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _point(value: Any) -> Any:
    """Floats, truth values and integer codes become exact intervals; int64 stays (indices, sizes)."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dtype in _CODE_TYPES):
        return point(value.detach())
    return value


_CODE_TYPES = (torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32)


def _point_results(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_point_results(item) for item in value)
    return _point(value)


def _unbounded_results(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_unbounded_results(item) for item in value)
    return unbounded_like(value) if isinstance(value, torch.Tensor) else value


def _float_end(value: Interval) -> torch.Tensor:
    return value.low if value.low.dtype == torch.bool else value.low.to(torch.float32)


def _reading_quantize(node: torch.fx.Node) -> tuple[float | None, tuple[float, float] | None]:
    """Scale and real range of the quantize node that reads ``node``, through clamps."""
    for user in node.users:
        name = base_name(user.target)
        if name == QUANTIZE:
            scale, zero_point, qmin, qmax = user.args[1:5]
            if isinstance(scale, float):
                ends = ((qmin - zero_point) * scale, (qmax - zero_point) * scale)
                return scale, ends
        elif name in CLAMPS:
            return _reading_quantize(user)
    return None, None
