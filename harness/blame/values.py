"""Blame for what the value oracles say: from a mismatch to a bracket of passes.

``numeric`` names an output and an evaluation input; ``outputs`` speaks of the order of all of
them. *Right* is what ``numeric`` calls right, on that input.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.agreement import KINDS
from harness.blame.bracket import blamed, bracket_values
from harness.distributions import Array
from harness.judging import reference_leg
from harness.lowering import Lowered
from harness.observation import Mismatch, Observation

_NO_BLAME = ("count", "shape", "dtype", "qmin lost", *KINDS)
"""Kinds that are not wrong values, or no single pass's fault, or say what happened after the passes."""


def blamed_values(mismatch: Mismatch, observation: Observation, lowered: Lowered) -> Mismatch:
    """The mismatch with the pass to blame, if it is about values and names none.

    No pass carries a quantize node's qmin into TOSA: a lost qmin is none's in particular.
    """
    if mismatch.oracle not in ("numeric", "outputs") or mismatch.pass_name or mismatch.kind.startswith(_NO_BLAME):
        return mismatch
    run = mismatch.measured.get("input", 0)
    output = mismatch.measured.get("output") if mismatch.oracle == "numeric" else None
    if not isinstance(run, int) or observation.rounding is None:
        return mismatch
    envelopes = observation.rounding if observation.saturation is None else observation.saturation
    item, allowed = observation.inputs[run], envelopes[run]
    wanted = observation.legs[reference_leg(observation)].outputs[run]
    indices = range(len(wanted)) if not isinstance(output, int) else (output,)

    def right(outputs: tuple[Array, ...]) -> bool:
        from oracles.numeric import compare

        if len(outputs) != len(wanted):
            return False
        for index in indices:
            if outputs[index].shape != wanted[index].shape:
                return False
            domain = observation.lowering.outputs[index].domain
            row = compare(item, index, outputs[index], wanted[index], allowed[index], domain)
            if np.any(row.excess > 0):
                return False
        return True

    return blamed(mismatch, bracket_values(lowered, item.arrays, right))


def unblamed(mismatch: Mismatch) -> Mismatch:
    """The mismatch as it was before its values were bracketed: what one run says without graphs."""
    if mismatch.oracle not in ("numeric", "outputs") or mismatch.kind in KINDS:
        return mismatch
    return replace(mismatch, pass_name=None, last_right=None)
