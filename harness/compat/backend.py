"""Upstream's TOSA backend for one delegate: stop a lowering before it, and run it alone.

``TOSABackend._preprocess`` (seen in 1.1.0 to 1.5.1) runs the Arm passes and the serializer on a delegate's program.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executorch.backends.arm.tosa.backend import TOSABackend
from executorch.exir.backend.backend_details import PreprocessResult


@contextmanager
def stopped_before() -> Iterator[list[tuple[Any, Any]]]:
    """Lowerings inside give empty delegates; the list gets each one's program before its passes and specification."""
    opened: list[tuple[Any, Any]] = []

    def keep(program: Any, specification: Any) -> Any:
        opened.append((copy.deepcopy(program), specification))
        return PreprocessResult(processed_bytes=b"")

    preprocess = TOSABackend._preprocess
    TOSABackend._preprocess = staticmethod(keep)
    try:
        yield opened
    finally:
        TOSABackend._preprocess = staticmethod(preprocess)


def serialized(program: Any, specification: Any) -> bytes:
    """The flatbuffer of a delegate, whose program the passes change."""
    return bytes(TOSABackend._preprocess(program, specification).processed_bytes)
