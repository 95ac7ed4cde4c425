"""What a case compiles to, as files that a viewer opens: the ``.pte`` and the TOSA flatbuffer of each delegate.

Netron opens both, Model Explorer with Arm's adapters. A bug's folder holds them beside its case. For any other case of
a run ``armdiff replay CASE --keep DIR`` writes them, and a report looks for them in the run's ``files/``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from harness.campaign.run_folder import cannot_write
from harness.workers.pool import Pool
from harness.workers.protocol import EmitTask

PROGRAM, TOSA = ".pte", ".tosa"
KEPT = "files"
"""Where a run keeps the files of its cases."""
ADAPTERS = "model-explorer --extensions=pte_adapter_model_explorer,tosa_adapter_model_explorer"
"""Model Explorer with what it needs for these files.

Sources: https://pypi.org/project/pte-adapter-model-explorer and https://pypi.org/project/tosa-adapter-model-explorer;
that Netron opens both is in its release 9.3.3.
"""


def programs_of(pool: Pool, case: Path, name: str = "", corrections: tuple[str, ...] = ()) -> dict[str, bytes] | str:
    """Compile a case: ``program.pte`` and ``DELEGATE.tosa``, or ``NAME.pte`` and ``NAME.DELEGATE.tosa``.

    :returns: file name -> bytes, or why there is nothing, in one line.
    """
    emitted = pool.emit(EmitTask(case=str(case), corrections=corrections))
    if emitted.problem is not None:
        return emitted.problem
    before = f"{name}." if name else ""
    tosa = {f"{before}{delegate}{TOSA}": data for delegate, data in emitted.tosa.items()}
    return {f"{name or 'program'}{PROGRAM}": emitted.program, **tosa}


def keep(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write files into a folder.

    :raises CannotRun: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise cannot_write(folder, error) from None
    return [folder / name for name in files]


def programs_in(folder: Path, name: str = "") -> list[Path]:
    """The files of a folder that a viewer opens, programs first.

    :param name: only those whose name begins so.
    """
    there = os.path.isdir(folder)  # Path.is_dir raises where a name is odd
    files = sorted(file for file in folder.iterdir() if file.name.startswith(name)) if there else []
    return [file for suffix in (PROGRAM, TOSA) for file in files if file.suffix == suffix]


def netron(path: str) -> str:
    """The command line that opens a file in Netron."""
    return f"netron {shlex.quote(path)}"
