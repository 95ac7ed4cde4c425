"""The ``.pte`` itself on ExecuTorch's own runtime with its portable kernels: what a device loads.

Where nothing is delegated the file is loaded and run as it is. The wheel has no Arm backend, so a file with delegates
is run in parts (``harness.artifacts.program_parts``): the runtime executes every instruction between the delegate
calls, on the planned memory of the file, and what a delegate's TOSA graph returns on the reference model is written
into that memory. What the runtime says of inputs and outputs is held against the edge program in both cases.

Kernels of float operators do not return PyTorch's bits, so the outputs are judged by envelopes, and only where the
``tosa-reference`` leg is not wrong itself (``numeric``). A delegate that does not run, state that the file holds no
initial value of, and what a release's kernels are known to misread make the leg say so and not run.

Imports torch lazily; runs in worker processes only. The runtime is a process of its own: if it dies, that is a
failure of this leg, and the next case gets another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.artifacts.program import SCALARS, Call, Plan, ProgramTensor, decode_program
from harness.artifacts.program_parts import Memory, Part, initial_state, parts
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.case.sampling import EvaluationInput
from harness.compat.runtime import (
    RuntimeDied,
    RuntimeProcess,
    RuntimeRefused,
    RuntimeTensor,
    Value,
    misreads,
    missing,
    running,
)
from harness.evidence.references import RUNTIME
from harness.pipeline.legs import Leg, NotRunnable, Outputs

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


class ProgramUnlike(RuntimeError):
    """The runtime's description of the program is not what the program was lowered to."""


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    data = lowered.record.program
    try:
        plan = decode_program(data).main
        pieces = list(parts(data, plan)) if plan.delegates else []
        state = initial_state(data, plan)
    except BadInput as error:
        raise NotRunnable(str(error)) from None  # the ``buffers`` oracle tells it
    _check_state(lowered, bool(state))
    if (misread := misreads([(call.name, _dtypes(plan, call)) for call in plan.calls])) is not None:
        raise NotRunnable(misread)
    try:
        runtime = running()
    except RuntimeDied as death:
        raise NotRunnable(f"ExecuTorch's runtime does not start here: {death.last}") from None
    _check_description(runtime.describe(data), lowered)
    runtime.forget()
    try:
        if not plan.delegates:
            runtime.load("", data)
            return tuple(tuple(map(_array, runtime.run("", _arguments(plan, item.arrays)))) for item in inputs)
        for number, piece in enumerate(pieces):
            if isinstance(piece, Part):
                runtime.load(str(number), piece.data)
        run = _Run(lowered, plan, pieces, Memory(data, plan), runtime)
        return tuple(run(item.arrays) for item in inputs)
    except RuntimeRefused as refused:
        if refused.lacks:
            raise NotRunnable(f"the wheel's runtime has no kernel {refused.lacks}") from None
        raise
    except BadInput as error:
        raise NotRunnable(str(error)) from None


