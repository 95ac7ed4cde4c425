"""A functional model of Arm's Ethos-U55, Ethos-U65 and Ethos-U85, in numpy alone.

``run`` executes the bytes that Vela emitted: an ExecuTorch delegate, or the contents of Vela's
raw ``.npz``. It imports neither torch nor executorch, so whoever compiles TOSA or TFLite with
Vela can use it. What it does not implement it refuses, with ``Unimplemented``.

The model is exact where it was compared: it returns the bits of the TOSA reference model on the
same flatbuffer (``python -m tests.exactness``). It was not checked against silicon or an FVP. It
has no notion of time; ``hazards`` reads the stream for what time could break.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.vela import VelaPayload, decode_vela
from harness.case.arrays import Array
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.machine import execute
from harness.ethosu.records import StreamError, StreamIssue, Unimplemented

__all__ = ["StreamError", "StreamIssue", "Unimplemented", "run"]


def run(payload: bytes | Mapping[str, Array], inputs: Sequence[Array], accelerator: str) -> list[Array]:
    """Execute a payload on one set of inputs and return its outputs.

    :param payload: the bytes of an ExecuTorch delegate, or what ``numpy.load`` returns for the
        ``.npz`` that ``vela --output-format raw`` writes.
    :param inputs: integer arrays in the order, shape and dtype of the TOSA graph's inputs (of
        those that Vela kept: it drops inputs that nothing reads).
    :param accelerator: as Vela spells it: ``ethos-u55-128``, ``ethos-u85-256``, …
    :returns: one array for each output, in TOSA order. The payload stores shapes as six sizes with
        ones in front; those are taken off as far as the inputs' rank allows. Integers are signed
        (``.view(numpy.uint8)`` where the graph says unsigned).
    :raises BadInput: the payload is damaged, or an input does not fit.
    :raises StreamError: the stream cannot be executed; ``Unimplemented`` if only the model cannot.
    """
    decoded: VelaPayload = payload_of_npz(payload) if isinstance(payload, Mapping) else decode_vela(payload)
    execution = execute(decoded, inputs, accelerator_named(accelerator))
    if execution.outputs is None:
        assert execution.stopped is not None
        raise execution.stopped
    rank = max((array.ndim for array in inputs), default=0)
    return [_unpadded(output, rank) for output in execution.outputs]


def _unpadded(output: Array, rank: int) -> Array:
    """Without leading ones, but not below ``rank`` axes."""
    shape = list(output.shape)
    while len(shape) > max(rank, 1) and shape[0] == 1:
        shape.pop(0)
    return output.reshape(shape)
