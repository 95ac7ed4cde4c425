"""Factories that take shape and dtype from a value: ``full_like`` and its kin.

The pure factories (``full``, ``zeros``, ``arange``…) have no operand and are constants of the
graph (``harness.case.constants``). These depend on a value in the graph without depending on what it
holds, which is what annotators and constant folding have to notice (seed 000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.rules import floats, is_float, number, one
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types

VALUES = st.sampled_from([0.0, 1.0, 0.5, -1.0, -0.25, 2.0, 3.7])


def _infer_full(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    number(attributes, "value")
    return _infer_plain(types, attributes)


def _infer_plain(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    return one(shape)


def _draw_full(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"value": draw(VALUES)})


def _draw_plain(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,))


def _call_full(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.full_like({operands[0]}, {float(attributes['value'])!r})"


def _call(function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    return lambda operands, attributes, types: f"torch.{function}({operands[0]})"


_TAGS = frozenset({"factory", "seed", "rare"})

OPERATORS = (
    Operator(
        "full_like",
        "aten::full_like(Tensor self, Scalar fill_value) -> Tensor",
        is_float,
        _draw_full,
        _infer_full,
        call=_call_full,
        attributes={"value": "the value of every element"},
        tags=_TAGS,
    ),
    Operator(
        "zeros_like",
        "aten::zeros_like(Tensor self) -> Tensor",
        is_float,
        _draw_plain,
        _infer_plain,
        call=_call("zeros_like"),
        tags=_TAGS,
    ),
    Operator(
        "ones_like",
        "aten::ones_like(Tensor self) -> Tensor",
        is_float,
        _draw_plain,
        _infer_plain,
        call=_call("ones_like"),
        tags=_TAGS,
    ),
)
