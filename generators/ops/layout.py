"""Operators that rename or reorder dimensions: view, reshape, permute, transpose, (un)squeeze, flatten.

No arithmetic happens here, so a mismatch behind one of these is never a matter of rounding.

``view`` needs an operand whose elements lie in memory in the order of its dimensions. A shape
rule cannot see strides; the tag "dense" asks the pool of ``generators.graph_pool`` for such a value, and
"strided" tells it which results may not be one. A hand-edited case that views a permuted value
fails where torch does, in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.rules import MOST_RANK, axes_of, axis_of, floats, integer, integers, is_float, one, ranked, written
from generators.sizes import draw_dim, either_end, one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require


def _infer_shape(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """view and reshape: the same number of elements; one size may be -1."""
    (shape,) = floats(types, 1)
    wanted = integers(attributes, "shape")
    elements = TensorType(shape).elements
    require(all(size >= 1 or size == -1 for size in wanted), f"shape {list(wanted)} holds a size that is not positive")
    require(wanted.count(-1) <= 1, f"shape {list(wanted)} holds -1 twice")
    known = TensorType(tuple(size for size in wanted if size != -1)).elements
    result = tuple(elements // known if size == -1 else size for size in wanted)
    require(TensorType(result).elements == elements, f"shape {list(wanted)} does not hold {elements} elements")
    return one(result)


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def _factored(draw: Draw, elements: int, rank: int) -> list[int]:
    """Any shape of this rank with this many elements."""
    sizes = []
    for _ in range(rank - 1):
        size = draw(st.sampled_from(_divisors(elements)[:12]))
        sizes.append(size)
        elements //= size
    return [*sizes, elements]


def _draw_shape(draw: Draw, pool: Pool, name: str) -> Choice:
    """Merge two neighbours, split one dimension, or change everything."""
    shape = list(pool.type_of(name).shape)
    forms = ["factor"] + ["merge"] * 2 * (len(shape) > 1) + ["split"] * 2 * (0 < len(shape) < MOST_RANK)
    form = draw(st.sampled_from(forms))
    if form == "merge":
        axis = draw(st.integers(0, len(shape) - 2))
        result = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
    elif form == "split":
        axis = draw(st.integers(0, len(shape) - 1))
        size = draw(st.sampled_from(_divisors(shape[axis])))
        result = [*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]]
    else:
        result = _factored(draw, TensorType(tuple(shape)).elements, draw(st.integers(1, MOST_RANK)))
    if one_in(draw, 4):
        result[draw(st.integers(0, len(result) - 1))] = -1
    return Choice((name,), {"shape": result})


def _call_shape(function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    return lambda operands, attributes, types: f"{operands[0]}.{function}({tuple(attributes['shape'])!r})"


def _infer_permute(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    dims = integers(attributes, "dims")
    require(len(dims) == len(shape), f"dims {list(dims)} do not fit rank {len(shape)}")
    return one(shape[axis] for axis in axes_of(dims, len(shape)))


# what models do: NCHW to NHWC and back, the heads of attention, patches
_KNOWN_ORDERS = {
    3: [[0, 2, 1], [1, 0, 2]],
    4: [[0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3], [0, 1, 3, 2]],
    5: [[0, 1, 3, 2, 4], [0, 2, 1, 3, 4], [0, 2, 3, 4, 1], [2, 0, 3, 1, 4], [0, 4, 1, 2, 3]],
}


def _draw_permute(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    known = _KNOWN_ORDERS.get(rank)
    order = draw(st.sampled_from(known) if known and not one_in(draw, 3) else st.permutations(range(rank)))
    if one_in(draw, 5):
        order = [axis - rank for axis in order]
    return Choice((name,), {"dims": list(order)})


def _infer_transpose(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    first = axis_of(integer(attributes, "dim0"), len(shape))
    second = axis_of(integer(attributes, "dim1"), len(shape))
    sizes = list(shape)
    if sizes:
        sizes[first], sizes[second] = sizes[second], sizes[first]
    return one(sizes)


def _draw_transpose(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    return Choice((name,), {"dim0": draw_dim(draw, rank), "dim1": draw_dim(draw, rank)})


def _infer_squeeze(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    match attributes["dim"]:
        case None:
            axes = tuple(range(len(shape)))
        case list() | tuple():
            axes = axes_of(integers(attributes, "dim"), len(shape))
        case _:
            axes = (axis_of(integer(attributes, "dim"), len(shape)),)
    return one(size for axis, size in enumerate(shape) if size != 1 or axis not in axes)


def _draw_squeeze(draw: Draw, pool: Pool, name: str) -> Choice:
    """Any dim, also one with nothing to squeeze; never down to a scalar."""
    shape = pool.type_of(name).shape
    single = [axis for axis, size in enumerate(shape) if size == 1]
    forms = ["dim"] * (len(shape) > 1 or not single) + ["all"] * (len(single) < len(shape))
    form = draw(st.sampled_from(forms))
    if form == "all":
        return Choice((name,), {"dim": None})
    axes = single if single and not one_in(draw, 6) else range(len(shape))
    axis = draw(st.sampled_from(axes))
    if len(single) >= 2 and len(shape) >= 3 and one_in(draw, 3):
        return Choice((name,), {"dim": [single[0], single[1]]})
    return Choice((name,), {"dim": either_end(draw, axis, len(shape))})


def _call_squeeze(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]}.squeeze({'' if attributes['dim'] is None else repr(attributes['dim'])})"


def _infer_unsqueeze(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    axis = axis_of(integer(attributes, "dim"), len(shape) + 1)
    return one((*shape[:axis], 1, *shape[axis:]))


def _draw_unsqueeze(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"dim": draw_dim(draw, pool.type_of(name).rank + 1)})


def _infer_flatten(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    start = axis_of(integer(attributes, "start"), len(shape))
    end = axis_of(integer(attributes, "end"), len(shape))
    require(start <= end, f"start {start} lies behind end {end}")
    return one((*shape[:start], TensorType(shape[start : end + 1]).elements, *shape[end + 1 :]))


def _draw_flatten(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    start = draw(st.integers(0, rank - 1))
    end = draw(st.integers(start, rank - 1)) if one_in(draw, 3) else rank - 1
    return Choice((name,), {"start": either_end(draw, start, rank), "end": either_end(draw, end, rank)})


def _squeezable(type_: TensorType) -> bool:
    """Something remains after squeezing."""
    return is_float(type_) and type_.shape != (1,) and type_.rank >= 1


_LAYOUT = frozenset({"layout"})
_STRIDED = _LAYOUT | {"strided"}

OPERATORS = (
    Operator(
        "view",
        "aten::view(Tensor self, SymInt[] size) -> Tensor",
        ranked(1),
        _draw_shape,
        _infer_shape,
        call=_call_shape("view"),
        attributes={"shape": "the new sizes, one may be -1"},
        tags=_LAYOUT | {"dense", "seed"},
    ),
    Operator(
        "reshape",
        "aten::reshape(Tensor self, SymInt[] shape) -> Tensor",
        ranked(1),
        _draw_shape,
        _infer_shape,
        call=_call_shape("reshape"),
        attributes={"shape": "the new sizes, one may be -1"},
        tags=_LAYOUT,
    ),
    Operator(
        "permute",
        "aten::permute(Tensor self, int[] dims) -> Tensor",
        ranked(2),
        _draw_permute,
        _infer_permute,
        call=written("{}.permute({dims})"),
        attributes={"dims": "the old dim of each new one"},
        tags=_STRIDED,
    ),
    Operator(
        "transpose",
        "aten::transpose.int(Tensor self, int dim0, int dim1) -> Tensor",
        ranked(2),
        _draw_transpose,
        _infer_transpose,
        call=written("{}.transpose({dim0}, {dim1})"),
        attributes={"dim0": "a dimension", "dim1": "the one it changes places with"},
        tags=_STRIDED,
    ),
    Operator(
        "squeeze",
        "aten::squeeze.dims(Tensor self, int[] dim) -> Tensor",
        _squeezable,
        _draw_squeeze,
        _infer_squeeze,
        call=_call_squeeze,
        attributes={"dim": "null for all, a dim, or a list of dims"},
        tags=_LAYOUT,
    ),
    Operator(
        "unsqueeze",
        "aten::unsqueeze(Tensor self, int dim) -> Tensor",
        ranked(0, MOST_RANK - 1),
        _draw_unsqueeze,
        _infer_unsqueeze,
        call=written("{}.unsqueeze({dim})"),
        attributes={"dim": "where the new dimension goes"},
        tags=_LAYOUT,
    ),
    Operator(
        "flatten",
        "aten::flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
        ranked(1),
        _draw_flatten,
        _infer_flatten,
        call=written("torch.flatten({}, {start}, {end})"),
        attributes={"start": "first merged dimension", "end": "last merged dimension"},
        tags=_LAYOUT,
    ),
)
