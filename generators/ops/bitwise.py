"""Bitwise operators and shifts of integers; bitwise operators of truth values as well.

The second operand is a number (attribute ``number``) or a tensor of integers. Numbers and shifts are
small and not negative, so that no result leaves int32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.ops.comparison import INTEGERS
from generators.rules import broadcast, integer, one, typed, typed_as
from generators.sizes import one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

MOST_SHIFT = 8
_DTYPES = ("bool", *INTEGERS)
_ATTRIBUTES = {"number": "a number, or null with two operands"}
_TAGS = frozenset({"elementwise", "bitwise"})


def _infer(dtypes: tuple[str, ...]) -> Callable[[Types, Attributes], tuple[TensorType, ...]]:
    def infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
        if attributes["number"] is not None:
            integer(attributes, "number")
            (shape,) = typed(types, tuple(name for name in dtypes if name != "bool"))
            return one(shape, dtype=types[0].dtype)
        first, second = typed(types, dtypes, dtypes)
        require(types[0].dtype == types[1].dtype, "takes two operands of one dtype")
        return one(broadcast(first, second), dtype=types[0].dtype)

    return infer


def _draw(most: int) -> Callable[[Draw, Pool, str], Choice]:
    def draw_second(draw: Draw, pool: Pool, name: str) -> Choice:
        type_ = pool.type_of(name)
        if type_.dtype == "bool":
            return Choice((name, pool.operand(type_)), {"number": None})
        if one_in(draw, 2):
            return Choice((name,), {"number": draw(st.integers(0, most - 1))})
        return Choice((name, pool.indices(type_, most)), {"number": None})

    return draw_second


def _call(sign: str, function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        if len(operands) == 1:
            return f"{operands[0]} {sign} {attributes['number']!r}"
        return f"torch.{function}({operands[0]}, {operands[1]})"

    return call


def _shift_below(types: Types, attributes: Attributes) -> tuple[int | None, ...]:
    return (None,) if len(types) == 1 else (None, MOST_SHIFT)


def _binary(name: str, sign: str) -> Operator:
    return Operator(
        name,
        f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        typed_as(*_DTYPES),
        _draw(64),
        _infer(_DTYPES),
        call=_call(sign, name),
        attributes=_ATTRIBUTES,
        tags=_TAGS,
    )


def _shift(name: str, sign: str) -> Operator:
    return Operator(
        name,
        f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        typed_as(*INTEGERS),
        _draw(MOST_SHIFT),
        _infer(INTEGERS),
        call=_call(sign, name),
        below=_shift_below,
        attributes=_ATTRIBUTES,
        tags=_TAGS | {"narrow"},
    )


def _infer_not(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = typed(types, _DTYPES)
    return one(shape, dtype=types[0].dtype)


OPERATORS = (
    _binary("bitwise_and", "&"),
    _binary("bitwise_or", "|"),
    _binary("bitwise_xor", "^"),
    _shift("bitwise_left_shift", "<<"),
    _shift("bitwise_right_shift", ">>"),
    Operator(
        "bitwise_not",
        "aten::bitwise_not(Tensor self) -> Tensor",
        typed_as(*_DTYPES),
        lambda draw, pool, name: Choice((name,)),
        _infer_not,
        call=lambda operands, attributes, types: f"torch.bitwise_not({operands[0]})",
        tags=_TAGS,
    ),
)
