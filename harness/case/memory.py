"""How much memory a process holds."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def resident(pid: int) -> int:
    """Bytes of a process in memory; 0 if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
