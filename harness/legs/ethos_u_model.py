"""Ethos-U on armdiff's functional model: has its place here, is not part of this version.

Ethos-U cases are compiled by Vela in every run (a complaint is a ``crash`` finding); executing
the command stream is the next part of the project. Until then the leg is counted as skipped,
with this reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.legs import Leg, Outputs
from harness.sampling import EvaluationInput
from harness.target import Target

if TYPE_CHECKING:
    from harness.lowering import Lowered


def _skip(target: Target) -> str | None:
    if not target.ethos_u:
        return f"{target.name} has no command stream"
    return "this version of armdiff compiles with Vela but does not execute the command stream yet"


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    raise AssertionError("skipped always: see _skip")


LEG = Leg("ethos-u-model", 3, "a later version of armdiff", _skip, _run)
