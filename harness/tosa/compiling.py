"""Vela on a program: its payload, or why there is none."""

from __future__ import annotations

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.vela import VelaPayload
from harness.compat.vela_compiler import VelaRefusal, compile_tosa
from harness.tosa.program import Program
from harness.tosa.translating import to_flatbuffer

__all__ = ["VelaRefusal", "compile_flatbuffer", "compile_program"]


def compile_program(program: Program, accelerator: str) -> VelaPayload:
    """Compile in this process. Vela can end it: ``harness.tosa.engine`` does this in children.

    :param accelerator: as Vela spells it; ExecuTorch's system configuration and memory mode go with it.
    :raises VelaRefusal: Vela does not take the program.
    """
    return compile_flatbuffer(to_flatbuffer(program), accelerator)


def compile_flatbuffer(tosa: bytes, accelerator: str) -> VelaPayload:
    """As ``compile_program``, from bytes."""
    return payload_of_npz(compile_tosa(tosa, accelerator))
