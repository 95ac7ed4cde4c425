"""Operators that take elements by index: embedding, gather and its kin, index_put and the scatters.

Indices are integer inputs or constants (``Pool.indices``), int64 as torch wants them, int32 where it
takes both. ``below`` of each entry says which size bounds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.ops.comparison import INTEGERS
from generators.rules import at_least, axis_of, broadcast, flag, integer, one, ranked, replaced, typed
from generators.sizes import BUDGET, PLAIN, between, draw_dim, one_in, room, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

LONG = ("int64",)


def _axis(types: Types, attributes: Attributes, place: int = 0) -> int:
    return axis_of(integer(attributes, "dim"), types[place].rank)


def _size_of_dim(types: Types, attributes: Attributes) -> tuple[int | None, ...]:
    """The second operand chooses along the dimension ``dim`` of the first."""
    return (None, types[0].shape[_axis(types, attributes)])


def _infer_embedding(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = typed(types, INTEGERS)
    at_least((integer(attributes, "rows"), integer(attributes, "columns")), 1, "rows and columns")
    return one((*shape, attributes["columns"]))


def _draw_embedding(draw: Draw, pool: Pool, name: str) -> Choice:
    columns = draw(st.sampled_from(within((4, 8, 1, 3), room(pool.type_of(name).shape))))
    return Choice((name,), {"rows": draw(st.sampled_from((10, 2, 5, 32))), "columns": columns})


def _draw_index(draw: Draw, pool: Pool, name: str, *dtypes: str) -> tuple[str, int]:
    """A list of indices into a drawn dimension, and that dimension."""
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    most = room(replaced(shape, dim % len(shape), 1))
    count = draw(st.sampled_from(within(PLAIN, most)))
    dtype = draw(st.sampled_from(dtypes))
    return pool.indices(TensorType((count,), dtype), shape[dim]), dim


def _infer_index_select(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, index = typed(types, "float32", INTEGERS)
    axis = _axis(types, attributes)
    require(len(index) <= 1, f"index has rank {len(index)}, not 1")
    count = index[0] if index else 1
    require(bool(shape) or count == 1, "a scalar has one element to choose")
    return one(replaced(shape, axis, count) if shape else ())


def _infer_index(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, index = typed(types, "float32", INTEGERS)
    require(len(shape) >= 1, "cannot choose from a scalar")
    axis = _axis(types, attributes)
    return one((*shape[:axis], *index, *shape[axis + 1 :]))


def _draw_index_select(draw: Draw, pool: Pool, name: str) -> Choice:
    index, dim = _draw_index(draw, pool, name, *reversed(INTEGERS))
    return Choice((name, index), {"dim": dim})


def _call_index_select(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.index_select({operands[0]}, {attributes['dim']!r}, {operands[1]})"


def _call_index(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    axis = axis_of(attributes["dim"], types[0].rank)
    return f"{operands[0]}[{', '.join([*[':'] * axis, operands[1]])}]"


def _infer_gather(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """A scalar counts as one element of rank 1."""
    shape, index = (sizes or (1,) for sizes in typed(types, "float32", LONG))
    axis = axis_of(integer(attributes, "dim"), len(shape))
    require(len(index) == len(shape), f"ranks {len(shape)} and {len(index)} differ")
    require(
        all(part <= size for place, (part, size) in enumerate(zip(index, shape, strict=True)) if place != axis),
        f"index {list(index)} exceeds {list(shape)} outside dim {axis}",
    )
    return one(types[1].shape)


def _draw_gather(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    axis = dim % len(shape)
    wanted = replaced(shape, axis, draw(st.sampled_from(within(PLAIN, room(replaced(shape, axis, 1))))))
    if one_in(draw, 4):
        wanted = tuple(size if place == axis else max(1, size - 1) for place, size in enumerate(wanted))
    return Choice((name, pool.indices(TensorType(wanted, "int64"), shape[axis])), {"dim": dim})


def _call_gather(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.gather({operands[0]}, {attributes['dim']!r}, {operands[1]})"


def _infer_along_dim(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """Outside the dimension that is chosen from, shape and index broadcast."""
    shape, index = typed(types, "float32", LONG)
    require(len(index) == len(shape), f"ranks {len(shape)} and {len(index)} differ")
    require(len(shape) >= 1, "cannot choose from a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    return one(replaced(broadcast(replaced(shape, axis, 1), replaced(index, axis, 1)), axis, index[axis]))


def _draw_along_dim(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    axis = dim % len(shape)
    count = draw(st.sampled_from(within(PLAIN, room(replaced(shape, axis, 1)))))
    wanted = replaced((1,) * len(shape) if one_in(draw, 2) else shape, axis, count)
    return Choice((name, pool.indices(TensorType(wanted, "int64"), shape[axis])), {"dim": dim})


def _call_along_dim(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.take_along_dim({operands[0]}, {operands[1]}, {attributes['dim']!r})"


def _infer_index_put(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, index, values = typed(types, "float32", LONG, "float32")
    flag(attributes, "accumulate")
    require(len(shape) >= 1, "cannot write into a scalar")
    wanted = (*index, *shape[1:])
    require(broadcast(values, wanted) == wanted, f"values {list(values)} do not expand to {list(wanted)}")
    return one(shape)


def _draw_index_put(draw: Draw, pool: Pool, name: str) -> Choice:
    """Distinct places, as a cache is written: what the last of two equal indices does is not defined."""
    shape = pool.type_of(name).shape
    index = pool.indices(TensorType((1,), "int64"), shape[0])
    values = pool.operand(TensorType((1, *shape[1:])))
    return Choice((name, index, values), {"accumulate": one_in(draw, 4)})


def _call_index_put(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    base, index, values = operands
    return f"torch.index_put({base}, ({index},), {values}, accumulate={attributes['accumulate']!r})"


def _first_dimension(types: Types, attributes: Attributes) -> tuple[int | None, ...]:
    return (None, types[0].shape[0], None)


def _infer_slice_scatter(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, part = typed(types, "float32", "float32")
    require(len(shape) >= 1, "cannot write into a scalar")
    axis = _axis(types, attributes)
    kept = range(shape[axis])[integer(attributes, "start") : integer(attributes, "stop")]
    wanted = replaced(shape, axis, len(kept))
    require(part == wanted, f"the part {list(part)} is not {list(wanted)}")
    return one(shape)


def _draw_slice_scatter(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    axis = dim % len(shape)
    start = between(draw, 0, shape[axis] - 1)
    stop = between(draw, start + 1, shape[axis])
    part = pool.operand(TensorType(replaced(shape, axis, stop - start)))
    return Choice((name, part), {"dim": dim, "start": start, "stop": stop})


def _call_slice_scatter(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    words = ", ".join(
        f"{key}={attributes[word]!r}" for key, word in (("dim", "dim"), ("start", "start"), ("end", "stop"))
    )
    return f"torch.slice_scatter({operands[0]}, {operands[1]}, {words})"


def _infer_select_scatter(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, part = typed(types, "float32", "float32")
    require(len(shape) >= 1, "cannot write into a scalar")
    axis, index = _axis(types, attributes), integer(attributes, "index")
    require(-shape[axis] <= index < shape[axis], f"index {index} is outside size {shape[axis]}")
    wanted = (*shape[:axis], *shape[axis + 1 :])
    require(part == wanted, f"the part {list(part)} is not {list(wanted)}")
    return one(shape)


def _draw_select_scatter(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    axis = dim % len(shape)
    part = pool.operand(TensorType((*shape[:axis], *shape[axis + 1 :])))
    return Choice((name, part), {"dim": dim, "index": draw_dim(draw, shape[axis])})


def _call_select_scatter(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.select_scatter({operands[0]}, {operands[1]}, {attributes['dim']!r}, {attributes['index']!r})"


_RARE = frozenset({"rare"})
_DIM = {"dim": "the dimension that the indices choose from"}

OPERATORS = (
    Operator(
        "embedding",
        "aten::embedding(Tensor weight, Tensor indices) -> Tensor",
        lambda type_: type_.dtype in INTEGERS and type_.rank <= 3 and type_.elements <= BUDGET // 4,
        _draw_embedding,
        _infer_embedding,
        module=lambda types, attributes: f"nn.Embedding({attributes['rows']!r}, {attributes['columns']!r})",
        below=lambda types, attributes: (attributes["rows"],),
        attributes={"rows": "entries of the table", "columns": "size of an entry"},
        tags=frozenset({"index", "narrow"}),
    ),
    Operator(
        "index_select",
        "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
        ranked(1),
        _draw_index_select,
        _infer_index_select,
        call=_call_index_select,
        below=_size_of_dim,
        attributes=_DIM,
        tags=_RARE,
    ),
    Operator(
        "index",
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        ranked(1),
        _draw_index_select,
        _infer_index,
        call=_call_index,
        below=_size_of_dim,
        attributes=_DIM,
        tags=_RARE,
    ),
    Operator(
        "gather",
        "aten::gather(Tensor self, int dim, Tensor index) -> Tensor",
        ranked(1),
        _draw_gather,
        _infer_gather,
        call=_call_gather,
        below=_size_of_dim,
        attributes=_DIM,
        tags=_RARE,
    ),
    Operator(
        "take_along_dim",
        "aten::take_along_dim(Tensor self, Tensor indices, int? dim) -> Tensor",
        ranked(1),
        _draw_along_dim,
        _infer_along_dim,
        call=_call_along_dim,
        below=_size_of_dim,
        attributes=_DIM,
        tags=frozenset({"kin"}),
    ),
    Operator(
        "index_put",
        "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        ranked(2),
        _draw_index_put,
        _infer_index_put,
        call=_call_index_put,
        below=_first_dimension,
        attributes={"accumulate": "adds to what is there"},
        tags=_RARE | {"join"},
    ),
    Operator(
        "slice_scatter",
        "aten::slice_scatter(Tensor self, Tensor src, int dim, SymInt? start, SymInt? end, SymInt step) -> Tensor",
        ranked(1),
        _draw_slice_scatter,
        _infer_slice_scatter,
        call=_call_slice_scatter,
        attributes={"dim": "the dimension", "start": "first place that is written", "stop": "end of the places"},
        tags=_RARE | {"join"},
    ),
    Operator(
        "select_scatter",
        "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
        ranked(2),
        _draw_select_scatter,
        _infer_select_scatter,
        call=_call_select_scatter,
        attributes={"dim": "the dimension", "index": "the place that is written"},
        tags=_RARE | {"join"},
    ),
)
