"""Probes: extra observations that an oracle needs and that cost a run or a lowering.

One file a probe, with a module-level ``PROBE`` that ``harness.case.registry`` finds. A probe takes the
``Scene``, the live objects of one observed case, and returns data (``harness.pipeline.probes.results``)
that goes into ``Observation.probes`` under its name; an oracle judges it there.

Schedule: mode ``all`` runs every probe that applies, ``none`` runs none, and ``default`` runs a
probe with rate n on the cases whose digest is 0 modulo n; ``judging`` runs those of rate 1, without
which values would not be judged. So whether a probe runs is a function of the case and never of
the order or number of cases.

Invariants: what upstream raises inside a probe is data (``Failure`` or ``Skipped``), never an
exception; probes run after everything else was recorded, each on copies of its own, except
``requantize``, which is about the live module.

Modules here import torch lazily, inside ``run``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from harness.case.case import Case, case_digest
from harness.case.registry import entries
from harness.compat.warm.collecting import between_runs

if TYPE_CHECKING:
    import torch

    from harness.case.arrays import Array
    from harness.case.sampling import EvaluationInput
    from harness.evidence.observation import Envelope, LegResult
    from harness.pipeline.lowering import Configure, Lowered, Quantized, StageClock

ProbeMode = Literal["default", "judging", "all", "none"]


@dataclass(frozen=True)
class Scene:
    """Live objects of one observed case.

    :param fresh: a copy of the module from before it was quantized.
    :param live: the module that was quantized and lowered.
    :param legs: what each leg returned.
    :param rounding: what rounding allows, as in the observation.
    :param saturation: may a qmin be lost, so that codes below it are told apart?
    """

    case: Case
    tensors: Mapping[str, Array] | None
    configure: Configure | None
    fresh: torch.nn.Module
    live: torch.nn.Module
    inputs: Sequence[EvaluationInput]
    quantized: Quantized
    lowered: Lowered
    legs: Mapping[str, LegResult]
    rounding: tuple[tuple[Envelope, ...], ...] | None
    saturation: bool


@dataclass(frozen=True)
class Probe:
    """One extra observation.

    :param rate: by default it runs on one case in this many.
    :param applies: can it say anything of this case?
    :param run: returns data; the clock is its own, so that its stages do not count as the case's.
    :param fresh: does it need a copy of the module from before it was quantized (``Scene.fresh``)?
    """

    name: str
    rate: int
    applies: Callable[[Case], bool]
    run: Callable[[Scene, StageClock], Any]
    fresh: bool = False


@cache
def probes() -> Mapping[str, Probe]:
    """Every probe of ``harness.pipeline.probes``, by name."""
    return entries("probe", "harness.pipeline.probes", "PROBE")


def scheduled(case: Case, mode: ProbeMode) -> tuple[Probe, ...]:
    """The probes that run on a case."""
    if mode == "none":
        return ()
    number = 1 if mode == "judging" else digest_number(case)
    return tuple(
        probe for probe in probes().values() if (mode == "all" or number % probe.rate == 0) and probe.applies(case)
    )


def digest_number(case: Case) -> int:
    """The case's digest as a number: equal for equal cases on every machine."""
    return int(case_digest(case), 16)


def run_probes(chosen: Sequence[Probe], scene: Scene, clock: StageClock) -> dict[str, Any]:
    """Results of the chosen probes, by name."""
    from harness.pipeline.lowering import StageClock

    results = {}
    for probe in chosen:
        stage = f"probe:{probe.name}"
        between_runs()
        with clock.stage(stage):
            inner = StageClock(lambda _, stage=stage: clock.enter(stage))  # type: ignore[misc]
            results[probe.name] = probe.run(scene, inner)
    return results
