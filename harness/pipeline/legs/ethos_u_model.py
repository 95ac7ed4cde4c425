"""The whole lowered program, its delegates on armdiff's functional model of the Ethos-U.

The model (``harness.ethosu``) executes the payload that Vela emitted, byte for byte; the rest of
the program runs in eager. What the model does not implement, a payload that cannot be executed, or a
delegate that does not fit its program makes the leg say so and not run: the ``stream`` and
``buffers`` oracles and the ``tosa-reference`` leg report the latter two as what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.artifacts.payload_io import payload_io
from harness.artifacts.program import decode_program
from harness.artifacts.vela import VelaPayload, decode_vela
from harness.case.arrays import Array
from harness.case.errors import BadInput, OwnFault
from harness.case.sampling import EvaluationInput
from harness.case.target import Target
from harness.compat.vela import configuration_of
from harness.ethosu.accelerator import Accelerator, accelerator_named
from harness.ethosu.machine import execute
from harness.ethosu.records import StreamError, Unimplemented
from harness.evidence.observation import DelegateRecord
from harness.pipeline.legs import Leg, NotRunnable, Outputs
from harness.pipeline.legs.delegates import run_program

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


def _skip(target: Target) -> str | None:
    return None if target.ethos_u else f"{target.name} has no command stream"


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    named = decode_program(lowered.record.program).named

    def delegate(record: DelegateRecord, arrays: list[Array]) -> list[Array]:
        configuration = configuration_of(getattr(lowered.edge_program.graph_module, record.name))
        if configuration is None:
            raise NotRunnable(f"delegate {record.name} is for {record.backend}, not for an Ethos-U")
        accelerator = accelerator_named(configuration.target)
        try:
            payload = decode_vela(record.payload, named)
        except BadInput as error:
            raise NotRunnable(str(error)) from None
        try:
            return run_payload(lowered.tosa[record.name], payload, arrays, accelerator)
        except NotRunnable:
            raise
        except Exception as error:  # a model of the hardware raises nothing but what it says
            raise OwnFault(error, f"on delegate {record.name}") from error

    return run_program(lowered, inputs, delegate, NotRunnable)


def run_payload(tosa: bytes, payload: VelaPayload, arrays: Sequence[Array], accelerator: Accelerator) -> list[Array]:
    """Outputs of a payload in the shapes and dtypes of the TOSA graph that it was compiled from.

    :param arrays: in the order of the TOSA graph's inputs.
    :raises NotRunnable: the payload cannot be executed, by the model or at all.
    """
    try:
        io = payload_io(tosa, payload)
        execution = execute(payload, io.payload_inputs(arrays), accelerator)
    except BadInput as error:
        raise NotRunnable(str(error)) from None
    except StreamError as error:
        raise NotRunnable(f"the command stream cannot be decoded: {error}") from None
    if execution.outputs is None:
        assert execution.stopped is not None
        reason = "the model does not implement it" if isinstance(execution.stopped, Unimplemented) else "it ends early"
        raise NotRunnable(f"{reason}: {execution.stopped}")
    return io.tosa_outputs(execution.outputs)


LEG = Leg("ethos-u-model", 3, "nothing more: it is armdiff's own", _skip, _run)
