"""Patterns that have broken upstream before, as small builders.

Each motif adds a few nodes to a ``GraphPool`` and leaves sizes, constants and variants to draw.
``graphs`` goes on with free nodes from there. ``origin`` names the seed or the upstream thread
(``#19064``), so that a reader can look up why the pattern is here.

To add one: write a function, append a ``Motif`` to ``MOTIFS``. A motif has at most eight nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from generators.graph_pool import GraphPool
from generators.sizes import GROWING, draw_shape, one_in, within
from harness.case.case import TensorType


@dataclass(frozen=True)
class Motif:
    """A named pattern.

    :param origin: the seed or upstream threads that it comes from.
    :param weight: how often it is drawn.
    """

    name: str
    origin: str
    build: Callable[[GraphPool], object]
    weight: int = 1


def _pick(pool: GraphPool, *options: Any) -> Any:
    return pool.draw(st.sampled_from(options))


def _image(pool: GraphPool, *, channels: tuple[int, ...] = (2, 4, 3, 8, 1), most: int = 9) -> str:
    """A new input (batch, channels, height, width) with sides of 4 (3 now and then) to ``most``."""
    sides = within((4, 5, 6, 8, 3, 7, 9), most)
    batch, depth, height = _pick(pool, 1, 1, 1, 2), _pick(pool, *channels), _pick(pool, *sides)
    return pool.input((batch, depth, height, _pick(pool, *within(sides, GROWING // (batch * depth * height)))))


def conv(pool: GraphPool, source: str, outer: int, **changes: Any) -> str:
    """A convolution; 3x3 that keeps the size unless ``changes`` say otherwise."""
    window = {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
    return pool.add("conv2d", source, **({"out_channels": outer, **window, "groups": 1, "bias": True} | changes))


def pointwise(pool: GraphPool, source: str, outer: int) -> str:
    return conv(pool, source, outer, kernel=[1, 1], padding=[0, 0])


def rectify(pool: GraphPool, source: str) -> str:
    """An activation whose lower end is zero, most often relu."""
    kind = _pick(pool, "relu", "relu", "relu", "relu6", "hardtanh", "clamp")
    bounds: dict[str, dict[str, Any]] = {"hardtanh": {"min": 0.0, "max": 6.0}, "clamp": {"min": 0.0, "max": None}}
    return pool.add(kind, source, **bounds.get(kind, {}))


def factory(pool: GraphPool, shape: tuple[int, ...]) -> str:
    kind = _pick(pool, "full", "zeros", "ones", "full")
    parameters = {"value": _pick(pool, 0.0, 1.0, 0.5, -2.0)} if kind == "full" else {}
    return pool.constant(kind, shape, **parameters)


def combine(pool: GraphPool, kind: str, *operands: str) -> str:
    """Any operator of two or more values that meet: cat and stack along dimension 1 or 0, or arithmetic."""
    attributes: dict[str, Any] = {"scalar": None, "side": None}
    if kind in ("cat", "stack"):
        attributes = {"dim": min(1, len(pool.shape(operands[0])) - 1)}
    elif kind in ("minimum", "maximum"):
        attributes = {}
    elif kind in ("add", "sub"):
        attributes["alpha"] = 1
    return pool.add(kind, *operands, **attributes)


def full_cat_conv(pool: GraphPool) -> None:
    source = _image(pool, channels=(4, 2, 3))
    batch, channels, height, width = pool.shape(source)
    kept = pool.add("slice", source, dim=1, start=None, stop=_pick(pool, 1, 2), step=1)
    added = channels - pool.shape(kept)[1] or 1
    if one_in(pool.draw, 3):
        kind = _pick(pool, "full_like", "zeros_like", "ones_like")
        blank = pool.add(kind, kept, **({"value": 0.5} if kind == "full_like" else {}))
    else:
        blank = factory(pool, (batch, added, height, width))
    joined = pool.add("cat", *_pick(pool, (blank, kept), (kept, blank)), dim=_pick(pool, 1, -3))
    pointwise(pool, joined, _pick(pool, 2, 1, 4))


def conv_relu_cat_conv(pool: GraphPool) -> None:
    """A rectified branch and a sibling in one domain; whether zp is qmin depends on the sibling."""
    source = _image(pool)
    branch = rectify(pool, conv(pool, source, _pick(pool, 4, 2, 3)))
    sibling = pool.input(pool.shape(branch))
    join = _pick(pool, "cat", "cat", "cat", "cat", "cat", "stack", "maximum", "add")
    operands = _pick(pool, (branch, sibling), (sibling, branch))
    joined = combine(pool, join, *operands)
    if join == "cat" and not one_in(pool.draw, 4):
        pointwise(pool, joined, _pick(pool, 4, 1, 2))


def cat_of_ramps(pool: GraphPool) -> None:
    height, width = _pick(pool, 2, 4, 3, 6), _pick(pool, 3, 5, 2, 4)
    shape = (1, 1, height, width)
    ends = _pick(pool, (-0.8, 0.8), (-1.0, 1.0), (0.0, 1.0))
    across = pool.constant("ramp", shape, start=ends[0], stop=ends[1], dim=3)
    down = pool.constant("ramp", shape, start=-0.75, stop=0.75, dim=2)
    operands = [across, down]
    if one_in(pool.draw, 3):
        operands.append(pool.input((1, _pick(pool, 1, 2), height, width)))
    grid = pool.add("cat", *operands, dim=1)
    if one_in(pool.draw, 3):
        combine(pool, "mul", grid, pool.input(pool.shape(grid)))


def attention(pool: GraphPool) -> None:
    heads, depth, length = _pick(pool, 2, 1, 4), _pick(pool, 4, 2, 3), _pick(pool, 4, 5, 3, 8)
    source = pool.input((_pick(pool, 1, 1, 2), length, heads * depth))
    batch = pool.shape(source)[0]
    if one_in(pool.draw, 3):
        score = pool.add("matmul", source, pool.add("transpose", source, dim0=1, dim1=2))
        weights = pool.add("softmax", pool.add("div", score, scalar=2.0), dim=-1)
        pool.add(_pick(pool, "matmul", "bmm"), weights, source)
        return
    value = pool.add("linear", source, out_features=heads * depth, bias=_pick(pool, True, False))
    split = pool.add("permute", pool.add("view", value, shape=[batch, length, heads, depth]), dims=[0, 2, 1, 3])
    keys = pool.add("transpose", split, dim0=-2, dim1=-1)
    weights = pool.add("softmax", pool.add("matmul", split, keys), dim=-1)
    mixed = pool.add("matmul", weights, split)
    pool.add("permute", mixed, dims=[0, 2, 1, 3])


def conv_relu_permute_reshape(pool: GraphPool) -> None:
    source = _image(pool)
    branch = rectify(pool, conv(pool, source, _pick(pool, 4, 2, 8)))
    moved = pool.add("permute", branch, dims=_pick(pool, [0, 2, 3, 1], [0, 3, 2, 1], [0, 2, 1, 3]))
    first, second, third, last = pool.shape(moved)
    part = next(size for size in (4, 3, 2, 1) if last % size == 0)
    pool.add(
        "reshape",
        moved,
        shape=_pick(
            pool,
            [first, second, third, part, last // part],
            [first, second, third * part, last // part],
            [first, 1, second, third, last],
            [first, second * third, last],
        ),
    )


def views_of_an_input(pool: GraphPool) -> None:
    """view or permute of module inputs that meet in an elementwise operator or cat."""
    source = pool.input(draw_shape(pool.draw, _pick(pool, 4, 3, 2)))
    rank = len(pool.shape(source))
    moved = (
        pool.add("permute", source, dims=[*range(1, rank), 0])
        if one_in(pool.draw, 2)
        else pool.add("view", source, shape=list(reversed(pool.shape(source))))
    )
    other = pool.input(pool.shape(moved))
    if one_in(pool.draw, 2):
        pool.add("cat", moved, other, dim=_pick(pool, 0, -1))
    else:
        combine(pool, "add", moved, other)


def linear_reshape(pool: GraphPool) -> None:
    source = pool.input(draw_shape(pool.draw, _pick(pool, 2, 3)))
    outer = _pick(pool, 4, 6, 8)
    value = pool.add("linear", source, out_features=outer, bias=True)
    pool.add(_pick(pool, "view", "reshape"), value, shape=[*pool.shape(value)[:-1], 2, outer // 2])


def cat_view_relu(pool: GraphPool) -> None:
    source = _image(pool)
    other = source if one_in(pool.draw, 3) else pool.operand(pool.type_of(source))
    joined = pool.add("cat", source, other, dim=1)
    rectify(pool, pool.add("view", joined, shape=[pool.shape(joined)[0], -1]))


def split_cat(pool: GraphPool) -> None:
    source = _image(pool, channels=(4, 2, 8))
    kind, half = _pick(pool, "split", "chunk"), pool.shape(source)[1] // 2
    attributes = {"sizes": half} if kind == "split" else {"chunks": 2}
    first, second = pool.add_all(kind, source, **attributes, dim=_pick(pool, 1, -3))
    if one_in(pool.draw, 2):
        first = rectify(pool, first)
    pool.add("cat", *_pick(pool, (second, first), (first, second)), dim=1)


def add_parameter(pool: GraphPool) -> None:
    source = pool.input(draw_shape(pool.draw, _pick(pool, 4, 3, 2, 1)))
    shape = pool.shape(source)
    parameter = pool.draw_constant(_pick(pool, shape, shape[-1:], (1,) * len(shape)))
    combine(pool, _pick(pool, "add", "mul", "sub"), source, parameter)


def clamp_pair(pool: GraphPool) -> None:
    source = _image(pool)
    if one_in(pool.draw, 2):
        source = conv(pool, source, 2)
    low, high = _pick(pool, (-1.0, 1.0), (0.0, 6.0), (-2.0, 0.5))
    rectify(pool, pool.add("hardtanh", source, min=low, max=high))


def two_users(pool: GraphPool) -> None:
    """One producer, two users that need the same rescale, which meet again or do not."""
    kind = _pick(pool, "conv2d", "linear", "addmm")
    source = _image(pool) if kind == "conv2d" else pool.input(draw_shape(pool.draw, 2))
    if kind == "conv2d":
        shared = conv(pool, source, 4)
    elif kind == "linear":
        shared = pool.add("linear", source, out_features=4, bias=True)
    else:
        right = pool.operand(TensorType((pool.shape(source)[1], 4)))
        shared = pool.add("addmm", pool.draw_constant(_pick(pool, (4,), (1,))), source, right, beta=1, alpha=1)
    first = pool.add(_pick(pool, "relu", "neg", "hardswish"), shared)
    second = pool.add(_pick(pool, "sigmoid", "tanh", "abs", "relu"), shared)
    if one_in(pool.draw, 2):
        combine(pool, "mul", first, second)


def repeat_of_ones(pool: GraphPool) -> None:
    source = pool.input(draw_shape(pool.draw, _pick(pool, 2, 1, 3)))
    rank = len(pool.shape(source)) + 1
    pool.add("add", pool.add("repeat", source, repeats=[1] * rank), scalar=1.0, side="right", alpha=1)


def pool_of_the_plane(pool: GraphPool) -> None:
    source = _image(pool)
    plane = list(pool.shape(source)[2:])
    if one_in(pool.draw, 2):
        pool.add("adaptive_avg_pool2d", source, output=[1, 1])
    else:
        pool.add(
            "avg_pool2d",
            source,
            kernel=plane,
            stride=_pick(pool, None, [1, 1]),
            padding=[0, 0],
            ceil_mode=False,
            count_include_pad=True,
        )


def conv_relu(pool: GraphPool) -> None:
    source = _image(pool)
    channels = pool.shape(source)[1]
    groups = _pick(pool, 1, channels)
    rectify(pool, conv(pool, source, channels * _pick(pool, 1, 2), groups=groups, bias=_pick(pool, True, False)))


def lstm_gate(pool: GraphPool) -> None:
    """f * c + i * g of an LSTM cell: two products into a sum."""
    size = _pick(pool, 4, 3, 8)
    source = pool.input((_pick(pool, 1, 2), size))
    state = pool.input(pool.shape(source))
    gates = pool.add("linear", source, out_features=3 * size, bias=True)
    forget, keep, new = pool.add_all("chunk", gates, chunks=3, dim=1)
    forget, keep = pool.add("sigmoid", forget), pool.add("sigmoid", keep)
    kept = combine(pool, "mul", forget, state)
    added = combine(pool, "mul", keep, pool.add("tanh", new))
    combine(pool, "add", kept, added)


def dilated_max_pool(pool: GraphPool) -> None:
    pool.add(
        "max_pool2d",
        _image(pool),
        kernel=[2, 2],
        stride=[1, 1],
        padding=_pick(pool, [0, 0], [1, 1]),
        dilation=[2, 2],
        ceil_mode=_pick(pool, False, True),
    )


def grouped_transposed_conv(pool: GraphPool) -> None:
    source = _image(pool, channels=(4, 2), most=6)
    groups = _pick(pool, 2, 1)
    extra = _pick(pool, 0, 1)
    pool.add(
        "conv_transpose2d",
        source,
        out_channels=4,
        kernel=[3, 3],
        stride=[2, 2],
        padding=[1, 1],
        output_padding=[extra, extra],
        dilation=[1, 1],
        groups=groups,
        bias=_pick(pool, True, False),
    )


def residual(pool: GraphPool) -> None:
    source = _image(pool)
    sum_ = combine(pool, "add", conv(pool, source, pool.shape(source)[1]), source)
    rectify(pool, sum_)


def squeeze_and_excite(pool: GraphPool) -> None:
    source = _image(pool)
    channels = pool.shape(source)[1]
    squeezed = pool.add("mean", source, dims=[2, 3], keepdim=True)
    gate = pool.add("sigmoid", pointwise(pool, rectify(pool, pointwise(pool, squeezed, 2)), channels))
    combine(pool, "mul", *_pick(pool, (source, gate), (gate, source)))


def wide_and_narrow_users(pool: GraphPool) -> None:
    """A convolution with an elementwise user and, behind a permute, a summing one (a16w8: int16 and int32)."""
    shared = conv(pool, _image(pool), 4)
    pool.add("relu", shared)
    pool.add(_pick(pool, "sum", "mean"), pool.add("permute", shared, dims=[0, 2, 3, 1]), dims=[-1], keepdim=True)


def identities(pool: GraphPool) -> None:
    """Layout operators that do nothing: alone they left a program without a writer for its output."""
    source = pool.input(draw_shape(pool.draw, _pick(pool, 2, 1, 4)))
    shape = list(pool.shape(source))
    kind = _pick(pool, "permute", "view", "squeeze", "expand", "repeat")
    if kind == "squeeze" and shape[-1] == 1:
        kind = "view"
    attributes: dict[str, dict[str, Any]] = {
        "permute": {"dims": list(range(len(shape)))},
        "view": {"shape": shape},
        "squeeze": {"dim": -1},
        "expand": {"shape": shape},
        "repeat": {"repeats": [1] * len(shape)},
    }
    pool.add(kind, source, **attributes[kind])


def permuted_view(pool: GraphPool) -> None:
    """A view from rank 4 to rank 4 next to a permute, which layout elimination once mixed up."""
    source = conv(pool, _image(pool, channels=(4, 2)), 4)
    batch, channels, height, width = pool.shape(source)
    shape = _pick(
        pool,
        [batch, channels // 2, height * 2, width],
        [batch, height, width, channels],
        [batch, channels * height, 1, width],
    )
    viewed = pool.add("view", source, shape=shape)
    pool.add("permute", viewed, dims=_pick(pool, [0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2]))


def same_tensor_twice(pool: GraphPool) -> None:
    """An input, what an operator makes of it, or a constant, joined with itself."""
    shape = draw_shape(pool.draw, _pick(pool, 4, 2, 3))
    kind = _pick(pool, "input", "relu", "ramp")
    ramp: dict[str, Any] = {"start": 0.0, "stop": 1.0, "dim": len(shape) - 1}
    source = pool.constant("ramp", shape, **ramp) if kind == "ramp" else pool.input(shape)
    if kind == "relu":
        source = pool.add("relu", source)
    combine(pool, _pick(pool, "cat", "stack", "add", "mul", "minimum"), source, source)


def near_the_end_of_a_table(pool: GraphPool) -> None:
    """Two tables in a row: the second one gets codes close to qmax."""
    first = pool.add(_pick(pool, "sigmoid", "tanh"), pool.input(draw_shape(pool.draw, _pick(pool, 4, 2))))
    pool.add(_pick(pool, "sigmoid", "tanh", "gelu", "hardswish"), first)


MOTIFS = (
    Motif("conv-relu", "#16286", conv_relu),
    Motif("full-cat-conv", "seed 000, #18322", full_cat_conv, weight=4),
    Motif("conv-relu-cat-conv", "seed 001, #18778, #21974", conv_relu_cat_conv, weight=4),
    Motif("cat-of-ramps", "seed 002, #18971, #19064", cat_of_ramps, weight=4),
    Motif("attention", "seed 003, #19364, #16426", attention, weight=4),
    Motif("conv-relu-permute-reshape", "#18136", conv_relu_permute_reshape),
    Motif("views-of-an-input", "#20885, #20625", views_of_an_input),
    Motif("linear-reshape", "#13725", linear_reshape),
    Motif("cat-view-relu", "#20291", cat_view_relu),
    Motif("split-cat", "#20976", split_cat),
    Motif("add-parameter", "#20291", add_parameter),
    Motif("clamp-pair", "#21013", clamp_pair),
    Motif("two-users", "#21041, #21725", two_users),
    Motif("repeat-of-ones", "#15589", repeat_of_ones),
    Motif("pool-of-the-plane", "#15558, #13152", pool_of_the_plane),
    Motif("lstm-gate", "#17830", lstm_gate),
    Motif("dilated-max-pool", "#17094", dilated_max_pool),
    Motif("grouped-transposed-conv", "#17842, #19391, #20763", grouped_transposed_conv),
    Motif("residual", "#18462", residual),
    Motif("squeeze-and-excite", "#20401", squeeze_and_excite),
    Motif("wide-and-narrow-users", "#21910", wide_and_narrow_users),
    Motif("identities", "#22436, #19662", identities),
    Motif("permuted-view", "#18555, #18167", permuted_view),
    Motif("same-tensor-twice", "#21725", same_tensor_twice),
    Motif("near-the-end-of-a-table", "#18873, #21629", near_the_end_of_a_table),
)
