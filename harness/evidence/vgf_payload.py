"""A VGF payload against the TOSA graph that it was made of: the tensors at its border, and its constants.

The converter keeps order, shape and dtype of inputs and outputs. It writes large constants (weights, tables) into the
file and the rest (biases, multipliers, zero points) into the module's code, which nobody reads here: what is claimed is
that each constant of the file is one of the graph, byte for byte, and none of them twice. Of graphs with constants of
four or 48 bits, whose bytes the converter lays out otherwise, nothing is claimed.
"""

from __future__ import annotations

from collections import Counter

from harness.artifacts.tosa import TosaBlock, TosaTensor
from harness.artifacts.vgf import Resource, VgfPayload
from harness.evidence.delegate_io import Disagreement

_DTYPES = {
    "BOOL": ("bool", "uint8", "int8"),
    "INT8": ("int8", "uint8"),
    "INT16": ("int16", "uint16"),
    "INT32": ("int32", "uint32"),
    "INT64": ("int64", "uint64"),
    "FP16": ("float16",),
    "FP32": ("float32",),
}
"""Dtypes that a resource may have for each of TOSA's, which has no unsigned ones."""
_LAID_OUT_OTHERWISE = ("INT4", "INT48")


def tosa_against_vgf(tensor: TosaTensor, resource: Resource, side: str) -> Disagreement | None:
    """A TOSA tensor of the border against the payload's at its place; None also where its dtype is not known here."""
    wanted = _DTYPES.get(tensor.dtype)
    if wanted is None or not resource.width:
        return None
    text = f"the TOSA graph has {tensor.dtype} {list(tensor.shape)[:8]}, the payload {resource}"
    if resource.category != side:
        return Disagreement(f"{side} category", f"{text}, which it calls {resource.category}")
    if resource.dtype not in wanted:
        return Disagreement(f"{side} dtype differs", text)
    if resource.shape != tensor.shape and not tensor.elements == resource.elements == 1:
        return Disagreement("shape differs" if resource.elements == tensor.elements else f"{side} bytes differ", text)
    return None


def foreign_constants(block: TosaBlock, payload: VgfPayload) -> list[str]:
    """Constants of the payload that are none of the graph, as they are told."""
    if any(tensor.dtype in _LAID_OUT_OTHERWISE for tensor in block.tensors.values()):
        return []
    there = Counter((tensor.shape, tensor.data) for tensor in block.tensors.values() if tensor.data is not None)
    foreign = []
    for number, constant in enumerate(payload.constants):
        key = (constant.resource.shape, constant.data)
        if not there[key]:
            foreign.append(f"{number} ({constant.resource}, {len(constant.data)} bytes)")
        there[key] -= 1
    return foreign
