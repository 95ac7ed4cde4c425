"""A subject: one clean graph with its lowering and observation, kept live for its mutants.

A graph is fit if it lowers with at least one delegate and none of the oracles that judge mutants
says anything; the others do not look at what a mutant changes. The observation is the campaign's
own (``observing.observe``); the lowering that it makes is kept by wrapping ``compile_program`` for
the time of the call.

Beside the case's evaluation inputs a subject has *further* inputs: fresh uniform draws over the
calibrated range, judged in the same way. They tell an oracle that cannot see a mutant from
evaluation inputs that do not show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch

from harness.case.arrays import Array
from harness.case.case import Case
from harness.case.sampling import FRESH, EvaluationInput, calibration_samples
from harness.evidence.observation import LegResult, Mismatch, Observation
from harness.evidence.references import QUANTIZED, TOSA
from harness.evidence.rounding.walk import envelopes
from harness.pipeline.legs import quantized_eager, tosa_reference
from harness.pipeline.lowering import Lowered, StageClock
from harness.workers import observing
from oracles import crash, numeric, outputs

FURTHER = 32
ORACLES = (numeric.ORACLE, outputs.ORACLE, crash.ORACLE)


@dataclass(frozen=True)
class Subject:
    """A clean graph.

    :param further: the same observation on further inputs; None if none of them was clean.
    :param calls: for each delegate, the arrays that its TOSA graph got on each evaluation input.
    """

    lowered: Lowered
    observation: Observation
    further: Observation | None
    calls: Mapping[str, tuple[tuple[Array, ...], ...]]


def subject_of(case: Case) -> tuple[Subject | None, str]:
    """Lower and observe a case; the second value says why it is no subject."""
    torch.compiler.reset()
    with _kept_lowering() as kept:
        try:
            observation = observing.observe(case, StageClock())
        except observing.InvalidCase:
            return None, "invalid"
    if not kept or observation.failure is not None:
        return None, "fails to lower"
    if not kept[-1].tosa:
        return None, "no delegate"
    found = judged(observation)
    if found:
        return None, f"not clean: {found[0].oracle}"
    lowered = kept[-1]
    return Subject(lowered, observation, _further(lowered, observation), _calls(lowered, observation)), "subject"


def judged(observation: Observation) -> list[Mismatch]:
    """What the oracles that look at a leg's results say."""
    return [mismatch for oracle in ORACLES for mismatch in oracle.judge(observation)]


def with_leg(observation: Observation, result: LegResult) -> Observation:
    """The observation as if the TOSA leg had returned this."""
    return replace(observation, legs={**observation.legs, TOSA: result})


def run_mutant(lowered: Lowered, delegate: str, tosa: bytes, inputs: Sequence[EvaluationInput]) -> LegResult:
    """The TOSA leg with one delegate's flatbuffer replaced."""
    altered = replace(lowered, tosa={**lowered.tosa, delegate: tosa})
    try:
        return LegResult(outputs=tosa_reference.LEG.run(altered, inputs))
    except Exception as error:  # noqa: BLE001 - as the runner does: any exception is the leg's failure
        return LegResult(failure=observing.failure_of(error, f"leg:{TOSA}"))


@contextmanager
def _kept_lowering() -> Iterator[list[Lowered]]:
    kept: list[Lowered] = []
    original = observing.compile_program

    def keeping(*args: Any, **options: Any) -> Lowered:
        kept.append(original(*args, **options))
        return kept[-1]

    with mock.patch.object(observing, "compile_program", keeping):
        yield kept


def _further(lowered: Lowered, observation: Observation) -> Observation | None:
    """The observation on further inputs, those dropped on which the clean graph is not clean."""
    kept: list[Observation] = []
    for item in _draws(observation.case):
        legs = {
            leg.name: LegResult(outputs=leg.run(lowered, [item])) for leg in (quantized_eager.LEG, tosa_reference.LEG)
        }
        saturation = None
        if observation.saturation is not None:
            saturation = (envelopes(lowered.reference, item.arrays, "saturation"),)
        one = Observation(
            observation.case,
            (item,),
            observation.lowering,
            legs,
            rounding=(envelopes(lowered.reference, item.arrays, "rounding"),),
            saturation=saturation,
        )
        if not judged(one):
            kept.append(one)
    if not kept:
        return None
    return replace(
        kept[0],
        inputs=tuple(one.inputs[0] for one in kept),
        legs={name: LegResult(outputs=tuple(one.legs[name].outputs[0] for one in kept)) for name in (QUANTIZED, TOSA)},
        rounding=tuple(one.rounding[0] for one in kept if one.rounding),
        saturation=tuple(one.saturation[0] for one in kept if one.saturation) or None,
    )


def _draws(case: Case) -> Iterator[EvaluationInput]:
    samples = calibration_samples(case)
    for index in range(FURTHER):
        rng = np.random.default_rng([case.seeds.evaluation, 77, index])
        arrays = []
        for place, item in enumerate(case.graph.inputs):
            low = min(float(sample[place].min()) for sample in samples)
            high = max(float(sample[place].max()) for sample in samples)
            if item.dtype == "bool":
                arrays.append(rng.integers(0, 2, item.shape) > 0)
            elif item.dtype == "float32":
                arrays.append(np.clip(rng.uniform(low, high, item.shape), low, high).astype(np.float32))
            else:
                arrays.append(rng.integers(int(low), int(high) + 1, item.shape).astype(item.dtype))
        yield EvaluationInput(FRESH, tuple(arrays), in_range=True)


class _Anew(dict[tuple[bytes, ...], list[Array]]):
    """Answers that are asked for each time, equal inputs or not."""

    def __contains__(self, key: object) -> bool:
        return False


def _calls(lowered: Lowered, observation: Observation) -> Mapping[str, tuple[tuple[Array, ...], ...]]:
    """Run the clean leg once more and note what each delegate's TOSA graph is called with."""
    names = {tosa: name for name, tosa in lowered.tosa.items()}  # equal flatbuffers: any of them will do
    calls: dict[str, list[tuple[Array, ...]]] = {name: [] for name in lowered.tosa}
    original = tosa_reference.run_flatbuffer

    def noting(tosa: bytes, arrays: Sequence[Array]) -> list[Array]:
        calls[names[tosa]].append(tuple(array.copy() for array in arrays))
        return original(tosa, arrays)

    with mock.patch.object(tosa_reference, "run_flatbuffer", noting):
        tosa_reference.LEG.run(replace(lowered, answers=_Anew()), observation.inputs)
    return {name: tuple(found) for name, found in calls.items()}
