"""Run one case: lowering, legs and probes, into an observation; then the oracles.

``observe`` never raises for upstream's faults: an exception becomes a ``Failure`` with stage,
pass and last upstream frame. A module that already fails in plain eager makes the case invalid
(``InvalidCase``), which is the generator's or the user's fault and no finding.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from harness.case.arrays import Array
from harness.case.aten import changed_state
from harness.case.building import module_of
from harness.case.case import Case
from harness.case.errors import BadInput, OwnFault
from harness.case.memory import is_large
from harness.case.recipe import parse_recipe
from harness.case.sampling import CALIBRATION, EvaluationInput, evaluation_inputs
from harness.case.target import parse_target
from harness.compat.support import rejection_reasons
from harness.compat.warm.collecting import between_runs
from harness.compat.warm.stage_cache import NO_CACHE, StageCache
from harness.evidence.observation import Envelope, Failure, LegResult, LoweringRecord, Mismatch, Observation, oracles
from harness.evidence.references import EAGER, MODEL, QUANTIZED
from harness.evidence.rounding.walk import Policy, State, envelopes
from harness.locate import streams as compared
from harness.locate.blame.values import blamed_values, is_blamed, suspects_of
from harness.pipeline import delegation as fallback
from harness.pipeline.engines import NOT_ASKED, EngineChoice, left_out
from harness.pipeline.failures import failure_of
from harness.pipeline.legs import Leg, NotRunnable, Outputs, arrays_of, legs
from harness.pipeline.lowering import (
    Configure,
    Lowered,
    LoweringFailed,
    Quantized,
    StageClock,
    compile_program,
    quantize,
    tensors_of,
)
from harness.pipeline.probes import Probe, ProbeMode, Scene, run_probes, scheduled
from harness.pipeline.state import state_kept


class InvalidCase(Exception):
    """The module itself fails in float eager, or returns no finite numbers' worth of a claim."""


@dataclass(frozen=True)
class Options:
    """How a case is run.

    :param tensors: data of the case's stored tensors.
    :param only_legs: run just these legs (the reference leg is always run).
    :param engine: which of the legs run that execute an Ethos-U command stream (``harness.pipeline.engines``).
    :param configure: receives the quantizer before use (a checked file's own function).
    :param model: the module to use instead of the one built from the case.
    :param probes: which probes run: those whose turn it is, all, or none.
    :param blame: keep a copy of each graph after every pass, and let wrong values name a pass.
    :param stages: where the case's own compile may take stages from; probes make all anew.
    """

    tensors: Mapping[str, Array] | None = None
    only_legs: Sequence[str] | None = None
    engine: EngineChoice = "default"
    configure: Configure | None = None
    model: torch.nn.Module | None = None
    probes: ProbeMode = "none"
    blame: bool = True
    stages: StageCache = NO_CACHE


PLAIN = Options()


@dataclass(frozen=True)
class Compiled:
    """A case compiled for its target, not yet executed.

    :param fresh: a copy of the module from before the compile, for probes (the module itself if there are none).
    :param eager: float eager's outputs, from before the compile: lowering may change the module.
    :param record: what the lowering left, or what a failed one had by then.
    :param reasons: why the partitioner refused nodes, by name.
    """

    case: Case
    model: torch.nn.Module
    fresh: torch.nn.Module
    inputs: tuple[EvaluationInput, ...]
    eager: Outputs
    record: LoweringRecord
    quantized: Quantized | None = None
    lowered: Lowered | None = None
    failure: Failure | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


