"""Between a TOSA graph and the payload that Vela compiled from it: which inputs, which shapes and dtypes.

Vela drops inputs that nothing reads, stores every shape as six sizes, and knows sizes of elements
but no dtypes. Everything else is in TOSA order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaTensor, decode_tosa
from harness.artifacts.vela import VelaPayload
from harness.case.arrays import Array
from harness.case.errors import BadInput

_DTYPES = {"BOOL": "bool", "INT8": "i1", "INT16": "i2", "INT32": "i4", "INT48": "i8", "INT64": "i8"}


@dataclass(frozen=True)
class PayloadIO:
    """What of a TOSA graph's inputs and outputs its payload takes and returns.

    :param inputs: positions of the TOSA inputs that the payload takes.
    :param results: the TOSA graph's outputs.
    """

    inputs: tuple[int, ...]
    results: tuple[TosaTensor, ...]

    def payload_inputs(self, arrays: Sequence[Array]) -> list[Array]:
        """The payload's inputs out of the TOSA graph's."""
        return [arrays[index] for index in self.inputs]

    def tosa_outputs(self, outputs: Sequence[Array]) -> list[Array]:
        """Outputs of the payload in TOSA shape and dtype.

        :raises BadInput: one has another number of bytes than the TOSA graph says.
        """
        return [_typed(output, tensor) for output, tensor in zip(outputs, self.results, strict=True)]


def payload_io(tosa: bytes, payload: VelaPayload) -> PayloadIO:
    """Pair a flatbuffer with its payload.

    :raises BadInput: their numbers of inputs or outputs cannot be paired.
    """
    block = _block(tosa)
    read = {name for operator in block.operators for name in operator.inputs} | set(block.outputs)
    everything = tuple(range(len(block.inputs)))
    used = tuple(index for index in everything if block.inputs[index] in read)
    for chosen in (everything, used):
        if len(chosen) == len(payload.inputs) and len(block.outputs) == len(payload.outputs):
            return PayloadIO(chosen, tuple(block.tensors[name] for name in block.outputs))
    raise BadInput(
        "Vela payload",
        f"has inputs: {len(payload.inputs)}, outputs: {len(payload.outputs)}; the TOSA graph has {len(block.inputs)} "
        f"({len(used)} that something reads) and {len(block.outputs)}",
        "report it to Vela: what it compiled is not this graph",
    )


@lru_cache(maxsize=8)
def _block(tosa: bytes) -> TosaBlock:
    return decode_tosa(tosa).blocks[0]


def _typed(output: Array, tensor: TosaTensor) -> Array:
    dtype = np.dtype(_DTYPES.get(tensor.dtype, "i1"))
    if tensor.dtype not in _DTYPES or output.size != tensor.elements or output.dtype.itemsize != dtype.itemsize:
        raise BadInput(
            "Vela payload",
            f"has {output.size} elements of {output.dtype.itemsize} bytes for output {tensor.name}, "
            f"which is {tensor.dtype} {list(tensor.shape)}",
            "report it to Vela: what it compiled is not this graph",
        )
    return output.view(dtype).reshape(tensor.shape)
