"""Normalizations, as modules that own their weights, and statistics along dimensions.

layer_norm and group_norm are taken apart upstream (mean, subtraction, variance, rsqrt, products), so
one node becomes a chain of quantized operators. batch_norm has the statistics of a new module (mean
0, variance 1) and is folded into a convolution before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import axis_of, flag, floats, integer, is_float, one, ranked, replaced, typed
from generators.sizes import draw_dim, one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

ALONG = {"dim": "the dimension that is reduced", "keepdim": "it stays with size 1"}
"""Attributes of a reduction of one dimension."""


def _infer_layer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    dims = integer(attributes, "dims")
    require(1 <= dims <= len(shape), f"dims {dims} is not from 1 to rank {len(shape)}")
    flag(attributes, "affine")
    return one(shape)


def _draw_layer(draw: Draw, pool: Pool, name: str) -> Choice:
    dims = 2 if pool.type_of(name).rank > 2 and one_in(draw, 4) else 1
    return Choice((name,), {"dims": dims, "affine": draw(st.sampled_from([True, True, False]))})


def _layer(types: Types, attributes: Attributes) -> str:
    rank = types[0].rank
    shape = [types[0].shape[axis] for axis in range(rank - attributes["dims"], rank)]
    return f"nn.LayerNorm({shape!r}, elementwise_affine={attributes['affine']!r})"


def _infer_group(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    groups = integer(attributes, "groups")
    require(len(shape) >= 2 and groups >= 1, "takes rank 2 or more and a positive number of groups")
    require(shape[1] % groups == 0, f"channels {shape[1]} do not divide by {groups} groups")
    require(TensorType(shape[1:]).elements > groups, "a group has more than one value")
    return one(shape)


def _draw_group(draw: Draw, pool: Pool, name: str) -> Choice:
    channels = pool.type_of(name).shape[1]
    possible = [groups for groups in (1, 2, 4) if channels % groups == 0]
    return Choice((name,), {"groups": draw(st.sampled_from(possible))})


def _group(types: Types, attributes: Attributes) -> str:
    return f"nn.GroupNorm({attributes['groups']!r}, {types[0].shape[1]})"


def _infer_batch(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(2 <= len(shape) <= 5, f"takes rank 2 to 5, not {len(shape)}")
    flag(attributes, "affine")
    return one(shape)


def _batch(types: Types, attributes: Attributes) -> str:
    return f"nn.BatchNorm{max(1, types[0].rank - 2)}d({types[0].shape[1]}, affine={attributes['affine']!r})"


def infer_along(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """A reduction of one dimension."""
    (shape,) = floats(types, 1)
    axis = axis_of(integer(attributes, "dim"), len(shape))
    keep = flag(attributes, "keepdim")
    return one(replaced(shape, axis, 1) if keep and shape else (*shape[:axis], *shape[axis + 1 :]))


def draw_along(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    return Choice((name,), {"dim": draw_dim(draw, rank), "keepdim": rank == 1 or draw(st.booleans())})


def _infer_varied(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    integer(attributes, "correction")
    return infer_along(types, attributes)


def _infer_place(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """A place along one dimension, of floats or of int8."""
    (shape,) = typed(types, ("float32", "int8"))
    (result,) = infer_along([TensorType(shape)], attributes)
    return one(result.shape, dtype="int64")


def _draw_varied(draw: Draw, pool: Pool, name: str) -> Choice:
    choice = draw_along(draw, pool, name)
    most = min(1, pool.type_of(name).shape[choice.attributes["dim"]] - 1)
    return Choice(choice.inputs, {**choice.attributes, "correction": draw(st.integers(0, most))})


def _reduction(name: str, signature: str, text: str) -> Operator:
    return Operator(
        name,
        signature,
        ranked(1),
        draw_along,
        infer_along,
        call=lambda operands, attributes, types: text.format(operands[0], **attributes),
        attributes=ALONG,
        tags=frozenset({"reduction", "kin"}),
    )


def _spread(name: str) -> Operator:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        return "torch.{}({}, dim={dim}, correction={correction}, keepdim={keepdim})".format(
            name,
            operands[0],
            **attributes,
        )

    return Operator(
        name,
        f"aten::{name}.correction(Tensor self, int[1]? dim, *, Scalar? correction, bool keepdim) -> Tensor",
        ranked(1),
        _draw_varied,
        _infer_varied,
        call=call,
        attributes={
            **ALONG,
            "correction": "what the divisor is less than the count",
        },
        tags=frozenset({"reduction", "kin"}),
    )


def _infer_scan(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    axis_of(integer(attributes, "dim"), len(shape))
    return one(shape)


def _draw_scan(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"dim": draw_dim(draw, pool.type_of(name).rank)})


_RARE = frozenset({"normalization", "rare"})

OPERATORS = (
    Operator(
        "layer_norm",
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> Tensor",
        ranked(1),
        _draw_layer,
        _infer_layer,
        module=_layer,
        attributes={"dims": "how many of the last dimensions", "affine": "has weight and bias"},
        tags=_RARE,
    ),
    Operator(
        "group_norm",
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps) -> Tensor",
        lambda type_: is_float(type_) and 3 <= type_.rank <= 5 and type_.elements > 4 * type_.shape[0],
        _draw_group,
        _infer_group,
        module=_group,
        attributes={"groups": "channel groups"},
        tags=_RARE,
    ),
    Operator(
        "batch_norm",
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? mean, Tensor? var, …) -> Tensor",
        ranked(3, 4),
        lambda draw, pool, name: Choice((name,), {"affine": draw(st.sampled_from([True, True, False]))}),
        _infer_batch,
        module=_batch,
        attributes={"affine": "has weight and bias"},
        tags=_RARE,
    ),
    _spread("var"),
    _spread("std"),
    _reduction(
        "norm",
        "aten::linalg_vector_norm(Tensor self, Scalar ord, int[1]? dim, bool keepdim) -> Tensor",
        "torch.linalg.vector_norm({0}, dim={dim}, keepdim={keepdim})",
    ),
    _reduction(
        "prod",
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim) -> Tensor",
        "torch.prod({0}.clamp(min=-2.0, max=2.0), dim={dim}, keepdim={keepdim})",
    ),
    Operator(
        "argmax",
        "aten::argmax(Tensor self, int? dim, bool keepdim) -> Tensor",
        lambda type_: type_.dtype in ("float32", "int8") and type_.rank >= 1,
        draw_along,
        _infer_place,
        call=lambda operands, attributes, types: "torch.argmax({}, dim={dim}, keepdim={keepdim})".format(
            operands[0], **attributes
        ),
        attributes=ALONG,
        tags=frozenset({"reduction", "kin"}),
    ),
    Operator(
        "cumsum",
        "aten::cumsum(Tensor self, int dim) -> Tensor",
        ranked(1),
        _draw_scan,
        _infer_scan,
        call=lambda operands, attributes, types: f"torch.cumsum({operands[0]}, dim={attributes['dim']!r})",
        attributes={"dim": "along which dimension"},
        tags=frozenset({"rare"}),
    ),
    Operator(
        "log_softmax",
        "aten::log_softmax.int(Tensor self, int dim) -> Tensor",
        ranked(1),
        _draw_scan,
        _infer_scan,
        call=lambda operands, attributes, types: f"torch.log_softmax({operands[0]}, dim={attributes['dim']!r})",
        attributes={"dim": "the dimension whose exponentials sum to 1"},
        tags=frozenset({"table", "kin"}),
    ),
)
