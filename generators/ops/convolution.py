"""Convolutions: conv1d, conv2d, conv3d and conv_transpose2d, as modules that own their weights.

Vocabulary as in torch: ``groups`` equal to the input channels makes a depthwise convolution. The
strategies draw padding, kernel and dilation in an order in which each bound follows from the one
before, so that the kernel always fits.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from generators.rules import Shape, at_least, flag, floats, integer, integers, is_float, one
from generators.sizes import BUDGET, one_in, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require

OUT_CHANNELS = (1, 4, 2, 3, 8, 6, 5, 16)
KERNELS = (1, 3, 2, 3, 5, 4)
STRIDES = (1, 1, 1, 2, 3)

_WORDS = {
    "out_channels": "channels of the result",
    "kernel": "kernel size a spatial dimension",
    "stride": "stride a spatial dimension",
    "padding": "zero padding a spatial dimension",
    "dilation": "dilation a spatial dimension",
    "groups": "channel groups",
    "bias": "has a bias",
}


def _channels(shape: Shape, attributes: Attributes, spatial: int) -> tuple[int, int]:
    """Input and output channels, checked against the groups; the batch may be missing."""
    require(len(shape) in (spatial + 1, spatial + 2), f"takes rank {spatial + 1} or {spatial + 2}, not {len(shape)}")
    inner, outer, groups = shape[-spatial - 1], integer(attributes, "out_channels"), integer(attributes, "groups")
    require(groups >= 1 and outer >= 1, "groups and out_channels are positive")
    require(
        inner % groups == 0 and outer % groups == 0, f"channels {inner} and {outer} do not divide by {groups} groups"
    )
    flag(attributes, "bias")
    for key in ("kernel", "stride", "dilation"):
        at_least(integers(attributes, key, spatial), 1, key)
    at_least(integers(attributes, "padding", spatial), 0, "padding")
    return inner, outer


def _infer_conv(spatial: int) -> Callable[[Types, Attributes], tuple[TensorType, ...]]:
    def infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
        (shape,) = floats(types, 1)
        _, outer = _channels(shape, attributes, spatial)
        sizes = []
        for place, size in enumerate(shape[-spatial:]):
            kernel, stride, padding, dilation = (
                attributes[key][place] for key in ("kernel", "stride", "padding", "dilation")
            )
            spare = size + 2 * padding - dilation * (kernel - 1) - 1
            require(spare >= 0, f"kernel {kernel} with dilation {dilation} exceeds size {size} with padding {padding}")
            sizes.append(spare // stride + 1)
        return one((*shape[: -spatial - 1], outer, *sizes))

    return infer


def _infer_transposed(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    _, outer = _channels(shape, attributes, 2)
    extra = integers(attributes, "output_padding", 2)
    at_least(extra, 0, "output_padding")
    sizes = []
    for place, size in enumerate(shape[-2:]):
        kernel, stride, padding, dilation = (
            attributes[key][place] for key in ("kernel", "stride", "padding", "dilation")
        )
        require(extra[place] < max(stride, dilation), f"output_padding {extra[place]} is not below stride or dilation")
        result = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra[place] + 1
        require(result >= 1, f"result size {result} is not positive")
        sizes.append(result)
    return one((*shape[:-3], outer, *sizes))


def _draw_groups(draw: Draw, channels: int) -> int:
    divisors = [groups for groups in range(1, channels + 1) if channels % groups == 0]
    # depthwise (the last divisor) is as common as everything between it and 1
    groups: int = draw(st.sampled_from([1, 1, 1, *divisors, channels]))
    return groups


def _draw_outer(draw: Draw, groups: int, elements: int) -> int:
    """Output channels, a multiple of the groups, for ``elements`` elements a channel."""
    most = max(1, min(16, BUDGET // max(1, elements)))
    possible = [outer for outer in OUT_CHANNELS if outer % groups == 0 and outer <= most]
    outer: int = draw(st.sampled_from(possible or [groups]))
    return outer


def _draw_window(draw: Draw, size: int) -> tuple[int, int, int, int]:
    """Kernel, stride, padding and dilation of one dimension; the kernel fits."""
    padding = draw(st.sampled_from((0, 1, 0, 1, 2)))
    padded = size + 2 * padding
    kernel = draw(st.sampled_from(within(KERNELS, padded)))
    most = (padded - 1) // (kernel - 1) if kernel > 1 else 2
    dilation = draw(st.sampled_from(within((1, 1, 1, 2, 3), most)))
    return kernel, draw(st.sampled_from(STRIDES)), padding, dilation


def _draw_windows(draw: Draw, sizes: Shape) -> dict[str, list[int]]:
    """One window a dimension; usually the same for all where it fits."""
    if len(sizes) > 1 and one_in(draw, 3):
        windows = [_draw_window(draw, size) for size in sizes]
    else:
        windows = [_draw_window(draw, min(sizes))] * len(sizes)
    keys = ("kernel", "stride", "padding", "dilation")
    return {key: [window[place] for window in windows] for place, key in enumerate(keys)}


def _draw_conv(spatial: int) -> Callable[[Draw, Pool, str], Choice]:
    infer = _infer_conv(spatial)

    def strategy(draw: Draw, pool: Pool, name: str) -> Choice:
        type_ = pool.type_of(name)
        attributes: Attributes = dict(_draw_windows(draw, type_.shape[-spatial:]))
        groups = _draw_groups(draw, type_.shape[1])
        attributes |= {"groups": groups, "out_channels": groups, "bias": True}
        (result,) = infer([type_], attributes)
        elements = result.elements // groups
        if result.elements > BUDGET:  # padding makes it grow, and there is a channel a group at least
            groups = attributes["groups"] = 1
        attributes["out_channels"] = _draw_outer(draw, groups, elements)
        attributes["bias"] = draw(st.sampled_from([True, True, False]))
        return Choice((name,), attributes)

    return strategy


def _draw_transposed(draw: Draw, pool: Pool, name: str) -> Choice:
    type_ = pool.type_of(name)
    attributes: Attributes = {key: [] for key in ("kernel", "stride", "padding", "dilation", "output_padding")}
    for size in type_.shape[-2:]:
        stride = draw(st.sampled_from((1, 2, 2, 1, 3))) if size <= 6 else 1
        dilation = 2 if one_in(draw, 8) else 1
        kernel = draw(st.sampled_from((1, 2, 3, 4, 3)))
        full = (size - 1) * stride + dilation * (kernel - 1) + 1
        padding = draw(st.integers(0, min(2, (full - 1) // 2)))
        extra = draw(st.integers(1, max(stride, dilation) - 1)) if max(stride, dilation) > 1 and one_in(draw, 3) else 0
        chosen = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "output_padding": extra}
        for key, value in chosen.items():
            attributes[key].append(value)
    groups = _draw_groups(draw, type_.shape[1])
    attributes |= {"groups": groups, "out_channels": groups, "bias": True}
    (result,) = _infer_transposed([type_], attributes)
    attributes["out_channels"] = _draw_outer(draw, groups, result.elements // groups)
    attributes["bias"] = draw(st.sampled_from([True, True, False]))
    return Choice((name,), attributes)


def _module(name: str, spatial: int) -> Callable[[Types, Attributes], str]:
    def module(types: Types, attributes: Attributes) -> str:
        inner = types[0].shape[-spatial - 1]
        words = [
            f"{key}={tuple(attributes[key])!r}"
            for key in ("stride", "padding", "output_padding", "dilation")
            if key in attributes
        ]
        words += [f"groups={attributes['groups']!r}", f"bias={attributes['bias']!r}"]
        sizes = f"{inner}, {attributes['out_channels']!r}, {tuple(attributes['kernel'])!r}"
        return f"nn.{name}({sizes}, {', '.join(words)})"

    return module


def _accepts(rank: int, most: int) -> Callable[[TensorType], bool]:
    """Batched values only: that is what models feed. ``most``: channels beyond it are slow."""
    return lambda type_: is_float(type_) and type_.rank == rank and type_.shape[1] <= most


def _infer_same(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """Stride 1, and as much padding as keeps the size."""
    (shape,) = floats(types, 1)
    words = {**attributes, "stride": [1, 1], "padding": [0, 0]}
    _, outer = _channels(shape, words, 2)
    return one((*shape[:-3], outer, *shape[-2:]))


def _draw_same(draw: Draw, pool: Pool, name: str) -> Choice:
    shape = pool.type_of(name).shape
    groups = _draw_groups(draw, shape[1])
    attributes: Attributes = {
        "kernel": [draw(st.sampled_from((3, 1, 2, 5))) for _ in range(2)],
        "dilation": [draw(st.sampled_from((1, 1, 2)))] * 2,
        "groups": groups,
        "out_channels": _draw_outer(draw, groups, shape[0] * shape[2] * shape[3]),
        "bias": draw(st.sampled_from([True, True, False])),
    }
    return Choice((name,), attributes)


def _module_same(types: Types, attributes: Attributes) -> str:
    sizes = f"{types[0].shape[-3]}, {attributes['out_channels']!r}, {tuple(attributes['kernel'])!r}"
    words = f"dilation={tuple(attributes['dilation'])!r}, groups={attributes['groups']!r}, bias={attributes['bias']!r}"
    return f"nn.Conv2d({sizes}, padding='same', {words})"


_TAGS = frozenset({"convolution"})

OPERATORS = (
    Operator(
        "conv2d",
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias, SymInt[2] stride, SymInt[2] padding, "
        "SymInt[2] dilation, SymInt groups) -> Tensor",
        _accepts(4, 64),
        _draw_conv(2),
        _infer_conv(2),
        module=_module("Conv2d", 2),
        attributes=_WORDS,
        tags=_TAGS | {"seed"},
    ),
    Operator(
        "conv1d",
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias, SymInt[1] stride, SymInt[1] padding, "
        "SymInt[1] dilation, SymInt groups) -> Tensor",
        _accepts(3, 64),
        _draw_conv(1),
        _infer_conv(1),
        module=_module("Conv1d", 1),
        attributes=_WORDS,
        tags=_TAGS | {"narrow"},
    ),
    Operator(
        "conv2d_same",
        "aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias, SymInt[2] stride, str padding, "
        "SymInt[2] dilation, SymInt groups) -> Tensor",
        _accepts(4, 64),
        _draw_same,
        _infer_same,
        module=_module_same,
        attributes={key: word for key, word in _WORDS.items() if key not in ("stride", "padding")},
        tags=_TAGS | {"rare"},
    ),
    Operator(
        "conv3d",
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias, SymInt[3] stride, SymInt[3] padding, "
        "SymInt[3] dilation, SymInt groups) -> Tensor",
        _accepts(5, 16),
        _draw_conv(3),
        _infer_conv(3),
        module=_module("Conv3d", 3),
        attributes=_WORDS,
        tags=_TAGS | {"narrow"},
    ),
    Operator(
        "conv_transpose2d",
        "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias, "
        "SymInt[2] stride, SymInt[2] padding, SymInt[2] output_padding, SymInt groups, SymInt[2] dilation) "
        "-> Tensor",
        _accepts(4, 64),
        _draw_transposed,
        _infer_transposed,
        module=_module("ConvTranspose2d", 2),
        attributes={**_WORDS, "output_padding": "rows and columns added at one end of the result"},
        tags=_TAGS | {"narrow"},
    ),
)
