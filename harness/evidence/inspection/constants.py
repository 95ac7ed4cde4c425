"""Every constant of a flatbuffer with what the start graph says it must be.

Roles, by the operators that read a constant: *weight* and *bias* of a convolution, *shape*
operands, a PAD's *value*, *data*; parameters of RESCALE, TABLE and zero points are judged
elsewhere and not listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from harness.artifacts.tosa import SHAPE, TosaOperator, TosaTensor
from harness.case.arrays import Array
from harness.case.wording import counted_as
from harness.compat.snapshots import NodeState, PassTrace, Ref, base
from harness.evidence.inspection.analysis import CONVOLUTIONS, Analysis
from harness.evidence.inspection.decisions import decided, is_dequantize, is_quantize, operands
from harness.evidence.inspection.folding import Folded, computed, folded, quantized
from harness.evidence.inspection.followed import folded_into
from harness.evidence.inspection.layout import nearest, same_elements, share, weights
from harness.evidence.inspection.origins import constant_origin
from harness.evidence.inspection.spelled_out import (
    is_filler,
    is_operand,
    is_share,
    is_stride,
    is_window,
    is_zero_of_sign,
    of_quantization,
    of_window,
)

PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "RESCALE": (1, 2, 3, 4),
    **dict.fromkeys(CONVOLUTIONS, (3, 4)),
    "TABLE": (1,),
    "MUL": (2,),
    "NEGATE": (1, 2),
    "AVG_POOL2D": (1, 2),
    "MATMUL": (2, 3),
}
"""Operands that the ``qparams`` oracle judges."""
FEW = 8
EXPANDING = ("expand", "expand_copy")


@dataclass(frozen=True)
class JudgedConstant:
    """One constant.

    :param message: what differs, or why it has no match.
    :param blame: whose fault it is, where the snapshots cannot tell.
    """

    tensor: str
    verdict: Literal["right", "wrong", "unmatched"]
    kind: str = ""
    message: str = ""
    origin: str | None = None
    blame: str = ""
    measured: Mapping[str, int | float | str] = field(default_factory=dict)


def judged_constants(analysis: Analysis) -> Iterator[JudgedConstant]:
    """Every constant that is some operator's operand or an output, parameters aside."""
    values = folded(analysis.trace.start)
    for tensor in analysis.block.tensors.values():
        if tensor.data is None:
            continue
        roles = [
            (operator, position)
            for operator in analysis.block.readers(tensor.name)
            for position, name in enumerate(operator.inputs)
            if name == tensor.name and position not in PARAMETERS.get(operator.op, ())
        ]
        if tensor.name in analysis.block.outputs:
            yield _data(analysis, tensor, None, values)
        elif roles:
            yield from _judged(analysis, tensor, *roles[0], values)


def _judged(
    analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, position: int, values: Mapping[str, Folded]
) -> Iterator[JudgedConstant]:
    if operator.op in CONVOLUTIONS and position > 0:  # what it convolves may be a constant, too
        origin = analysis.origins.of[operator.index]
        start = analysis.trace.start.nodes[origin] if origin is not None else None
        if start is None:
            yield JudgedConstant(tensor.name, "unmatched", message="its convolution has no origin")
        elif position == 1:
            yield _weight(analysis, tensor, operator, start, values)
        else:
            yield from _bias(analysis, tensor, operator, start, values)
    elif tensor.dtype == SHAPE:
        yield _shape(analysis, tensor, operator, position)
    elif operator.op == "PAD":
        yield _pad_value(analysis, tensor, operator)
    else:
        yield _data(analysis, tensor, operator, values)


def _weight(
    analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, start: NodeState, values: Mapping[str, Folded]
) -> JudgedConstant:
    if base(start) == "cumsum":  # becomes a convolution that adds a window up
        ones = np.ones_like(tensor.values())
        return _compared(tensor.name, "weights differ", ones, ones, tensor.values(), start.name)
    codes = _codes(start, 2 if base(start) == "addmm" else 1, analysis, values)
    if codes is None:
        return JudgedConstant(tensor.name, "unmatched", message="the weight is no constant of the quantized graph")
    transposed = operator.op == "TRANSPOSE_CONV2D"
    parts = [item for item in analysis.origins.group(start.name) if item.op in CONVOLUTIONS]
    groups = int(start.args[8]) if base(start) == "convolution" else 1
    if base(start) == "addmm":
        codes = codes.transpose(1, 0)
    stored = tensor.values()

    def arranged(whole: Array) -> Array | None:
        return weights(share(whole, parts.index(operator), len(parts)), operator.op, groups if not transposed else 1)

    wanted = arranged(codes)
    after = folded_into(start, analysis.trace.start, values) if codes.dtype.kind == "f" else ()
    if any(_holds(item.weight(codes, groups if transposed else None), stored, arranged) for item in after):
        return JudgedConstant(tensor.name, "right", origin=start.name)
    if wanted is None or wanted.shape != stored.shape:
        shape = "another rank" if wanted is None else f"{list(wanted.shape)}"
        return JudgedConstant(
            tensor.name, "unmatched", message=f"{operator.op} weight {list(stored.shape)}, not {shape}"
        )
    return _compared(tensor.name, "weights differ", wanted, wanted, stored, start.name)


