"""Processor time, which does not depend on what else the machine does."""

from __future__ import annotations

import resource


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    return _seconds(resource.RUSAGE_SELF) + children_seconds()


def children_seconds() -> float:
    """Of the children that this process waited for."""
    return _seconds(resource.RUSAGE_CHILDREN)


def _seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
