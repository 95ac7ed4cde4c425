"""Attention: scaled dot products and the multi-head module, and two activations with weights or halves.

Upstream takes both attentions apart into products, softmax and additions. ``glu`` gates one half of a
dimension by the other; ``prelu`` has a slope a channel.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import axis_of, broadcast, flag, floats, integer, is_float, one, replaced
from generators.sizes import BUDGET, one_in, pick
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require


def _infer_sdpa(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    query, key, value = floats(types, 3)
    flag(attributes, "causal")
    require(min(len(query), len(key), len(value)) >= 2, "takes ranks of 2 or more")
    batch = broadcast(query[:-2] or (1,), key[:-2] or (1,), value[:-2] or (1,))
    batch = batch if max(len(query), len(key), len(value)) > 2 else ()
    require(query[-1] == key[-1], f"depths {query[-1]} and {key[-1]} differ")
    require(key[-2] == value[-2], f"lengths {key[-2]} and {value[-2]} of key and value differ")
    return one((*batch, query[-2], value[-1]))


def _draw_sdpa(draw: Draw, pool: Pool, name: str) -> Choice:
    type_ = pool.type_of(name)
    key = name if one_in(draw, 3) else pool.operand(type_, constants=False)
    value = key if one_in(draw, 3) else pool.operand(type_, constants=False)
    return Choice((name, key, value), {"causal": draw(st.booleans())})


def _call_sdpa(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"F.scaled_dot_product_attention({', '.join(operands)}, is_causal={attributes['causal']!r})"


def _attends(type_: TensorType) -> bool:
    return is_float(type_) and 3 <= type_.rank <= 4 and type_.elements * type_.shape[-2] <= 4 * BUDGET


def _infer_heads(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, key, value = floats(types, 3)
    heads = integer(attributes, "heads")
    require(shape == key == value, "takes three operands of one shape")
    require(len(shape) == 3, f"takes rank 3, not {len(shape)}")
    require(heads >= 1 and shape[2] % heads == 0, f"depth {shape[2]} does not divide by {heads} heads")
    batch, length, depth = shape
    return (TensorType((batch, length, depth)), TensorType((batch, length, length)))


def _draw_heads(draw: Draw, pool: Pool, name: str) -> Choice:
    depth = pool.type_of(name).shape[-1]
    return Choice(
        (name, name, name), {"heads": draw(st.sampled_from([heads for heads in (1, 2, 4) if depth % heads == 0]))}
    )


def _infer_glu(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot halve a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    require(shape[axis] % 2 == 0, f"size {shape[axis]} is odd")
    return one(replaced(shape, axis, shape[axis] // 2))


def _draw_glu(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    return Choice((name,), {"dim": pick(draw, even + [axis - len(shape) for axis in even])})


def _infer_prelu(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    flag(attributes, "channelwise")
    require(len(shape) >= 2 or not attributes["channelwise"], "a slope a channel needs rank 2 or more")
    return one(shape)


def _prelu(types: Types, attributes: Attributes) -> str:
    return f"nn.PReLU({types[0].shape[1] if attributes['channelwise'] else 1})"


OPERATORS = (
    Operator(
        "sdpa",
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, *, bool is_causal) -> Tensor",
        _attends,
        _draw_sdpa,
        _infer_sdpa,
        call=_call_sdpa,
        attributes={"causal": "a query sees no later key"},
        tags=frozenset({"product", "rare"}),
    ),
    Operator(
        "multihead_attention",
        "nn.MultiheadAttention(embed_dim, num_heads, batch_first=True) of one value with itself",
        lambda type_: _attends(type_) and type_.rank == 3,
        _draw_heads,
        _infer_heads,
        module=lambda types, attributes: (
            f"nn.MultiheadAttention({types[0].shape[2]}, {attributes['heads']!r}, batch_first=True)"
        ),
        attributes={"heads": "attention heads"},
        tags=frozenset({"product", "narrow", "strided"}),
    ),
    Operator(
        "glu",
        "aten::glu(Tensor self, int dim) -> Tensor",
        lambda type_: is_float(type_) and any(size % 2 == 0 for size in type_.shape),
        _draw_glu,
        _infer_glu,
        call=lambda operands, attributes, types: f"F.glu({operands[0]}, dim={attributes['dim']!r})",
        attributes={"dim": "the dimension that is halved"},
        tags=frozenset({"rare"}),
    ),
    Operator(
        "prelu",
        "aten::prelu(Tensor self, Tensor weight) -> Tensor",
        lambda type_: is_float(type_) and 2 <= type_.rank <= 4,
        lambda draw, pool, name: Choice((name,), {"channelwise": draw(st.booleans())}),
        _infer_prelu,
        module=_prelu,
        attributes={"channelwise": "a slope a channel, not one for all"},
        tags=frozenset({"elementwise", "rare"}),
    ),
)
