"""``buffers``: what the program hands to a delegate is what the delegate's payload takes.

So far one question: does the payload still have every input that the program passes? The TOSA
serializer (and Vela) drop inputs that nothing reads, while the program goes on passing them; a
runtime that binds inputs by position then reads the wrong tensors. Number, order, dtype, shape
and bytes of all buffers come with a later version.
"""

from __future__ import annotations

from harness.observation import DelegateRecord, Mismatch, Observation, Oracle


def judge(observation: Observation) -> list[Mismatch]:
    """One mismatch a delegate whose inputs are not those it is called with."""
    return [
        _mismatch(delegate)
        for delegate in observation.lowering.delegates
        if len(delegate.inputs) != len(delegate.tosa_inputs)
    ]


def _mismatch(delegate: DelegateRecord) -> Mismatch:
    kept = set(delegate.tosa_inputs)
    lost = [(index, name) for index, name in enumerate(delegate.inputs) if name not in kept]
    where = ", ".join(f"{index} ({name})" for index, name in lost) or "unknown"
    shifted = bool(lost) and lost[0][0] < len(delegate.tosa_inputs)
    effect = "; bound by position, a later input is read in its place" if shifted else ""
    return Mismatch(
        oracle="buffers",
        kind="delegate input dropped, later inputs shift" if shifted else "delegate input dropped",
        stage="lower",
        message=(
            f"{delegate.name} ({delegate.backend}) is called with {len(delegate.inputs)} inputs, its TOSA graph has "
            f"{len(delegate.tosa_inputs)}: input {where} is gone{effect}"
        ),
        measured={"called_with": len(delegate.inputs), "takes": len(delegate.tosa_inputs), "shifted": shifted},
    )


ORACLE = Oracle("buffers", judge)