def compile_case(
    case: Case,
    clock: StageClock,
    options: Options = PLAIN,
    *,
    quantized: Quantized | None = None,
    copies: bool = False,
    keep_graphs: bool = False,
) -> Compiled:
    """Run a case's module in eager, quantize and lower it. What upstream raises is data.

    :param quantized: use this instead of quantizing anew (``options.model`` is the module that it was made from).
    :param copies: keep an untouched copy of the module.
    :param keep_graphs: keep a copy of each graph after every pass.
    :raises InvalidCase: the module fails in plain eager.
    """
    tensors, stages = options.tensors, options.stages
    model = built(case, tensors, options.model)
    inputs = tuple(evaluation_inputs(case, tensors))
    eager = run_eager(model, inputs, clock)
    fresh = copy.deepcopy(model) if copies else model
    before = _state_of(model)
    try:
        quantized = quantized or quantize(case, clock, tensors, options.configure, model, stages)
        with rejection_reasons() as reasons:
            lowered = compile_program(quantized, clock, keep_graphs=keep_graphs, stages=stages)
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type is a finding
        failed = error if isinstance(error, LoweringFailed) else LoweringFailed(None)
        record = LoweringRecord(
            domains=quantized.domains if quantized else {},
            reference=quantized.states if quantized else {},
            mutated=_changed(model, before),
            unfinished=failed.unfinished,
            refused=failed.refused,
            seconds=dict(clock.seconds),
        )
        failure = failure_of(error, clock.current)
        return Compiled(case, model, fresh, inputs, eager, record, quantized, failure=failure)
    record = replace(lowered.record, mutated=_changed(model, before))
    return Compiled(case, model, fresh, inputs, eager, record, quantized, lowered, reasons=reasons)


def observe(case: Case, clock: StageClock, options: Options = PLAIN, keep: list[Lowered] | None = None) -> Observation:
    """Everything that one case leaves behind.

    :param keep: receives the live lowering, with a copy of each graph after every pass if the case is no large one.
    :raises InvalidCase: the module fails in plain eager.
    """
    chosen = scheduled(case, options.probes)
    large = is_large(case)
    copies, keep_graphs = any(probe.fresh for probe in chosen), keep is not None and not large
    compiled = compile_case(case, clock, options, copies=copies, keep_graphs=keep_graphs)
    if large:
        between_runs()
    if keep is not None and compiled.lowered is not None:
        keep.append(compiled.lowered)
    return execute(compiled, clock, options, chosen)


def execute(
    compiled: Compiled, clock: StageClock, options: Options = PLAIN, chosen: Sequence[Probe] = ()
) -> Observation:
    """Run a compiled case's legs and probes.

    :param chosen: the probes that run.
    """
    case, inputs, lowered, quantized = compiled.case, compiled.inputs, compiled.lowered, compiled.quantized
    results = {EAGER: LegResult(outputs=compiled.eager)}
    if lowered is None or quantized is None:
        stage = compiled.failure.stage if compiled.failure else clock.current
        results |= {name: LegResult(skipped=f"{stage} failed") for name in legs() if name not in results}
        return Observation(case, inputs, compiled.record, results, failure=compiled.failure)
    absent = {name: _not_run(name, case, options) for name in legs() if name not in results}
    for name, reason in absent.items():
        results[name] = LegResult(skipped=reason) if reason else _run_leg(legs()[name], lowered, inputs, clock)
    with clock.stage("probe"):
        observation = replace(_allowances(case, lowered, inputs), lowering=compiled.record, legs=results)
    streams = {}
    if absent.get(MODEL, "") is None:
        with clock.stage("probe:streams"):
            streams = {compared.NAME: compared.compared_delegates(case, lowered, inputs)}
    scene = Scene(
        case,
        options.tensors,
        options.configure,
        compiled.fresh,
        compiled.model,
        inputs,
        quantized,
        lowered,
        results,
        observation.rounding,
        observation.saturation is not None,
    )
    measured = {
        fallback.NAME: fallback.fallen_back(case.recipe, lowered, quantized.partitioner, compiled.reasons),
        **streams,
        **run_probes(chosen, scene, clock),
    }
    return replace(observation, probes=measured)


def _not_run(name: str, case: Case, options: Options) -> str | None:
    """Why a leg is not run on a case, or None."""
    target = parse_target(case.target)
    if options.only_legs is None or name in options.only_legs or name == QUANTIZED:
        return left_out(name, options.engine, target) or legs()[name].skip(target)
    return NOT_ASKED


def _allowances(case: Case, lowered: Lowered, inputs: tuple[EvaluationInput, ...]) -> Observation:
    """An observation with the envelopes: what rounding, a lost qmin and quantization may do."""

    def allowed(policy: Policy) -> tuple[tuple[Envelope, ...], ...]:
        state: State = {}
        return tuple(envelopes(lowered.reference, item.arrays, policy, state) for item in inputs)

    quantization: tuple[tuple[Envelope, ...] | None, ...] | None = None
    if parse_target(case.target).quantized:
        state: State = {}
        quantization = tuple(
            envelopes(lowered.reference, item.arrays, "quantization", state) if item.origin == CALIBRATION else None
            for item in inputs
        )
    return Observation(
        case,
        inputs,
        rounding=allowed("rounding"),
        saturation=allowed("saturation") if _sets_qmin(case) else None,
        quantization=quantization,
    )


