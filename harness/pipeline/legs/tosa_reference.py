"""The whole lowered program, its delegates on the TOSA reference model and the rest in eager.

For Ethos-U targets the flatbuffer is the very one that Vela compiled. The reference model's
status must be valid; anything else is a failure of this leg, never an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.compat.tosa import run_reference_model
from harness.evidence.observation import DelegateRecord
from harness.pipeline.legs import Leg, Outputs, always, delegates
from harness.pipeline.legs.delegates import Execute, run_program

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


class ReferenceModelError(RuntimeError):
    """The TOSA reference model did not return a valid answer."""


def run_flatbuffer(tosa: bytes, arrays: Sequence[Array]) -> list[Array]:
    """Run one TOSA flatbuffer in-process.

    :raises ReferenceModelError: the status is not TOSA_VALID.
    """
    outputs, status = run_reference_model(tosa, arrays)
    if status != "TOSA_VALID":
        raise ReferenceModelError(f"the TOSA reference model returned {status}, not TOSA_VALID")
    return outputs


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    return run_program(lowered, inputs, _execute(lowered), ReferenceModelError)


def run_delegate(lowered: Lowered, name: str, module: Any, tensors: list[Any]) -> list[Any]:
    """Run one delegate of a program on the tensors that it is called with."""
    return delegates.run_delegate(lowered, name, module, tensors, _execute(lowered), ReferenceModelError)


def _execute(lowered: Lowered) -> Execute:
    def execute(record: DelegateRecord, arrays: list[Array]) -> list[Array]:
        tosa = lowered.tosa[record.name]
        key = (tosa, *(array.tobytes() for array in arrays))
        if key not in lowered.answers:
            lowered.answers[key] = run_flatbuffer(tosa, arrays)
        return lowered.answers[key]

    return execute


LEG = Leg("tosa-reference", 2, "tosa-tools (tosa_reference_model)", always, _run)
