"""What Vela says it compiles: the limits of its own list of supported TOSA operators.

A refusal of a valid program is Vela's bug where the list promises the program, and Vela's right where it does not.
``beyond`` names the first operator that the list does not promise, and the limit that it exceeds.

Source: SUPPORTED_OPS.md of ethos-u-vela 5.1.0, its sections on TOSA. For Ethos-U85 that is the profile PRO-INT with a
few exceptions. For Ethos-U55 and U65 each operator has limits of its own, and one that is not in the table is not
supported. Where the list is silent and a promise would be doubtful (an axis above 65,536 elements, weights that are
computed, RESIZE whose corners are not aligned and whose centres are not those of half pixels, a DEPTHWISE_CONV2D of
int16), nothing is taken as promised: what is counted as a finding here must be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from harness.tosa.cutting import entries
from harness.tosa.program import Operator, Program, Tensor

Check = Callable[[Program, Operator], str]
"""The limit that an operator exceeds; empty if it exceeds none."""

_MOST = 1 << 16
_MOVED = ("INT8", "INT16", "INT32")
_NEAREST = 1
_ORDERS = ((0, 1, 2, 3), (0, 1, 3, 2))
"""NHWC, NHCW: what TRANSPOSE does with int32."""
_ORDERS_OF_ONE = ((0, 2, 1, 3), (0, 3, 2, 1))
"""NWHC, NCWH: what it does besides where the batch is one."""


def beyond(program: Program, u85: bool) -> str:
    """Why the list does not promise that Vela compiles a program: ``TABLE: INT16``; empty if it does.

    :param u85: for Ethos-U85; otherwise for Ethos-U55 and U65.
    """
    for step in program.operators:
        check = _OF_U85.get(step.op, _any) if u85 else _OF_U55.get(step.op, _unlisted)
        if limit := _size(program, step) or check(program, step):
            return f"{step.op}: {limit}"
    return ""


def _unlisted(program: Program, step: Operator) -> str:
    return "not in the list"


def _any(program: Program, step: Operator) -> str:
    return ""


def _size(program: Program, step: Operator) -> str:
    sizes = (size for name in (*step.inputs, *step.outputs) for size in program.by_name[name].shape)
    return f"an axis above {_MOST}" if max(sizes, default=0) > _MOST else ""


def _operand(program: Program, step: Operator, number: int = 0) -> Tensor:
    return program.by_name[step.inputs[number]]


def _result(program: Program, step: Operator) -> Tensor:
    return program.by_name[step.outputs[0]]


def _numbers(step: Operator, name: str) -> tuple[int, ...]:
    return entries(step.attributes[name])


def _of(*dtypes: str) -> Check:
    """The operand has one of these types."""

    def check(program: Program, step: Operator) -> str:
        found = _operand(program, step).dtype
        return "" if found in dtypes else found

    return check


def _constant_weights(program: Program, step: Operator) -> str:
    return "" if all(_operand(program, step, number).constant for number in (1, 2)) else "weights that are computed"


def _rescaled(program: Program, step: Operator) -> str:
    """An accumulator of 48 bits is only for a RESCALE to 8, 16 or 32 bits."""
    if _result(program, step).dtype != "INT48":
        return ""
    readers = program.readers(step.outputs[0])
    narrow = all(item.op == "RESCALE" and _result(program, item).dtype in _MOVED for item in readers)
    return "" if narrow and readers and step.outputs[0] not in program.outputs else "48 bits without a RESCALE"


def _kernel(height: int, width: int) -> str:
    return f"a kernel of {height}x{width}" if height * width > 4096 or height > 64 else ""


def _convolution(program: Program, step: Operator) -> str:
    weights, bias = _operand(program, step, 1), _operand(program, step, 2)
    types = _operand(program, step).dtype, weights.dtype
    if types not in (("INT8", "INT8"), ("INT8", "INT4"), ("INT16", "INT8")):
        return " with ".join(types)
    if limit := _constant_weights(program, step) or _rescaled(program, step):
        return limit
    if limit := _kernel(*weights.shape[-3:-1]):
        return limit
    if abs(weights.values()).reshape(weights.shape[0], -1).sum(axis=1).max() > 127 * _MOST:
        return "weights whose sum is above 127 * 65536"
    return "a bias of more than 40 bits" if abs(bias.values()).max() >= 1 << 39 else ""


def _strided(program: Program, step: Operator) -> str:
    stride = _numbers(step, "Stride")
    return "" if max(stride[-2:]) <= 3 else f"a stride of {stride}"


def _conv2d(program: Program, step: Operator) -> str:
    return _convolution(program, step) or _strided(program, step)


def _conv3d(program: Program, step: Operator) -> str:
    depth = _operand(program, step, 1).shape[1]
    return f"a kernel of {depth} planes" if depth > 1 else _conv2d(program, step)


def _depthwise(program: Program, step: Operator) -> str:
    """The table has none; what is taken for promised has int8 and the limits of CONV2D."""
    limit = _constant_weights(program, step) or _of("INT8")(program, step)
    return limit or _kernel(*_operand(program, step, 1).shape[:2]) or _strided(program, step)


def _transposed_convolution(program: Program, step: Operator) -> str:
    stride = _numbers(step, "Stride")
    _, height, width, _ = _operand(program, step).shape
    _, rows, columns, _ = _operand(program, step, 1).shape
    flat = (stride == (1, 2) and height == rows == 1) or (stride == (2, 1) and width == columns == 1)
    if stride not in ((1, 1), (2, 2)) and not flat:
        return f"a stride of {stride}"
    return _convolution(program, step)


def _pool(program: Program, step: Operator) -> str:
    height, width = _numbers(step, "Kernel")
    if height * width > _MOST or height > 256:
        return f"a kernel of {height}x{width}"
    return _strided(program, step)


def _average_pool(program: Program, step: Operator) -> str:
    if _operand(program, step).shape[0] != 1:
        return "a batch"
    if any(_numbers(step, "Pad")) and max(_numbers(step, "Kernel")) > 8:
        return "a padded kernel above 8"
    return _pool(program, step)


def _argmax(program: Program, step: Operator) -> str:
    shape = _operand(program, step).shape
    if len(shape) > 4 or step.attributes["Axis"] != len(shape) - 1:
        return "a rank above 4, or another axis than the last"
    if math.prod(shape[:-3]) != 1 or shape[-1] > 127 or math.prod(shape[-3:-1]) > _MOST:
        return f"shape {shape}"
    return ""


def _resize(program: Program, step: Operator) -> str:
    """Both axes grow by 2, 4 or 8, with aligned corners or centres of half pixels."""
    if step.attributes["Mode"] != _NEAREST:
        return "bilinear"
    scale, offset, border = (tuple(_operand(program, step, number).values().tolist()) for number in (1, 2, 3))
    for times, of, start, end in zip(scale[::2], scale[1::2], offset, border, strict=True):
        factor = times / of
        corners = of == 1 and start == end == 0
        centres = of == 2 and -start == end == factor - 1
        if factor not in (2, 4, 8) or not (corners or centres):
            return f"{times}/{of} from {start}, border {end}"
    return ""


def _transpose(program: Program, step: Operator) -> str:
    operand, order = _operand(program, step), _numbers(step, "Perms")
    if operand.dtype in ("INT8", "INT16"):
        return "" if operand.elements <= _MOST else f"{operand.elements} elements"
    if operand.dtype != "INT32" or len(order) > 4:
        return f"{operand.dtype} of rank {len(order)}"
    missing = 4 - len(order)
    whole = (*range(missing), *(axis + missing for axis in order))
    shape = ((1,) * missing + operand.shape)[-4:]
    orders = (*_ORDERS, *_ORDERS_OF_ONE) if shape[0] == 1 else _ORDERS
    if whole not in orders or operand.elements > 1 << 14:
        return f"INT32 {operand.shape} in the order {order}"
    return ""


def _reduce_sum(program: Program, step: Operator) -> str:
    elements = _operand(program, step).elements
    return "" if elements <= _MOST else f"{elements} elements"


def _cast(program: Program, step: Operator) -> str:
    source, made = _operand(program, step).dtype, _result(program, step).dtype
    return f"{source} to {made}" if "BOOL" in (source, made) or source == "INT32" else ""


def _rescale(program: Program, step: Operator) -> str:
    """48 bits are for what a convolution accumulates; the convolution says whether it may."""
    operand = _operand(program, step)
    maker = program.producers.get(operand.name)
    wide = "INT48" in (operand.dtype, _result(program, step).dtype)
    fused = maker is not None and maker.op in _ACCUMULATING and _result(program, step).dtype != "INT48"
    return "48 bits standing alone" if wide and not fused else ""


def _reverse(program: Program, step: Operator) -> str:
    """Along height or width: the second and the third axis from the end."""
    operand = _operand(program, step)
    axis = len(operand.shape) - int(step.attributes["Axis"])  # type: ignore[arg-type]
    return "" if operand.dtype in ("INT8", "INT16") and axis in (2, 3) else f"{operand.dtype}, axis {-axis}"


def _shifted_right(program: Program, step: Operator) -> str:
    rounded = bool(step.attributes.get("Round"))
    return _of("INT32")(program, step) or ("" if rounded else "without rounding")


_ACCUMULATING = ("CONV2D", "CONV3D", "TRANSPOSE_CONV2D")
_OF_U55: Mapping[str, Check] = {
    **dict.fromkeys(("ABS", "ADD", "CLAMP", "CLZ", "MAXIMUM", "MINIMUM", "MUL", "NEGATE", "SUB"), _any),
    **dict.fromkeys(("CONCAT", "PAD", "RESHAPE", "SLICE", "TILE"), _of(*_MOVED)),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), _of("INT8", "INT16")),
    "ARGMAX": _argmax,
    "ARITHMETIC_RIGHT_SHIFT": _shifted_right,
    "AVG_POOL2D": _average_pool,
    "CAST": _cast,
    "CONV2D": _conv2d,
    "CONV3D": _conv3d,
    "DEPTHWISE_CONV2D": _depthwise,
    "IDENTITY": _of(*_MOVED),
    "LOGICAL_LEFT_SHIFT": _of("INT32"),
    "MATMUL": _of("INT8"),
    "MAX_POOL2D": _pool,
    "REDUCE_SUM": _reduce_sum,
    "RESCALE": _rescale,
    "RESIZE": _resize,
    "REVERSE": _reverse,
    "TABLE": _of("INT8"),
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV2D": _transposed_convolution,
}
_OF_U85: Mapping[str, Check] = {
    "CONV3D": _constant_weights,
    "TRANSPOSE_CONV2D": _constant_weights,
}
