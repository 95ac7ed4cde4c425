"""``quality``: gross loss between the float model and its quantized graph, on calibration data.

Quantization always loses something. What the recipe explains is derived, not tuned: half a step
at every quantize node plus its clipping, half a step of every weight, carried through the graph
(``harness.rounding``, policy ``quantization``). Float eager outside that envelope means that the
annotator or a transform changed the function: a lost clamp, a wrong axis, wrong qparams.
"""

from __future__ import annotations

import numpy as np

from harness.judging import EAGER, QUANTIZED, place
from harness.observation import Mismatch, Observation, Oracle
from harness.unjudged.envelopes import of_quantization
from oracles.numeric import compare


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch: the worst element over all calibration inputs."""
    eager, quantized = observation.legs.get(EAGER), observation.legs.get(QUANTIZED)
    if not eager or not quantized or not eager.ran or not quantized.ran or observation.quantization is None:
        return []
    if not len(eager.outputs) == len(quantized.outputs) == len(observation.quantization) == len(observation.inputs):
        return []
    worst: tuple[float, Mismatch] | None = None
    for run, allowed in enumerate(observation.quantization):
        if allowed is None or not len(allowed) == len(eager.outputs[run]) == len(quantized.outputs[run]):
            continue
        for index, envelope in enumerate(allowed):
            floats, codes = eager.outputs[run][index], quantized.outputs[run][index]
            if floats.shape != codes.shape or floats.dtype.kind != "f":
                continue
            # quantized eager is the value that must be sound here: it lies inside by construction
            item = compare(
                observation.inputs[run], index, floats, codes, envelope, observation.lowering.outputs[index].domain
            )
            excess = float(item.excess.max(initial=0.0))
            if excess > 0 and (worst is None or excess > worst[0]):
                at = int(np.argmax(item.excess))
                worst = (
                    excess,
                    Mismatch(
                        oracle="quality",
                        kind="loss beyond quantization",
                        stage="convert",
                        legs=(EAGER, QUANTIZED),
                        message=(
                            f"output {index} {list(floats.shape)}, calibration input {run}, "
                            f"element {place(floats, at)}: float {float(floats.flat[at]):.6g}, "
                            f"quantized {float(codes.flat[at]):.6g}; quantization explains "
                            f"{float(envelope.low.flat[at]):.6g} to {float(envelope.high.flat[at]):.6g}"
                        ),
                        measured={
                            "excess": round(excess, 4),
                            "unit": "steps" if item.steps else "epsilons",
                            "elements": int(np.sum(item.excess > 0)),
                            "of": int(floats.size),
                            "output": index,
                            "input": run,
                            "bound": round(item.bound, 4),
                        },
                    ),
                )
    return [] if worst is None else [worst[1]]


ORACLE = Oracle("quality", judge, lambda observation, _: of_quantization(observation, compare))
