"""Describe what upstream raised, as data: stage, type, message, and pass, node and frame as far as they show."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any, NamedTuple

import torch

from harness.case.errors import UPSTREAM
from harness.compat.states import operator_name
from harness.evidence.observation import Failure

_PASSES = "executorch.backends.arm._passes"


def failure_of(error: BaseException, stage: str) -> Failure:
    """Describe an exception: its root cause's type, message, pass, node and last upstream frame."""
    place = _place(error.__traceback__)
    while error.__cause__ is not None:  # fx and the pass managers wrap what was raised
        error = error.__cause__
        inner = _place(error.__traceback__)
        place = _Place(*(new or old for new, old in zip(inner, place, strict=True)))
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
    return Failure(stage, type(error).__name__, str(error), place.pass_name, place.frame, detail, place.node)


class _Place(NamedTuple):
    """Where an exception was raised, as far as its frames tell."""

    pass_name: str | None = None
    frame: str | None = None
    node: str | None = None


def _place(trace: TracebackType | None) -> _Place:
    place = _Place()
    for at, _ in traceback.walk_tb(trace):
        module = str(at.f_globals.get("__name__", ""))
        names = at.f_locals
        if module.split(".", 1)[0] in UPSTREAM:
            place = place._replace(frame=f"{module}:{at.f_code.co_name}")
            node = next((names[key] for key in ("node", "n") if isinstance(names.get(key), torch.fx.Node)), None)
            if node is not None:
                place = place._replace(node=f"{node.name} ({operator_name(node.target)})")
        owner: Any = names.get("self")
        if type(owner).__module__.startswith(_PASSES) and type(owner).__name__.endswith("Pass"):
            place = place._replace(pass_name=type(owner).__name__)
    return place
