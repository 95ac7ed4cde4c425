"""``model-unchanged``: quantizing and lowering leave the user's module alone.

Parameters and buffers must be bit-identical afterwards: a model that is quantized twice, trained
on, or compared with its quantized form must still be the model.
"""

from __future__ import annotations

from harness.observation import Mismatch, Observation, Oracle


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch: the tensors that changed."""
    mutated = observation.lowering.mutated
    if not mutated:
        return []
    shown = ", ".join(mutated[:6]) + (f" and {len(mutated) - 6} more" if len(mutated) > 6 else "")
    return [
        Mismatch(
            oracle="model-unchanged",
            kind="parameters changed in place",
            stage="prepare",
            message=f"quantizing and lowering changed the user's module in place: {shown}",
            measured={"tensors": len(mutated)},
        )
    ]


ORACLE = Oracle("model-unchanged", judge)
