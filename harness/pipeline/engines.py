"""``--ethos-u-engine model|fvp|both``: which of the two legs that execute the command stream are run.

``default`` (the option not given) runs what exists here: the functional model always, the FVP where
one is installed. An explicit ``fvp`` or ``both`` is a demand: without an FVP for every Ethos-U target
of the run the command ends with exit status 3 instead of being green about what did not run. With
both, the two are compared bit for bit (``harness.evidence.agreement``). Other legs are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from harness.case.errors import CannotRun
from harness.case.target import Target
from harness.evidence.references import FVP, MODEL

EngineChoice = Literal["default", "model", "fvp", "both"]

NOT_ASKED = "not asked for"
"""Begins the reason of a leg that was left out on purpose."""
_LEFT_OUT = {"model": FVP, "fvp": MODEL}


def left_out(leg: str, choice: EngineChoice, target: Target) -> str | None:
    """Why a choice leaves a leg out for a target, or None."""
    if target.ethos_u and _LEFT_OUT.get(choice) == leg:
        return f"{NOT_ASKED}: --ethos-u-engine {choice}"
    return None


def check_engine(choice: EngineChoice, targets: Iterable[Target], missing: Callable[[Target], str | None]) -> None:
    """Refuse an explicit choice that this machine cannot serve.

    :param targets: every target of the run.
    :param missing: what the FVP leg lacks for an Ethos-U target, or None.
    :raises CannotRun: there is no FVP for one of them.
    """
    if choice not in ("fvp", "both"):
        return
    for target in targets:
        reason = missing(target) if target.ethos_u else None
        if reason is not None:
            raise CannotRun(f"--ethos-u-engine {choice}: {reason}; install it, or use --ethos-u-engine model")
