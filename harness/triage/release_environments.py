"""The lines of the release table on this machine: an environment for each, made and removed if asked for.

An environment is a Python interpreter with the line's packages and armdiff. The installed line is the
running interpreter's; others are tox environments of the checkout (``.tox/et120``) or given by hand
(``--env et120=/path/to/python``). With ``make`` a missing one is created by tox, used and removed, one
at a time: an older line brings several gigabytes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.case.errors import BadInput, CannotRun
from harness.case.interrupts import communicated
from harness.compat.releases import LINES, release_line

OLDEST_FIRST = tuple(reversed(LINES))
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environments:
    """Where to find each line.

    :param given: line -> interpreter, as told by the user.
    :param make: create missing ones with tox, and remove them afterwards.
    :param report: called with a line of progress.
    """

    given: Mapping[str, Path]
    make: bool
    report: Callable[[str], None]

    @contextmanager
    def python(self, line: str) -> Iterator[Path | None]:
        """The interpreter of a line, or None if it is neither there nor to be made.

        :raises CannotRun: tox is missing, or cannot make it.
        """
        found = self._found(line)
        if found is not None or not self.make:
            yield found
            return
        folder = _CHECKOUT / ".tox" / line
        self.report(f"{line}: tox makes {folder} (several gigabytes, a few minutes)")
        try:
            _run_tox(line)
            yield folder / "bin" / "python"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _found(self, line: str) -> Path | None:
        if line == release_line():
            return Path(sys.executable)
        candidates = (self.given.get(line), _CHECKOUT / ".tox" / line / "bin" / "python")
        return next((item for item in candidates if item is not None and item.exists()), None)


def _run_tox(line: str) -> None:
    tox = shutil.which("tox") or _CHECKOUT / ".tox" / "bootstrap" / "bin" / "tox"
    if not Path(tox).exists():
        raise CannotRun("tox is not installed; run the README's first command, or give --env LINE=PYTHON")
    # --notest would leave out what the line seed installs behind its dependencies
    status, output, errors = _run([str(tox), "run", "-e", line, "-x", f"testenv:{line}.commands=python --version"])
    if status:
        last = (output + errors).strip().splitlines()[-1:]
        raise CannotRun(f"tox cannot make the environment {line}: {' '.join(last)}; try 'tox run -e {line}'")


def _run(words: Sequence[str]) -> tuple[int, str, str]:
    """Run a program in the checkout, in a session of its own: exit status, standard output and error."""
    process = subprocess.Popen(
        words, cwd=_CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        output, errors = communicated(process)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # its workers die with it
        process.communicate()
        raise
    return process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")


def replayed(python: Path, paths: Sequence[Path], jobs: int) -> dict[str, Any]:
    """The JSON of ``armdiff replay`` in another environment.

    :raises CannotRun: it does not run there.
    """
    with tempfile.TemporaryDirectory(prefix="armdiff-line-") as folder:
        file = Path(folder, "replay.json")
        words = ["-m", "harness.cli", "replay", *map(str, paths), "--jobs", str(jobs), "--json", str(file)]
        status, _, errors = _run([str(python), *words])
        if not file.exists():
            last = errors.strip().splitlines()[-1:] or [f"exit status {status}"]
            raise CannotRun(f"{python}: armdiff replay does not run there: {last[0]}; install armdiff in it")
        data: dict[str, Any] = json.loads(file.read_text())
        return data


def read_environments(words: Sequence[str]) -> dict[str, Path]:
    """``--env LINE=PYTHON`` options.

    :raises BadInput: an unknown line, or no interpreter there.
    """
    found = {}
    for word in words:
        line, _, path = word.partition("=")
        if line not in LINES:
            raise BadInput("--env", f"{line!r} is no release line", f"use one of {', '.join(LINES)}")
        if not Path(path).is_file():
            raise BadInput("--env", f"{path!r} is no interpreter", f"write for example {line}=.tox/{line}/bin/python")
        found[line] = Path(path)
    return found
