"""The whole lowered program, its delegates' VGF payloads on Vulkan: Arm's emulation layers on Mesa's CPU driver.

Each delegate call is cut out of the ``.pte`` (``harness.artifacts.program_parts``) and executed by ExecuTorch's own VGF
runtime, in a process of its own and of the release that has one; the rest of the program runs in eager, as in the
``tosa-reference`` leg. Loading compiles shaders: 0.3 to 6 s a delegate.

Where every tensor of the delegates' TOSA graphs is an integer, the leg must return the reference model's bits; floats
are judged by envelopes (``harness.evidence.agreement``). A file of a format that the runtime does not read, or one
whose border is not the program's (the ``buffers`` oracle tells that), makes the leg say so and not run.

Imports torch lazily; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.artifacts.program import decode_program
from harness.artifacts.program_parts import delegate_part
from harness.case.errors import BadInput
from harness.case.sampling import EvaluationInput
from harness.case.target import Target
from harness.compat.runtime import RuntimeDied, RuntimeProcess, RuntimeRefused, running, started
from harness.compat.vgf import READS, UNFIT, UNREADABLE, environment, lacking, runtime_folder
from harness.evidence.references import VGF
from harness.pipeline.legs import Leg, NotRunnable, Outputs, arrays_of
from harness.pipeline.legs.program_values import delegate_calls, runtime_tensor, torch_tensor

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered

LOADING = 240.0
"""Seconds for one delegate: shaders are compiled without a GPU."""


def _skip(target: Target) -> str | None:
    if not target.vgf:
        return f"{target.name} has no VGF payload"
    lacks = next(lacking(), None)
    return None if lacks is None else f"{lacks.what} ('armdiff doctor' has the steps)"


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    import torch

    from harness.pipeline.edge_program import run_edge_program

    runtime = _started()
    runtime.forget()
    _load(lowered, runtime)

    def delegate(name: str, module: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        orders = [argument.dim_order for argument in arguments[name]]
        given = [runtime_tensor(tensor, order) for tensor, order in zip(tensors, orders, strict=True)]
        return [torch_tensor(value) for value in runtime.run(name, given)]

    arguments = {record.name: record.arguments for record in lowered.record.delegates}
    program = lowered.edge_program
    state: dict[str, torch.Tensor] = {}
    try:
        with torch.no_grad():
            return tuple(arrays_of(run_edge_program(program, item.arrays, delegate, state)) for item in inputs)
    except RuntimeRefused as refused:
        if UNFIT in str(refused):
            raise NotRunnable(str(refused).splitlines()[0]) from None
        raise


def _started() -> RuntimeProcess:
    try:
        return running("vgf", lambda: started(runtime_folder(), environment(), seconds=LOADING))
    except RuntimeDied as death:
        raise NotRunnable(f"ExecuTorch's VGF runtime does not start here: {death.last}") from None


def _load(lowered: Lowered, runtime: RuntimeProcess) -> None:
    data = lowered.record.program
    try:
        plan = decode_program(data).main
        for call, record in delegate_calls(lowered, plan):
            if len(record.inputs) != len(record.tosa_inputs):
                raise NotRunnable(f"the payload of {record.name} lacks inputs that the program binds by position")
            runtime.load(record.name, delegate_part(data, plan, call, len(record.inputs)).data)
    except BadInput as error:
        raise NotRunnable(str(error)) from None
    except RuntimeRefused as refused:
        if UNREADABLE in str(refused):
            raise NotRunnable(
                f"ExecuTorch's VGF runtime does not read what this converter writes; use {READS}"
            ) from None
        raise


LEG = Leg(VGF, 6, "Arm's ML emulation layers, Mesa and executorch 1.4.1's runtime", _skip, _run, examples=("vgf",))
