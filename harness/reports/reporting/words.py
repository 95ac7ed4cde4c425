"""How a report writes numbers, moments and names: short, in one spelling on every page."""

from __future__ import annotations

import datetime

from harness.case.aten import GETITEM

STATES = {"done": "ended", "interrupted": "was interrupted", "running": "did not end"}
"""A run's state, after "it"."""


def compact(value: float) -> str:
    """A number in few characters: 0.35, 8, 250, 12.5k, 17M."""
    for limit, unit, scale in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e4, "k", 1e3)):
        if abs(value) >= limit:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """``4.2 s``, ``42 s``, ``9 min 10 s``, ``44 min``, ``1 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != whole else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def moment(seconds: float) -> str:
    """Seconds since the epoch as ``2026-11-21 18:02 UTC``."""
    try:
        found = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
    return f"{found:%Y-%m-%d %H:%M} UTC"


def operator_name(operator: str) -> str:
    """An ATen overload without its namespace, and without ``default``: ``aten.conv2d.default`` is ``conv2d``."""
    if operator == GETITEM:
        return "getitem"
    return operator.removeprefix("aten.").removesuffix(".default") if "." in operator else operator
