"""How much memory a process holds."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


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


def resident(pid: int) -> int:
    """Bytes of a process in memory; 0 if it is gone."""
    return held(pid).resident
