"""How much memory a process holds, and which cases are large."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.case.case import Case

LARGE = 64
"""Nodes of the largest case that keeps a copy of its delegates' graphs after every pass, in case that a value is wrong.

Of a network of 200 operators these copies are 180 MiB, so it is lowered once more if somebody asks; and the garbage of
its lowering is 90 MiB, which goes before anything is executed.
"""


@dataclass(frozen=True)
class Held:
    """Bytes of a process in memory.

    :param own: those that no file backs. The others are pages of libraries: processes share them, and the kernel takes
        them back when it needs room.
    """

    resident: int
    own: int


def held(pid: int) -> Held:
    """What a process holds; nothing if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        resident, shared = (int(pages) for pages in Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        return Held(*(pages * os.sysconf("SC_PAGE_SIZE") for pages in (resident, resident - shared)))
    return Held(0, 0)


def most_held(pid: int) -> int:
    """The most bytes that a process ever had resident (``VmHWM``); 0 if it is gone, or the kernel does not say."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def is_large(case: Case) -> bool:
    """Does a case hold hundreds of MiB if nothing is let go of?"""
    return len(case.graph.nodes) > LARGE


def resident(pid: int) -> int:
    """Bytes of a process in memory; 0 if it is gone."""
    return held(pid).resident
