"""Whole blocks of real networks, as builders like those of ``generators.motifs``: what ``fuzz --from blocks`` mutates.

They are no motifs that a drawn graph begins with: a motif more would change the graphs of every seed. A block has at
most ``MOST_BLOCK`` nodes and small sizes; what varies between networks (strides, gates, norms, where a norm stands) is
drawn.

To add one: write a function that returns the names of the inner values that are outputs too, append a ``Block`` to
``BLOCKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from generators.cases import cases, fresh_examples, run_seed
from generators.graph_pool import GraphPool
from generators.motifs import combine, conv, pointwise
from harness.case.case import Case, Graph
from harness.case.operators import Draw

MOST_BLOCK = 12
_RUN = -2000
"""Blocks are drawn with other seeds than a campaign's graphs and mutants."""
Kept = tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A named block.

    :param origin: the networks that are made of it.
    """

    name: str
    origin: str
    build: Callable[[GraphPool], Kept]


def _pick(pool: GraphPool, *options: Any) -> Any:
    return pool.draw(st.sampled_from(options))


def _image(pool: GraphPool, *channels: int) -> str:
    sides = (_pick(pool, 4, 6, 5, 8), _pick(pool, 4, 6, 5, 8))
    return pool.input((_pick(pool, 1, 1, 1, 2), _pick(pool, *channels), *sides))


def _depthwise(pool: GraphPool, source: str, size: int = 3, stride: int = 1) -> str:
    depth, half = pool.shape(source)[1], size // 2
    words = {"kernel": [size, size], "stride": [stride, stride], "padding": [half, half]}
    return conv(pool, source, depth, groups=depth, bias=_pick(pool, True, False), **words)


def _along(pool: GraphPool, source: str, outer: int, size: int, *, stride: int = 1, dilation: int = 1) -> str:
    """A convolution over time; in groups of one channel if that many go out."""
    depth, half = pool.shape(source)[1], dilation * (size // 2)
    words = {"kernel": [size], "stride": [stride], "padding": [half], "dilation": [dilation]}
    groups = _pick(pool, depth, 1) if outer == depth and size > 1 else 1
    return pool.add("conv1d", source, out_channels=outer, groups=groups, bias=True, **words)


def _linear(pool: GraphPool, source: str, outer: int) -> str:
    return pool.add("linear", source, out_features=outer, bias=_pick(pool, True, False))


def _normed(pool: GraphPool, source: str) -> str:
    return pool.add("layer_norm", source, dims=1, affine=_pick(pool, True, False))


def _pooled(pool: GraphPool, source: str, kept: bool) -> str:
    """The mean over the plane, one of the ways that networks write it."""
    if _pick(pool, True, False):
        return pool.add("mean", source, dims=[2, 3], keepdim=kept)
    whole = pool.add("adaptive_avg_pool2d", source, output=[1, 1])
    return whole if kept else pool.add("flatten", whole, start=1, end=-1)


def inverted_residual(pool: GraphPool) -> Kept:
    """Expand, depthwise, project, and around it if the size stays; batch norms stand where they are folded."""
    source = _image(pool, 4, 3, 8)
    depth, stride, kind = pool.shape(source)[1], _pick(pool, 1, 1, 2), _pick(pool, "relu6", "relu", "hardswish")
    wide = pool.add(kind, pointwise(pool, source, 2 * depth))
    wide = _depthwise(pool, wide, _pick(pool, 3, 5), stride)
    if _pick(pool, False, True):
        wide = pool.add("batch_norm", wide, affine=True)
    narrow = pointwise(pool, pool.add(kind, wide), depth)
    if stride == 1:
        combine(pool, "add", *_pick(pool, (source, narrow), (narrow, source)))
    return ()


def mbconv(pool: GraphPool) -> Kept:
    """An inverted residual with SiLU whose middle is gated by its own mean."""
    source = _image(pool, 4, 3)
    depth, stride, kind = pool.shape(source)[1], _pick(pool, 1, 1, 2), _pick(pool, "silu", "hardswish", "relu")
    wide = pool.add(kind, pointwise(pool, source, 2 * depth))
    wide = pool.add(kind, _depthwise(pool, wide, 3, stride))
    squeezed = pool.add(_pick(pool, kind, "relu"), pointwise(pool, _pooled(pool, wide, kept=True), 2))
    gate = pool.add(_pick(pool, "sigmoid", "hardsigmoid"), pointwise(pool, squeezed, 2 * depth))
    narrow = pointwise(pool, combine(pool, "mul", *_pick(pool, (wide, gate), (gate, wide))), depth)
    if stride == 1:
        combine(pool, "add", narrow, source)
    return ()


def convnext(pool: GraphPool) -> Kept:
    """Depthwise with a wide window, the rest channels-last, scaled a channel, and around it."""
    source = _image(pool, 4, 3)
    depth = pool.shape(source)[1]
    last = pool.add("permute", _depthwise(pool, source, _pick(pool, 7, 5)), dims=[0, 2, 3, 1])
    hidden = pool.add("gelu", _linear(pool, _normed(pool, last), 2 * depth))
    narrow = _linear(pool, hidden, depth)
    if _pick(pool, True, False):
        narrow = combine(pool, "mul", narrow, pool.constant("random", (depth,), seed=1, low=-1.0, high=1.0))
    combine(pool, "add", source, pool.add("permute", narrow, dims=[0, 3, 1, 2]))
    return ()


def encoder(pool: GraphPool) -> Kept:
    """A transformer's encoder block; norms stand before (ViT) or behind (BERT) what they belong to."""
    depth, first = _pick(pool, 4, 8), _pick(pool, True, False)
    source = pool.input((_pick(pool, 1, 1, 2), _pick(pool, 4, 5, 3), depth))
    value = _normed(pool, source) if first else source
    mixed, _ = pool.add_all("multihead_attention", value, value, value, heads=_pick(pool, 2, 1))
    summed = combine(pool, "add", source, mixed)
    value = summed if first else _normed(pool, summed)
    hidden = _linear(pool, _normed(pool, value) if first else value, 2 * depth)
    hidden = pool.add("gelu", hidden) if _pick(pool, True, False) else pool.add("relu", hidden)
    added = combine(pool, "add", value, _linear(pool, hidden, depth))
    if not first:
        _normed(pool, added)
    return ()


