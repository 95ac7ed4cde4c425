"""Run one case: lowering, legs and probes, into an observation; then the oracles.

``observe`` never raises for upstream's faults: an exception becomes a ``Failure`` with stage,
pass and last upstream frame. A module that already fails in plain eager makes the case invalid
(``InvalidCase``), which is the generator's or the user's fault and no finding.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch

from harness.blame.values import blamed_values
from harness.building import module_of
from harness.case import Case
from harness.compat.support import rejection_reasons
from harness.distributions import Array
from harness.engines import EngineChoice, left_out
from harness.judging import EAGER, MODEL, QUANTIZED
from harness.legs import Leg, NotRunnable, Outputs, arrays_of
from harness.lowering import Configure, Lowered, LoweringFailed, StageClock, compile_program, quantize, tensors_of
from harness.observation import Domain, Envelope, Failure, LegResult, LoweringRecord, Mismatch, Observation
from harness.probes import ProbeMode, Scene, run_probes, scheduled
from harness.probes import delegation as fallback
from harness.probes import streams as compared
from harness.recipe import parse_recipe
from harness.registry import legs, oracles
from harness.rounding.walk import envelopes
from harness.sampling import CALIBRATION, EvaluationInput, evaluation_inputs
from harness.states import operator_name
from harness.target import parse_target

_UPSTREAM = ("executorch", "torchao", "ethosu", "tosa_serializer", "tosa_reference_model", "tosa")
_PASSES = "executorch.backends.arm._passes"


class InvalidCase(Exception):
    """The module itself fails in float eager, or returns no finite numbers' worth of a claim."""


def observe(
    case: Case,
    clock: StageClock,
    tensors: Mapping[str, Array] | None = None,
    *,
    only_legs: Sequence[str] | None = None,
    engine: EngineChoice = "default",
    configure: Configure | None = None,
    model: torch.nn.Module | None = None,
    probes: ProbeMode = "none",
    keep: list[Lowered] | None = None,
) -> Observation:
    """Everything that one case leaves behind.

    :param only_legs: run just these legs (the reference leg is always run).
    :param engine: which of the legs run that execute an Ethos-U command stream (``harness.engines``).
    :param keep: receives the live lowering, with a copy of each graph after every pass.
    :param probes: which probes run: those whose turn it is, all, or none.
    :raises InvalidCase: the module fails in plain eager.
    """
    model = _built(case, tensors, model)
    inputs = tuple(evaluation_inputs(case, tensors))
    results = {EAGER: LegResult(outputs=_eager(model, inputs, clock))}  # first: lowering may change the module
    chosen = scheduled(case, probes)
    fresh = copy.deepcopy(model) if chosen else model
    before = _state_of(model)
    domains: Mapping[str, Domain] = {}
    try:
        quantized = quantize(case, clock, tensors, configure, model)
        domains = quantized.domains
        with rejection_reasons() as reasons:
            lowered = compile_program(quantized, clock, keep_graphs=keep is not None)
        if keep is not None:
            keep.append(lowered)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type is a finding
        results |= {name: LegResult(skipped=f"{clock.current} failed") for name in legs() if name not in results}
        record = LoweringRecord(
            domains=domains,
            mutated=_changed(model, before),
            unfinished=error.unfinished if isinstance(error, LoweringFailed) else None,
            seconds=dict(clock.seconds),
        )
        return Observation(case, inputs, record, results, failure=failure_of(error, clock.current))
    record = replace(lowered.record, mutated=_changed(model, before))
    absent = {name: _not_run(name, case, only_legs, engine) for name in legs() if name not in results}
    for name, reason in absent.items():
        results[name] = LegResult(skipped=reason) if reason else _run_leg(legs()[name], lowered, inputs, clock)
    with clock.stage("probe"):
        observation = replace(_allowances(case, lowered, inputs), lowering=record, legs=results)
        streams = {}
        if absent.get(MODEL, "") is None:
            streams = {compared.NAME: compared.compared_delegates(case, lowered, inputs)}
    scene = Scene(case, tensors, configure, fresh, model, inputs, quantized, lowered, results)
    measured = {
        fallback.NAME: fallback.fallen_back(case.recipe, lowered, quantized.partitioner, reasons),
        **streams,
        **run_probes(chosen, scene, clock),
    }
    return replace(observation, probes=measured)


