"""Run a delegate's graph as it stood after one pass.

A node with ``input_qparams`` takes integer codes: they are dequantized in float64, the ATen
operator runs, and the result is quantized by ``output_qparams`` (rounding half to even, as
torchao does). Data movement runs on the codes themselves. A clamp's bounds are codes once
QuantizeClampArgumentsPass has run. Operators between RESCALEs compute on int32 as TOSA's do, which know no
qparams: a wrong scale or zero point in their metadata is wrong from there on.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from harness.compat.passes import LiveGraph
from harness.compat.states import operator_name
from harness.evidence.inspection.decisions import CLAMPS, MOVERS, QUANTIZE
from harness.locate.blame.dialect import KERNELS, Context, Unsupported

_CLAMP_CODES = "QuantizeClampArgumentsPass"
_TYPED = ("full", "arange", "scalar_tensor", "zeros", "ones", "sum", "prod", "cumsum", "mean")
"""Operators whose ``dtype`` is the type of their codes once qparams are metadata; their values are real."""


def run_graph(live: LiveGraph, inputs: Mapping[str, torch.Tensor], passed: tuple[str, ...]) -> list[torch.Tensor]:
    """Outputs of the graph.

    :param inputs: tensors of the user's placeholders, by name.
    :param passed: names of the passes that had run.
    :raises Unsupported: an operator that cannot be evaluated, or a result of another shape than promised.
    """
    runner = _Runner(live.module, codes_in_clamps=_CLAMP_CODES in passed)
    arguments = []
    for node in live.module.graph.nodes:
        if node.op == "placeholder":
            tensor = live.constants.get(node.name, inputs.get(node.name))
            if tensor is None:
                raise Unsupported(f"placeholder {node.name} is neither a constant nor an input")
            arguments.append(tensor)
    try:
        results = runner.run(*arguments, enable_io_processing=False)
    except Unsupported:
        raise
    except Exception as error:  # whatever an operator raises on such values
        raise Unsupported(f"{type(error).__name__}: {error}") from error
    return list(results) if isinstance(results, (tuple, list)) else [results]


class _Runner(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, module: torch.fx.GraphModule, codes_in_clamps: bool) -> None:
        super().__init__(module)
        self._codes_in_clamps = codes_in_clamps

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op != "call_function":
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = self._call(n, operator_name(n.target), args, kwargs)
        promised = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(promised, torch.Tensor):
            if tuple(result.shape) != tuple(promised.shape):
                raise Unsupported(f"{n.name} gives {list(result.shape)}, the graph promises {list(promised.shape)}")
            if result.dtype == torch.int64 and promised.dtype == torch.int32:
                return result  # accumulators may be wider than the fake tensor says (int48)
        return result

    def _call(self, n: torch.fx.Node, name: str, args: Any, kwargs: Any) -> Any:
        words = name.split(".")
        inside, outside = n.meta.get("input_qparams") or {}, n.meta.get("output_qparams") or {}
        if words[0] == "tosa":
            kernel = KERNELS.get(words[1])
            if kernel is None:
                raise Unsupported(f"tosa.{words[1]}")
            points = {index: _zero_point(value) for index, value in inside.items()}
            return kernel(Context(points, _zero_point(next(iter(outside.values()), None))), *args, **kwargs)
        base = words[1] if len(words) > 1 else name
        on_codes = base in MOVERS or (base in CLAMPS and self._codes_in_clamps) or (not outside and _codes(n))
        on_codes = on_codes or (bool(inside) and all(item.dtype == torch.int32 for item in inside.values()))
        if words[0] == "quantized_decomposed" or on_codes or not (inside or outside):
            return _plain(n, args, kwargs)
        args = [
            _swap(value, lambda part, key=index: _dequantized(part, inside.get(key)))
            for index, value in enumerate(args)
        ]
        if base in _TYPED:
            kwargs = {**kwargs, "dtype": torch.float64}
        result = n.target(*args, **kwargs)
        # fake values are no guide: integer input promotes to float until a later pass says otherwise
        unfolded = any(
            operator_name(user.target).startswith(QUANTIZE) for user in n.users if user.op == "call_function"
        )
        if not outside or unfolded or not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return result
        return _quantized(result, next(iter(outside.values())))


def _codes(n: torch.fx.Node) -> bool:
    """Does the graph promise integer codes?"""
    promised = n.meta.get("val")
    return isinstance(promised, torch.Tensor) and promised.dtype in (torch.int8, torch.int16, torch.int32)


def _plain(n: torch.fx.Node, args: Any, kwargs: Any) -> Any:
    """An operator on the values as they are; on codes that torch has no kernel for, through float64."""
    try:
        return n.target(*args, **kwargs)
    except (RuntimeError, NotImplementedError):
        wide = [_swap(value, lambda part: part.to(torch.float64)) for value in args]
        result = n.target(*wide, **kwargs)
        promised = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(promised, torch.Tensor):
            return result.to(promised.dtype)
        raise


def _swap(value: Any, function: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_swap(item, function) for item in value)
    return value


def _zero_point(qparams: Any) -> int:
    """A per-tensor zero point; weights quantized per channel are symmetric."""
    if qparams is None or not isinstance(qparams.zp, (int, float)):
        return 0
    return int(qparams.zp)


def _along(value: Any, qparams: Any, rank: int) -> torch.Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float64).reshape(-1)
    if tensor.numel() == 1:
        return tensor.reshape(())
    shape = [1] * rank
    shape[int(getattr(qparams, "axis", 0))] = -1
    return tensor.reshape(shape)


def _dequantized(codes: torch.Tensor, qparams: Any) -> torch.Tensor:
    if qparams is None or codes.is_floating_point() or codes.dtype == torch.bool:
        return codes.to(torch.float64) if codes.is_floating_point() else codes
    rank = codes.dim()
    return (codes.to(torch.float64) - _along(qparams.zp, qparams, rank)) * _along(qparams.scale, qparams, rank)


def _quantized(values: torch.Tensor, qparams: Any) -> torch.Tensor:
    rank = values.dim()
    steps = values.to(torch.float64) / _along(qparams.scale, qparams, rank)
    codes = torch.round(steps) + _along(qparams.zp, qparams, rank)
    return codes.clamp(qparams.qmin, qparams.qmax).to(qparams.dtype)
