"""``inside``: values inside the compiled program against what rounding allows, piece by piece.

Behind many operators rounding may have come to any code, and ``numeric`` judges nothing of such an output. The
``inside`` probe lowers the quantized graph again, with values inside as outputs. Each is held against an envelope that
starts at the last values that the program itself computed, so a wrong operator is seen where it stands, and the
outputs are judged by their last piece.

The program must return the case's own outputs bit for bit; then what it computes inside is what the case's computes,
as far as that can be seen. It was made by hand, so the message says so.
"""

from __future__ import annotations

from dataclasses import replace

from harness.evidence.observation import Mismatch, Observation, Oracle
from harness.pipeline.probes.results import Pieces
from oracles.numeric import ORACLE as NUMERIC

HEAD = "with values inside as outputs (a twin made by hand, equal in its outputs): "


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch a value and kind, about its worst element."""
    pieces = observation.probes.get("inside")
    if not isinstance(pieces, Pieces) or observation.failure is not None:
        return []
    return [_told(pieces, item) for item in NUMERIC.judge(pieces.seen(observation))]


def _told(pieces: Pieces, found: Mismatch) -> Mismatch:
    """What ``numeric`` says of an output, of the value that it is."""
    measured = dict(found.measured)
    output, run = int(measured.pop("output")), int(measured["input"])
    measured["input"] = pieces.inputs[run]
    message = found.message.replace(f" input {run}: ", f" input {pieces.inputs[run]}: ", 1)
    operator, name = "", f"output {output}"
    if output >= pieces.outputs:
        node, operator = pieces.cuts[output - pieces.outputs]
        name = f"{node} ({operator})"
        measured["value"] = node
    message = message.replace(f"output {output} ", f"{name} ", 1)
    return replace(found, oracle="inside", message=f"{HEAD}{message}", measured=measured, signature=operator)


ORACLE = Oracle(
    "inside",
    judge,
    values=True,
    coarse=True,
    probed=True,
    smaller="numeric",
    rank=1,
    expected="Each operator of the compiled program returns what it returns in the quantized module, up to rounding.",
)
