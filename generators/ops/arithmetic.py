"""Elementwise arithmetic of two values, or of a value and a number on either side.

Operands broadcast; an operand may appear twice (``x + x``). With a number, the node has one
operand, the attribute ``scalar`` and the ``side`` on which the number stands; without one,
``scalar`` and ``side`` are null. ``add``, ``sub`` and ``mul`` also take integers, alone or with a
float, which makes a float (int8 wraps around, as torch's does). ``where`` carries its comparison
along: the condition is ``a > threshold``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.rules import Shape, broadcast, floats, is_float, number, one, typed, typed_as
from generators.sizes import BATCH, PLAIN, one_in, room, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, ShapeError, Types, require

SCALARS = st.sampled_from([1.0, 0.5, 2.0, -1.0, 0.1, 3, -0.25, 10.0])
WHOLE_SCALARS = st.sampled_from([1, 2, -1, 10])
NUMBERS = ("int8", "int16", "int32", "int64", "float32")
"""Dtypes of numbers; of two the result has the one that stands later."""
MOST_WHOLE = 16
"""Integers of an operand stay below it, so that a few products do not leave int32."""
SIDES = ("left", "right")
ROUNDING_MODES = ("floor", "trunc")


def draw_partner(draw: Draw, shape: Shape) -> Shape:
    """A shape that broadcasts with ``shape``, in either direction."""
    form = draw(st.sampled_from(["same", "same", "ones", "short", "single", "longer"]))
    if form == "ones":
        # each dimension as it is, or 1; a size that is 1 already may grow
        left = room(shape)
        sizes = []
        for size in shape:
            grown = draw(st.sampled_from(within(PLAIN, left))) if size == 1 else draw(st.sampled_from([1, size]))
            left //= grown if size == 1 else 1
            sizes.append(grown)
        return tuple(sizes)
    if form == "short" and len(shape) > 1:
        return shape[draw(st.integers(1, len(shape) - 1)) :]
    if form == "single":
        return (1,)
    if form == "longer" and len(shape) < 5:
        return (draw(st.sampled_from(within((*BATCH, 2), room(shape)))), *shape)
    return shape


def _draw_two(draw: Draw, pool: Pool, name: str) -> tuple[str, str]:
    """The value and a partner, in either order; sometimes the value twice."""
    if one_in(draw, 10):
        return name, name
    other = pool.operand(TensorType(draw_partner(draw, pool.type_of(name).shape)))
    return (other, name) if one_in(draw, 3) else (name, other)


def _infer_pair(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    return one(broadcast(*floats(types, 2)))


def _infer_mixed(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """Two values, or one value and a number."""
    alpha = number(attributes, "alpha") if "alpha" in attributes else 1
    if attributes["scalar"] is None:
        require(attributes["side"] is None, "side is for a scalar")
        shape = broadcast(*typed(types, NUMBERS, NUMBERS))
        dtype = max((type_.dtype for type_ in types), key=NUMBERS.index)
        require(dtype == "float32" or isinstance(alpha, int), f"alpha {alpha} is no integer, as the operands are")
        return one(shape, dtype=dtype)
    scalar = number(attributes, "scalar")
    if attributes["side"] not in SIDES:
        raise ShapeError(f"side is {attributes['side']!r}, not left or right")
    require(alpha == 1, "alpha is for two values")
    (shape,) = typed(types, NUMBERS)
    return one(shape, dtype=types[0].dtype if isinstance(scalar, int) else "float32")


def _draw_mixed(draw: Draw, pool: Pool, name: str) -> Choice:
    type_ = pool.type_of(name)
    if one_in(draw, 3):
        scalars = SCALARS if is_float(type_) else WHOLE_SCALARS
        return Choice((name,), {"scalar": draw(scalars), "side": draw(st.sampled_from(SIDES))})
    if is_float(type_) and not one_in(draw, 24):
        return Choice(_draw_two(draw, pool, name), {"scalar": None, "side": None})
    wanted = TensorType(type_.shape[-1:], draw(st.sampled_from(["int64", "int32"]))) if is_float(type_) else type_
    other = name if wanted == type_ and one_in(draw, 3) else pool.indices(wanted, MOST_WHOLE)
    return Choice((name, other), {"scalar": None, "side": None})


def _draw_sum(draw: Draw, pool: Pool, name: str) -> Choice:
    choice = _draw_mixed(draw, pool, name)
    real = all(is_float(pool.type_of(item)) for item in choice.inputs)
    two = choice.attributes["scalar"] is None and real
    alpha = draw(st.sampled_from([2, 0.5, -1])) if two and one_in(draw, 12) else 1
    return Choice(choice.inputs, {**choice.attributes, "alpha": alpha})


def _call_mixed(function: str, sign: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        if attributes.get("alpha", 1) != 1:
            return f"torch.{function}({operands[0]}, {operands[1]}, alpha={attributes['alpha']!r})"
        if attributes["scalar"] is None:
            return f"{operands[0]} {sign} {operands[1]}"
        # parentheses: a negative number binds tighter than some operators
        text = f"({attributes['scalar']!r})" if attributes["scalar"] < 0 else repr(attributes["scalar"])
        return f"{text} {sign} {operands[0]}" if attributes["side"] == "left" else f"{operands[0]} {sign} {text}"

    return call


def _draw_pair(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice(_draw_two(draw, pool, name))


def _call_pair(function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    return lambda operands, attributes, types: f"torch.{function}({operands[0]}, {operands[1]})"


def _infer_div(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    require(number(attributes, "scalar") != 0, "divides by zero, so that no result is finite")
    return one(*floats(types, 1))


def _draw_div(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"scalar": draw(st.sampled_from([2.0, 0.5, 8, -4.0, 3.0, 6.0]))})


def _call_div(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]} / {attributes['scalar']!r}"


def _infer_where(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    number(attributes, "threshold")
    return _infer_pair(types, attributes)


def _draw_where(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice(_draw_two(draw, pool, name), {"threshold": draw(st.sampled_from([0.0, 0.5, -0.1, 1.0]))})


def _call_where(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.where({operands[0]} > {attributes['threshold']!r}, {operands[0]}, {operands[1]})"


def _call_quotient(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]} / ({operands[1]}.abs() + 0.5)"


def _infer_rounded(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    if not isinstance(attributes["mode"], str) or attributes["mode"] not in ROUNDING_MODES:
        raise ShapeError(f"mode is {attributes['mode']!r}, not one of {', '.join(ROUNDING_MODES)}")
    return _infer_div(types, attributes)


def _draw_rounded(draw: Draw, pool: Pool, name: str) -> Choice:
    value = draw(st.sampled_from([0.5, 0.25, 2.0, -1.0]))
    return Choice((name,), {"scalar": value, "mode": draw(st.sampled_from(ROUNDING_MODES))})


def _call_rounded(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.div({operands[0]}, {attributes['scalar']!r}, rounding_mode={attributes['mode']!r})"


def _call_clamp(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.clamp({operands[0]}, {attributes['side']}={operands[1]})"


def _infer_clamp(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    if not isinstance(attributes["side"], str) or attributes["side"] not in ("min", "max"):
        raise ShapeError(f"side is {attributes['side']!r}, not min or max")
    return _infer_pair(types, attributes)


def _draw_clamp(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice(_draw_two(draw, pool, name), {"side": draw(st.sampled_from(["min", "max"]))})


_MIXED = {"scalar": "a number, or null with two operands", "side": "where the number stands: left, right or null"}
_SUM = {**_MIXED, "alpha": "factor of the second operand (1 with a scalar)"}
_TAGS = frozenset({"elementwise", "arithmetic"})

OPERATORS = (
    Operator(
        "add",
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        typed_as(*NUMBERS),
        _draw_sum,
        _infer_mixed,
        call=_call_mixed("add", "+"),
        attributes=_SUM,
        tags=_TAGS | {"join"},
    ),
    Operator(
        "sub",
        "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        typed_as(*NUMBERS),
        _draw_sum,
        _infer_mixed,
        call=_call_mixed("sub", "-"),
        attributes=_SUM,
        tags=_TAGS | {"join"},
    ),
    Operator(
        "mul",
        "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
        typed_as(*NUMBERS),
        _draw_mixed,
        _infer_mixed,
        call=_call_mixed("mul", "*"),
        attributes=_MIXED,
        tags=_TAGS | {"join"},
    ),
    Operator(
        "div",
        "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_div,
        _infer_div,
        call=_call_div,
        attributes={"scalar": "the divisor"},
        tags=_TAGS | {"rare"},
    ),
    Operator(
        "quotient",
        "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_pair,
        _infer_pair,
        call=_call_quotient,
        tags=_TAGS | {"join", "kin"},
    ),
    Operator(
        "div_rounded",
        "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        is_float,
        _draw_rounded,
        _infer_rounded,
        call=_call_rounded,
        attributes={"scalar": "the divisor", "mode": "how the quotient is rounded: floor or trunc"},
        tags=_TAGS | {"kin"},
    ),
    Operator(
        "clamp_by",
        "aten::clamp.Tensor(Tensor self, Tensor? min, Tensor? max) -> Tensor",
        is_float,
        _draw_clamp,
        _infer_clamp,
        call=_call_clamp,
        attributes={"side": "which bound the second operand is: min or max"},
        tags=_TAGS | {"join", "kin"},
    ),
    Operator(
        "minimum",
        "aten::minimum(Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_pair,
        _infer_pair,
        call=_call_pair("minimum"),
        tags=_TAGS | {"join", "shared"},
    ),
    Operator(
        "maximum",
        "aten::maximum(Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_pair,
        _infer_pair,
        call=_call_pair("maximum"),
        tags=_TAGS | {"join", "shared"},
    ),
    Operator(
        "where",
        "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        is_float,
        _draw_where,
        _infer_where,
        call=_call_where,
        attributes={"threshold": "the condition is: first operand above it"},
        tags=_TAGS | {"join", "shared"},
    ),
)
