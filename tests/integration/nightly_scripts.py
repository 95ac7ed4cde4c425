"""Runs the scripts of the nightly job, with stand-ins for the programs that they call."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ARMDIFF = f"{sys.executable} -m harness.cli"
STAND_IN = """#!/bin/sh
echo "$0 $*" >> "$CALLS"
while [ $# -gt 1 ]; do [ "$1" = --out ] && echo started > "$2/run.json"; shift; done
exit "$STATUS"
"""


def script(name, **values):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **{key: str(value) for key, value in values.items()}}
    return subprocess.run([ROOT / ".ci" / "nightly" / name], env=environment, capture_output=True, text=True)


def executable(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file
