"""Put the stand-in for an FVP (``tests/fvp_stand_in.py``) where armdiff looks for one."""

import json
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fvp_stand_in import MODES, key_of

SCRIPT = Path(__file__).with_name("fvp_stand_in.py")


def ends(pid):
    """Wait until a process that was killed is gone (or a zombie that nobody collects); False if it lives on."""
    state = Path("/proc") / str(pid) / "stat"
    for _ in range(1000):
        try:
            if state.read_text().rpartition(")")[2].split()[0] in ("Z", "X"):
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@dataclass(frozen=True)
class StandIn:
    """One installed stand-in: a folder with ``bin/<binary>``, an ELF that is none, and its answers."""

    folder: Path
    binary: str = "FVP_Corstone_SSE-300_Ethos-U55"

    def install(self):
        """Write the executable and the ELF."""
        command = " ".join(map(shlex.quote, (sys.executable, str(SCRIPT))))
        (self.folder / "bin").mkdir(parents=True)
        file = self.folder / "bin" / self.binary
        file.write_text(f'#!/bin/sh\nexec {command} "$0" "$@"\n')
        file.chmod(0o755)
        self.elf.write_text("stand-in for a runner ELF\n")
        return self

    @property
    def elf(self):
        return self.folder / "runner.elf"

    @property
    def environment(self):
        """Variables to set: the FVP is on PATH, the runner named for ethos-u55-128 only."""
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "ARMDIFF_FVP_ELF_U55_128": str(self.elf),
            "STAND_IN_FOLDER": str(self.folder),
        }

    def mode(self, word):
        """Choose how the next runs end."""
        assert word in MODES
        (self.folder / "mode").write_text(word)

    def answer(self, inputs, outputs):
        """Prepare the outputs (a tuple of arrays) of a run on inputs (likewise); C order both."""
        key = key_of([np.ascontiguousarray(array).tobytes() for array in inputs])
        place = self.folder / "answers" / key
        place.mkdir(parents=True, exist_ok=True)
        for index, array in enumerate(outputs):
            (place / f"out-{index}.bin").write_bytes(np.ascontiguousarray(array).tobytes())

    @property
    def calls(self):
        """What each run so far was given."""
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def forget_calls(self):
        (self.folder / "calls.jsonl").unlink(missing_ok=True)
