"""The walk over a quantized (or float) graph that yields an envelope for every output.

Quantize and dequantize nodes and quantized constants are where the policies differ (see the
package's docstring); everything else goes through ``rules``. An operator without a rule is
evaluated exactly where its operands are exact and a quantize node reads it, and taken apart where
its result stays float (``decomposing``). Elsewhere nothing is claimed of its result, and
every value that depends on it carries the operator's name (``Envelope.unjudged``), also behind a
quantize node, which makes any claim finite again.

Where upstream leaves out a requantization by design (``skipped``) the value before it is allowed
as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from harness.case.arrays import Array
from harness.case.traits import ATEN_MOVING, DEQUANTIZE, DEQUANTIZE_CHANNELS, QUANTIZE
from harness.evidence.observation import Envelope
from harness.evidence.rounding.aliases import is_write, owner_of, written_into
from harness.evidence.rounding.call import as_interval, with_slack
from harness.evidence.rounding.decomposing import computes_floats, decomposed
from harness.evidence.rounding.interval import (
    FLOAT32_EPSILON,
    Codes,
    Interval,
    hull,
    intervals_in,
    known,
    point,
    swap,
    unbounded_like,
    unclaimed,
)
from harness.evidence.rounding.moving import casting, copying, making
from harness.evidence.rounding.originals import known_original, stood_for
from harness.evidence.rounding.rules import RULES, Call, base_name
from harness.evidence.rounding.skipped import (
    CLAMPS,
    CONVOLUTIONS,
    between_clamps,
    name_of,
    saturation_skipped,
)

Policy = Literal["rounding", "saturation", "quantization"]
State = dict[str, tuple[Any, tuple[str, ...]]]
"""Buffers that earlier calls changed: value and doubts, by name."""
Cut = Callable[[torch.fx.Node, Interval, tuple[str, ...]], "torch.Tensor | None"]
"""Takes a quantize node with the codes that it may give and their doubts; returns the codes to go on with, or None."""


HALF = (torch.float16, torch.bfloat16)
NO_ORIGINAL = "constant without its float original"
_REFUSED = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError)
"""What torch and the rules raise for operands that they do not take: a range where an index must be known."""


def envelopes(
    graph: torch.fx.GraphModule,
    arrays: tuple[Array, ...],
    policy: Policy,
    state: State | None = None,
    cut: Cut | None = None,
) -> tuple[Envelope, ...]:
    """One envelope for every output of ``graph`` on one tuple of inputs.

    :param state: what earlier calls left in the graph's buffers; receives what this call leaves.
    :param cut: is asked at every quantize node (``cuts``).
    """
    with torch.no_grad():
        return _Walk(graph, policy, {} if state is None else state, cut).run(arrays)


class _Walk:
    def __init__(self, module: torch.fx.GraphModule, policy: Policy, state: State, cut: Cut | None = None) -> None:
        self.module = module
        self.policy = policy
        self.state = state
        self.cut = cut
        self.values: dict[torch.fx.Node, Any] = {}
        self.unclaimed: dict[torch.fx.Node, str] = {}
        self.doubts: dict[torch.fx.Node, tuple[str, ...]] = {}
        self.open: set[torch.fx.Node] = set()
        self.floats: dict[Any, Interval] = {}
        self.last_reads = _last_reads(module.graph)

    def run(self, arrays: tuple[Array, ...]) -> tuple[Envelope, ...]:
        inputs = iter(arrays)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = known(torch.from_numpy(next(inputs).copy()))
            elif node.op == "get_attr":
                held = self.state.get(str(node.target))
                if held is None:
                    held = (known(_attribute(self.module, str(node.target))), ())
                self.values[node], self.doubts[node] = held
            elif node.op == "call_function":
                self.values[node] = self._call(node)
                self.doubts[node] = self._doubts(node)
                self._go_on_with(node)
                if is_write(node.target):
                    self._write(node)
                self._let_go(node)
            elif node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
                return tuple(self._envelope(result) for result in results)
        raise AssertionError("the graph has no output node")

    def _let_go(self, node: torch.fx.Node) -> None:
        """Forget the values that nobody reads after a node: float64 ends of all weights are many times a model."""
        for read in self.last_reads.get(node, ()):
            del self.values[read]

    def _go_on_with(self, node: torch.fx.Node) -> None:
        """Take the codes that are given for a quantize node for the only ones."""
        value = self.values[node]
        given = self.cut(node, value.codes, self.doubts[node]) if self.cut and isinstance(value, Codes) else None
        if given is not None:
            scale, zero_point = node.args[1:3]
            known = point((given - zero_point) * scale)
            self.values[node], self.doubts[node] = Codes(point(given), known), ()

    def _argument(self, argument: Any) -> Any:
        return torch.fx.node.map_arg(argument, self.values.__getitem__)

    def _call(self, node: torch.fx.Node) -> Any:
        target: Any = node.target
        args = self._argument(node.args)
        kwargs = dict(self._argument(node.kwargs))
        name = base_name(target)
        if name == QUANTIZE:
            if _is_half(node.args[0]):
                self.unclaimed[node] = f"{name} of float16"
                return self._quantize(unbounded_like(as_interval(args[0]).low), *args[1:5])
            return self._quantize(*args[:5])
        if name == DEQUANTIZE:
            result = self._dequantize(node, *args[:6])
            half = kwargs.get("out_dtype") in HALF
            return with_slack(result, torch.finfo(kwargs["out_dtype"]).eps / FLOAT32_EPSILON) if half else result
        if name == DEQUANTIZE_CHANNELS:
            return self._dequantize_channels(node, *args[:6])
        if name in ("getitem", "_operator.getitem"):
            return args[0][args[1]]
        if _rounds_to_half(node, name):
            self.unclaimed[node] = f"{name} in float16"
            return unclaimed(node.meta["val"])
        operands = intervals_in([list(args), list(kwargs.values())])
        try:
            if not operands:
                args, kwargs = (_own(item) if is_write(target) else item for item in (args, kwargs))
                return known(target(*args, **kwargs))
            rule = RULES.get(name)
            if rule is not None:
                ends = (None, None) if self.policy == "quantization" else _reading_quantize(node)
                return rule(Call(target, tuple(args), kwargs, *ends))
            exact = target(*swap(args, _float_end), **swap(kwargs, _float_end))
            if all(operand.exact for operand in operands) and not _stays_float(node):
                return known(exact)
        except _REFUSED:
            if "val" not in node.meta:
                raise
            exact = node.meta["val"]
        if _stays_float(node) and (inside := self._inside(decomposed(target, args, kwargs), operands)) is not None:
            return inside
        self.unclaimed[node] = name
        return unclaimed(exact)

    def _inside(self, graph: torch.fx.GraphModule | None, operands: list[Interval]) -> Any:
        """The results of the operators that one is made of; None if it is not, or one of them refuses its operands."""
        if graph is None:
            return None
        walk = _Walk(graph, self.policy, {})
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                walk.values[node] = operands[len(walk.values)]
            elif node.op == "get_attr":
                walk.values[node] = known(_attribute(graph, str(node.target)))
            elif node.op == "call_function":
                try:
                    walk.values[node] = walk._call(node)
                except _REFUSED:
                    return None
            else:
                return walk._argument(node.args[0])
        return None

    def _write(self, node: torch.fx.Node) -> None:
        """An in-place operator's result is also its target, and in all that shares the target's memory."""
        alias, value, doubts = node, self.values[node], self.doubts[node]
        while (owner := owner_of(alias)) is not None:
            if not is_write(alias.target):
                value = written_into(self.values[owner], value, alias)
            alias = owner
            doubts = tuple(dict.fromkeys([*self.doubts.get(alias, ()), *doubts]))
            self.values[alias], self.doubts[alias] = value, doubts
        if alias.op == "get_attr":
            self.state[str(alias.target)] = (value, doubts)
        shared = {alias}
        for other in self.module.graph.nodes:  # views that were taken before
            if other is node:
                return
            if owner_of(other) in shared:
                shared.add(other)
                self.values[other] = self.values[owner_of(other)] if is_write(other.target) else self._call(other)
                self.doubts[other] = self.doubts[owner_of(other)]
            elif other.op == "get_attr" and other.target == alias.target:
                shared.add(other)
                self.values[other], self.doubts[other] = value, doubts

    def _doubts(self, node: torch.fx.Node) -> tuple[str, ...]:
        """Operators of which nothing is claimed and on which a value depends."""
        inherited = [name for source in node.all_input_nodes for name in self.doubts.get(source, ())]
        own = self.unclaimed.get(node)
        value = _reals(self.values[node])
        if _unbounded(value):
            self.open.add(node)
            if own is None and not any(source in self.open for source in node.all_input_nodes):
                own = base_name(node.target)
        elif inherited and all(item.exact for item in intervals_in(value)):
            return ()  # whatever the others are, the value is this one
        return tuple(dict.fromkeys([*inherited, *([own] if own else [])]))

    def _quantize(self, value: Any, scale: float, zero_point: int, qmin: int, qmax: int) -> Codes:
        value = as_interval(value)
        if self.policy == "quantization":
            return Codes(Interval(value.low / scale + zero_point, value.high / scale + zero_point), value)
        low, high = _rounded(value, scale)
        lowest = qmin if self.policy == "rounding" else _lowest_code(qmin)
        codes = Interval((low + zero_point).clamp(lowest, qmax), (high + zero_point).clamp(qmin, qmax))
        return Codes(codes, value)

    def _dequantize(
        self, node: torch.fx.Node, value: Any, scale: float, zero_point: int, qmin: int, qmax: int, dtype: torch.dtype
    ) -> Interval:
        bits = 16 if dtype == torch.int16 else 32 if dtype == torch.int32 else 8
        if isinstance(value, Codes):
            if self.policy == "quantization":  # the same for every reader: a value times itself is a square
                return self.floats.setdefault(node.args, Interval(value.before.low, value.before.high))
            codes = value.codes
            result = Interval((codes.low - zero_point) * scale, (codes.high - zero_point) * scale, scale, bits)
            if between_clamps(node):
                lowest, highest = (qmin - zero_point) * scale, (qmax - zero_point) * scale
                held = Interval(value.before.low.clamp(lowest, highest), value.before.high.clamp(lowest, highest))
                return replace(hull(result, held), scale=scale, bits=bits)
            if saturation_skipped(node):
                low, high = _rounded(value.before, scale)
                unsaturated = hull(Interval(low * scale, high * scale), value.before)
                return replace(hull(result, unsaturated), scale=scale, bits=bits)
            return result
        codes = as_interval(value)  # a constant, quantized ahead of time
        if self.policy == "quantization":
            return self._original(node, codes.low, torch.tensor(scale, dtype=torch.float64), zero_point, qmin, qmax)
        return Interval((codes.low - zero_point) * scale, (codes.high - zero_point) * scale, scale, bits)

    def _dequantize_channels(
        self, node: torch.fx.Node, value: Any, scales: Any, zero_points: Any, axis: int, qmin: int, qmax: int
    ) -> Interval:
        codes = as_interval(value).low
        shape = [1] * codes.dim()
        shape[axis] = -1
        scale, zero_point = (as_interval(item).low.reshape(shape) for item in (scales, zero_points))
        if self.policy == "quantization":
            return self._original(node, codes, scale, zero_point, qmin, qmax)
        center = (codes - zero_point) * scale
        return Interval(center, center)

    def _original(
        self, node: torch.fx.Node, codes: torch.Tensor, scale: torch.Tensor, zero_point: Any, qmin: int, qmax: int
    ) -> Interval:
        """What a quantized constant was: its original where the codes stand for it, or half a step around them."""
        original, clips = known_original(node), not _is_weight(node)
        if original is None and clips:
            self.unclaimed[node] = NO_ORIGINAL
        return stood_for(codes, scale, zero_point, original, ends=(qmin, qmax), clips=clips)

    def _envelope(self, result: Any) -> Envelope:
        value: Any = result
        doubts: tuple[str, ...] = ()
        if isinstance(result, torch.fx.Node):
            value, doubts = self.values[result], self.doubts.get(result, ())
        if isinstance(value, Codes):
            value = value.codes
        if isinstance(value, Interval):
            low, high = (part.to(torch.float64).numpy() for part in (value.low, value.high))
        else:
            low = high = np.asarray(value, dtype=np.float64)  # int8 has no absolute value of -128
        return Envelope(low, high, doubts)


def _rounded(value: Interval, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The lowest and the highest number of steps that a value may be rounded to."""
    ends = value.low / scale, value.high / scale
    slack_low, slack_high = (torch.nan_to_num(steps.abs() * FLOAT32_EPSILON * 4, posinf=0.0) for steps in ends)
    return torch.ceil(ends[0] - slack_low - 0.5), torch.floor(ends[1] + slack_high + 0.5)


