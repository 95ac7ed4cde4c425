"""The whole lowered program, its delegates on the TOSA reference model and the rest in eager.

For Ethos-U targets the flatbuffer is the very one that Vela compiled. The reference model's
status must be valid; anything else is a failure of this leg, never an answer.

Layout: a delegate's TOSA inputs and outputs are in the memory order of its placeholders'
``dim_order`` (NHWC for channels-last), so arrays are permuted on the way in and back on the way
out. Counts are checked on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.distributions import Array
from harness.legs import Leg, Outputs, always, arrays_of
from harness.observation import DelegateRecord
from harness.sampling import EvaluationInput

if TYPE_CHECKING:
    from harness.lowering import Lowered


class ReferenceModelError(RuntimeError):
    """The TOSA reference model did not return a valid answer."""


def run_flatbuffer(tosa: bytes, arrays: Sequence[Array]) -> list[Array]:
    """Run one TOSA flatbuffer in-process.

    :raises ReferenceModelError: the status is not TOSA_VALID.
    """
    import tosa_reference_model

    outputs, status = tosa_reference_model.run(
        tosa, [np.ascontiguousarray(array) for array in arrays], initialize_variable_tensor_from_numpy=1
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise ReferenceModelError(f"the TOSA reference model returned {status.name}, not TOSA_VALID")
    return list(outputs)


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    import torch

    from harness.edge import run_edge_program

    def delegate(name: str, module: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return run_delegate(lowered, name, module, tensors)

    with torch.no_grad():
        return tuple(arrays_of(run_edge_program(lowered.edge_program, item.arrays, delegate)) for item in inputs)


def run_delegate(lowered: Lowered, name: str, module: Any, tensors: list[Any]) -> list[Any]:
    """Run one delegate of a program on the tensors that it is called with."""
    from harness.edge import from_memory_order, placeholder_values, result_values, to_memory_order

    formal = placeholder_values(module.original_module)
    promised = result_values(module.original_module)
    if len(formal) != len(tensors):
        raise ReferenceModelError(f"the delegate takes {len(formal)} inputs and is called with {len(tensors)}")
    arrays = [to_memory_order(tensor, like) for tensor, like in zip(tensors, formal, strict=True)]
    [record] = [item for item in lowered.record.delegates if item.name == name]
    outputs = run_flatbuffer(lowered.tosa[name], _bound(record, arrays))
    if len(outputs) != len(promised):
        raise ReferenceModelError(
            f"the TOSA graph returned {len(outputs)} outputs, the delegate promises {len(promised)}"
        )
    results = [from_memory_order(output, like) for output, like in zip(outputs, promised, strict=True)]
    for index, (result, like) in enumerate(zip(results, promised, strict=True)):
        if result.dtype != like.dtype:
            raise ReferenceModelError(
                f"delegate output {index} is {result.dtype} in the TOSA graph and {like.dtype} in the parent graph: "
                f"{result.nbytes} bytes are written where {result.numel() * like.element_size()} are allocated"
            )
    return results


def _bound(record: DelegateRecord, arrays: list[Array]) -> list[Array]:
    """Arrays in the order of the TOSA graph's inputs.

    The serializer drops inputs that nothing reads (the ``buffers`` oracle reports that), so where
    the numbers differ they are matched by name.
    """
    wanted = record.tosa_inputs
    if len(wanted) == len(arrays):
        return arrays
    by_name = dict(zip(record.inputs, arrays, strict=True))
    missing = [name for name in wanted if name not in by_name]
    if missing:
        raise ReferenceModelError(f"the TOSA graph has inputs {missing} that the delegate is not called with")
    return [by_name[name] for name in wanted]


LEG = Leg("tosa-reference", 2, "tosa-tools (tosa_reference_model)", always, _run)
