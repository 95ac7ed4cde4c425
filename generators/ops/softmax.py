"""softmax along one dimension, kept apart from the elementwise tables because it has a dim.

Upstream decomposes it (amax, sub, exp, sum, reciprocal, mul), so one node here becomes a chain
of quantized operators there; the last dimension is what attention uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import axis_of, floats, integer, is_float, one
from generators.sizes import draw_dim, one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types


def _infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    axis_of(integer(attributes, "dim"), len(shape))
    return one(shape)


def _draw(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    dim = draw_dim(draw, rank) if one_in(draw, 3) else draw(st.sampled_from([-1, rank - 1]))
    return Choice((name,), {"dim": dim})


def _call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.softmax({operands[0]}, dim={attributes['dim']!r})"


OPERATORS = (
    Operator(
        "softmax",
        "aten::softmax.int(Tensor self, int dim) -> Tensor",
        lambda type_: is_float(type_) and type_.rank >= 1,
        _draw,
        _infer,
        call=_call,
        attributes={"dim": "the dimension that sums to 1"},
        tags=frozenset({"table"}),
    ),
)
