"""Elementwise activations and clamps: result type equals operand type.

``hardtanh`` and ``clamp`` take their bounds as attributes; a clamp may be one-sided. Bounds are
drawn around the values that small graphs produce, so that they bite; one that bounds nothing is
also drawn as float32's largest number, as modules that guard against infinities write it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from generators.rules import is_float
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

LARGEST = float(np.finfo(np.float32).max)
BOUNDS = st.sampled_from([0.0, 1.0, -1.0, 6.0, 0.5, -0.5, 2.0, -2.0, 0.1, 3.0])


def same_type(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """Shape rule of a unary elementwise operator."""
    require(len(types) == 1, f"takes one operand, not {len(types)}")
    require(is_float(types[0]), f"takes float32, not {types[0].dtype}")
    return (types[0],)


def _plain(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,))


def unary(name: str, aten: str, text: str, *tags: str) -> Operator:
    """An elementwise operator without attributes; ``text`` has ``{}`` for the operand."""
    return Operator(
        name,
        f"aten::{aten}(Tensor self) -> Tensor",
        is_float,
        _plain,
        same_type,
        call=lambda operands, attributes, types: text.format(operands[0]),
        tags=frozenset(("elementwise", *tags)),
    )


def _draw_hardtanh(draw: Draw, pool: Pool, name: str) -> Choice:
    ends = [(-1.0, 1.0), (0.0, 6.0), (0.0, 1.0), (-2.0, 0.5), (0.5, 2.0), (-0.1, 0.1), (0.0, LARGEST)]
    low, high = draw(st.sampled_from(ends))
    return Choice((name,), {"min": low, "max": high})


def _infer_bounds(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    low, high = attributes["min"], attributes["max"]
    for bound in (low, high):
        require(
            bound is None or (isinstance(bound, (int, float)) and not isinstance(bound, bool)),
            f"bound {bound!r} is not a number",
        )
    require(low is not None or high is not None, "has no bound")
    require(low is None or high is None or low <= high, f"min {low} is above max {high}")
    return same_type(types, attributes)


def _infer_hardtanh(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    require(attributes["min"] is not None and attributes["max"] is not None, "needs both bounds")
    return _infer_bounds(types, attributes)


def _draw_clamp(draw: Draw, pool: Pool, name: str) -> Choice:
    low, high = sorted((draw(BOUNDS), draw(BOUNDS)))
    sides = draw(st.sampled_from(["both", "min", "max", "largest"]))
    top = {"min": None, "largest": LARGEST}.get(sides, high)
    return Choice((name,), {"min": None if sides == "max" else low, "max": top})


def _call(function: str, keys: tuple[str, str]) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        return f"{function}({operands[0]}, {keys[0]}={attributes['min']!r}, {keys[1]}={attributes['max']!r})"

    return call


_BOUND_WORDS = {"min": "lower bound or null", "max": "upper bound or null"}

OPERATORS = (
    unary("relu", "relu", "torch.relu({})", "activation", "seed"),
    unary("relu6", "relu6", "F.relu6({})", "activation"),
    Operator(
        "hardtanh",
        "aten::hardtanh(Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        is_float,
        _draw_hardtanh,
        _infer_hardtanh,
        call=_call("F.hardtanh", ("min_val", "max_val")),
        attributes=_BOUND_WORDS,
        tags=frozenset({"elementwise", "activation"}),
    ),
    Operator(
        "clamp",
        "aten::clamp(Tensor self, Scalar? min, Scalar? max) -> Tensor",
        is_float,
        _draw_clamp,
        _infer_bounds,
        call=_call("torch.clamp", ("min", "max")),
        attributes=_BOUND_WORDS,
        tags=frozenset({"elementwise", "activation"}),
    ),
    unary("sigmoid", "sigmoid", "torch.sigmoid({})", "table"),
    unary("tanh", "tanh", "torch.tanh({})", "table"),
    unary("gelu", "gelu", "F.gelu({})", "table"),
    unary("hardswish", "hardswish", "F.hardswish({})", "table"),
    unary("abs", "abs", "torch.abs({})"),
    unary("neg", "neg", "torch.neg({})"),
)
