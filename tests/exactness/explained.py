"""What is known not to be exact, and why: one entry a cause, recognised by the graph itself.

An entry says for which targets and which graphs its cause can show; a difference in any other graph
makes the table fail. All of them are defects of Vela 5.1.0, each pinned down to the smallest graph;
the sources named are Vela's (``regor``). An entry whose cause shows in no program any more should go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod

from harness.artifacts.tosa import TosaBlock, TosaOperator

_BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT")
_REDUCTIONS = ("REDUCE_SUM", "REDUCE_MAX", "REDUCE_MIN")
_WIDTHS = {"INT8": 8, "INT16": 16, "INT32": 32}


@dataclass(frozen=True)
class Explanation:
    """One cause.

    :param targets: pattern of accelerator names.
    :param shows: can the cause show in an operator of a graph?
    :param culprit: whose defect it is.
    :param detail: what the verdict must say as well, where the graph alone does not tell.
    """

    name: str
    targets: str
    shows: Callable[[TosaBlock, TosaOperator], bool]
    culprit: str
    reason: str
    detail: str = ""


def _shape(block: TosaBlock, operator: TosaOperator, place: int) -> tuple[int, ...]:
    return block.tensors[operator.inputs[place]].shape


def _followers(block: TosaBlock, name: str) -> Iterator[str]:
    """Operators that read a value, directly or behind operators that are fused or only rename."""
    for reader in block.readers(name):
        yield reader.op
        if reader.op in ("RESCALE", "RESHAPE", "CLAMP", "TABLE"):
            yield from _followers(block, reader.outputs[0])


def _pointwise(block: TosaBlock, operator: TosaOperator) -> bool:
    """A 1x1 convolution of several batches."""
    return operator.op == "CONV2D" and _shape(block, operator, 0)[0] > 1 and set(_shape(block, operator, 1)[1:3]) == {1}


def _batched_activation(block: TosaBlock, operator: TosaOperator) -> bool:
    fused = set(_followers(block, operator.outputs[0])) & {"CLAMP", "TABLE"}
    return _pointwise(block, operator) and set(operator.attributes["Stride"]) == {1} and bool(fused)


def _batched_stride(block: TosaBlock, operator: TosaOperator) -> bool:
    return _pointwise(block, operator) and max(operator.attributes["Stride"]) > 3


def _scalar_first(block: TosaBlock, operator: TosaOperator) -> bool:
    if operator.op not in _BINARY:
        return False
    first, second = (block.tensors[name] for name in operator.inputs[:2])
    return len(first.shape) > 4 and first.elements == 1 < second.elements and first.data is None


def _wide_shift(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op == "MUL" and int(block.tensors[operator.inputs[2]].values().flat[0]) > 31


def _narrowing(block: TosaBlock, operator: TosaOperator) -> bool:
    if operator.op != "CAST":
        return False
    source, target = (_WIDTHS.get(block.tensors[name].dtype, 0) for name in (operator.inputs[0], operator.outputs[0]))
    return 0 < target < source


def _decomposed_average(operator: TosaOperator) -> bool:
    attributes = operator.attributes
    return operator.op == "AVG_POOL2D" and (max(attributes["Stride"]) > 3 or max(attributes["Kernel"]) > 8)


def _batched_average(block: TosaBlock, operator: TosaOperator) -> bool:
    return _decomposed_average(operator) and _shape(block, operator, 0)[0] > 1


def _deep_depthwise_stride(block: TosaBlock, operator: TosaOperator) -> bool:
    return (
        operator.op == "DEPTHWISE_CONV2D"
        and max(operator.attributes["Stride"]) > 3
        and _shape(block, operator, 0)[3] > 16
    )


def _source(block: TosaBlock, name: str) -> str:
    """The operator that a value comes from, RESHAPE left out; empty for inputs and constants."""
    producer = block.producers.get(name)
    if producer is None or producer.op in ("CONST", "CONST_SHAPE"):
        return ""
    return _source(block, producer.inputs[0]) if producer.op == "RESHAPE" else producer.op


def _activation_of_transpose(block: TosaBlock, name: str) -> bool:
    """Is a value CLAMP or TABLE of a TRANSPOSE?"""
    producer = block.producers.get(name)
    if producer is not None and producer.op == "RESHAPE":
        return _activation_of_transpose(block, producer.inputs[0])
    return (
        producer is not None and producer.op in ("CLAMP", "TABLE") and _source(block, producer.inputs[0]) == "TRANSPOSE"
    )


def _concatenated_activation(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op == "CONCAT" and any(_activation_of_transpose(block, name) for name in operator.inputs)


def _batched_transposed_activation(block: TosaBlock, operator: TosaOperator) -> bool:
    return (
        operator.op in ("CLAMP", "TABLE")
        and _source(block, operator.inputs[0]) == "TRANSPOSE"
        and prod(_shape(block, operator, 0)[:-3]) > 1
    )


def _reshaped_minimum(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op == "REDUCE_MIN" and "RESHAPE" in [item.op for item in block.readers(operator.outputs[0])]


def _batched_padded_slice(block: TosaBlock, operator: TosaOperator) -> bool:
    padded = any(size > 0 for size in operator.attributes.get("Pad", ())) and operator.op != "PAD"
    return padded and _source(block, operator.inputs[0]) == "SLICE" and _shape(block, operator, 0)[0] > 1


def _batched_reduction_activation(block: TosaBlock, operator: TosaOperator) -> bool:
    fused = {"CLAMP", "TABLE"} & set(_followers(block, operator.outputs[0]))
    return operator.op in _REDUCTIONS and bool(fused) and prod(_shape(block, operator, 0)[:-3]) > 1


def _joined_reduction(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op in ("REDUCE_MAX", "REDUCE_MIN") and "CONCAT" in _followers(block, operator.outputs[0])


def _joined_average(block: TosaBlock, operator: TosaOperator) -> bool:
    return _decomposed_average(operator) and "CONCAT" in _followers(block, operator.outputs[0])


def _transposed_table(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op == "TABLE" and _source(block, operator.inputs[0]) == "TRANSPOSE"


def _sliced_matmul(block: TosaBlock, operator: TosaOperator) -> bool:
    return operator.op == "MATMUL" and _source(block, operator.inputs[0]) == "SLICE"


def _unequal_nearest(block: TosaBlock, operator: TosaOperator) -> bool:
    """A nearest RESIZE whose rows and columns grow by different factors."""
    if operator.op != "RESIZE" or _shape(block, operator, 0)[1] == 1:
        return False
    up, down, across, back = (int(item) for item in block.tensors[operator.inputs[1]].values().flat)
    return up * back != across * down


def _one_wide_transposed(block: TosaBlock, operator: TosaOperator) -> bool:
    """One row or column of output along an axis with a stride."""
    if operator.op != "TRANSPOSE_CONV2D":
        return False
    size = block.tensors[operator.outputs[0]].shape[1:3]
    return any(out == 1 < step for out, step in zip(size, operator.attributes["Stride"], strict=True))


def _several_outputs(block: TosaBlock, operator: TosaOperator) -> bool:
    return len(block.outputs) > 1


EXPLAINED: tuple[Explanation, ...] = (
    Explanation(
        "batched-pointwise-activation",
        "*",
        _batched_activation,
        "Vela",
        "a 1x1 CONV2D of several batches is reshaped to a squarer picture (RewriteFullyConnected in "
        "graphir_optimiser.cpp); where CLAMP or TABLE is fused into it the OFM keeps its old height and width, so most "
        "elements are misplaced",
    ),
    Explanation(
        "batched-pointwise-stride",
        "*",
        _batched_stride,
        "Vela",
        "a 1x1 CONV2D of several batches with a stride above 3 is decomposed into pieces that write to the same place",
    ),
    Explanation(
        "scalar-first-operand",
        "ethos-u[56]5-*",
        _scalar_first,
        "Vela",
        "a first operand of one element keeps its five or six axes while the second is folded to fewer; IsSubShapeOf "
        "(shape.hpp) then says that it is no part of it, and the operands are not exchanged for broadcasting "
        "(GenerateElementwiseOp, ethos_u55_register_cs_generator.cpp): the full operand is read as the broadcast one",
    ),
    Explanation(
        "mul-shift-above-31",
        "*",
        _wide_shift,
        "Vela",
        "MUL with a shift above 31 is given the double rounding of TFLite (rounding AUTO in the generators of command "
        "streams) where TOSA rounds once, and where Vela's own constant folding rounds once",
    ),
    Explanation(
        "narrowing-cast",
        "ethos-u[56]5-*",
        _narrowing,
        "Vela",
        "CAST to a narrower type saturates where TOSA keeps the low bits; Vela documents it as not supported and "
        "compiles it",
    ),
    Explanation(
        "batched-average",
        "ethos-u85-*",
        _batched_average,
        "Vela",
        "AVG_POOL2D of several batches with a stride above 3, or padded with a kernel above 8: the accumulator buffer "
        "holds one batch, later ones are stored behind its end and read from its beginning",
    ),
    Explanation(
        "deep-depthwise-stride",
        "ethos-u85-*",
        _deep_depthwise_stride,
        "Vela",
        "DEPTHWISE_CONV2D with a stride above 3 and more channels than one OFM block becomes pieces that accumulate, "
        "and each piece is cut into slices of channels by itself: slices of one accumulation differ, and further ones "
        "read the channels of the first (their IFM address lacks the offset)",
    ),
    Explanation(
        "transposed-table",
        "ethos-u55-[36][24]",
        _transposed_table,
        "Vela",
        "TABLE fused into TRANSPOSE: these two accelerators reserve no SHRAM for tables, and the transpose's block "
        "configuration leaves no room for one either, so the table is loaded behind the end of SHRAM",
    ),
    Explanation(
        "sliced-matmul",
        "ethos-u[56]5-*",
        _sliced_matmul,
        "Vela",
        "MATMUL whose first operand is a SLICE: the multiplications run over the whole operand and write more than the "
        "intermediate tensor holds",
    ),
    Explanation(
        "concatenated-activation",
        "ethos-u[56]5-*",
        _concatenated_activation,
        "Vela",
        "CLAMP or TABLE fused into TRANSPOSE whose result is a part of CONCAT: it is written with the strides of its "
        "own shape, not of the concatenation",
    ),
    Explanation(
        "batched-transposed-activation",
        "*",
        _batched_transposed_activation,
        "Vela",
        "CLAMP or TABLE fused into TRANSPOSE of more than three axes, which is reshaped to fewer while the OFM of the "
        "activation is not: the sizes of what is read and written do not agree",
    ),
    Explanation(
        "reshaped-minimum",
        "ethos-u[56]5-*",
        _reshaped_minimum,
        "Vela",
        "REDUCE_MIN before RESHAPE: the last of the subtractions that it becomes has the new shape for its result and "
        "the old one for an operand, which is then broadcast from its first elements",
    ),
    Explanation(
        "batched-padded-slice",
        "*",
        _batched_padded_slice,
        "Vela",
        "a padded convolution or pooling of several batches that reads a SLICE: the padding in front is added behind",
    ),
    Explanation(
        "batched-reduction-activation",
        "*",
        _batched_reduction_activation,
        "Vela",
        "a reduction of more than three axes is reshaped to three (RewriteReduceSum in graphir_optimiser.cpp and the "
        "like); where CLAMP or TABLE is fused into it the OFM keeps its old shape",
    ),
    Explanation(
        "joined-reduction",
        "*",
        _joined_reduction,
        "Vela",
        "REDUCE_MAX or REDUCE_MIN as a part of CONCAT: it is reshaped, and the slice that it writes to is not",
    ),
    Explanation(
        "joined-average",
        "ethos-u85-*",
        _joined_average,
        "Vela",
        "AVG_POOL2D that is decomposed, as a part of CONCAT: the multiplication by the reciprocal reads "
        "the accumulators with the strides of the concatenation",
    ),
    Explanation(
        "one-wide-transposed-convolution",
        "*",
        _one_wide_transposed,
        "Vela",
        "TRANSPOSE_CONV2D with a stride and one row or column of output does not upscale what it reads "
        "(corpus/found/vela-conv-transpose-one-wide)",
    ),
    Explanation(
        "unequal-nearest-resize",
        "ethos-u[56]5-*",
        _unequal_nearest,
        "Vela",
        "a nearest RESIZE to 3 times as many rows and 4 times as many columns is made of doublings of both axes: rows "
        "are repeated 4 times and the first of them stored",
    ),
    Explanation(
        "equal-outputs",
        "*",
        _several_outputs,
        "Vela",
        "two outputs that are computed alike become one (corpus/found/vela-drops-output)",
        "outputs, the reference model returns",
    ),
)


def explanation_of(block: TosaBlock, target: str, detail: str) -> Explanation | None:
    """The first entry whose cause can show in a graph on a target, with these words."""
    for item in EXPLAINED:
        applies = fnmatchcase(target, item.targets) and item.detail in detail
        if applies and any(item.shows(block, operator) for operator in block.operators):
            return item
    return None


def explanation_named(name: str) -> Explanation:
    """An entry by its name."""
    return next(item for item in EXPLAINED if item.name == name)
