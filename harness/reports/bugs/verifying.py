"""Run a repro script in a fresh process, as somebody else would: elsewhere, and without armdiff on its path.

``python -I`` ignores ``PYTHONPATH`` and the current folder. What the script wrote beside its output (TOSA files)
is taken along.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from harness.case.interrupts import communicated

SHOWS, DOES_NOT_SHOW, NEEDS_ENGINE = "shows", "does not show", "needs an Ethos-U engine"
SCRIPT, VALUES = "repro.py", "values.npz"
"""A script, and the arrays beside it that are too large to be written out in it."""
IO_FILE = "_io.npz"
"""Ends the name of a file with inputs of a TOSA graph and its outputs on the reference model."""
TIME_LIMIT = 300.0
"""Seconds that a script may take: some ten to import and a few to lower, on a machine that does much else besides."""

_STATUSES = {0: DOES_NOT_SHOW, 3: NEEDS_ENGINE}
_NOISE = re.compile(
    r"Warning|^\s*warnings?\.warn|^\[|^I \d|^[EIW]\d{4} |^INFO|^WARNING|^Failed to load torchao|tlparse"
    r"|^#\d+ |^0x[0-9a-f]+ in |^Undefined command|^set print thread-events|^\d+\t\.\./|^Convenience variable"
    r"|^Invalid thread ID"
)
_GDB = re.compile(r'^warning: File "\S*-gdb\.py" auto-loading.*?^Using host libthread_db .*?\n', re.M | re.S)
"""The reference model asks gdb for a stack, which has much to say about itself."""
_LINES = 40


@dataclass(frozen=True)
class Verified:
    """What a script did.

    :param outcome: ``shows``, ``does not show``, ``needs an Ethos-U engine``, or why that could not be told.
    :param output: its standard output and error, without paths of this machine.
    :param files: TOSA files that it wrote, and inputs with the outputs that are right, by name.
    :param programs: what Vela made of each TOSA file (``.npz``), by the file's stem.
    """

    outcome: str
    output: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    programs: dict[str, bytes] = field(default_factory=dict)


def verify_repro(folder: Path, python: str = sys.executable, timeout: float = TIME_LIMIT) -> str:
    """Run ``repro.py`` of a folder in a fresh process: ``shows``, ``does not show``, or a reason.

    :param timeout: seconds.
    """
    return run_repro(folder, python, timeout).outcome


def run_repro(folder: Path, python: str = sys.executable, timeout: float = TIME_LIMIT) -> Verified:
    """The same, with what the script printed and wrote."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(prefix="repro-") as scratch:
        for name in (SCRIPT, VALUES):
            if (folder / name).exists():
                shutil.copy(folder / name, scratch)
        child = subprocess.Popen(
            [python, "-I", str(Path(scratch, SCRIPT))],
            cwd=scratch,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            raw, _ = communicated(child, timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # a script may have a child of its own
            child.communicate()
            return Verified(f"ran longer than {timeout:g} s")
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        output = raw.decode(errors="replace")
        written = [*Path(scratch).glob("*.tosa"), *Path(scratch).glob(f"*{IO_FILE}")]
        files = {file.name: file.read_bytes() for file in sorted(written)}
        made = sorted(Path(scratch).glob("*_vela/*_vela.npz"))
        programs = {file.name.removesuffix("_vela.npz"): file.read_bytes() for file in made}
    said = readable(output, scratch)
    return Verified(outcome_of(child.returncode, output, said), said, files, programs)


def outcome_of(status: int, output: str, said: str = "") -> str:
    """What a script says by its exit status and by what it printed.

    :param said: what it printed, as ``readable`` shows it.
    """
    if status == 1 and "The bug shows" in output:
        return SHOWS
    if status in _STATUSES:
        return _STATUSES[status]
    last = said.splitlines()[-1] if said else "nothing was printed"
    return f"ended with status {status}: {last[:200]}"


def without_paths(text: str, scratch: str = "") -> str:
    """A text with paths that mean something elsewhere.

    :param scratch: the folder in which a script ran.
    """
    text = text.replace(f"{scratch}/", "") if scratch else text
    text = re.sub(r'[^\s"\']*/site-packages/', "", text)
    text = re.sub(r'[^\s"\']*/lib/python3\.\d+/', "", text)
    return re.sub(r"(?<![\w.$:/-])/[\w.+-]+(?:/[\w.+-]+)+/([\w.+-]+)", r"\1", text)


def readable(output: str, scratch: str = "") -> str:
    """What a script printed, in few lines: without warnings and logs, and ``without_paths``."""
    text = _GDB.sub("", without_paths(output, scratch))
    text = re.sub(r"^Original traceback:\n(None\n)?", "", text, flags=re.MULTILINE)
    lines: list[str] = []
    before, told = "", False
    for line in filter(str.strip, text.splitlines()):
        source = line.startswith("  ") and "Warning: " in before  # a warning shows the line that gave it
        again = told and line.rstrip()[:400] in lines  # an error's text ends its traceback as well
        if not source and not again and not _NOISE.search(line):
            lines.append(line.rstrip()[:400])
        before, told = line, told or line.startswith("actual: ")
    if len(lines) > _LINES:
        lines = [*lines[:8], f"… {len(lines) - _LINES} lines", *lines[len(lines) - _LINES + 8 :]]
    return "\n".join(lines)
