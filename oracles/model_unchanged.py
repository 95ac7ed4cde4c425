"""``model-unchanged``: quantizing and lowering leave the user's module alone.

Parameters, buffers and every submodule's training flag must be bit-identical afterwards, and
quantizing the same module once more (the ``requantize`` probe) must give the same graph: a model
that is quantized twice, trained on, or compared with its quantized form must still be the model.

Changed parameters explain a second graph with other constants and quantization parameters, so
then only other *operators* count as a further mismatch.
"""

from __future__ import annotations

from harness.evidence.observation import Mismatch, Observation, Oracle, headline
from harness.pipeline.probes.graphs import differences
from harness.pipeline.probes.results import Repeated

TRAINING = "training"
"""Last part of a name in ``LoweringRecord.mutated`` that stands for a training flag (torch allows
no parameter of that name)."""


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch of each kind."""
    mutated = observation.lowering.mutated
    flags = tuple(name for name in mutated if name.split(".")[-1] == TRAINING)
    tensors = tuple(name for name in mutated if name not in flags)
    found = []
    if tensors:
        found.append(
            _mismatch(
                "parameters changed in place",
                f"quantizing and lowering changed the user's module in place: {_shown(tensors)}",
                len(tensors),
            )
        )
    if flags:
        found.append(
            _mismatch(
                "training flags changed", f"quantizing and lowering flipped training flags: {_shown(flags)}", len(flags)
            )
        )
    return found + _twice(observation, explained=bool(tensors))


def _twice(observation: Observation, *, explained: bool) -> list[Mismatch]:
    again = observation.probes.get("requantize")
    if not isinstance(again, Repeated) or observation.failure is not None:
        return []
    kind = "quantizing twice differs"
    if again.failure is not None:
        first_line = headline(again.failure.message)[:200]
        text = (
            f"the module cannot be quantized a second time: {again.failure.type} in {again.failure.stage}: {first_line}"
        )
        return [_mismatch(kind, text, 1, "raises")]
    found = differences(observation.lowering.reference, again.reference)
    if explained:
        found = [item for item in found if item.what == "nodes"]
    if not found:
        return []
    text = f"quantizing the same module twice gives two graphs; {len(found)} differences, first {found[0]}"
    return [_mismatch(kind, text, len(found), found[0].what)]


def _mismatch(kind: str, message: str, count: int, signature: str = "") -> Mismatch:
    measured = {"differences" if signature else "tensors": count}
    return Mismatch("model-unchanged", kind, message, stage="prepare", measured=measured, signature=signature)


def _shown(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


ORACLE = Oracle(
    "model-unchanged",
    judge,
    probed=True,
    rank=9,
    form="unchanged",
    expected="Quantizing a graph does not change the parameters and buffers of the user's module.",
)
