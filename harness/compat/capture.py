"""Take TOSA flatbuffers and the payloads made of them out of a lowering while it runs.

The flatbuffer that a compiler is given exists only inside the backend: ``TOSABackend`` hands it over
in memory, and the intermediate-artifacts folder keeps one file when there are several delegates.
So the functions that see it are wrapped for the length of one lowering:
``ethosu.backend.vela_compile(tosa_flatbuffer, …)`` (seen in 1.1.0 to 1.5.1; it returns bytes up
to 1.4.x and a ``VelaCompileResult`` in 1.5.1), ``vgf.backend.vgf_compile(tosa_flatbuffer, …)`` (seen in
1.4.1 and 1.5.1), and nothing for plain TOSA, whose delegates hold the flatbuffer themselves.

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
from executorch.backends.arm.vgf import backend as vgf_backend


@dataclass
class Captured:
    """What a compiler was given and what it returned, in call order; Vela's summary by the columns' names.

    :ivar seconds: what each compiler took, by the name of its stage.
    :ivar under_way: the TOSA flatbuffer that Vela has not returned from.
    """

    tosa_of_payload: dict[bytes, bytes] = field(default_factory=dict)
    summary_of_payload: dict[bytes, dict[str, str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    under_way: bytes = b""

    def took(self, stage: str, started: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started


class _Uncompiled(bytes):
    """A TOSA flatbuffer in the place of what Vela makes of it: bytes, or from 1.5.1 on an object with these names."""

    external_blocks = ()

    @property
    def processed_bytes(self) -> bytes:
        return bytes(self)


@contextmanager
def uncompiled_payloads() -> Iterator[None]:
    """Delegates that are lowered inside have their TOSA flatbuffers for payloads: no compiler runs."""

    def compile_nothing(tosa_flatbuffer: bytes, *args: Any, **kwargs: Any) -> _Uncompiled:
        return _Uncompiled(tosa_flatbuffer)

    with _compilers(compile_nothing, compile_nothing):
        yield


@contextmanager
def _compilers(vela_compile: Callable[..., Any], vgf_compile: Callable[..., Any]) -> Iterator[None]:
    """Other compilers of Ethos-U and VGF delegates inside."""
    before = ethosu_backend.vela_compile, vgf_backend.vgf_compile
    ethosu_backend.vela_compile, vgf_backend.vgf_compile = vela_compile, vgf_compile
    try:
        yield
    finally:
        ethosu_backend.vela_compile, vgf_backend.vgf_compile = before


def _summary(folder: Path) -> dict[str, str] | None:
    """The row of the summary that Vela wrote below a folder; None if it wrote none."""
    for file in folder.rglob("*_summary_*.csv"):
        with file.open(newline="") as text:
            return next(csv.DictReader(text), None)
    return None


@contextmanager
def captured_payloads(announce: Callable[[str], None]) -> Iterator[Captured]:
    """Collect (TOSA flatbuffer, payload) pairs of every Ethos-U and VGF delegate lowered inside."""
    captured = Captured()
    original, converter = ethosu_backend.vela_compile, vgf_backend.vgf_compile

    def vela_compile(tosa_flatbuffer: bytes, *args: Any, **kwargs: Any) -> Any:
        announce("vela")
        captured.under_way = bytes(tosa_flatbuffer)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="armdiff-vela-") as folder:
            if "intermediate_path" in kwargs and kwargs["intermediate_path"] is None:
                kwargs["intermediate_path"] = folder
            result = original(tosa_flatbuffer, *args, **kwargs)
            summary = _summary(Path(folder))
        captured.took("vela", started)
        captured.under_way = b""
        payload = getattr(result, "processed_bytes", result)
        if summary is not None:
            captured.summary_of_payload[bytes(payload)] = summary
        captured.tosa_of_payload[bytes(payload)] = bytes(tosa_flatbuffer)
        announce("lower")
        return result

    def vgf_compile(tosa_flatbuffer: bytes, *args: Any, **kwargs: Any) -> Any:
        announce("vgf")
        started = time.perf_counter()
        payload = converter(tosa_flatbuffer, *args, **kwargs)
        captured.took("vgf", started)
        captured.tosa_of_payload[bytes(payload)] = bytes(tosa_flatbuffer)
        announce("lower")
        return payload

    with _compilers(vela_compile, vgf_compile):
        yield captured
