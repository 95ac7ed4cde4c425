"""Take TOSA flatbuffers and Vela payloads out of a lowering while it runs.

The flatbuffer that Vela compiles exists only inside the backend: ``TOSABackend`` hands it over
in memory, and the intermediate-artifacts folder keeps one file when there are several delegates.
So the two functions that see it are wrapped for the length of one lowering:
``ethosu.backend.vela_compile(tosa_flatbuffer, …)`` (seen in 1.1.0 to 1.5.1; it returns bytes up
to 1.4.x and a ``VelaCompileResult`` in 1.5.1) and nothing for plain TOSA, whose delegates hold
the flatbuffer themselves.

Vela writes a summary with its estimates (``OUT_summary_CONFIG.csv``) beside its output, which
``vela_compile`` puts into the folder ``intermediate_path``, and throws away if it is given none. So
it is given one.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executorch.backends.arm.ethosu import backend as ethosu_backend


@dataclass
class Captured:
    """What Vela was given and what it returned, in call order; its summary by the columns' names."""

    tosa_of_payload: dict[bytes, bytes] = field(default_factory=dict)
    summary_of_payload: dict[bytes, dict[str, str]] = field(default_factory=dict)
    vela_seconds: float = 0.0


def _summary(folder: Path) -> dict[str, str] | None:
    """The row of the summary that Vela wrote below a folder; None if it wrote none."""
    for file in folder.rglob("*_summary_*.csv"):
        with file.open(newline="") as text:
            return next(csv.DictReader(text), None)
    return None


@contextmanager
def captured_payloads(announce: Callable[[str], None]) -> Iterator[Captured]:
    """Collect (TOSA flatbuffer, payload) pairs of every Ethos-U delegate lowered inside."""
    captured = Captured()
    original = ethosu_backend.vela_compile

    def vela_compile(tosa_flatbuffer: bytes, *args: Any, **kwargs: Any) -> Any:
        announce("vela")
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="armdiff-vela-") as folder:
            if "intermediate_path" in kwargs and kwargs["intermediate_path"] is None:
                kwargs["intermediate_path"] = folder
            result = original(tosa_flatbuffer, *args, **kwargs)
            summary = _summary(Path(folder))
        captured.vela_seconds += time.perf_counter() - started
        payload = getattr(result, "processed_bytes", result)
        if summary is not None:
            captured.summary_of_payload[bytes(payload)] = summary
        captured.tosa_of_payload[bytes(payload)] = bytes(tosa_flatbuffer)
        announce("lower")
        return result

    ethosu_backend.vela_compile = vela_compile
    try:
        yield captured
    finally:
        ethosu_backend.vela_compile = original
