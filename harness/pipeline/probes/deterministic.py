"""The ``deterministic`` probe: the whole case a second time, from a copy of the untouched module.

Export, calibration, quantization, lowering and Vela all run again in the same process with
upstream's tracing caches cleared, as they were for the first run. The oracle compares the
quantized graphs, each delegate's TOSA flatbuffer and each payload.

It costs what the case's own compile costs (0.6 to 3 s), hence one case in 40.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.case.case import Case
from harness.pipeline.probes import Probe, Scene
from harness.pipeline.probes.results import Repeated

if TYPE_CHECKING:
    from harness.pipeline.lowering import StageClock

NAME = "deterministic"


def _run(scene: Scene, clock: StageClock) -> Repeated:
    import torch

    from harness.pipeline.failures import failure_of
    from harness.pipeline.lowering import compile_program, quantize

    torch.compiler.reset()
    try:
        quantized = quantize(scene.case, clock, scene.tensors, scene.configure, scene.fresh)
        record = compile_program(quantized, clock).record
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type is data
        return Repeated(failure=failure_of(error, clock.current))
    return Repeated(record.reference, record.delegates)


def _applies(case: Case) -> bool:
    return True


PROBE = Probe(NAME, 40, _applies, _run, fresh=True)
