"""Float eager: the user's module as PyTorch runs it, float32 on the CPU, one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.case.sampling import EvaluationInput
from harness.pipeline.legs import Leg, Outputs, always, arrays_of

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    import torch

    from harness.pipeline.lowering import tensors_of
    from harness.pipeline.state import state_kept

    with torch.no_grad(), state_kept(lowered.model):
        return tuple(arrays_of(lowered.model(*tensors_of(item.arrays))) for item in inputs)


LEG = Leg("eager", 0, "torch", always, _run)
