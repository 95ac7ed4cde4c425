"""Take TOSA flatbuffers and Vela payloads out of a lowering while it runs.

The flatbuffer that Vela compiles exists only inside the backend: ``TOSABackend`` hands it over
in memory, and the intermediate-artifacts folder keeps one file when there are several delegates.
So the two functions that see it are wrapped for the length of one lowering:
``ethosu.backend.vela_compile(tosa_flatbuffer, …)`` (seen in 1.1.0 to 1.5.1; it returns bytes up
to 1.4.x and a ``VelaCompileResult`` in 1.5.1) and nothing for plain TOSA, whose delegates hold
the flatbuffer themselves.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from executorch.backends.arm.ethosu import backend as ethosu_backend


@dataclass
class Captured:
    """What Vela was given and what it returned, in call order."""

    tosa_of_payload: dict[bytes, bytes] = field(default_factory=dict)
    vela_seconds: float = 0.0


@contextmanager
def captured_payloads(announce: Callable[[str], None]) -> Iterator[Captured]:
    """Collect (TOSA flatbuffer, payload) pairs of every Ethos-U delegate lowered inside."""
    captured = Captured()
    original = ethosu_backend.vela_compile

    def vela_compile(tosa_flatbuffer: bytes, *args: Any, **kwargs: Any) -> Any:
        announce("vela")
        started = time.perf_counter()
        result = original(tosa_flatbuffer, *args, **kwargs)
        captured.vela_seconds += time.perf_counter() - started
        payload = getattr(result, "processed_bytes", result)
        captured.tosa_of_payload[bytes(payload)] = bytes(tosa_flatbuffer)
        announce("lower")
        return result

    ethosu_backend.vela_compile = vela_compile
    try:
        yield captured
    finally:
        ethosu_backend.vela_compile = original
