"""Operators that resize or surround planes: upsample nearest and bilinear, reflection and replication pads.

The result of an upsample is given by its size (``output``) or by factors (``factors``), one of them null.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import at_least, flag, floats, integers, is_float, one
from generators.sizes import between, one_in, room
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, ShapeError, Types, require

PAD_MODES = ("reflect", "replicate")
_UNEVEN = (2.25, 1.5, 2.5, 1.25)
"""Factors that leave a rest of some sizes: the result is as large as by a smaller factor, and of other elements."""


def _planes(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank == 4


def _infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    require(len(shape) == 4, f"takes rank 4, not {len(shape)}")
    if "align_corners" in attributes:
        flag(attributes, "align_corners")
    if attributes["output"] is not None:
        require(attributes["factors"] is None, "give output or factors")
        output = integers(attributes, "output", 2)
        at_least(output, 1, "output")
        return one((*shape[:2], *output))
    factors = attributes["factors"]
    if not isinstance(factors, (list, tuple)) or len(factors) != 2 or not all(isinstance(f, float) for f in factors):
        raise ShapeError(f"factors is {factors!r}, not two numbers")
    sizes = [int(size * factor) for size, factor in zip(shape[2:], factors, strict=True)]
    require(min(sizes) >= 1, f"factors {list(factors)} leave nothing of {list(shape[2:])}")
    return one((*shape[:2], *sizes))


def _draw(draw: Draw, pool: Pool, name: str) -> Attributes:
    shape = pool.type_of(name).shape
    if one_in(draw, 3):
        most = room(shape)
        height = between(draw, 1, min(12, shape[2] * min(most, 4)))
        most = max(1, most * shape[2] // height)
        return {"output": [height, between(draw, 1, min(12, shape[3] * min(most, 4)))], "factors": None}
    factors = [2.0, 2.0, 3.0] if room(shape) >= 9 else [2.0] if room(shape) >= 4 else []
    halves = [0.5] if min(shape[2:]) >= 2 else []
    factor = draw(st.sampled_from(factors + halves or [1.0]))
    return {"output": None, "factors": [factor, factor]}


def _draw_nearest(draw: Draw, pool: Pool, name: str) -> Choice:
    if room(pool.type_of(name).shape) >= 9 and one_in(draw, 3):
        factors = [draw(st.sampled_from(_UNEVEN)) for _ in range(2)]
        return Choice((name,), {"output": None, "factors": factors})
    return Choice((name,), _draw(draw, pool, name))


def _draw_bilinear(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), {**_draw(draw, pool, name), "align_corners": draw(st.booleans())})


def _call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    by = "output" if attributes["output"] is not None else "factors"
    words = [f"{'size' if by == 'output' else 'scale_factor'}={tuple(attributes[by])!r}"]
    words.append("mode='bilinear'" if "align_corners" in attributes else "mode='nearest'")
    if "align_corners" in attributes:
        words.append(f"align_corners={attributes['align_corners']!r}")
    return f"F.interpolate({operands[0]}, {', '.join(words)})"


def _infer_pad(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    pads = integers(attributes, "pad", 4)
    if not isinstance(attributes["mode"], str) or attributes["mode"] not in PAD_MODES:
        raise ShapeError(f"mode is {attributes['mode']!r}, not one of {', '.join(PAD_MODES)}")
    require(len(shape) in (3, 4), f"takes rank 3 or 4, not {len(shape)}")
    left, right, top, bottom = pads
    if attributes["mode"] == "reflect":
        require(max(left, right) < shape[-1] and max(top, bottom) < shape[-2], f"pad {list(pads)} exceeds the plane")
    height, width = shape[-2] + top + bottom, shape[-1] + left + right
    require(min(height, width) >= 1, f"pad {list(pads)} leaves nothing of the plane")
    return one((*shape[:-2], height, width))


def _draw_pad(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    most = 0 if room(shape) < 2 else 2
    height, width = (min(size - 1, most) for size in shape[-2:])
    pads = [draw(st.integers(0, width)), 0, draw(st.integers(0, height)), 0]
    if room(shape) >= 4:
        pads[1], pads[3] = draw(st.integers(0, width)), draw(st.integers(0, height))
    return Choice((name,), {"pad": pads, "mode": draw(st.sampled_from(PAD_MODES))})


def _call_pad(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"F.pad({operands[0]}, {tuple(attributes['pad'])!r}, mode={attributes['mode']!r})"


_WORDS = {"output": "height and width of the result, or null", "factors": "of height and width, or null"}
_TAGS = frozenset({"resizing"})

OPERATORS = (
    Operator(
        "upsample_nearest2d",
        "aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        _planes,
        _draw_nearest,
        _infer,
        call=_call,
        attributes=_WORDS,
        tags=_TAGS,
    ),
    Operator(
        "upsample_bilinear2d",
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
        "float[]? scale_factors) -> Tensor",
        _planes,
        _draw_bilinear,
        _infer,
        call=_call,
        attributes={**_WORDS, "align_corners": "the corners' centres stay in place"},
        tags=_TAGS,
    ),
    Operator(
        "pad_mode",
        "aten::pad(Tensor self, SymInt[] pad, str mode) -> Tensor",
        _planes,
        _draw_pad,
        _infer_pad,
        call=_call_pad,
        attributes={"pad": "left, right, top, bottom", "mode": f"what is put there: {', '.join(PAD_MODES)}"},
        tags=_TAGS,
    ),
)
