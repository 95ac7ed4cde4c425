"""Pooling over windows, and reductions over dimensions.

``stride`` null means that the source leaves it out (torch then takes the kernel size, #13152).
A reduction over ``dims`` null takes every dimension. Strategies avoid results without any
dimension; the shape rules allow them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from generators.rules import Shape, at_least, axes_of, flag, floats, integers, is_float, one
from generators.sizes import between, one_in, pick, within
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, Types, require


def _pooled(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """torch's pooling size; with ``ceil`` the last window must still start inside the input."""
    spare = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (spare + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _infer_pool(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    """Both pools; avg_pool2d has no dilation."""
    (shape,) = floats(types, 1)
    require(len(shape) in (3, 4), f"takes rank 3 or 4, not {len(shape)}")
    kernels = integers(attributes, "kernel", 2)
    strides = kernels if attributes["stride"] is None else integers(attributes, "stride", 2)
    paddings = integers(attributes, "padding", 2)
    dilations = integers(attributes, "dilation", 2) if "dilation" in attributes else (1, 1)
    for key, values in (("kernel", kernels), ("stride", strides), ("dilation", dilations)):
        at_least(values, 1, key)
    at_least(paddings, 0, "padding")
    ceil = flag(attributes, "ceil_mode")
    if "count_include_pad" in attributes:
        flag(attributes, "count_include_pad")
    sizes = []
    for size, *window in zip(shape[-2:], kernels, strides, paddings, dilations, strict=True):
        kernel, stride, padding, dilation = window
        require(2 * padding <= kernel, f"padding {padding} is more than half of kernel {kernel}")
        result = _pooled(size, kernel, stride, padding, dilation, ceil)
        require(result >= 1, f"kernel {kernel} with dilation {dilation} exceeds size {size}")
        sizes.append(result)
    return one((*shape[:-2], *sizes))


def _draw_window(draw: Draw, size: int, *, dilated: bool) -> tuple[int, int, int, int]:
    kernel = draw(st.sampled_from(within((1, 2, 2, 3, 3, 4, 5), size)))
    most = (size - 1) // (kernel - 1) if kernel > 1 else 1
    dilation = draw(st.sampled_from(within((1, 1, 2, 3), most))) if dilated else 1
    padding = draw(st.integers(0, kernel // 2))
    return kernel, draw(st.sampled_from((1, 2, 2, 3))), padding, dilation


def _draw_pool(draw: Draw, pool: Pool, name: str, *, dilated: bool) -> Attributes:
    height, width = pool.type_of(name).shape[-2:]
    if one_in(draw, 3):
        windows = [_draw_window(draw, size, dilated=dilated) for size in (height, width)]
    else:
        windows = [_draw_window(draw, min(height, width), dilated=dilated)] * 2
    kernel, stride, padding, dilation = (list(values) for values in zip(*windows, strict=True))
    attributes: Attributes = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": one_in(draw, 3)}
    if one_in(draw, 4):
        attributes["stride"] = None
    return attributes | ({"dilation": dilation} if dilated else {})


def _draw_max(draw: Draw, pool: Pool, name: str) -> Choice:
    return Choice((name,), _draw_pool(draw, pool, name, dilated=True))


def _draw_avg(draw: Draw, pool: Pool, name: str) -> Choice:
    attributes = _draw_pool(draw, pool, name, dilated=False)
    height, width = pool.type_of(name).shape[-2:]
    if max(height, width) <= 8 and one_in(draw, 5):
        # the whole plane at once: upstream turns this into a mean
        attributes |= {"kernel": [height, width], "stride": None, "padding": [0, 0]}
    return Choice((name,), attributes | {"count_include_pad": not one_in(draw, 3)})


def _call_pool(function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        words = [
            f"{key}={tuple(attributes[key])!r}"
            for key in ("stride", "padding", "dilation")
            if attributes.get(key) is not None
        ]
        words += [f"{key}={attributes[key]!r}" for key in ("ceil_mode", "count_include_pad") if key in attributes]
        return f"F.{function}({operands[0]}, {tuple(attributes['kernel'])!r}, {', '.join(words)})"

    return call


def _infer_adaptive(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    wanted = integers(attributes, "output", 2)
    at_least(wanted, 0, "output")
    # a 1x1 result is a mean to torch, of any rank
    require(len(shape) in (3, 4) or (len(shape) > 4 and wanted == (1, 1)), f"takes rank 3 or 4, not {len(shape)}")
    return one((*shape[:-2], *wanted))


def _draw_adaptive(draw: Draw, pool: Pool, name: str) -> Choice:
    """Any result size up to the input's; sizes that divide it are likelier."""
    output = []
    for size in pool.type_of(name).shape[-2:]:
        divisors = [part for part in range(1, size + 1) if size % part == 0]
        output.append(between(draw, 1, size) if one_in(draw, 3) else pick(draw, divisors))
    return Choice((name,), {"output": output})


def _call_adaptive(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    return f"F.adaptive_avg_pool2d({operands[0]}, {tuple(attributes['output'])!r})"


def _reduced(shape: Shape, axes: Sequence[int], keep: bool) -> Shape:
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _infer_reduction(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    (shape,) = floats(types, 1)
    keep = flag(attributes, "keepdim")
    axes: Sequence[int] = range(len(shape))
    if attributes["dims"] is not None:
        # torch takes an empty list for every dimension, too
        axes = axes_of(integers(attributes, "dims"), len(shape)) or axes
    return one(_reduced(shape, axes, keep))


def _draw_reduction(draw: Draw, pool: Pool, name: str) -> Choice:
    rank = pool.type_of(name).rank
    if one_in(draw, 10):
        return Choice((name,), {"dims": None, "keepdim": True})
    known = [dims for dims in ([rank - 1], [1], [2, 3], [0], [1, 2]) if max(dims) < rank]
    dims = draw(st.sampled_from(known))
    if one_in(draw, 4):
        dims = sorted(draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))])
    keep = len(dims) == rank or draw(st.booleans())
    negative = one_in(draw, 3)
    return Choice((name,), {"dims": [axis - rank if negative else axis for axis in dims], "keepdim": keep})


def _call_reduction(function: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        dims = attributes["dims"]
        if dims is None:
            dims = list(range(types[0].rank))
        return f"torch.{function}({operands[0]}, dim={dims!r}, keepdim={attributes['keepdim']!r})"

    return call


def _planes(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank == 4


def _reducible(type_: TensorType) -> bool:
    return is_float(type_) and type_.rank >= 1


_POOL_WORDS = {
    "kernel": "window [height, width]",
    "stride": "stride, or null to leave it out",
    "padding": "padding of each side",
    "ceil_mode": "round the result size up",
}
_REDUCTION_WORDS = {"dims": "reduced dimensions, null for all", "keepdim": "they stay with size 1"}


def _reduction(name: str, signature: str) -> Operator:
    return Operator(
        name,
        signature,
        _reducible,
        _draw_reduction,
        _infer_reduction,
        call=_call_reduction(name),
        attributes=_REDUCTION_WORDS,
        tags=frozenset({"reduction", "rare"}),
    )


OPERATORS = (
    Operator(
        "max_pool2d",
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "int[2] dilation, bool ceil_mode) -> Tensor",
        _planes,
        _draw_max,
        _infer_pool,
        call=_call_pool("max_pool2d"),
        attributes={**_POOL_WORDS, "dilation": "distance of window elements"},
        tags=frozenset({"pooling", "narrow"}),
    ),
    Operator(
        "avg_pool2d",
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "bool ceil_mode, bool count_include_pad) -> Tensor",
        _planes,
        _draw_avg,
        _infer_pool,
        call=_call_pool("avg_pool2d"),
        attributes={**_POOL_WORDS, "count_include_pad": "padding counts in the divisor"},
        tags=frozenset({"pooling", "narrow"}),
    ),
    Operator(
        "adaptive_avg_pool2d",
        "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        _planes,
        _draw_adaptive,
        _infer_adaptive,
        call=_call_adaptive,
        attributes={"output": "result [height, width]"},
        tags=frozenset({"pooling", "narrow"}),
    ),
    _reduction("mean", "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim) -> Tensor"),
    _reduction("sum", "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim) -> Tensor"),
    _reduction("amax", "aten::amax(Tensor self, int[1] dim, bool keepdim) -> Tensor"),
    _reduction("amin", "aten::amin(Tensor self, int[1] dim, bool keepdim) -> Tensor"),
)
