"""Each Ethos-U delegate on the functional model against the TOSA reference model, bit for bit.

No probe with a rate: every observation of an Ethos-U target has it under ``streams``. A delegate is
compared on what the program hands to it for some evaluation inputs, and on integers from the full
range; on a difference the first operation that differs is named. The stream itself is checked on
the way (oracle ``stream``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.artifacts.program import decode_program
from harness.artifacts.vela import decode_vela
from harness.case.errors import BadInput, OwnFault
from harness.case.sampling import CALIBRATION, EvaluationInput
from harness.compat.vela import configuration_of
from harness.ethosu.accelerator import accelerator_named
from harness.locate.divergence import (
    DelegateComparison,
    Draw,
    compare_delegate,
    examined,
    random_draws,
    tensors_of_steps,
)
from harness.pipeline.probes import digest_number

if TYPE_CHECKING:
    from harness.case.arrays import Array
    from harness.case.case import Case
    from harness.evidence.observation import DelegateRecord
    from harness.pipeline.lowering import Lowered

NAME = "streams"
RANDOM_DRAWS = 2


def compared_delegates(
    case: Case, lowered: Lowered, inputs: Sequence[EvaluationInput]
) -> Mapping[str, DelegateComparison]:
    """What the comparison of each delegate found, by the delegate's name in the program."""
    named = decode_program(lowered.record.program).named
    handed = _handed(lowered, _some(inputs))
    compared = {}
    for record in lowered.record.delegates:
        configuration = configuration_of(getattr(lowered.edge_program.graph_module, record.name))
        if configuration is not None:
            tosa = lowered.tosa[record.name]
            draws = (*handed.get(record.name, ()), *random_draws(tosa, RANDOM_DRAWS, digest_number(case) % 2**32))
            try:
                payload = decode_vela(record.payload, named)
                comparison = compare_delegate(tosa, payload, configuration.target, draws)
                comparison = examined(comparison, payload, accelerator_named(configuration.target))
                if any(issue.certain for issue in comparison.issues):
                    tensors = tensors_of_steps(tosa, payload, configuration.target, draws[0])
                    comparison = replace(comparison, tensors=tensors)
            except BadInput as error:  # a finding like any stream that cannot be executed
                comparison = DelegateComparison(stopped=str(error), damaged=True)
            except Exception as error:  # noqa: BLE001 - the other delegates, legs and oracles still have their say
                comparison = DelegateComparison(fault=str(OwnFault(error, f"on delegate {record.name}")))
            compared[record.name] = comparison
    return compared


def _some(inputs: Sequence[EvaluationInput]) -> list[EvaluationInput]:
    """The first calibration sample and the first input of any other origin."""
    first = [item for item in inputs if item.origin == CALIBRATION][:1]
    return first + [item for item in inputs if item.origin != CALIBRATION][:1]


def _handed(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Mapping[str, list[Draw]]:
    """The arrays that the program hands to each delegate, with the reference model in the delegates."""
    from harness.pipeline.legs.delegates import run_program
    from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer

    handed: dict[str, list[Draw]] = {}
    for index, item in enumerate(inputs):

        def noting(
            record: DelegateRecord, arrays: list[Array], name: str = f"{item.origin} input {index}"
        ) -> list[Array]:
            handed.setdefault(record.name, []).append(Draw(name, tuple(arrays)))
            return run_flatbuffer(lowered.tosa[record.name], arrays)

        try:
            run_program(lowered, [item], noting, ReferenceModelError)
        except (ReferenceModelError, ValueError):  # the reference leg fails in the same way, and reports it
            continue
    return handed
