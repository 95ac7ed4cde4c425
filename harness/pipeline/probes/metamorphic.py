"""The ``metamorphic`` probe: lower a twin of the quantized graph that must return the same bits.

One relation a case, chosen by the case's digest among those that apply (``harness.pipeline.probes.twins``).
The twin's quantized eager outputs must equal the original's bit for bit, otherwise nothing is
claimed; then it is exported, lowered with a fresh partitioner, and run on the TOSA reference model
on the calibration and end-point inputs.

Nothing is claimed either where an operator of the original or of the twin runs on the CPU (float
kernels may sum in another order for another batch), or where the twin does not lower: it is made
by hand, and what the stock quantizer cannot reach is no finding.

It costs one lowering (0.5 to 2 s), hence one case in 40.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harness.case.arrays import Array
from harness.case.aten import changed_state
from harness.case.case import Case
from harness.case.recipe import parse_recipe
from harness.case.sampling import EvaluationInput
from harness.case.target import parse_target
from harness.evidence.references import QUANTIZED, TOSA
from harness.pipeline.probes import Probe, Scene, digest_number
from harness.pipeline.probes.graphs import same_bits
from harness.pipeline.probes.results import Skipped, TwinRun

if TYPE_CHECKING:
    from harness.pipeline.lowering import StageClock
    from harness.pipeline.probes.twins import Relation

NAME = "metamorphic"
RATE = 40
Outputs = tuple[tuple[Array, ...], ...]


def _run(scene: Scene, clock: StageClock) -> TwinRun | Skipped:
    import torch

    from harness.pipeline.lowering import tensors_of
    from harness.pipeline.probes.twins import relations

    if not all(name in scene.legs and scene.legs[name].ran for name in (QUANTIZED, TOSA)):
        return Skipped("the original did not run")
    if scene.lowered.record.fallback:
        return Skipped("an operator of the original runs on the CPU")
    sample = tensors_of(scene.inputs[0].arrays)
    possible = relations(scene.lowered.reference, scene.quantized.exported.graph_module, sample)
    if not possible:
        return Skipped("no relation applies")
    relation = possible[digest_number(scene.case) // RATE % len(possible)]
    try:
        torch.compiler.reset()
        return _compared(scene, relation, clock)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a graph made by hand may be refused
        return Skipped(f"{relation.name}: the twin fails: {type(error).__name__}: {str(error)[:200]}")


def _compared(scene: Scene, relation: Relation, clock: StageClock) -> TwinRun | Skipped:
    import torch

    from harness.pipeline.legs import arrays_of, legs
    from harness.pipeline.lowering import tensors_of
    from harness.pipeline.probes.twins import inputs_of_twins, lower

    chosen = inputs_of_twins(scene)
    items = [scene.inputs[index] for index in chosen]
    twin = relation.build()

    def eager(pieces: Sequence[EvaluationInput]) -> Outputs:
        with torch.no_grad():
            return tuple(arrays_of(twin(*tensors_of(item.arrays))) for item in pieces)

    for index, outputs in zip(chosen, _in_parts(items, relation.parts, eager), strict=True):
        wanted = scene.legs[QUANTIZED].outputs[index]
        if len(wanted) != len(outputs) or not all(map(same_bits, wanted, outputs)):
            return Skipped(f"{relation.name}: quantized eager is not equal")
    lowered = lower(scene, twin, _cut(items[0], relation.parts)[0], clock)
    if lowered.record.fallback or not lowered.record.delegates:
        return Skipped(f"{relation.name}: an operator of the twin runs on the CPU")
    with clock.stage("run"):
        compiled = _in_parts(items, relation.parts, lambda pieces: legs()[TOSA].run(lowered, pieces))
    return TwinRun(relation.name, relation.operator, relation.node, chosen, compiled)


def _in_parts(
    items: Sequence[EvaluationInput], parts: int, run: Callable[[Sequence[EvaluationInput]], Outputs]
) -> Outputs:
    """Run on each part of every input's batch and join the outputs again."""
    cut = [_cut(item, parts) for item in items]
    runs = iter(run([piece for pieces in cut for piece in pieces]))
    together = [[next(runs) for _ in pieces] for pieces in cut]
    if parts == 1:
        return tuple(pieces[0] for pieces in together)
    return tuple(tuple(np.concatenate(outputs, axis=0) for outputs in zip(*pieces, strict=True)) for pieces in together)


def _cut(item: EvaluationInput, parts: int) -> list[EvaluationInput]:
    if parts == 1:
        return [item]
    halves = [np.split(array, parts, axis=0) for array in item.arrays]
    return [replace(item, arrays=tuple(half[part] for half in halves)) for part in range(parts)]


def _applies(case: Case) -> bool:
    plain = not parse_recipe(case.recipe).set_apart and not changed_state(case.graph)  # a batch has one state
    return parse_target(case.target).quantized and plain


PROBE = Probe(NAME, RATE, _applies, _run)
