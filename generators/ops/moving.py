"""Operators that move, repeat or copy elements, beyond those of ``layout`` and ``selection``.

None computes anything, so a mismatch behind one of these is never a matter of rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import (
    at_least,
    axes_of,
    axis_of,
    broadcast,
    floats,
    integer,
    integers,
    is_float,
    one,
    ranked,
    replaced,
    written,
)
from generators.sizes import BATCH, between, draw_dim, room, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, ShapeError, Types, require

COPIES = {
    "clone": "{}.clone()",
    "contiguous": "{}.contiguous()",
    "alias_copy": "torch.alias_copy({})",
    "detach_copy": "torch.detach_copy({})",
    "dropout": "F.dropout({}, training=False)",
}


def _infer_copy(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    if not isinstance(attributes["by"], str) or attributes["by"] not in COPIES:
        raise ShapeError(f"by is {attributes['by']!r}, not one of {', '.join(COPIES)}")
    return (types[0],) if floats(types, 1) else ()


def _call_copy(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return COPIES[attributes["by"]].format(operands[0])


def _infer_overwrite(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    shape, source = floats(types, 2)
    require(broadcast(shape, source) == shape, f"{list(source)} does not expand to {list(shape)}")
    return one(shape)


def _draw_overwrite(draw: Draw, pool: Pool, name: str) -> Choice:
    """What is written has the same shape, ones in it, or fewer dimensions."""
    shape = pool.type_of(name).shape
    source = tuple(draw(st.sampled_from([size, size, 1])) for size in shape)
    source = source[between(draw, 0, len(shape) - 1) :] if draw(st.booleans()) else source
    return Choice((name, pool.operand(TensorType(source))), {})


def _infer_flip(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    axes_of(integers(attributes, "dims"), len(shape))
    return one(shape)


def _draw_flip(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    count = draw(st.sampled_from([1, 1, 2])) if rank > 1 else 1
    return Choice((name,), {"dims": list(draw(st.permutations(range(rank)))[:count])})


def _infer_roll(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    integer(attributes, "shift")
    axis_of(integer(attributes, "dim"), len(shape))
    return one(shape)


def _draw_roll(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice(
        (name,), {"shift": draw(st.sampled_from([1, -1, 2, 3])), "dim": draw_dim(draw, pool.type_of(name).rank)}
    )


def _infer_tile(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """As ``repeat``, but fewer numbers than dimensions count from the last one."""
    (shape,) = floats(types, 1)
    times = integers(attributes, "repeats")
    at_least(times, 0, "repeats")
    rank = max(len(times), len(shape))
    padded = ((1,) * (rank - len(times)) + times, (1,) * (rank - len(shape)) + shape)
    return one(count * size for count, size in zip(*padded, strict=True))


def _draw_tile(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    left, times = room(shape), []
    for _ in range(draw(st.integers(1, len(shape)))):
        times.append(draw(st.sampled_from(within((1, *BATCH[1:]), left))))
        left //= times[-1]
    return Choice((name,), {"repeats": times})


def _infer_interleave(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot repeat along a scalar's dimension")
    at_least((integer(attributes, "repeats"),), 0, "repeats")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    return one(replaced(shape, axis, shape[axis] * attributes["repeats"]))


def _draw_interleave(draw: Draw, pool: Pool, name: str) -> Choice:
    type_ = pool.type_of(name)
    times = draw(st.sampled_from(within((2, 1, 3), room(type_.shape))))
    return Choice((name,), {"repeats": times, "dim": draw_dim(draw, type_.rank)})


def _infer_movedim(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    source = axis_of(integer(attributes, "source"), len(shape))
    place = axis_of(integer(attributes, "destination"), len(shape))
    order = [axis for axis in range(len(shape)) if axis != source]
    order.insert(place, source)
    return one(shape[axis] for axis in order if shape)


def _draw_movedim(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    return Choice((name,), {"source": draw_dim(draw, rank), "destination": draw_dim(draw, rank)})


def _infer_unflatten(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot divide a scalar's dimension")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    sizes = integers(attributes, "sizes")
    require(bool(sizes) and all(size >= 1 or size == -1 for size in sizes), f"sizes {list(sizes)} are not positive")
    require(sizes.count(-1) <= 1, f"sizes {list(sizes)} hold -1 twice")
    rest = TensorType(tuple(size for size in sizes if size != -1)).elements
    sizes = tuple(shape[axis] // rest if size == -1 else size for size in sizes)
    require(TensorType(sizes).elements == shape[axis], f"sizes {list(sizes)} do not make {shape[axis]}")
    return one((*shape[:axis], *sizes, *shape[axis + 1 :]))


def _draw_unflatten(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    part = draw(st.sampled_from([size for size in range(1, shape[dim] + 1) if shape[dim] % size == 0]))
    return Choice((name,), {"dim": dim, "sizes": [part, shape[dim] // part]})


def _infer_unbind(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot divide a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    return one((*shape[:axis], *shape[axis + 1 :])) * shape[axis]


def _draw_unbind(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    short = [axis for axis, size in enumerate(shape) if 2 <= size <= 5]
    return Choice((name,), {"dim": draw(st.sampled_from(short + [axis - len(shape) for axis in short]))})


def _call_unbind(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    text = f"torch.unbind({operands[0]}, {attributes['dim']!r})"
    return text if types[0].shape[attributes["dim"]] > 1 else f"{text}[0]"


def _infer_shuffle(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    factor = integer(attributes, "factor")
    require(len(shape) >= 3 and factor >= 1, "takes rank 3 or more and a positive factor")
    require(shape[-3] % factor**2 == 0, f"channels {shape[-3]} do not divide by {factor**2}")
    return one((*shape[:-3], shape[-3] // factor**2, shape[-2] * factor, shape[-1] * factor))


def _draw_shuffle(draw: Draw, pool: Pool, name: str) -> Choice:
    channels = pool.type_of(name).shape[1]
    return Choice((name,), {"factor": draw(st.sampled_from([part for part in (2, 1) if channels % part**2 == 0]))})


def _infer_unshuffle(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    factor = integer(attributes, "factor")
    require(len(shape) >= 3 and factor >= 1, "takes rank 3 or more and a positive factor")
    require(shape[-1] % factor == 0 and shape[-2] % factor == 0, f"{list(shape[-2:])} does not divide by {factor}")
    return one((*shape[:-3], shape[-3] * factor**2, shape[-2] // factor, shape[-1] // factor))


def _draw_unshuffle(draw: Draw, pool: Pool, name: str) -> Choice:
    height, width = pool.type_of(name).shape[-2:]
    factors = [part for part in (2, 3, 1) if height % part == 0 and width % part == 0]
    return Choice((name,), {"factor": draw(st.sampled_from(factors))})


def _infer_triangle(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    integer(attributes, "diagonal")
    require(len(shape) >= 2, f"takes rank 2 or more, not {len(shape)}")
    return one(shape)


def _draw_triangle(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {"diagonal": draw(st.sampled_from([0, 1, -1]))})


def _infer_unfold(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    axis = axis_of(integer(attributes, "dim"), len(shape))
    size, step = integer(attributes, "size"), integer(attributes, "step")
    length = shape[axis] if shape else 1
    require(0 <= size <= length and step >= 1, f"size {size} or step {step} does not fit {length}")
    if not shape:
        return one((size,))
    return one((*replaced(shape, axis, (shape[axis] - size) // step + 1), size))


def _draw_unfold(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    size = between(draw, 1, min(shape[dim], 4, room(shape)))
    return Choice((name,), {"dim": dim, "size": size, "step": draw(st.sampled_from([1, 2, 3]))})


def _infer_strided(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    sizes, strides = integers(attributes, "sizes"), integers(attributes, "strides")
    require(len(sizes) == len(strides) >= 1, "sizes and strides are not as many")
    at_least((*sizes, *strides), 0, "sizes and strides")
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if all(sizes) else 0
    elements = TensorType(shape).elements
    require(last < elements, f"place {last} is outside {elements} elements")
    return one(sizes)


def _draw_strided(draw: Draw, pool: Pool, name: str) -> Choice:
    """A plain view, overlapping windows, or every second element."""
    elements = pool.type_of(name).elements
    form = draw(st.sampled_from(["plain", "windows", "second"]))
    if form == "windows" and elements >= 2:
        size = draw(st.integers(1, min(4, elements - 1)))
        return Choice((name,), {"sizes": [min(elements - size, 8), size], "strides": [1, 1]})
    step = 2 if form == "second" else 1
    return Choice((name,), {"sizes": [-(-elements // step)], "strides": [step]})


_LAYOUT = frozenset({"layout", "rare"})
_KIN = frozenset({"layout", "kin"})

OPERATORS = (
    Operator(
        "copy",
        "aten::clone(Tensor self) -> Tensor",
        is_float,
        lambda draw, pool, name: Choice((name,), {"by": draw(st.sampled_from(tuple(COPIES)))}),
        _infer_copy,
        call=_call_copy,
        attributes={"by": f"the function that copies: {', '.join(COPIES)}"},
        tags=_LAYOUT,
    ),
    Operator(
        "overwrite",
        "aten::copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)",
        ranked(1),
        _draw_overwrite,
        _infer_overwrite,
        call=lambda operands, attributes, types: "{}.clone().copy_({})".format(*operands),
        tags=_LAYOUT | {"join"},
    ),
    Operator(
        "flip",
        "aten::flip(Tensor self, int[] dims) -> Tensor",
        ranked(1),
        _draw_flip,
        _infer_flip,
        call=written("torch.flip({0}, {dims})"),
        attributes={"dims": "the dimensions that are reversed"},
        tags=_LAYOUT,
    ),
    Operator(
        "roll",
        "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims) -> Tensor",
        ranked(1),
        _draw_roll,
        _infer_roll,
        call=written("torch.roll({0}, {shift}, {dim})"),
        attributes={"shift": "by how many places", "dim": "along which dimension"},
        tags=_LAYOUT,
    ),
    Operator(
        "tile",
        "aten::tile(Tensor self, SymInt[] dims) -> Tensor",
        ranked(1),
        _draw_tile,
        _infer_tile,
        call=written("torch.tile({0}, {repeats})"),
        attributes={"repeats": "how often along each of the last dimensions"},
        tags=_KIN,
    ),
    Operator(
        "repeat_interleave",
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim) -> Tensor",
        ranked(1, 4),
        _draw_interleave,
        _infer_interleave,
        call=written("torch.repeat_interleave({0}, {repeats}, {dim})"),
        attributes={"repeats": "how often each element", "dim": "along which dimension"},
        tags=_LAYOUT,
    ),
    Operator(
        "movedim",
        "aten::movedim.int(Tensor self, int source, int destination) -> Tensor",
        ranked(2),
        _draw_movedim,
        _infer_movedim,
        call=written("torch.movedim({0}, {source}, {destination})"),
        attributes={"source": "the dimension", "destination": "where it goes"},
        tags=_KIN | {"strided"},
    ),
    Operator(
        "unflatten",
        "aten::unflatten.int(Tensor self, int dim, SymInt[] sizes) -> Tensor",
        ranked(1, 4),
        _draw_unflatten,
        _infer_unflatten,
        call=written("torch.unflatten({0}, {dim}, {sizes})"),
        attributes={"dim": "the dimension", "sizes": "what it becomes"},
        tags=_KIN | {"dense"},
    ),
    Operator(
        "unbind",
        "aten::unbind.int(Tensor self, int dim) -> Tensor[]",
        lambda type_: is_float(type_) and type_.rank >= 2 and any(2 <= size <= 5 for size in type_.shape),
        _draw_unbind,
        _infer_unbind,
        call=_call_unbind,
        attributes={"dim": "the dimension that goes"},
        tags=frozenset({"divide", "strided", "rare"}),
    ),
    Operator(
        "pixel_shuffle",
        "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
        ranked(4, 4),
        _draw_shuffle,
        _infer_shuffle,
        call=written("F.pixel_shuffle({0}, {factor})"),
        attributes={"factor": "of height and width"},
        tags=frozenset({"layout"}),
    ),
    Operator(
        "pixel_unshuffle",
        "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
        ranked(4, 4),
        _draw_unshuffle,
        _infer_unshuffle,
        call=written("F.pixel_unshuffle({0}, {factor})"),
        attributes={"factor": "of height and width"},
        tags=frozenset({"layout"}),
    ),
    *(
        Operator(
            name,
            f"aten::{name}(Tensor self, int diagonal) -> Tensor",
            ranked(2),
            _draw_triangle,
            _infer_triangle,
            call=written(f"torch.{name}({{0}}, {{diagonal}})"),
            attributes={"diagonal": "which one is kept: 0 the main one"},
            tags=frozenset({"kin"}),
        )
        for name in ("tril", "triu")
    ),
    Operator(
        "unfold",
        "aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
        ranked(1, 4),
        _draw_unfold,
        _infer_unfold,
        call=written("torch.unfold_copy({0}, {dim}, {size}, {step})"),
        attributes={"dim": "the dimension", "size": "of a window", "step": "between windows"},
        tags=_KIN,
    ),
    Operator(
        "as_strided",
        "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor",
        ranked(1),
        _draw_strided,
        _infer_strided,
        call=written("torch.as_strided_copy({0}, {sizes}, {strides})"),
        attributes={"sizes": "the new sizes", "strides": "in elements"},
        tags=frozenset({"kin", "dense"}),
    ),
)
