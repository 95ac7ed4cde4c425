"""The real worker, in which some cases end badly (``python -m tests.chaos_worker``).

``ARMDIFF_CHAOS`` maps a case's digest to how: ``segfault`` (a store to address 0 in native code), ``exit``
(``_exit(7)``), ``hang`` (holds on for an hour), ``hog`` (takes memory until it is stopped).
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.workers import case_run, worker
from harness.workers.protocol import CaseResult, Task

if TYPE_CHECKING:
    from harness.compat.warm.stage_cache import WorkerCache
    from harness.triage.proving import Remembered


def segfault() -> None:
    ctypes.memset(0, 1, 1)


def hog() -> None:
    held = []
    while True:
        held.append(bytearray(b"x" * (64 << 20)))
        time.sleep(0.02)


WAYS: dict[str, Callable[[], object]] = {
    "segfault": segfault,
    "exit": lambda: os._exit(7),
    "hang": lambda: time.sleep(3600),
    "hog": hog,
}


def main() -> None:
    planted: dict[str, str] = json.loads(os.environ.get("ARMDIFF_CHAOS", "{}"))
    run = case_run.run_task

    def run_or_die(
        task: Task,
        announce: Callable[[str], None],
        cache: WorkerCache | None = None,
        remembered: Remembered | None = None,
        begins: Callable[[str], None] = lambda name: None,
    ) -> CaseResult:
        way = planted.get(Path(task.case).stem)
        if way is not None:
            announce("lower")
            WAYS[way]()
        return run(task, announce, cache, remembered, begins)

    case_run.run_task = run_or_die
    worker.main()


if __name__ == "__main__":
    main()