def _bias(
    analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, start: NodeState, values: Mapping[str, Folded]
) -> Iterator[JudgedConstant]:
    stored = tensor.values().reshape(-1)
    position = 0 if base(start) == "addmm" else 2
    bias = start.args[position] if len(start.args) > position else None
    codes = _codes(start, position, analysis, values)
    parts = [item for item in analysis.origins.group(start.name) if item.op in CONVOLUTIONS]
    if stored.dtype.kind == "f":
        whole = np.zeros(1) if codes is None else codes.reshape(-1)
        after = (item.bias(whole) for item in folded_into(start, analysis.trace.start, values))
        if any(_holds(item, stored, lambda end: share(end, parts.index(operator), len(parts))) for item in after):
            yield JudgedConstant(tensor.name, "right", origin=start.name)
            return
    if bias is None:
        zeros = np.zeros_like(stored)
        yield _compared(tensor.name, "bias differs", zeros, zeros, stored, start.name)
        return
    if codes is None:
        yield JudgedConstant(tensor.name, "unmatched", message="the bias is no quantized constant of the graph")
        return
    wanted = share(codes.reshape(-1), parts.index(operator), len(parts))
    if wanted.shape != stored.shape:
        yield JudgedConstant(
            tensor.name, "unmatched", message=f"has {counted_as(stored.size, 'element')}, the bias {wanted.size}"
        )
        return
    if not stored.any() and _added_after(codes.reshape(-1), start, analysis):
        wanted = np.zeros_like(stored)
    yield _compared(tensor.name, "bias differs", wanted, wanted, stored, start.name)
    yield from _bias_scale(tensor, analysis, start, position)


def _holds(allowed: Folded, stored: Array, arranged: Callable[[Array], Array | None]) -> bool:
    """Is every element between both ends, once they are arranged as the constant is?"""
    low, high = arranged(allowed.low), arranged(allowed.high)
    if low is None or high is None or low.shape != stored.shape:
        return False
    return bool(np.all((low <= stored) & (stored <= high)))


def _added_after(codes: Array, start: NodeState, analysis: Analysis) -> bool:
    """Does an ADD behind the convolution take the bias?

    Up to executorch 1.2 ``DecomposeConvWithInt16ActivationPass`` takes the bias out of an int16 convolution.
    """
    block = analysis.block
    added = [name for item in analysis.origins.group(start.name) if item.op == "ADD" for name in item.inputs]
    reshaped = [block.producers[name].inputs[0] for name in added if _is_reshape(block.producers.get(name))]
    constants = (block.tensors[name] for name in (*added, *reshaped))
    return any(item.data is not None and np.array_equal(item.values().reshape(-1), codes) for item in constants)


def _is_reshape(operator: TosaOperator | None) -> bool:
    return operator is not None and operator.op == "RESHAPE"


def _bias_scale(tensor: TosaTensor, analysis: Analysis, start: NodeState, position: int) -> Iterator[JudgedConstant]:
    """A bias is added to the accumulator: its scale is the product of input's and weight's."""
    chosen = {item.argument: item.qparams for item in operands(start, analysis.trace.start)}
    first, second = (1, 2) if base(start) == "addmm" else (0, 1)
    if not {first, second, position} <= set(chosen):
        return
    wanted = np.asarray(chosen[first].scales[0]) * np.asarray(chosen[second].scales)
    held = np.asarray(chosen[position].scales)
    if held.size not in (1, wanted.size) or np.allclose(held, wanted, rtol=2.0**-20, atol=0):
        return
    yield JudgedConstant(
        tensor.name,
        "wrong",
        "bias scale differs",
        f"its scale is {held.flat[0]:.9g}, input scale times weight scale is {wanted.flat[0]:.9g}",
        start.name,
        "quantizer",
    )


def _codes(start: NodeState, position: int, analysis: Analysis, values: Mapping[str, Folded]) -> Array | None:
    """Codes of a constant argument behind its dequantize node; the value itself without one."""
    argument = start.args[position] if position < len(start.args) else None
    if not isinstance(argument, Ref):
        return None
    node = analysis.trace.start.nodes[argument.name]
    found = values.get(node.refs[0] if is_dequantize(node) else node.name)
    return None if found is None else found.value


