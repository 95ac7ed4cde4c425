"""tosa-tools: the classes of the flatbuffer schema, and the reference model in this process.

Both are imported when they are asked for, since readers of artifacts import this module.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.case.arrays import Array


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