def _not_run(name: str, case: Case, only_legs: Sequence[str] | None, engine: EngineChoice) -> str | None:
    """Why a leg is not run on a case, or None."""
    target = parse_target(case.target)
    if only_legs is None or name in only_legs or name == QUANTIZED:
        return left_out(name, engine, target) or legs()[name].skip(target)
    return "not asked for"


def _allowances(case: Case, lowered: Lowered, inputs: tuple[EvaluationInput, ...]) -> Observation:
    """An observation with the envelopes: what rounding, a lost qmin and quantization may do."""
    quantization: tuple[tuple[Envelope, ...] | None, ...] | None = None
    if parse_target(case.target).quantized:
        quantization = tuple(
            envelopes(lowered.reference, item.arrays, "quantization") if item.origin == CALIBRATION else None
            for item in inputs
        )
    return Observation(
        case,
        inputs,
        rounding=tuple(envelopes(lowered.reference, item.arrays, "rounding") for item in inputs),
        saturation=tuple(envelopes(lowered.reference, item.arrays, "saturation") for item in inputs)
        if _sets_qmin(case)
        else None,
        quantization=quantization,
    )


def examine(
    case: Case,
    clock: StageClock,
    tensors: Mapping[str, Array] | None = None,
    *,
    only_legs: Sequence[str] | None = None,
    engine: EngineChoice = "default",
    configure: Configure | None = None,
    model: torch.nn.Module | None = None,
    probes: ProbeMode = "none",
    blame: bool = True,
) -> tuple[Observation, list[Mismatch]]:
    """Observe, judge, and say after which pass wrong values first show.

    :param blame: without it wrong values name no pass, and no graphs are copied.
    """
    kept: list[Lowered] = []
    keep = kept if blame else None
    observation = observe(
        case,
        clock,
        tensors,
        only_legs=only_legs,
        engine=engine,
        configure=configure,
        model=model,
        probes=probes,
        keep=keep,
    )
    with clock.stage("oracles"):
        mismatches = judge(observation)
    if kept:
        with clock.stage("blame"):
            mismatches = [blamed_values(mismatch, observation, kept[0]) for mismatch in mismatches]
    return observation, mismatches


def judge(observation: Observation) -> list[Mismatch]:
    """What every oracle says of one observation."""
    return [mismatch for oracle in oracles().values() for mismatch in oracle.judge(observation)]


def _built(case: Case, tensors: Mapping[str, Array] | None, model: torch.nn.Module | None) -> torch.nn.Module:
    if model is not None:
        return model
    try:
        return module_of(case, tensors)
    except (RuntimeError, TypeError, ValueError) as error:  # a constructor refused: torch's own rules
        raise InvalidCase(f"the module cannot be built: {error}") from error


def _eager(model: torch.nn.Module, inputs: Sequence[EvaluationInput], clock: StageClock) -> Outputs:
    """Float eager on every input, refusing a module that fails or is not finite on calibration data."""
    runs = []
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
    except NotRunnable as reason:
        return LegResult(skipped=str(reason).splitlines()[0])  # fx's interpreter adds lines of its own
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        return LegResult(failure=failure_of(error, stage))


def failure_of(error: BaseException, stage: str) -> Failure:
    """Describe an exception: its root cause's type, message, pass, node and last upstream frame."""
    place = _place(error.__traceback__)
    while error.__cause__ is not None:  # fx and the pass managers wrap what was raised
        error = error.__cause__
        inner = _place(error.__traceback__)
        place = _Place(*(new or old for new, old in zip(inner, place, strict=True)))
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
    return Failure(stage, type(error).__name__, str(error), place.pass_name, place.frame, detail, place.node)


class _Place(NamedTuple):
    """Where an exception was raised, as far as its frames tell."""

    pass_name: str | None = None
    frame: str | None = None
    node: str | None = None


def _place(trace: TracebackType | None) -> _Place:
    place = _Place()
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        names = trace.tb_frame.f_locals
        if module.split(".", 1)[0] in _UPSTREAM:
            place = place._replace(frame=f"{module}:{trace.tb_frame.f_code.co_name}")
            node = next((names[key] for key in ("node", "n") if isinstance(names.get(key), torch.fx.Node)), None)
            if node is not None:
                place = place._replace(node=f"{node.name} ({operator_name(node.target)})")
        owner: Any = names.get("self")
        if type(owner).__module__.startswith(_PASSES) and type(owner).__name__.endswith("Pass"):
            place = place._replace(pass_name=type(owner).__name__)
        trace = trace.tb_next
    return place
