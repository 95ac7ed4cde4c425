"""Operators that pick, repeat or surround elements: slice, select, expand, repeat, pad.

A slice is Python text (``x[:, 1:3]``), with Python's rules for negative and out-of-range bounds.
``repeat`` and ``expand`` may add dimensions, also without repeating anything (a repeat of all
ones that changes the rank was dropped upstream once, #15589).
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import at_least, axis_of, floats, integer, integers, is_float, number, one, replaced
from generators.sizes import BATCH, PLAIN, between, draw_dim, either_end, one_in, room, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, ShapeError, Types, require

PAD_VALUES = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, -0.3, 5.0])


def _bound(attributes: Attributes, key: str) -> int | None:
    return None if attributes[key] is None else integer(attributes, key)


def _infer_slice(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot slice a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    step = integer(attributes, "step")
    require(step >= 1, f"step is {step}, not a positive number")
    kept = range(shape[axis])[_bound(attributes, "start") : _bound(attributes, "stop") : step]
    return one(replaced(shape, axis, len(kept)))


def _draw_slice(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    long = [axis for axis, size in enumerate(shape) if size >= 2] or [0]
    axis = draw(st.sampled_from(long))
    size = shape[axis]
    start = between(draw, 0, size - 1)
    stop = between(draw, start + 1, size)
    step = draw(st.sampled_from(within((1, 1, 1, 2, 3), size)))
    attributes: Attributes = {"dim": either_end(draw, axis, len(shape)), "start": start, "stop": stop, "step": step}
    if start == 0 and one_in(draw, 2):
        attributes["start"] = None
    elif one_in(draw, 4):
        attributes["start"] = start - size
    if stop == size and one_in(draw, 2):
        attributes["stop"] = draw(st.sampled_from([None, size + 3]))
    elif stop < size and one_in(draw, 4):
        attributes["stop"] = stop - size
    return Choice((name,), attributes)


def _call_slice(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    dim = attributes["dim"]
    start, stop = ("" if attributes[key] is None else repr(attributes[key]) for key in ("start", "stop"))
    text = f"{start}:{stop}" + (f":{attributes['step']!r}" if attributes["step"] != 1 else "")
    places = [*([":"] * dim), text] if dim >= 0 else ["...", text, *([":"] * (-dim - 1))]
    return f"{operands[0]}[{', '.join(places)}]"


def _infer_select(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) >= 1, "cannot select from a scalar")
    axis = axis_of(integer(attributes, "dim"), len(shape))
    index = integer(attributes, "index")
    require(-shape[axis] <= index < shape[axis], f"index {index} is outside size {shape[axis]}")
    return one((*shape[:axis], *shape[axis + 1 :]))


def _draw_select(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    dim = draw_dim(draw, len(shape))
    return Choice((name,), {"dim": dim, "index": draw_dim(draw, shape[dim])})


def _call_select(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"torch.select({operands[0]}, {attributes['dim']!r}, {attributes['index']!r})"


def _infer_expand(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    wanted = integers(attributes, "shape")
    new = len(wanted) - len(shape)
    require(new >= 0, f"shape {list(wanted)} has fewer dimensions than {list(shape)}")
    require(all(size >= 0 for size in wanted[:new]), "-1 needs an existing dimension")
    sizes = list(wanted[:new])
    for size, old in zip(wanted[new:], shape, strict=True):
        require(size in (-1, old) or (old == 1 and size >= 0), f"size {old} does not expand to {size}")
        sizes.append(old if size == -1 else size)
    return one(sizes)


def _draw_expand(draw: Draw, pool: Pool, name: str) -> Choice:
    """Widen singleton dimensions, put new ones in front, or both; -1 keeps a size."""
    shape = pool.type_of(name).shape
    left = room(shape)
    sizes = []
    for size in shape:
        wanted = draw(st.sampled_from(within(PLAIN, left))) if size == 1 else size
        left //= wanted if size == 1 else 1
        sizes.append(-1 if wanted == size and one_in(draw, 4) else wanted)
    front = draw(st.sampled_from([0, 1, 1, 2])) if 1 not in shape else draw(st.sampled_from([0, 0, 0, 1]))
    for _ in range(min(front, 5 - len(shape))):
        size = draw(st.sampled_from(within((2, 1, 3), left)))
        left //= size
        sizes.insert(0, size)
    return Choice((name,), {"shape": sizes})


def _call_expand(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]}.expand({tuple(attributes['shape'])!r})"


def _infer_repeat(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    times = integers(attributes, "repeats")
    at_least(times, 0, "repeats")
    new = len(times) - len(shape)
    require(new >= 0, f"repeats {list(times)} are fewer than the dimensions of {list(shape)}")
    return one(count * size for count, size in zip(times, (1,) * new + shape, strict=True))


def _draw_repeat(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    left = room(shape)
    times = []
    for _ in range(min(5, len(shape) + draw(st.sampled_from([0, 1, 0, 1, 2])))):
        count = draw(st.sampled_from(within((1, *BATCH[1:]), left)))
        left //= count
        times.append(count)
    return Choice((name,), {"repeats": times})


def _call_repeat(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"{operands[0]}.repeat({tuple(attributes['repeats'])!r})"


def _infer_pad(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    pads = integers(attributes, "pad")
    number(attributes, "value")
    require(len(pads) % 2 == 0 and len(pads) <= 2 * len(shape), f"pad {list(pads)} does not fit rank {len(shape)}")
    sizes = list(shape)
    for place in range(len(pads) // 2):
        # torch counts pairs from the last dimension
        sizes[-1 - place] += pads[2 * place] + pads[2 * place + 1]
        if sizes[-1 - place] < 0:
            raise ShapeError(f"pad {list(pads)} leaves size {sizes[-1 - place]}")
    return one(sizes)


def _draw_pad(draw: Draw, pool: Pool, name: str) -> Choice:
    """Pads of the last one, two or three dimensions; a negative one (a crop) now and then."""
    shape = pool.type_of(name).shape
    pads: list[int] = []
    left = room(shape)
    for place in range(draw(st.integers(1, min(3, len(shape))))):
        size = shape[-1 - place]
        most = (left - 1) * size
        before = draw(st.sampled_from([pad for pad in (1, 0, 2, 3) if pad <= most]))
        if size > 1 and one_in(draw, 8):
            before = -draw(st.integers(1, min(2, size - 1)))
        after = draw(st.sampled_from([pad for pad in (0, 1, 2) if before + pad <= most]))
        left //= -(-(size + max(0, before + after)) // size)
        pads += [before, after]
    return Choice((name,), {"pad": pads, "value": draw(PAD_VALUES)})


def _call_pad(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"F.pad({operands[0]}, {tuple(attributes['pad'])!r}, value={float(attributes['value'])!r})"


def _sliceable(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank >= 1


def _selectable(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank >= 2


_STRIDED = frozenset({"layout", "strided"})

OPERATORS = (
    Operator(
        "slice",
        "aten::slice.Tensor(Tensor self, int dim, SymInt? start, SymInt? end, SymInt step) -> Tensor",
        _sliceable,
        _draw_slice,
        _infer_slice,
        call=_call_slice,
        attributes={
            "dim": "the sliced dimension",
            "start": "first index or null",
            "stop": "end or null",
            "step": "stride",
        },
        tags=_STRIDED,
    ),
    Operator(
        "select",
        "aten::select.int(Tensor self, int dim, SymInt index) -> Tensor",
        _selectable,
        _draw_select,
        _infer_select,
        call=_call_select,
        attributes={"dim": "the dimension that goes", "index": "its index"},
        tags=_STRIDED | {"rare"},
    ),
    Operator(
        "expand",
        "aten::expand(Tensor self, SymInt[] size) -> Tensor",
        _sliceable,
        _draw_expand,
        _infer_expand,
        call=_call_expand,
        attributes={"shape": "the new sizes, -1 keeps one"},
        tags=_STRIDED,
    ),
    Operator(
        "repeat",
        "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
        _sliceable,
        _draw_repeat,
        _infer_repeat,
        call=_call_repeat,
        attributes={"repeats": "how often along each dimension"},
        tags=frozenset({"layout"}),
    ),
    Operator(
        "pad",
        "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value) -> Tensor",
        _sliceable,
        _draw_pad,
        _infer_pad,
        call=_call_pad,
        attributes={"pad": "before and after, pairs from the last dimension", "value": "what is put there"},
        tags=frozenset({"layout"}),
    ),
)