def _last_reads(graph: torch.fx.Graph) -> dict[torch.fx.Node, list[torch.fx.Node]]:
    """The values that each node is the last one to read; those that share memory stay, since writes look at them."""
    last = {read: node for node in graph.nodes for read in node.all_input_nodes}
    sharing = {item for node in graph.nodes if (owner := owner_of(node)) is not None for item in (node, owner)}
    reads: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for read, node in last.items():
        if node.op == "call_function" and read not in sharing:
            reads.setdefault(node, []).append(read)
    return reads


def _is_weight(node: torch.fx.Node) -> bool:
    """Is this value only read as a weight or bias, whose min-max observer never clips?"""
    return all(name_of(user) in CONVOLUTIONS and node is not user.args[0] for user in node.users)


def _lowest_code(qmin: int) -> int:
    """Lowest code of the integer type that ``qmin`` belongs to (qmin -127 in int8: -128)."""
    return qmin - 1 if qmin in (-127, -32767) else qmin


def _own(arguments: Any) -> Any:
    """Arguments that an operator may write into."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, arguments)


def _attribute(module: torch.nn.Module, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _is_half(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    values = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(item, torch.Tensor) and item.dtype in HALF for item in values)


def _rounds_to_half(node: torch.fx.Node, name: str) -> bool:
    """Does an operator compute in float16? No rule knows what its accumulator may round."""
    return _is_half(node) and name not in ATEN_MOVING and RULES.get(name) not in (casting, copying, making)


def _reals(value: Any) -> Any:
    """A value whose intervals can be counted: quantized codes as their codes."""
    return value.codes if isinstance(value, Codes) else value


def _unbounded(value: Any) -> bool:
    """Is nothing claimed of an element? One end is a claim, which stays one behind a quantize node that clamps."""
    return any(
        not item.finite and bool((torch.isinf(item.low) & torch.isinf(item.high) & (item.low != item.high)).any())
        for item in intervals_in(value)
    )


def _stays_float(node: torch.fx.Node) -> bool:
    """Does the operator compute floats that no quantize node rounds?"""
    return computes_floats(node) and _reading_quantize(node)[0] is None


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
