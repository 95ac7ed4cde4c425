"""Sweep the variants of one case: quantize each, partition once, run the passes, judge without running anything.

The float graph is exported once, prepared once a recipe, and calibrated and converted once a variant, as
``harness.pipeline.lowering`` does for one case. Variants whose converted graphs are alike share a partitioned graph.
What raises on the way is a ``crash`` finding of the variant that met it; a partitioned graph that cannot be made is met
by the first of its variants.

Imports torch and executorch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch

from harness.campaign.breadth.partitioned_graph import partitioned_graph_of, shape_of
from harness.case.case import Case
from harness.case.reading import read_case
from harness.case.recipe import parse_recipe
from harness.case.sampling import calibration_samples, evaluation_inputs
from harness.case.target import parse_target
from harness.compat.stack import prepare_pt2e, stack_for
from harness.evidence.observation import DelegateRecord, LoweringRecord, Observation, oracles
from harness.pipeline.failures import failure_of
from harness.pipeline.lowering import LoweringFailed, StageClock, converted, domains_of, tensors_of
from harness.triage.findings import Finding, finding_of
from harness.workers.observing import InvalidCase, built, run_eager
from harness.workers.protocol import SweepTask, Swept, SweptCase

_Sample = tuple[torch.Tensor, ...]


@dataclass
class _Variant:
    """A variant on its way.

    :ivar seen: what was observed at its end.
    """

    path: str
    case: Case
    converted: torch.fx.GraphModule | None = None
    seen: Observation | None = None


def sweep(task: SweepTask, announce: Callable[[str], None]) -> Swept:
    """Run every variant through the passes."""
    clock = StageClock(announce)
    variants = [_Variant(path, read_case(Path(path))) for path in task.cases]
    torch.compiler.reset()
    first = variants[0].case
    try:
        with clock.stage("build"):
            model = built(first)
        run_eager(model, tuple(evaluation_inputs(first)), clock)
    except InvalidCase as error:
        return Swept(invalid=str(error))
    for recipe, alike in groupby(sorted(variants, key=lambda item: item.case.recipe), lambda item: item.case.recipe):
        _convert(list(alike), recipe, model, clock)
    by_shape: dict[tuple[str, ...], list[_Variant]] = {}
    for variant in variants:
        if variant.converted is not None:
            by_shape.setdefault(shape_of(variant.converted), []).append(variant)
    for alike_ones in by_shape.values():
        _lower(alike_ones, clock)
    rows = tuple(SweptCase(case=item.path, findings=tuple(_findings(item, clock))) for item in variants)
    return Swept(cases=rows, edge_programs=len(by_shape), seconds=dict(clock.seconds))


def _convert(variants: Sequence[_Variant], recipe: str, model: torch.nn.Module, clock: StageClock) -> None:
    """Quantize the variants of one recipe."""
    words, first = parse_recipe(recipe), variants[0]
    try:
        with clock.stage("export"):
            floating = torch.export.export(model, _samples(first.case)[0]).module(check_guards=False)
        with clock.stage("prepare"):
            prepared = prepare_pt2e(floating, stack_for(parse_target(first.case.target), words).quantizer)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type is a finding
        first.seen = Observation(first.case, failure=failure_of(error, clock.current))
        return
    for variant in variants:
        try:
            variant.converted = converted(copy.deepcopy(prepared), _samples(variant.case), words.edited, clock)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
            variant.seen = Observation(variant.case, failure=failure_of(error, clock.current))


def _lower(variants: Sequence[_Variant], clock: StageClock) -> None:
    """Lower variants of one shape to TOSA."""
    first = variants[0]
    graphs = [item.converted for item in variants if item.converted is not None]
    partitioner = stack_for(parse_target(first.case.target), parse_recipe(first.case.recipe)).partitioner
    try:
        with clock.stage("lower"):
            partitioned = partitioned_graph_of(graphs, _samples(first.case)[0], partitioner)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        first.seen = Observation(first.case, failure=failure_of(error, clock.current))
        return
    for variant, graph in zip(variants, graphs, strict=True):
        domains = dict(domains_of(graph))
        try:
            with clock.stage("passes"):
                made = [*partitioned.lowered(graph)]
        except LoweringFailed as error:
            record = LoweringRecord(domains=domains, unfinished=error.unfinished)
            variant.seen = Observation(variant.case, lowering=record, failure=failure_of(error, "lower"))
            continue
        delegates = tuple(
            DelegateRecord(
                f"lowered_module_{number}", "TOSABackend", item.tosa, item.tosa, (), (), (), trace=item.trace
            )
            for number, item in enumerate(made)
        )
        variant.seen = Observation(variant.case, lowering=LoweringRecord(domains=domains, delegates=delegates))


def _findings(variant: _Variant, clock: StageClock) -> Iterator[Finding]:
    with clock.stage("oracles"):
        seen = [variant.seen] if variant.seen is not None else []
        judges = [oracle.judge for oracle in oracles().values() if oracle.lowered]
        found = [item for judge in judges for observation in seen for item in judge(observation)]
    for mismatch in found:
        if not mismatch.information:
            yield finding_of(mismatch, variant.case, variant.path)


def _samples(case: Case) -> list[_Sample]:
    return [tensors_of(sample) for sample in calibration_samples(case)]
