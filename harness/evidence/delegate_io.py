"""One value on both sides of a delegate's border: do two layers mean the same bytes?

The layers are the program's value, the type that the lowering decided, the TOSA graph's tensor
and the entry of Vela's table. TOSA has no unsigned types, so codes of one width are one type
here, and its sizes are in the memory order of the value. Vela's entry may have other axes than
the TOSA tensor (inputs take the shape after a reshape); elements and their size must agree.

Facts: ``copy_with_layout_adjustment`` in EthosUBackend.cpp (executorch cff6f4d, August 2026), which
unpacks int4 outputs and cuts the padding behind the last axis of an output, and nothing of an input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.artifacts.program import ProgramTensor
from harness.artifacts.tosa import BITS, TosaBlock, TosaTensor
from harness.artifacts.vela import VelaIO
from harness.case.traits import TOSA_IN_PLACE
from harness.compat.snapshots import NodeState, PassTrace, Snapshot
from harness.evidence.observation import ValueType

WIDENED = "output dtype widened"
"""The program allocates wider elements for an output than the payload writes (#19364)."""

_STORED = {
    "BOOL": ("bool",),
    "INT8": ("int8", "uint8", "qint8", "quint8"),
    "INT16": ("int16", "uint16"),
    "INT32": ("int32", "uint32", "qint32"),
    "INT64": ("int64", "uint64"),
    "FP32": ("float32",),
    "FP16": ("float16",),
    "BF16": ("bfloat16",),
    "FP8E4M3": ("float8_e4m3fn",),
    "FP8E5M2": ("float8_e5m2",),
}


@dataclass(frozen=True)
class Disagreement:
    """What is wrong with one value.

    :param text: what was seen and expected.
    :param summary: what the values of one delegate that are wrong in this way have in common.
    :param information: the runtime is made to cope with it.
    """

    kind: str
    text: str
    summary: str = ""
    information: bool = False


def against_type(tensor: ProgramTensor | None, type_: ValueType | None) -> Disagreement | None:
    """The program's value against what the lowering decided."""
    if type_ is None:
        return None
    wanted = f"{type_.dtype} {list(type_.shape)}"
    if tensor is None:
        return Disagreement("shape differs", f"the program has no tensor, the lowering decided {wanted}")
    if tensor.dtype != type_.dtype:
        return Disagreement("dtype differs", f"the program has {tensor}, the lowering decided {wanted}")
    memory = tuple(type_.shape[axis] for axis in type_.dim_order)
    unlike = bool(type_.dim_order) and _plain(memory) != _plain(tensor.memory_shape)
    if tensor.shape != type_.shape or unlike:
        return Disagreement(
            "shape differs",
            f"the program has {tensor} in dim order {list(tensor.dim_order)}, the lowering decided {wanted} in "
            f"dim order {list(type_.dim_order)}",
        )
    return None


def against_tosa(value: ProgramTensor | None, tensor: TosaTensor, packs: bool, side: str) -> Disagreement | None:
    """The program's value against the TOSA graph's tensor.

    :param packs: outputs of four bits may be packed, for the runtime unpacks them.
    """
    verb = "writes" if side == "output" else "reads"
    inside = f"{tensor.dtype} {list(tensor.shape)[:8]}"
    if value is None:
        return Disagreement(f"{side} bytes differ", f"the program has no tensor, the payload {verb} {inside}")
    if tensor.dtype not in _STORED:
        return _of_other_width(value, tensor, packs, side)
    width = max(dtype_bits(tensor) // 8, 1)
    if value.dtype in _STORED[tensor.dtype]:
        if _plain(value.memory_shape) == _plain(tensor.shape) and value.elements == math.prod(tensor.shape):
            return None
        text = (
            f"the program has {value} in dim order {list(value.dim_order)} ({value.bytes} bytes), "
            f"the payload {verb} {inside}"
        )
        same = value.elements == math.prod(tensor.shape)
        return Disagreement("shape differs" if same else f"{side} bytes differ", text)
    text = f"{value} is {value.bytes} bytes, {inside} is {math.prod(tensor.shape) * width}"
    summary = (
        f"the program allocates {value.dtype} ({value.element} bytes an element), the payload {verb} "
        f"{width} byte{'s'[: width != 1]} an element ({tensor.dtype})"
    )
    if value.element == width:
        return Disagreement(f"{side} dtype differs", text, summary)
    widened = side == "output" and value.element > width
    return Disagreement(WIDENED if widened else f"{side} bytes differ", text, summary)


def dtype_bits(tensor: TosaTensor) -> int:
    """Bits of an element; 0 for a dtype without a fixed width."""
    return {**BITS, "BF16": 16, "FP8E4M3": 8, "FP8E5M2": 8}.get(tensor.dtype, 0)


def _of_other_width(value: ProgramTensor, tensor: TosaTensor, packs: bool, side: str) -> Disagreement | None:
    """Of int4 and int48, which no program's value can be."""
    if tensor.dtype == "INT4" and packs and side == "output" and value.dtype == "int8":
        return None
    if tensor.bytes is None:
        return None
    text = f"the program has {value} ({value.bytes} bytes), the payload {tensor.dtype} ({tensor.bytes} bytes)"
    return Disagreement(f"{side} bytes differ", text)


def tosa_against_vela(tensor: TosaTensor, io: VelaIO, side: str) -> Disagreement | None:
    """A TOSA tensor against the entry of the payload's table at its place."""
    bits = dtype_bits(tensor)
    if not bits:
        return None
    elements = math.prod(tensor.shape)
    if io.elements == elements and io.element_size * 8 == bits:
        return None
    text = (
        f"the TOSA graph has {tensor.dtype} {list(tensor.shape)[:8]} ({(elements * bits + 7) // 8} bytes), "
        f"the payload's table {list(io.shape)} of {io.element_size} bytes an element ({io.bytes} bytes)"
    )
    rows, last = math.prod(io.shape[:-1]), io.shape[-1]
    if side == "output" and io.element_size == 1 and bits == 4 and rows * last * 2 == elements:
        return Disagreement("output packed", text, information=True)
    padded = io.element_size * 8 == bits and tensor.shape and rows == math.prod(tensor.shape[:-1])
    if side == "output" and padded and last > tensor.shape[-1]:
        return Disagreement("output padded", text, information=True)
    return Disagreement(f"{side} bytes differ", text)


def retyped_by(trace: PassTrace | None, index: int, dtype: str) -> str | None:
    """Who gave an output another dtype than the program's for good: a pass, "serializer", or None if nothing tells."""
    if trace is None or not trace.finished:
        return None
    culprit = "serializer"
    for snapshot in (*reversed(trace.snapshots), trace.start):
        results = _results(snapshot)
        if index >= len(results) or not (decided := _decided(results[index])):
            return None
        if decided == dtype:
            return culprit
        culprit = snapshot.name
    return None  # it was another one before the first pass


def _decided(node: NodeState) -> str:
    """The dtype that a value will have: folded parameters rule before the operator itself is rewritten.

    A float value of an operator whose inputs alone were folded becomes what its inputs are.
    """
    if node.output_qparams:
        return next(iter(node.output_qparams.values())).dtype
    if node.input_qparams and node.dtype.startswith("float"):
        return next(iter(node.input_qparams.values())).dtype
    return node.dtype


def forgotten_by(trace: PassTrace | None, name: str) -> str | None:
    """The pass after which nothing reads an input any more; "serializer" if something does to the end."""
    if trace is None or not trace.finished or name not in trace.start.nodes:
        return None
    culprit = None
    for snapshot in (*reversed(trace.snapshots), trace.start):
        if snapshot.users.get(name):
            return culprit or "serializer"
        culprit = snapshot.name
    return "partitioner"


def duplicated(trace: PassTrace | None, outputs: tuple[str, ...]) -> str | None:
    """An output that the TOSA graph has twice although the last pass left as many different values."""
    if trace is None or not trace.finished or len(set(outputs)) == len(outputs):
        return None
    last = [node.name for node in _results(trace.last)]
    if len(last) != len(outputs) or len(set(last)) != len(last):
        return None
    return next(name for name in outputs if outputs.count(name) > 1)


def _results(snapshot: Snapshot) -> list[NodeState]:
    ends = [node for node in snapshot.nodes.values() if node.op == "output"]
    return [snapshot.nodes[name] for name in ends[0].refs if name in snapshot.nodes] if ends else []


def shared_root(block: TosaBlock, one: int, other: int) -> bool:
    """May two outputs share memory, because one is a part of the other or both of one value?"""
    producers = block.producers

    def origins(name: str) -> set[str]:
        found, waiting = {name}, [name]
        while waiting:
            producer = producers.get(waiting.pop())
            if producer is None or producer.op not in TOSA_IN_PLACE:
                continue
            new = [source for source in producer.inputs if source not in found]
            found.update(new)
            waiting += new
        return {item for item in found if block.tensors[item].data is None}

    return bool(origins(block.outputs[one]) & origins(block.outputs[other]))


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without axes of one element: they move no byte, and ranks may differ (a scalar is [] or [1])."""
    return tuple(size for size in shape if size != 1)
