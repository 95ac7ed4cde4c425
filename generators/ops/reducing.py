"""Reductions of another form than one dimension to one value: extremes with their places, norms, totals.

``min`` and ``max`` have two results, the values and their places (int64). Where two elements are equal,
torch does not say which place it is. ``total`` leaves a scalar, a value of rank 0.
"""

from __future__ import annotations

from hypothesis import strategies as st

from generators.ops.normalization import ALONG, draw_along, infer_along
from generators.rules import floats, is_float, number, one, ranked, written
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

ORDERS = st.sampled_from([1.0, 3.0])
"""2 is what ``norm`` computes."""
_TAGS = frozenset({"reduction", "kin"})


def _infer_extreme(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (values,) = infer_along(types, attributes)
    return (values, TensorType(values.shape, "int64"))


def _infer_order(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    require(number(attributes, "order") >= 1, "the order is below 1, so that it is no norm")
    return infer_along(types, attributes)


def _draw_order(draw: Draw, pool: Pool, name: str) -> Choice:
    choice = draw_along(draw, pool, name)
    return Choice(choice.inputs, {**choice.attributes, "order": draw(ORDERS)})


def _infer_total(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    floats(types, 1)
    return one(())


def _extreme(name: str) -> Operator:
    return Operator(
        name,
        f"aten::{name}.dim(Tensor self, int dim, bool keepdim) -> (Tensor values, Tensor indices)",
        ranked(1),
        draw_along,
        _infer_extreme,
        call=written(f"torch.{name}({{0}}, dim={{dim}}, keepdim={{keepdim}})"),
        attributes=ALONG,
        tags=_TAGS,
    )


OPERATORS = (
    _extreme("min"),
    _extreme("max"),
    Operator(
        "linalg_vector_norm",
        "aten::linalg_vector_norm(Tensor self, Scalar ord, int[1]? dim, bool keepdim) -> Tensor",
        ranked(1),
        _draw_order,
        _infer_order,
        call=written("torch.linalg.vector_norm({0}, {order}, dim={dim}, keepdim={keepdim})"),
        attributes={**ALONG, "order": "the exponent, 1 or more"},
        tags=_TAGS,
    ),
    Operator(
        "total",
        "aten::sum(Tensor self) -> Tensor",
        is_float,
        lambda draw, pool, name: Choice((name,)),
        _infer_total,
        call=written("torch.sum({0})"),
        tags=_TAGS,
    ),
)
