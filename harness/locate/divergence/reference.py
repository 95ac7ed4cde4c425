"""The values of every tensor of a TOSA graph, from the reference model.

The model returns block outputs only. So it is given a copy of the flatbuffer whose first block
has more of them: every tensor that an operator writes. A flatbuffer's references are forward
offsets, so a new vector of names goes to the end of the file and one offset is changed to point
there; nothing else moves.

Tensors of 48 bits are left out: the Python binding of tosa-tools 2026.5.0 returns an empty array
for them. Constants need no execution and are taken from the file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from harness.artifacts.tosa import BITS, TosaBlock, TosaTensor, decode_tosa
from harness.case.arrays import Array
from harness.compat.tosa import root_of
from harness.pipeline.legs.tosa_reference import run_flatbuffer

RETURNED = frozenset({"BOOL", "INT8", "INT16", "INT32", "FP16", "FP32"})
_OUTPUTS_SLOT = 12
"""``outputs`` in the vtable of TosaBasicBlock: name, operators, tensors, inputs, outputs are at 4, 6, …, 12"""


def all_values(tosa: bytes, arrays: Sequence[Array]) -> Mapping[str, Array]:
    """Inputs, results and constants by name, of those that the reference model can return.

    In this order: what a step makes is a result rather than a constant of the same values.

    :param arrays: the TOSA graph's inputs.
    :raises ReferenceModelError: the status is not TOSA_VALID.
    :raises BadInput: the flatbuffer is damaged.
    """
    block = decode_tosa(tosa).main
    names = computed(block)
    values = dict(zip(block.inputs, (np.asarray(array) for array in arrays), strict=True))
    values |= zip(names, run_flatbuffer(exposing(tosa, names), arrays) if names else (), strict=True)
    values |= {tensor.name: tensor.values() for tensor in block.tensors.values() if _constant(tensor)}
    return values


def computed(block: TosaBlock) -> list[str]:
    """Tensors that operators write, in the order of operators; neither constants nor shapes."""
    return [
        name
        for operator in block.operators
        if operator.op not in ("CONST", "CONST_SHAPE")
        for name in operator.outputs
        if block.tensors[name].dtype in RETURNED
    ]


def exposing(tosa: bytes, names: Sequence[str]) -> bytes:
    """A copy of the flatbuffer whose first block has these outputs instead of its own."""
    table = root_of(tosa).Regions(0).Blocks(0)._tab
    field = table.Pos + table.Offset(_OUTPUTS_SLOT)
    vector = len(tosa) + -len(tosa) % 4
    strings = [_string(name) for name in names]
    first = vector + 4 + 4 * len(names)
    starts = first + np.cumsum([0, *map(len, strings)])[:-1]
    entries = [int(start) - (vector + 4 + 4 * index) for index, start in enumerate(starts)]
    copy = bytearray(tosa.ljust(vector, b"\0"))
    copy += struct.pack(f"<{1 + len(names)}I", len(names), *entries) + b"".join(strings)
    struct.pack_into("<I", copy, field, vector - field)
    return bytes(copy)


def _string(name: str) -> bytes:
    """Length, characters and a zero, padded to four bytes."""
    raw = name.encode()
    padded = len(raw) + 1 + -(len(raw) + 1) % 4
    return struct.pack("<I", len(raw)) + raw.ljust(padded, b"\0")


def _constant(tensor: TosaTensor) -> bool:
    return tensor.data is not None and tensor.dtype in BITS and tensor.dtype not in ("FP32", "FP16")
