"""Processor time, which does not depend on what else the machine does."""

from __future__ import annotations

import resource


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)
