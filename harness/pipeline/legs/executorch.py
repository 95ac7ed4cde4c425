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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.artifacts.program import SCALARS, Call, Plan, decode_program
from harness.artifacts.program_parts import Memory, Part, initial_state, parts
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.case.sampling import EvaluationInput
from harness.compat.runtime import (
    RuntimeDied,
    RuntimeProcess,
    RuntimeRefused,
    RuntimeTensor,
    running,
)
from harness.compat.runtime.kernels import misreads, missing
from harness.evidence.observation import DelegateRecord
from harness.evidence.references import RUNTIME
from harness.pipeline.legs import Leg, NotRunnable, Outputs
from harness.pipeline.legs.program_values import (
    arguments_of,
    array_of,
    bytes_of,
    delegate_calls,
    tensor_of,
    torch_tensor,
)
from harness.pipeline.legs.tosa_reference import run_delegate

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
            return tuple(tuple(map(array_of, runtime.run("", arguments_of(plan, item.arrays)))) for item in inputs)
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
        self.records = [record for _, record in delegate_calls(lowered, plan)]

    def __call__(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        for index, value in zip(self.plan.inputs, arguments_of(self.plan, arrays), strict=True):
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
        return tuple(array_of(self._read(index)) for index in self.plan.outputs)

    def _delegate(self, call: Call, record: DelegateRecord) -> None:
        module = getattr(self.lowered.edge_program.graph_module, record.name)
        count = len(record.inputs)
        # Bytes are passed and copied: a delegate reads and writes in the order that its lowering decided, whatever the
        # program says of the value.
        tensors = [
            torch_tensor(replace(value, order=type_.dim_order or value.order))
            for value, type_ in zip(map(self._read, call.values[:count]), record.arguments, strict=True)
        ]
        try:
            results = run_delegate(self.lowered, record.name, module, tensors)
        except Exception as error:  # noqa: BLE001 - whatever it is, the ``tosa-reference`` leg has told it
            raise NotRunnable(f"delegate {record.name} does not run on the TOSA reference model: {error}") from None
        for index, result, type_ in zip(call.values[count:], results, record.results, strict=True):
            order = type_.dim_order if type_ is not None else ()
            self.memory.write(index, bytes_of(result, order or tensor_of(self.plan, index).dim_order))

    def _read(self, index: int) -> RuntimeTensor:
        tensor = tensor_of(self.plan, index)
        return RuntimeTensor(tensor.dtype, tensor.shape, tensor.dim_order, self.memory.read(index))


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


LEG = Leg(RUNTIME, 5, "executorch's wheel (its runtime)", lambda target: missing(), _run)
