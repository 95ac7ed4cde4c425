"""The ``inside`` probe: values inside the program, where the envelopes of its outputs judge nothing.

What rounding allows adds up along a graph, until it allows every code. Then the quantized graph is lowered once more
with values inside as outputs (``harness.evidence.rounding.cuts``), and the TOSA reference model says what the program
computes there. Each piece between two cuts has an envelope of its own, on those very values.

Nothing is claimed where the outputs of that program are not, bit for bit, those of the case's own: with more outputs
the passes may do something else. Nor where it does not lower, since it is made by hand.

It costs one lowering, and only where half of an output or more is not judged otherwise; so it is for every case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.aten import changed_state
from harness.case.case import Case
from harness.case.target import parse_target
from harness.evidence.comparing import covering
from harness.evidence.observation import Envelope, OutputType
from harness.evidence.references import QUANTIZED, TOSA
from harness.pipeline.probes import Probe, Scene
from harness.pipeline.probes.results import Pieces, Skipped

if TYPE_CHECKING:
    from harness.pipeline.lowering import StageClock

NAME = "inside"


def judges_little(rounding: tuple[tuple[Envelope, ...], ...], types: tuple[OutputType, ...]) -> bool:
    """Is half of an output or more allowed every code, or unjudged for want of a rule?"""
    for allowed in zip(*rounding, types, strict=True) if rounding else ():
        *envelopes, output = allowed
        free = sum(item.low.size if item.unjudged else covering(item, output) for item in envelopes)
        if 0 < sum(item.low.size for item in envelopes) <= 2 * free:
            return True
    return False


def _run(scene: Scene, clock: StageClock) -> Pieces | Skipped:
    import torch

    from harness.evidence.rounding.cuts import chosen_cuts
    from harness.pipeline.probes.pieces import in_pieces
    from harness.pipeline.probes.twins import inputs_of_twins

    if not all(name in scene.legs and scene.legs[name].ran for name in (QUANTIZED, TOSA)):
        return Skipped("the original did not run")
    if scene.rounding is None or not judges_little(scene.rounding, scene.lowered.record.outputs):
        return Skipped("the outputs are judged without it")
    cuts = chosen_cuts(scene.lowered.reference, [scene.inputs[index].arrays for index in inputs_of_twins(scene)])
    if not cuts:
        return Skipped("no value inside can be seen")
    try:
        torch.compiler.reset()
        return in_pieces(scene, cuts, clock)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a graph made by hand may be refused
        return Skipped(f"with values inside as outputs the graph fails: {type(error).__name__}: {str(error)[:200]}")


def _applies(case: Case) -> bool:
    return parse_target(case.target).quantized and not changed_state(case.graph)


PROBE = Probe(NAME, 1, _applies, _run)
