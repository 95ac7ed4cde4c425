"""Between a serialized program's values and tensors: memory order, and which delegate a call is of. No leg itself.

Imports torch lazily.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.artifacts.program import Call, Plan, ProgramTensor
from harness.case.arrays import Array
from harness.compat.runtime import RuntimeTensor, Value
from harness.evidence.observation import DelegateRecord
from harness.pipeline.legs import NotRunnable

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


def delegate_calls(lowered: Lowered, plan: Plan) -> list[tuple[Call, DelegateRecord]]:
    """Each delegate call with its record: the first unused one that has the call's payload.

    :raises NotRunnable: the calls are not those that the lowering made (the ``buffers`` oracle tells that).
    """
    left = list(lowered.record.delegates)
    found = []
    for call in plan.calls:
        if call.kind == "delegate":
            record = next((item for item in left if item.payload == plan.delegates[call.delegate].payload), None)
            if record is None or len(call.values) != len(record.inputs) + len(record.results):
                raise NotRunnable("the program's delegate calls are not those that the lowering made")
            left = [item for item in left if item is not record]
            found.append((call, record))
    return found


def tensor_of(plan: Plan, index: int) -> ProgramTensor:
    """A value that has to be a tensor.

    :raises NotRunnable: it is none.
    """
    tensor = plan.values[index].tensor
    if tensor is None:
        raise NotRunnable(f"value {index} of the program is no tensor")
    return tensor


def arguments_of(plan: Plan, arrays: Sequence[Array]) -> list[Value]:
    """A module's inputs as the program takes them, in the memory order of its own.

    :raises NotRunnable: it takes something else.
    """
    if len(plan.inputs) != len(arrays):
        raise NotRunnable(f"the program has {len(plan.inputs)} inputs, of which {len(arrays)} are tensors")
    found: list[Value] = []
    for index, array in zip(plan.inputs, arrays, strict=True):
        order = tensor_of(plan, index).dim_order
        if len(order) != array.ndim:
            raise NotRunnable(f"value {index} of the program has another rank than the input that it is")
        stored = np.ascontiguousarray(array.transpose(order))
        found.append(RuntimeTensor(str(array.dtype), tuple(map(int, array.shape)), order, stored.tobytes()))
    return found


def array_of(value: Value) -> Array:
    """A result in logical order; what is no tensor as an array without axes."""
    return np.asarray(torch_tensor(value).contiguous().numpy() if isinstance(value, RuntimeTensor) else value)


def runtime_tensor(tensor: Any, order: Sequence[int]) -> RuntimeTensor:
    """A torch tensor on its way in, in a memory order."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return RuntimeTensor(dtype, tuple(tensor.shape), tuple(order), bytes_of(tensor, order))


def bytes_of(tensor: Any, order: Sequence[int]) -> bytes:
    """A torch tensor's bytes in a memory order."""
    data: bytes = tensor.permute(tuple(order)).contiguous().numpy().tobytes()
    return data


def torch_tensor(value: Value) -> Any:
    """A tensor of the runtime as torch has it, in logical order.

    :raises NotRunnable: it is none.
    """
    import torch

    if not isinstance(value, RuntimeTensor):
        raise NotRunnable(f"the runtime returned {value!r} where a tensor was expected")
    stored = [value.sizes[axis] for axis in value.order]
    dtype = getattr(torch, value.dtype)
    flat = torch.frombuffer(bytearray(value.data), dtype=dtype) if value.data else torch.empty(0, dtype=dtype)
    return flat.reshape(stored).permute([value.order.index(axis) for axis in range(len(stored))])