def examine(case: Case, clock: StageClock, options: Options = PLAIN) -> tuple[Observation, list[Mismatch]]:
    """Observe, judge, and say after which pass wrong values first show."""
    kept: list[Lowered] = []
    observation = observe(case, clock, options, keep=kept if options.blame else None)
    with clock.stage("oracles"):
        mismatches = judge(observation)
    if kept and not changed_state(case.graph):  # no pass can be asked with the state that an input found
        with clock.stage("blame"):
            suspects = suspects_of(mismatches)
            again = is_large(case) and any(map(is_blamed, mismatches))
            lowered = compile_case(case, clock, options, keep_graphs=True).lowered if again else kept[0]
            if lowered is not None:
                mismatches = [blamed_values(mismatch, observation, lowered, suspects) for mismatch in mismatches]
    return observation, mismatches


def judge(observation: Observation) -> list[Mismatch]:
    """What every oracle says of one observation."""
    return [mismatch for oracle in oracles().values() for mismatch in oracle.judge(observation)]


def built(
    case: Case, tensors: Mapping[str, Array] | None = None, model: torch.nn.Module | None = None
) -> torch.nn.Module:
    """The module of a case, or the one that is given.

    :raises InvalidCase: torch refuses to build it.
    """
    if model is not None:
        return model
    try:
        return module_of(case, tensors)
    except (RuntimeError, TypeError, ValueError) as error:  # a constructor refused: torch's own rules
        raise InvalidCase(f"the module cannot be built: {error}") from error


def run_eager(model: torch.nn.Module, inputs: Sequence[EvaluationInput], clock: StageClock) -> Outputs:
    """Float eager on every input, refusing a module that fails or is not finite on calibration data."""
    runs = []
    with state_kept(model):
        for item in inputs:
            try:
                with torch.no_grad(), clock.stage(f"leg:{EAGER}"):
                    outputs = arrays_of(model(*tensors_of(item.arrays)))
            except (Exception, SystemExit) as error:
                raise InvalidCase(f"fails in float eager: {type(error).__name__}: {error}") from error
            if item.origin == CALIBRATION and not all(
                np.isfinite(output).all() for output in outputs if output.dtype.kind == "f"
            ):
                raise InvalidCase("returns NaN or infinity in float eager on calibration data")
            runs.append(outputs)
    return tuple(runs)


def _state_of(model: torch.nn.Module) -> dict[str, tuple[Any, ...]]:
    """Bits of every parameter and buffer, and every training flag (``conv.training``), by name."""
    tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    state: dict[str, tuple[Any, ...]] = {name: (value.dtype, value.shape, _bits(value)) for name, value in tensors}
    flags = {f"{name}.training".lstrip("."): (part.training,) for name, part in model.named_modules()}
    return {**state, **flags}


def _bits(value: torch.Tensor) -> torch.Tensor:
    return value.detach().reshape(-1).clone().view(torch.uint8)


def _changed(model: torch.nn.Module, before: Mapping[str, tuple[Any, ...]]) -> tuple[str, ...]:
    """Names of parameters, buffers and training flags that are no longer what they were."""
    now = _state_of(model)
    return tuple(name for name, value in before.items() if name not in now or not _same(now[name], value))


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return one[:2] == other[:2] and all(map(torch.equal, one[2:], other[2:]))


def _sets_qmin(case: Case) -> bool:
    recipe = parse_recipe(case.recipe)
    return recipe.activation_bits == 16 or recipe.qmin == -127 or recipe.fixed_activations or recipe.io is not None


def _run_leg(leg: Leg, lowered: Lowered, inputs: Sequence[EvaluationInput], clock: StageClock) -> LegResult:
    stage = f"leg:{leg.name}"
    try:
        with clock.stage(stage):
            return LegResult(outputs=leg.run(lowered, inputs))
    except OwnFault as fault:
        return LegResult(skipped=str(fault).splitlines()[0], fault=True)  # fx's interpreter adds lines of its own
    except NotRunnable as reason:
        return LegResult(skipped=str(reason).splitlines()[0])  # likewise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        return LegResult(failure=failure_of(error, stage))
