"""Run a program of the host in a process group of its own, with a time limit from outside.

Standard input is empty (a worker's own is the pipe of its frames); standard output and error go to
one file. When the time is over the whole group is killed. An FVP that outlives its worker, because
the worker itself was killed, ends by its own ``--timelimit``.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LARGEST_LOG = 4 << 20
"""Bytes that are read of each end of a run's output."""


def run(
    command: Sequence[str], seconds: float, environment: Mapping[str, str], folder: Path, log: Path
) -> tuple[int | None, str]:
    """Run a command to its end.

    :param folder: its working folder.
    :param log: receives standard output and error.
    :returns: exit status (None: the time was over), and the output without carriage returns.
    :raises OSError: it cannot be started.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return status, _text(log)


def _text(log: Path) -> str:
    with log.open("rb") as file:
        data = file.read(LARGEST_LOG)
        size = log.stat().st_size
        if size > 2 * LARGEST_LOG:
            file.seek(size - LARGEST_LOG)
            data += b"\n[...]\n"
        data += file.read()
    return data.decode(errors="replace").replace("\r", "")
