"""Quantized eager: the graph that PT2E produced, with its Q/DQ nodes, as PyTorch runs it.

This is the reference of every target with an integer profile: what the compiled program must
compute, up to the rounding that the fixed-point encoding leaves free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.case.sampling import EvaluationInput
from harness.case.target import Target
from harness.pipeline.legs import Leg, Outputs, arrays_of

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


def _skip(target: Target) -> str | None:
    return None if target.quantized else f"{target.name} has no quantization"


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    import torch

    from harness.pipeline.lowering import tensors_of
    from harness.pipeline.state import state_kept

    with torch.no_grad(), state_kept(lowered.reference):
        return tuple(arrays_of(lowered.reference(*tensors_of(item.arrays))) for item in inputs)


LEG = Leg("quantized-eager", 1, "torchao", _skip, _run)
