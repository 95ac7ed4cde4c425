"""Operators that join or divide tensors: cat, stack, split, chunk.

cat and stack put all operands into one quantization domain, which is where seeds 000, 001 and
002 live: the strategies mix activations with constants, repeat an operand, and vary the sizes
along the joined dimension. split and chunk have several results (``n3.0``, ``n3.1``); where only
one comes out, the source takes it out of torch's tuple so that the value keeps its plain name.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import axis_of, floats, integer, integers, is_float, one, replaced, some_floats
from generators.sizes import BUDGET, PLAIN, between, draw_dim, one_in, pick, room, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require


def _joins(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank >= 1 and type_.elements <= BUDGET // 2


def _divides(type_: TensorType) -> bool:
    return is_float(type_) and max(type_.shape, default=1) >= 2


def _infer_cat(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shapes = some_floats(types)
    first = shapes[0]
    require(len(first) >= 1, "cannot join scalars")
    axis = axis_of(integer(attributes, "dim"), len(first))
    for shape in shapes:
        require(len(shape) == len(first), f"ranks {len(first)} and {len(shape)} differ")
        require(
            replaced(shape, axis, 0) == replaced(first, axis, 0),
            f"shapes {list(first)} and {list(shape)} differ outside dim {axis}",
        )
    return one(replaced(first, axis, sum(shape[axis] for shape in shapes)))


def _draw_cat(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    axis = dim % len(shape)
    left = room(replaced(shape, axis, 1)) - shape[axis]
    names = [name]
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        if left < 1:
            break
        if shape[axis] <= left and not one_in(draw, 3):
            # the same type: whatever the pool has, often the very same tensor
            again = shape[axis]
            other = name if one_in(draw, 5) else pool.operand(TensorType(shape))
        else:
            again = draw(st.sampled_from(within(PLAIN, left)))
            other = pool.operand(TensorType(replaced(shape, axis, again)))
        left -= again
        names.append(other)
    if one_in(draw, 3):
        names.reverse()
    return Choice(tuple(names), {"dim": dim})


def _call_cat(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.cat([{', '.join(operands)}], dim={attributes['dim']!r})"


def _infer_stack(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shapes = some_floats(types)
    require(len(set(shapes)) == 1, f"shapes {', '.join(str(list(s)) for s in shapes)} differ")
    axis = axis_of(integer(attributes, "dim"), len(shapes[0]) + 1)
    return one((*shapes[0][:axis], len(shapes), *shapes[0][axis:]))


def _draw_stack(draw: Draw, pool: Pool, name: str) -> Choice:
    type_ = pool.type_of(name)
    count = draw(st.sampled_from(within((2, 2, 3), room(type_.shape))))
    names = [name] + [name if one_in(draw, 5) else pool.operand(type_) for _ in range(count - 1)]
    return Choice(tuple(names), {"dim": draw_dim(draw, type_.rank + 1)})


def _call_stack(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.stack([{', '.join(operands)}], dim={attributes['dim']!r})"


def _along(size: int, axis: int, shape: tuple[int, ...], parts: Sequence[int]) -> tuple[TensorType, ...]:
    return tuple(TensorType(replaced(shape, axis, part)) for part in parts)


def _even(size: int, part: int) -> list[int]:
    """``size`` in parts of ``part``; the last one may be smaller."""
    return [min(part, size - start) for start in range(0, size, part)]


def _infer_split(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot divide a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    size = shape[axis]
    if isinstance(attributes["sizes"], (list, tuple)):
        parts = list(integers(attributes, "sizes"))
        require(bool(parts) and min(parts) >= 0 and sum(parts) == size, f"sizes {parts} do not add up to {size}")
    else:
        part = integer(attributes, "sizes")
        require(part >= 1, f"sizes is {part}, not a positive number")
        parts = _even(size, part)
    return _along(size, axis, shape, parts)


def _divisible_dim(draw: Draw, shape: tuple[int, ...]) -> int:
    axes = [axis for axis, size in enumerate(shape) if size >= 2]
    return pick(draw, axes + [axis - len(shape) for axis in axes])


def _draw_split(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = _divisible_dim(draw, shape)
    size = shape[dim]
    sizes: int | list[int] = between(draw, -(-size // 4), size - 1)
    if draw(st.booleans()):
        first = between(draw, 1, size - 1)
        rest = size - first
        sizes = [first, rest]
        if rest >= 2 and draw(st.booleans()):
            second = between(draw, 1, rest - 1)
            sizes = [first, second, rest - second]
    return Choice((name,), {"sizes": sizes, "dim": dim})


def _one_of_one(text: str, count: int) -> str:
    return text if count > 1 else f"{text}[0]"


def _call_split(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    text = f"torch.split({operands[0]}, {attributes['sizes']!r}, dim={attributes['dim']!r})"
    return _one_of_one(text, len(_infer_split(types, attributes)))


def _infer_chunk(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot divide a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    chunks = integer(attributes, "chunks")
    require(chunks >= 1, f"chunks is {chunks}, not a positive number")
    size = shape[axis]
    return _along(size, axis, shape, _even(size, -(-size // chunks)))


def _draw_chunk(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = _divisible_dim(draw, shape)
    return Choice((name,), {"chunks": draw(st.integers(2, min(4, shape[dim]))), "dim": dim})


def _call_chunk(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    text = f"torch.chunk({operands[0]}, {attributes['chunks']!r}, dim={attributes['dim']!r})"
    return _one_of_one(text, len(_infer_chunk(types, attributes)))


OPERATORS = (
    Operator(
        "cat",
        "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
        _joins,
        _draw_cat,
        _infer_cat,
        call=_call_cat,
        attributes={"dim": "the joined dimension"},
        tags=frozenset({"join", "shared", "seed"}),
    ),
    Operator(
        "stack",
        "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
        lambda type_: is_float(type_) and type_.rank <= 4,
        _draw_stack,
        _infer_stack,
        call=_call_stack,
        attributes={"dim": "where the new dimension goes"},
        tags=frozenset({"join", "shared"}),
    ),
    Operator(
        "split",
        "aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
        _divides,
        _draw_split,
        _infer_split,
        call=_call_split,
        attributes={"sizes": "one size for all parts, or a list of sizes", "dim": "the divided dimension"},
        tags=frozenset({"divide", "strided"}),
    ),
    Operator(
        "chunk",
        "aten::chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
        _divides,
        _draw_chunk,
        _infer_chunk,
        call=_call_chunk,
        attributes={"chunks": "number of parts wanted", "dim": "the divided dimension"},
        tags=frozenset({"divide", "strided"}),
    ),
)
