"""tosa-tools: the classes of the flatbuffer schema, and the reference model in this process.

Both are imported when they are asked for, since readers of artifacts import this module.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.case.arrays import Array

_NO_DEBUGGER = Path(__file__).parent / "no_debugger"


def without_debugger(path: str = "") -> str:
    """A search path (PATH) on which ``gdb`` is a program that does nothing.

    At every error, of an invalid graph too, the reference model forks and asks gdb for a stack, which takes seconds to
    read the symbols of a process with torch. Without any gdb the fork ends as a process does, with all of torch's
    destructors: a second of processor time in a worker (seen in tosa-tools 2026.2.1 to 2026.8.0).
    """
    return os.pathsep.join(filter(None, (str(_NO_DEBUGGER), path)))


def schema(name: str) -> Any:
    """A class of the schema, such as ``Op`` or ``ConvAttribute``; each has a module of its name."""
    return getattr(importlib.import_module(f"tosa.{name}"), name)


def root_of(tosa: bytes) -> Any:
    """The root table of a flatbuffer."""
    return schema("TosaGraph").GetRootAs(tosa, 0)


def run_reference_model(tosa: bytes, arrays: Sequence[Array]) -> tuple[list[Array], str]:
    """Outputs of a graph, and the name of the status; the outputs mean nothing unless it is TOSA_VALID."""
    import tosa_reference_model

    outputs, status = tosa_reference_model.run(
        tosa, [np.ascontiguousarray(array) for array in arrays], initialize_variable_tensor_from_numpy=1
    )
    return list(outputs), str(status.name)