def _shape(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator, position: int) -> JudgedConstant:
    """Shape operands agree with the shapes of the tensors on both sides."""
    stored = [int(value) for value in tensor.values()]
    before = analysis.block.tensors[operator.inputs[0]].shape
    after = analysis.block.tensors[operator.outputs[0]].shape
    wanted: list[int] | None = None
    if operator.op == "RESHAPE" or (operator.op == "SLICE" and position == 2):
        wanted = list(after)
    elif operator.op == "TILE" and all(before):
        wanted = [whole // part for whole, part in zip(after, before, strict=True)]
    elif operator.op == "PAD" and len(stored) == 2 * len(before):
        sums = [first + size + last for first, size, last in zip(stored[::2], before, stored[1::2], strict=True)]
        if sums != list(after):
            return _shape_wrong(tensor, operator, f"pads {list(before)} to {sums}, the result is {list(after)}")
        return JudgedConstant(tensor.name, "right")
    if wanted is not None and wanted != stored:
        return _shape_wrong(tensor, operator, f"is {stored}, the tensors' shapes imply {wanted}")
    return JudgedConstant(tensor.name, "right")


def _shape_wrong(tensor: TosaTensor, operator: TosaOperator, what: str) -> JudgedConstant:
    return JudgedConstant(tensor.name, "wrong", "shape constant differs", f"{operator.op}'s operand {what}")


def _pad_value(analysis: Analysis, tensor: TosaTensor, operator: TosaOperator) -> JudgedConstant:
    origin = analysis.origins.of[operator.index]
    start = analysis.trace.start.nodes.get(origin or "")
    choices = decided(start.name, analysis.trace.start) if start is not None else ()
    pool = start is not None and base(start).startswith("max_pool") and len(choices) == 1
    if pool and np.all(tensor.values() <= choices[0].qmin):  # what no window takes for its maximum
        return JudgedConstant(tensor.name, "right", origin=analysis.origins.of[operator.index])
    if start is None or base(start) not in ("constant_pad_nd", "pad"):
        return JudgedConstant(
            tensor.name, "unmatched", message="a padding that no operator of the quantized graph asks for"
        )
    position = 3 if base(start) == "pad" else 2  # aten.pad names its mode first
    value = start.args[position] if len(start.args) > position else 0
    if not isinstance(value, (int, float)) or len(choices) != 1:
        return JudgedConstant(tensor.name, "unmatched", message="its padding value has no domain")
    wanted = quantized(np.full(tensor.shape, value, np.float64), choices[0])
    return _compared(tensor.name, "padding value differs", wanted.low, wanted.high, tensor.values(), start.name)


def _data(
    analysis: Analysis, tensor: TosaTensor, operator: TosaOperator | None, values: Mapping[str, Folded]
) -> JudgedConstant:
    origin = constant_origin(tensor.name, analysis.trace)
    if (
        origin is None
        and operator is not None
        and (
            of_quantization(analysis, tensor, operator)
            or is_operand(analysis, tensor, operator, values)
            or of_window(analysis, tensor, operator)
        )
    ):
        return JudgedConstant(tensor.name, "right")
    if origin is None:
        return JudgedConstant(tensor.name, "unmatched", message="made by a pass from no node of the quantized graph")
    if operator is not None and is_filler(analysis, tensor, operator, origin):
        return _filler(analysis, tensor, origin)
    candidates = (origin, *_like(analysis, origin, values), *_expanded(analysis, tensor, origin, values))
    problems = [_against(analysis, tensor, name, values) for name in candidates]
    found = next((item for item in problems if item.verdict == "right"), problems[-1])
    if found.verdict == "unmatched" and operator is not None and is_operand(analysis, tensor, operator, values):
        return JudgedConstant(tensor.name, "right", origin=origin)  # the exponent of a power, which has its mark
    return found


def _filler(analysis: Analysis, tensor: TosaTensor, origin: str) -> JudgedConstant:
    """Any value will do of what is dropped: of each step all but the first element, so less than a step."""
    start = analysis.trace.start.nodes[origin]
    dim, step = (start.args[place] if len(start.args) > place else None for place in (1, 4))
    if isinstance(dim, int) and isinstance(step, int) and tensor.shape[dim % len(tensor.shape)] < step:
        return JudgedConstant(tensor.name, "right", origin=origin)
    return JudgedConstant(tensor.name, "unmatched", message=f"fills up what {origin} leaves out again")


def _like(analysis: Analysis, origin: str, values: Mapping[str, Folded]) -> tuple[str, ...]:
    """Constants made in the likeness of a value: full_like's descendants carry that value's metadata."""
    if origin in values:
        return ()
    readers = analysis.trace.start.users.get(origin, ())
    return tuple(reader.name for reader in readers if reader.name in values)


def _expanded(analysis: Analysis, tensor: TosaTensor, origin: str, values: Mapping[str, Folded]) -> Iterator[str]:
    """Constants that a value is expanded to: the repeat that a pass makes of an expand bears that value's metadata."""
    size, start = tensor.values().size, analysis.trace.start
    if origin not in values or values[origin].value.size == size:
        return
    waiting = [origin]
    while waiting:
        for reader in start.users.get(waiting.pop(), ()):
            if is_quantize(reader) or is_dequantize(reader):
                waiting.append(reader.name)
            elif base(reader) in EXPANDING and reader.name in values and values[reader.name].value.size == size:
                yield reader.name


def _against(analysis: Analysis, tensor: TosaTensor, origin: str, values: Mapping[str, Folded]) -> JudgedConstant:
    start = analysis.trace.start.nodes[origin]
    wanted = values.get(origin)
    if wanted is None:
        helps = is_stride(tensor, start, analysis) or is_share(tensor, start, analysis) or is_window(tensor, start)
        if helps or is_zero_of_sign(tensor, start):
            return JudgedConstant(tensor.name, "right", origin=origin)
        return JudgedConstant(tensor.name, "unmatched", message=f"{origin} is no constant of the quantized graph")
    stored, choices = tensor.values(), decided(origin, analysis.trace.start)
    if stored.size != wanted.value.size and not tensor.name.startswith(origin):
        return JudgedConstant(tensor.name, "unmatched", message=f"a helper of {origin}, of another size")
    if tensor.dtype == "INT8" and [item.dtype for item in choices] == ["uint8"]:
        stored = stored.view(np.uint8)  # TOSA has no unsigned tensors: uint8 codes travel as INT8
    if wanted.value.dtype.kind == "f" and stored.dtype.kind in "iu":
        choices = choices if not is_quantize(start) else ()
        if len(choices) != 1 or choices[0].dtype.removeprefix("u") != tensor.dtype.lower():
            return JudgedConstant(tensor.name, "unmatched", message=f"{origin} has no single domain of {tensor.dtype}")
        wanted = quantized(wanted.value, choices[0])
    if wanted.value.dtype.kind in "iub" and stored.dtype.kind == "f":
        return JudgedConstant(
            tensor.name,
            "wrong",
            "constant left in float",
            f"is {tensor.dtype}, the quantized graph has {wanted.value.dtype} codes",
            origin,
        )
    if start.op == "call_function" and wanted.value.dtype.kind == stored.dtype.kind == "f":
        wanted = computed(wanted)
    if same_elements(wanted.low, wanted.high, stored):
        return JudgedConstant(tensor.name, "right", origin=origin)
    return _compared(tensor.name, "folded constant differs", wanted.low, wanted.high, stored, origin)


def _compared(name: str, kind: str, low: Array, high: Array, stored: Array, origin: str) -> JudgedConstant:
    """Compare element by element; a constant of another shape in the arrangement that fits best."""
    moved = ""
    if low.shape != stored.shape:
        shape, found = list(low.shape), nearest(low, high, stored)
        if found is None:
            text = f"has shape {list(stored.shape)}, expected {shape}"
            return JudgedConstant(name, "wrong", kind, text, origin, measured={"elements": stored.size})
        low, high = found
        moved = f" (taken as {shape} rearranged)"
    wrong = (stored < low) | (stored > high)
    if not wrong.any():
        return JudgedConstant(name, "right", origin=origin)
    at = int(np.argmax(wrong))
    place = [int(axis) for axis in np.unravel_index(at, stored.shape)]
    count = int(wrong.sum())
    text = f"{count} of {counted_as(stored.size, 'element')} differ{moved}; "
    text += f"at {place} it is {stored.flat[at]}, expected {low.flat[at]}"
    text += _distinct(stored[wrong], low[wrong])
    return JudgedConstant(name, "wrong", kind, text, origin, measured={"elements": count})


def _distinct(stored: Array, wanted: Array) -> str:
    seen, expected = np.unique(stored), np.unique(wanted)
    if max(seen.size, expected.size) > FEW:
        return ""
    return f"; wrong values {seen.tolist()} where {expected.tolist()} were expected"


def lost_constants(trace: PassTrace, reference: Mapping[str, NodeState]) -> Iterator[tuple[str, str]]:
    """Tensors of the quantized graph that are no longer what they were when the passes began."""
    kept = {node.lifted: node for node in reference.values() if node.lifted}
    for node in trace.start.nodes.values():
        source = kept.get(node.lifted) if node.lifted else None
        if source is None or source.value is None or node.value is None:
            continue
        if source.value.shape != node.value.shape or source.value.tobytes() != node.value.tobytes():
            yield node.name, f"({node.lifted}) is not the tensor that the quantized graph holds under that name"
