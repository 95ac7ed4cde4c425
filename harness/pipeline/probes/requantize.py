"""The ``requantize`` probe: quantize the live module, which was quantized and lowered, once more.

A module that quantizing leaves alone gives the same graph every time: the same operators, the
same quantization parameters, the same constants. ``model-unchanged`` judges that.

It costs an export and a calibration (0.3 to 1 s), hence one case in 20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.case import Case
from harness.case.target import parse_target
from harness.pipeline.probes import Probe, Scene
from harness.pipeline.probes.results import Repeated

if TYPE_CHECKING:
    from harness.pipeline.lowering import StageClock

NAME = "requantize"


def _run(scene: Scene, clock: StageClock) -> Repeated:
    import torch

    from harness.pipeline.failures import failure_of
    from harness.pipeline.lowering import quantize

    torch.compiler.reset()
    try:
        again = quantize(scene.case, clock, scene.tensors, scene.configure, scene.live)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type is data
        return Repeated(failure=failure_of(error, clock.current))
    return Repeated(again.states)


def _applies(case: Case) -> bool:
    return parse_target(case.target).quantized


PROBE = Probe(NAME, 20, _applies, _run)
