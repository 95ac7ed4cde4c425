"""Unary functions that an integer target looks up in a table, each on the range where it is finite.

Most functions of the family have a domain, a pole, or overflow: the operand is clamped to where the
result is a plain number, as models do (``torch.log(x.clamp(min=0.05))``). What lies in the clamp's
range after rounding may still touch the border, which is what oracles have to bear.

Entries with a number (a slope, an exponent, a divisor) have it as attribute ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.ops.activation import same_type
from generators.rules import is_float, number
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

_TAGS = frozenset({"elementwise", "table", "kin"})


def _clamped(operand: str, low: float | None, high: float | None) -> str:
    bounds = ", ".join(f"{word}={bound}" for word, bound in (("min", low), ("max", high)) if bound is not None)
    return f"{operand}.clamp({bounds})" if bounds else operand


def _plain(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,))


def function(name: str, text: str, low: float | None = None, high: float | None = None) -> Operator:
    """A function of one operand; ``text`` has ``{}`` for it, ``low`` and ``high`` bound its argument."""
    return Operator(
        name,
        f"aten::{name}(Tensor self) -> Tensor",
        is_float,
        _plain,
        same_type,
        call=lambda operands, attributes, types: text.format(_clamped(operands[0], low, high)),
        tags=_TAGS,
    )


def _call_valued(
    text: str, clamped: Callable[[float], bool], low: float
) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        value = attributes["value"]
        return text.format(_clamped(operands[0], low if clamped(value) else None, None), repr(value))

    return call


def valued(
    name: str,
    signature: str,
    text: str,
    values: Sequence[float],
    word: str,
    accepts: Callable[[float], bool] = lambda value: True,
    clamped: Callable[[float], bool] = lambda value: False,
) -> Operator:
    """A function with a number; ``text`` has ``{0}`` for the operand and ``{1}`` for the number.

    :param accepts: the numbers that torch takes.
    :param clamped: the numbers with which the operand must be positive.
    """

    def draw_value(draw: Draw, pool: Pool, name: str) -> Choice:
        return Choice((name,), {"value": draw(st.sampled_from(values))})

    def infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
        value = number(attributes, "value")
        require(accepts(value), f"value {value} is none that {name} takes")
        return same_type(types, attributes)

    return Operator(
        name,
        signature,
        is_float,
        draw_value,
        infer,
        call=_call_valued(text, clamped, 0.1),
        attributes={"value": word},
        tags=_TAGS,
    )


def _needs_positive(exponent: float) -> bool:
    return exponent < 0 or exponent != int(exponent)


OPERATORS = (
    function("exp", "torch.exp({})", high=6.0),
    function("expm1", "torch.expm1({})", high=6.0),
    function("log", "torch.log({})", low=0.05),
    function("log10", "torch.log10({})", low=0.05),
    function("log1p", "torch.log1p({})", low=-0.9),
    function("sqrt", "torch.sqrt({})", low=0.0),
    function("rsqrt", "torch.rsqrt({})", low=0.05),
    function("reciprocal", "torch.reciprocal({})", low=0.1),
    function("erf", "torch.erf({})"),
    function("erfinv", "torch.erfinv({})", low=-0.95, high=0.95),
    function("logit", "torch.logit({})", low=0.05, high=0.95),
    function("sin", "torch.sin({})"),
    function("cos", "torch.cos({})"),
    function("tan", "torch.tan({})", low=-1.4, high=1.4),
    function("asin", "torch.asin({})", low=-1.0, high=1.0),
    function("acos", "torch.acos({})", low=-1.0, high=1.0),
    function("atan", "torch.atan({})"),
    function("sinh", "torch.sinh({})", low=-5.0, high=5.0),
    function("cosh", "torch.cosh({})", low=-5.0, high=5.0),
    function("asinh", "torch.asinh({})"),
    function("acosh", "torch.acosh({})", low=1.5),
    function("atanh", "torch.atanh({})", low=-0.95, high=0.95),
    function("ceil", "torch.ceil({})"),
    function("floor", "torch.floor({})"),
    function("round", "torch.round({})"),
    function("sign", "torch.sign({})"),
    function("silu", "F.silu({})"),
    function("selu", "F.selu({})"),
    function("hardsigmoid", "F.hardsigmoid({})"),
    valued(
        "elu",
        "aten::elu(Tensor self, Scalar alpha) -> Tensor",
        "F.elu({0}, alpha={1})",
        (1.0, 0.5, 2.0),
        "slope of the exponential",
    ),
    valued(
        "celu",
        "aten::celu(Tensor self, Scalar alpha) -> Tensor",
        "F.celu({0}, alpha={1})",
        (1.0, 0.5, 2.0),
        "scale of the exponential",
        lambda value: value != 0,
    ),
    valued(
        "leaky_relu",
        "aten::leaky_relu(Tensor self, Scalar negative_slope) -> Tensor",
        "F.leaky_relu({0}, negative_slope={1})",
        (0.01, 0.1, 0.5, 2.0),
        "slope below zero",
    ),
    valued(
        "pow",
        "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        "torch.pow({0}, {1})",
        (2, 3, 0.5, 2.0, -1.0, 1.5),
        "the exponent",
        clamped=_needs_positive,
    ),
    valued(
        "remainder",
        "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
        "torch.remainder({0}, {1})",
        (1.0, 0.75, 2.0, -0.5),
        "the divisor",
        lambda value: value != 0,
    ),
)
