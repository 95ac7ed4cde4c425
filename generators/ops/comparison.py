"""Comparisons, logic, and what chooses by a truth value; casts to float, and of floats to integers.

A comparison's result is a tensor of truth values (dtype bool), which only the operators of this
module and ``bitwise`` read. ``where`` of ``arithmetic`` carries its comparison along; ``choose``
reads a mask, which may also be an input or a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.ops.arithmetic import draw_partner
from generators.rules import axes_of, broadcast, flag, floats, integers, is_float, number, one, typed, typed_as
from generators.sizes import one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

INTEGERS = ("int32", "int64")
_WHOLE = ("int8", "int16", "int32")
"""What a float is cast to; the bounds of the narrowest hold for all, since beyond them the result is undefined."""
_CASTABLE = ("bool", *_WHOLE, "int64")
_NUMBERS = st.sampled_from([0.0, 0.5, -0.1, 1.0, 2])
_FILLS = st.sampled_from([0.0, -1.0, 1.0, -100.0, 0.3])


def is_truth(type_: TensorType) -> bool:
    return type_.dtype == "bool"


def _infer_comparison(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    if attributes["scalar"] is not None:
        number(attributes, "scalar")
        (shape,) = typed(types, "float32")
        return one(shape, dtype="bool")
    return one(broadcast(*typed(types, "float32", "float32")), dtype="bool")


def _draw_comparison(draw: Draw, pool: Pool, name: str) -> Choice:
    if one_in(draw, 3):
        return Choice((name,), {"scalar": draw(_NUMBERS)})
    other = pool.operand(TensorType(draw_partner(draw, pool.type_of(name).shape)))
    return Choice((other, name) if one_in(draw, 3) else (name, other), {"scalar": None})


def _comparison(name: str) -> Operator:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        other = repr(attributes["scalar"]) if len(operands) == 1 else operands[1]
        return f"torch.{name}({operands[0]}, {other})"

    return Operator(
        name,
        f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_comparison,
        _infer_comparison,
        call=call,
        attributes={"scalar": "a number, or null with two operands"},
        tags=frozenset({"elementwise", "comparison", "kin"}),
    )


def _infer_pair(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    return one(broadcast(*typed(types, "bool", "bool")), dtype="bool")


def _draw_pair(draw: Draw, pool: Pool, name: str) -> Choice:
    other = pool.operand(TensorType(draw_partner(draw, pool.type_of(name).shape), "bool"))
    return Choice((name, other))


def _logical(name: str) -> Operator:
    return Operator(
        name,
        f"aten::{name}(Tensor self, Tensor other) -> Tensor",
        is_truth,
        _draw_pair,
        _infer_pair,
        call=lambda operands, attributes, types: f"torch.{name}({operands[0]}, {operands[1]})",
        tags=frozenset({"elementwise", "logic", "narrow"}),
    )


def _infer_not(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = typed(types, "bool")
    return one(shape, dtype="bool")


def _infer_quantified(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = typed(types, "bool")
    axes = axes_of(integers(attributes, "dims"), len(shape)) or range(len(shape))
    keep = flag(attributes, "keepdim")
    return one(
        (1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes), dtype="bool"
    )


def _draw_quantified(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    count = draw(st.sampled_from([1, 1, 2])) if rank > 1 else 1
    dims = sorted(draw(st.permutations(range(rank)))[:count])
    return Choice((name,), {"dims": dims, "keepdim": len(dims) == rank or draw(st.booleans())})


def _quantified(name: str) -> Operator:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        dims = attributes["dims"]
        text = repr(dims[0]) if len(dims) == 1 else repr(tuple(dims))
        return f"torch.{name}({operands[0]}, dim={text}, keepdim={attributes['keepdim']!r})"

    return Operator(
        name,
        f"aten::{name}.dims(Tensor self, int[]? dim, bool keepdim) -> Tensor",
        lambda type_: is_truth(type_) and type_.rank >= 1,
        _draw_quantified,
        _infer_quantified,
        call=call,
        attributes={"dims": "reduced dimensions", "keepdim": "they stay with size 1"},
        tags=frozenset({"reduction", "logic"}),
    )


def _mask_of(draw: Draw, pool: Pool, name: str) -> str:
    """A mask that broadcasts to a value, of its shape or with ones."""
    shape = pool.type_of(name).shape
    if len(shape) > 1 and one_in(draw, 3):
        shape = shape[1:] if draw(st.booleans()) else (1, *shape[1:])
    return pool.operand(TensorType(shape, "bool"))


def _infer_masked_fill(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    number(attributes, "value")
    return one(broadcast(*typed(types, "float32", "bool")))


def _draw_masked_fill(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name, _mask_of(draw, pool, name)), {"value": draw(_FILLS)})


def _call_masked_fill(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]}.masked_fill({operands[1]}, {attributes['value']!r})"


def _infer_choose(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    return one(broadcast(*typed(types, "bool", "float32", "float32")))


def _draw_choose(draw: Draw, pool: Pool, name: str) -> Choice:
    other = pool.operand(TensorType(draw_partner(draw, pool.type_of(name).shape)))
    mask = _mask_of(draw, pool, name)
    return Choice((mask, other, name) if one_in(draw, 3) else (mask, name, other))


def _call_choose(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.where({', '.join(operands)})"


def _infer_cast(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = typed(types, _CASTABLE)
    return one(shape)


def _infer_integer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    dtype = attributes["dtype"]
    require(dtype in _WHOLE, f"dtype is {dtype!r}, not one of {', '.join(_WHOLE)}")
    return one(shape, dtype=str(dtype))


def _draw_integer(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"dtype": draw(st.sampled_from(_WHOLE))})


def _plain(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,))


def _calling(text: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    return lambda operands, attributes, types: text.format(operands[0])


OPERATORS = (
    *(_comparison(name) for name in ("gt", "ge", "lt", "le", "eq", "ne")),
    *(_logical(name) for name in ("logical_and", "logical_or", "logical_xor")),
    Operator(
        "logical_not",
        "aten::logical_not(Tensor self) -> Tensor",
        is_truth,
        _plain,
        _infer_not,
        call=_calling("torch.logical_not({})"),
        tags=frozenset({"elementwise", "logic", "narrow"}),
    ),
    _quantified("any"),
    _quantified("all"),
    Operator(
        "masked_fill",
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        is_float,
        _draw_masked_fill,
        _infer_masked_fill,
        call=_call_masked_fill,
        attributes={"value": "what is put where the mask is true"},
        tags=frozenset({"elementwise", "rare"}),
    ),
    Operator(
        "choose",
        "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_choose,
        _infer_choose,
        call=_call_choose,
        tags=frozenset({"elementwise", "join", "shared", "rare"}),
    ),
    Operator(
        "to_float",
        "aten::to.dtype(Tensor self, ScalarType dtype) -> Tensor",
        typed_as(*_CASTABLE),
        _plain,
        _infer_cast,
        call=_calling("{}.to(torch.float32)"),
        tags=frozenset({"elementwise", "cast", "narrow"}),
    ),
    Operator(
        "to_integer",
        "aten::to.dtype(Tensor self, ScalarType dtype) -> Tensor",
        is_float,
        _draw_integer,
        _infer_integer,
        call=lambda operands, attributes, types: f"{operands[0]}.clamp(-100.0, 100.0).to(torch.{attributes['dtype']})",
        attributes={"dtype": f"what the fraction is dropped for: {', '.join(_WHOLE)}"},
        tags=frozenset({"elementwise", "cast", "rare"}),
    ),
)
