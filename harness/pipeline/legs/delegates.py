"""Run a lowered program with its delegates handed to an executor of their flatbuffer or payload.

Used by every leg that executes delegates in this process. Layout: a delegate's TOSA inputs and
outputs are in the memory order of its placeholders' ``dim_order`` (NHWC for channels-last), so
arrays are permuted on the way in and back on the way out. Counts and dtypes are checked on both
sides.

Imports torch lazily; no leg itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.evidence.observation import DelegateRecord
from harness.pipeline.legs import Outputs, arrays_of

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered

Execute = Callable[[DelegateRecord, list[Array]], list[Array]]
"""From a delegate and arrays in the order of its TOSA graph's inputs to that graph's outputs."""


def run_program(
    lowered: Lowered, inputs: Sequence[EvaluationInput], execute: Execute, error: type[Exception]
) -> Outputs:
    """The program's outputs on every input, in user order; the inputs are calls in a row, which carry its state.

    :param error: raised where a delegate and its program disagree about counts or dtypes.
    """
    import torch

    from harness.pipeline.edge_program import run_edge_program

    def delegate(name: str, module: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return run_delegate(lowered, name, module, tensors, execute, error)

    state: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        return tuple(arrays_of(run_edge_program(lowered.edge_program, item.arrays, delegate, state)) for item in inputs)


def run_delegate(
    lowered: Lowered, name: str, module: Any, tensors: list[Any], execute: Execute, error: type[Exception]
) -> list[Any]:
    """Run one delegate of a program on the tensors that it is called with."""
    from harness.pipeline.edge_program import from_memory_order, placeholder_values, result_values, to_memory_order

    formal = placeholder_values(module.original_module)
    promised = result_values(module.original_module)
    if len(formal) != len(tensors):
        raise error(f"the delegate takes {len(formal)} inputs and is called with {len(tensors)}")
    arrays = [to_memory_order(tensor, like) for tensor, like in zip(tensors, formal, strict=True)]
    [record] = [item for item in lowered.record.delegates if item.name == name]
    outputs = execute(record, _bound(record, arrays, error))
    if len(outputs) != len(promised):
        raise error(f"the TOSA graph returned {len(outputs)} outputs, the delegate promises {len(promised)}")
    results = [from_memory_order(output, like) for output, like in zip(outputs, promised, strict=True)]
    for index, (result, like) in enumerate(zip(results, promised, strict=True)):
        if result.dtype != like.dtype:
            raise error(
                f"delegate output {index} is {result.dtype} in the TOSA graph and {like.dtype} in the parent graph: "
                f"{result.nbytes} bytes are written where {result.numel() * like.element_size()} are allocated"
            )
    return results


def _bound(record: DelegateRecord, arrays: list[Array], error: type[Exception]) -> list[Array]:
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
        raise error(f"the TOSA graph has inputs {missing} that the delegate is not called with")
    return [by_name[name] for name in wanted]