def cached_attention(pool: GraphPool) -> Kept:
    """A decoder's step: keys and values of one token are written into caches, which are outputs."""
    depth, length, place = _pick(pool, 4, 8), _pick(pool, 4, 6, 3), _pick(pool, 0, 1, 2)
    token = pool.input((1, depth))
    caches = [pool.input((length, depth)) for _ in range(2)]
    how, new = _pick(pool, "slice_scatter", "index_put", "cat"), []
    index = pool.constant("literal", (1,), dtype="int64", values=[place]) if how == "index_put" else ""
    for cache in caches:
        row = _linear(pool, token, depth)
        if how == "slice_scatter":
            new.append(pool.add(how, cache, row, dim=0, start=place, stop=place + 1))
        elif how == "index_put":
            new.append(pool.add(how, cache, index, row, accumulate=False))
        else:
            new.append(pool.add(how, pool.add("slice", cache, dim=0, start=1, stop=None, step=1), row, dim=0))
    keys, values = new
    query = _linear(pool, token, depth)
    score = pool.add("matmul", query, pool.add("transpose", keys, dim0=0, dim1=1))
    weights = pool.add("softmax", pool.add("div", score, scalar=2.0), dim=-1)
    pool.add("matmul", weights, values)
    return (keys, values)


def skip_connection(pool: GraphPool) -> Kept:
    """A level of a U-Net: down, a convolution, up again, beside what was there before."""
    source = pool.input((1, _pick(pool, 2, 3, 1), _pick(pool, 4, 8, 6), _pick(pool, 4, 8, 6)))
    depth = _pick(pool, 4, 2)
    skip = pool.add("relu", conv(pool, source, depth))
    if _pick(pool, True, False):
        words = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
        low = pool.add("max_pool2d", skip, **words)
    else:
        low = conv(pool, skip, depth, stride=[2, 2])
    low = pool.add("relu", conv(pool, low, 2 * depth))
    if _pick(pool, True, False):
        words = {"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0], "output_padding": [0, 0], "dilation": [1, 1]}
        high = pool.add("conv_transpose2d", low, out_channels=depth, groups=1, bias=True, **words)
    else:
        high = pool.add("upsample_nearest2d", low, output=None, factors=[2.0, 2.0])
    joined = combine(pool, "cat", *_pick(pool, (skip, high), (high, skip)))
    pool.add("relu", conv(pool, joined, depth))
    return ()


def keyword_spotting(pool: GraphPool) -> Kept:
    """DS-CNN: a convolution over frames and coefficients, depthwise and pointwise, the mean, classes."""
    source = pool.input((1, 1, _pick(pool, 12, 9, 16), _pick(pool, 10, 5, 8)))
    words = {"kernel": [_pick(pool, 5, 4), 4], "stride": [2, _pick(pool, 2, 1)], "padding": [2, 1]}
    value = pool.add("relu", conv(pool, source, _pick(pool, 4, 8), **words))
    value = pool.add("relu", _depthwise(pool, value))
    value = pool.add("relu", pointwise(pool, value, pool.shape(value)[1]))
    scores = _linear(pool, _pooled(pool, value, kept=False), _pick(pool, 4, 12))
    if _pick(pool, True, False):
        pool.add("softmax", scores, dim=-1)
    return ()


def audio(pool: GraphPool) -> Kept:
    """A net over samples: a strided convolution, a dilated residual with a gate, the mean over time, classes."""
    source = pool.input((_pick(pool, 1, 1, 2), _pick(pool, 1, 2), _pick(pool, 16, 32, 24)))
    value = pool.add("relu", _along(pool, source, _pick(pool, 4, 6), _pick(pool, 5, 3), stride=2))
    depth = pool.shape(value)[1]
    inner = _along(pool, value, depth, 3, dilation=_pick(pool, 2, 1, 4))
    if _pick(pool, True, False):
        inner = combine(pool, "mul", pool.add("tanh", inner), pool.add("sigmoid", inner))
    else:
        inner = pool.add(_pick(pool, "relu", "silu"), inner)
    summed = combine(pool, "add", value, _along(pool, inner, depth, 1))
    _linear(pool, pool.add("mean", summed, dims=[2], keepdim=False), _pick(pool, 4, 10))
    return ()


BLOCKS = (
    Block("inverted-residual", "MobileNetV2 and V3", inverted_residual),
    Block("mbconv", "EfficientNet", mbconv),
    Block("convnext", "ConvNeXt", convnext),
    Block("encoder", "ViT, BERT", encoder),
    Block("cached-attention", "decoders with a cache", cached_attention),
    Block("skip-connection", "U-Net", skip_connection),
    Block("keyword-spotting", "DS-CNN", keyword_spotting),
    Block("audio", "1-D convolutional nets, WaveNet", audio),
)


@st.composite
def block_graphs(draw: Draw, block: Block) -> Graph:
    """Graphs of one block."""
    pool = GraphPool(draw)
    kept = block.build(pool)
    graph = pool.finish()
    return msgspec.structs.replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *kept))))


def draw_blocks(seed: int, number: int, targets: Sequence[str]) -> list[tuple[Case, ...]]:
    """Each block once, drawn for a numbered block of graphs of a campaign, with its cases on every target.

    The last example of a run of Hypothesis: the first ones are simple.
    """
    return [
        fresh_examples(run_seed(seed, number, _RUN - place), cases(tuple(targets), block_graphs(block)))[-1]
        for place, block in enumerate(BLOCKS)
    ]
