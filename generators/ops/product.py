"""Matrix products: linear (owns its weights), matmul, bmm and addmm.

The second factor of matmul and bmm is any value of a fitting type: an activation (attention) or
a constant. A batch dimension may broadcast in matmul, never in bmm.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import Shape, broadcast, flag, floats, integer, is_float, number, one
from generators.sizes import BUDGET, PLAIN, one_in, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require


def _infer_linear(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    outer = integer(attributes, "out_features")
    flag(attributes, "bias")
    require(len(shape) >= 1, "takes rank 1 or more")
    require(outer >= 1, f"out_features is {outer}, not a positive number")
    return one((*shape[:-1], outer))


def _rows(shape: Shape) -> int:
    return TensorType(shape[:-1]).elements


def _draw_linear(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    outer = draw(st.sampled_from(within(PLAIN, BUDGET // _rows(shape))))
    return Choice((name,), {"out_features": outer, "bias": draw(st.sampled_from([True, True, False]))})


def _linear(types: Types, attributes: Attributes) -> str:
    return f"nn.Linear({types[0].shape[-1]}, {attributes['out_features']!r}, bias={attributes['bias']!r})"


def _infer_matmul(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    left, right = floats(types, 2)
    require(min(len(left), len(right)) >= 1, "takes rank 1 or more")
    inner = right[-2] if len(right) > 1 else right[0]
    require(left[-1] == inner, f"inner sizes {left[-1]} and {inner} differ")
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    return one((*broadcast(left[:-2], right[:-2]), *rows, *columns))


def _draw_matmul(draw: Draw, pool: Pool, name: str) -> Choice:
    """The value is the left factor or the right one; batch dims of the other may be missing or 1."""
    shape = pool.type_of(name).shape
    batch, (rows, columns) = shape[:-2], shape[-2:]
    on_left = draw(st.sampled_from([True, True, False]))
    kept, inner = (rows, columns) if on_left else (columns, rows)
    # the other factor and the result both stay within the budget
    elements = max(1, TensorType(batch).elements)
    most = max(1, BUDGET // (elements * max(kept, inner)))
    free = draw(st.sampled_from(within(PLAIN, most)))
    form = draw(st.sampled_from(["same", "same", "plain", "ones"]))
    other_batch = {"same": batch, "plain": (), "ones": (1,) * len(batch)}[form]
    wanted = (*other_batch, inner, free) if on_left else (*other_batch, free, inner)
    other = pool.operand(TensorType(wanted))
    return Choice((name, other) if on_left else (other, name))


def _call_matmul(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.matmul({operands[0]}, {operands[1]})"


def _infer_bmm(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    left, right = floats(types, 2)
    require(len(left) == len(right) == 3, f"takes rank 3 twice, not {len(left)} and {len(right)}")
    require(left[0] == right[0], f"batches {left[0]} and {right[0]} differ")
    require(left[2] == right[1], f"inner sizes {left[2]} and {right[1]} differ")
    return one((left[0], left[1], right[2]))


def _draw_bmm(draw: Draw, pool: Pool, name: str) -> Choice:
    batch, rows, columns = pool.type_of(name).shape
    if rows == columns and one_in(draw, 4):
        return Choice((name, name))
    if draw(st.sampled_from([True, True, False])):
        free = draw(st.sampled_from(within(PLAIN, BUDGET // (batch * max(rows, columns)))))
        return Choice((name, pool.operand(TensorType((batch, columns, free)))))
    free = draw(st.sampled_from(within(PLAIN, BUDGET // (batch * max(rows, columns)))))
    return Choice((pool.operand(TensorType((batch, free, rows))), name))


def _call_bmm(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.bmm({operands[0]}, {operands[1]})"


def _infer_addmm(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    bias, left, right = floats(types, 3)
    number(attributes, "beta")
    number(attributes, "alpha")
    require(len(left) == len(right) == 2, f"multiplies matrices, not ranks {len(left)} and {len(right)}")
    require(left[1] == right[0], f"inner sizes {left[1]} and {right[0]} differ")
    result = (left[0], right[1])
    require(broadcast(bias, result) == result, f"bias {list(bias)} does not expand to {list(result)}")
    return one(result)


def _draw_addmm(draw: Draw, pool: Pool, name: str) -> Choice:
    rows, inner = pool.type_of(name).shape
    free = draw(st.sampled_from(within(PLAIN, BUDGET // max(rows, inner))))
    right = pool.operand(TensorType((inner, free)))
    bias = pool.operand(TensorType(draw(st.sampled_from([(free,), (rows, free), (1, free), (1,), (rows, 1)]))))
    scales = draw(st.sampled_from([(1, 1), (1, 1), (1, 1), (1, 0.5), (2, 1)]))
    return Choice((bias, name, right), {"beta": scales[0], "alpha": scales[1]})


def _call_addmm(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    scales = "".join(f", {key}={attributes[key]!r}" for key in ("beta", "alpha") if attributes[key] != 1)
    return f"torch.addmm({', '.join(operands)}{scales})"


OPERATORS = (
    Operator(
        "linear",
        "aten::linear(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
        lambda type_: is_float(type_) and type_.rank >= 1 and type_.shape[-1] <= 256,
        _draw_linear,
        _infer_linear,
        module=_linear,
        attributes={"out_features": "size of the last dimension of the result", "bias": "has a bias"},
        tags=frozenset({"product"}),
    ),
    Operator(
        "matmul",
        "aten::matmul(Tensor self, Tensor other) -> Tensor",
        lambda type_: is_float(type_) and 2 <= type_.rank <= 4,
        _draw_matmul,
        _infer_matmul,
        call=_call_matmul,
        tags=frozenset({"product"}),
    ),
    Operator(
        "bmm",
        "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
        lambda type_: is_float(type_) and type_.rank == 3,
        _draw_bmm,
        _infer_bmm,
        call=_call_bmm,
        tags=frozenset({"product", "narrow"}),
    ),
    Operator(
        "addmm",
        "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha) -> Tensor",
        lambda type_: is_float(type_) and type_.rank == 2,
        _draw_addmm,
        _infer_addmm,
        call=_call_addmm,
        attributes={"beta": "factor of the bias", "alpha": "factor of the product"},
        tags=frozenset({"product", "narrow"}),
    ),
)
