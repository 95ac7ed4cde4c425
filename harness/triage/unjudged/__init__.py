"""What no oracle could judge of a case, so that a green verdict never stands for what was not looked at.

Every oracle says for itself what it could not judge (``Oracle.unjudged``), as data: a pure function of the
observation and of the oracle's own mismatches. ``envelopes`` finds outputs whose envelope claims nothing,
``execution`` what did not run or was refused, and ``counting`` adds up and tells.

An output counts as soon as a part of it was not judged; how large the part is, is said beside it. What concerns
a delegate counts for all outputs of its program, because any of them may depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.evidence.observation import Mismatch, Observation, Unjudged, oracles


def unjudged(observation: Observation, mismatches: Sequence[Mismatch]) -> tuple[Unjudged, ...]:
    """What the oracles could not judge of an observation.

    :param mismatches: what they said of it.
    """
    return tuple(
        item
        for oracle in oracles().values()
        if oracle.unjudged is not None
        for item in oracle.unjudged(observation, [found for found in mismatches if found.oracle == oracle.name])
    )