class _Run:
    """A program in parts; calling it executes one input on the memory that earlier ones left."""

    def __init__(
        self, lowered: Lowered, plan: Plan, pieces: Sequence[Part | Call], memory: Memory, runtime: RuntimeProcess
    ) -> None:
        self.lowered, self.plan, self.pieces, self.memory, self.runtime = lowered, plan, pieces, memory, runtime
        self.records = _records(lowered, plan)

    def __call__(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        for index, value in zip(self.plan.inputs, _arguments(self.plan, arrays), strict=True):
            if isinstance(value, RuntimeTensor):
                self.memory.write(index, value.data)
        calls = iter(self.records)
        for number, piece in enumerate(self.pieces):
            if isinstance(piece, Part):
                results = self.runtime.run(str(number), [self._read(index) for index in piece.takes])
                for index, result in zip(piece.gives, results, strict=True):
                    assert isinstance(result, RuntimeTensor)
                    self.memory.write(index, result.data)
            else:
                self._delegate(piece, next(calls))
        return tuple(_array(self._read(index)) for index in self.plan.outputs)

    def _delegate(self, call: Call, name: str) -> None:
        from harness.pipeline.legs.tosa_reference import run_delegate

        module = getattr(self.lowered.edge_program.graph_module, name)
        [record] = [item for item in self.lowered.record.delegates if item.name == name]
        count = len(record.inputs)
        tensors = [_torch_tensor(self._read(index)) for index in call.values[:count]]
        try:
            results = run_delegate(self.lowered, name, module, tensors)
        except Exception as error:  # noqa: BLE001 - whatever it is, the ``tosa-reference`` leg has told it
            raise NotRunnable(f"delegate {name} does not run on the TOSA reference model: {error}") from None
        for index, result in zip(call.values[count:], results, strict=True):
            tensor = _tensor_of(self.plan, index)
            self.memory.write(index, result.permute(tensor.dim_order).contiguous().numpy().tobytes())

    def _read(self, index: int) -> RuntimeTensor:
        tensor = _tensor_of(self.plan, index)
        return RuntimeTensor(tensor.dtype, tensor.shape, tensor.dim_order, self.memory.read(index))


def _records(lowered: Lowered, plan: Plan) -> list[str]:
    """The delegate of each delegate call: the first unused one with the payload that the call has."""
    left = list(lowered.record.delegates)
    names = []
    for call in plan.calls:
        if call.kind == "delegate":
            record = next((item for item in left if item.payload == plan.delegates[call.delegate].payload), None)
            if record is None or len(call.values) != len(record.inputs) + len(record.results):
                raise NotRunnable("the program's delegate calls are not those that the lowering made")
            left.remove(record)
            names.append(record.name)
    return names


def _check_state(lowered: Lowered, initialized: bool) -> None:
    """Refuse a program whose state begins with something that the file does not hold."""
    from torch.export.graph_signature import OutputKind

    program = lowered.edge_program
    for spec in program.signature.output_specs:
        if spec.kind == OutputKind.BUFFER_MUTATION and not initialized and bool(program.tensors[spec.target].any()):
            raise NotRunnable(
                f"the program has no initial value of buffer {spec.target} (exir's InitializedMutableBufferPass "
                "writes one): a runtime begins with zeros"
            )


def _check_description(described: Mapping[str, Sequence[Mapping[str, Any] | None]], lowered: Lowered) -> None:
    """Hold what the runtime says of inputs and outputs against the edge program.

    :raises ProgramUnlike: number, dtype, sizes or bytes differ.
    """
    from harness.pipeline.edge_program import border_types

    taken, given = border_types(lowered.edge_program)
    for side, seen, wanted in (("input", described["taken"], taken), ("output", described["given"], given)):
        if len(seen) != len(wanted):
            raise ProgramUnlike(
                f"the runtime says that the program has {len(seen)} {side}s, where the edge program has {len(wanted)}"
            )
        for index, (one, type_) in enumerate(zip(seen, wanted, strict=True)):
            if one is None or type_ is None:
                continue
            dtype, width = SCALARS.get(one["dtype"], (str(one["dtype"]), 0))
            told = f"{dtype} {one['sizes']} ({one['bytes']} bytes)"
            made = f"{type_.dtype} {list(type_.shape)} ({math.prod(type_.shape) * width} bytes)"
            if told != made:
                raise ProgramUnlike(f"the runtime says that {side} {index} is {told}, the edge program has {made}")


def _dtypes(plan: Plan, call: Call) -> list[str]:
    return [tensor.dtype if (tensor := plan.values[index].tensor) else "" for index in call.values]


def _tensor_of(plan: Plan, index: int) -> ProgramTensor:
    tensor = plan.values[index].tensor
    if tensor is None:
        raise NotRunnable(f"value {index} of the program is no tensor")
    return tensor


def _arguments(plan: Plan, arrays: Sequence[Array]) -> list[Value]:
    """Arrays as the program takes them, in the memory order of its inputs."""
    if len(plan.inputs) != len(arrays):
        raise NotRunnable(f"the program has {len(plan.inputs)} inputs, of which {len(arrays)} are tensors")
    found: list[Value] = []
    for index, array in zip(plan.inputs, arrays, strict=True):
        order = _tensor_of(plan, index).dim_order
        if len(order) != array.ndim:
            raise NotRunnable(f"value {index} of the program has another rank than the input that it is")
        stored = np.ascontiguousarray(array.transpose(order))
        found.append(RuntimeTensor(str(array.dtype), tuple(map(int, array.shape)), order, stored.tobytes()))
    return found


def _array(value: Value) -> Array:
    """A result in logical order; what is no tensor as an array without axes."""
    if not isinstance(value, RuntimeTensor):
        return np.asarray(value)
    return np.asarray(_torch_tensor(value).contiguous().numpy())


def _torch_tensor(value: RuntimeTensor) -> Any:
    import torch

    stored = [value.sizes[axis] for axis in value.order]
    dtype = getattr(torch, value.dtype)
    flat = torch.frombuffer(bytearray(value.data), dtype=dtype) if value.data else torch.empty(0, dtype=dtype)
    return flat.reshape(stored).permute([value.order.index(axis) for axis in range(len(stored))])


LEG = Leg(RUNTIME, 5, "executorch's wheel (its runtime)", lambda target: missing(), _run)
