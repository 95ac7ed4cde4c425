"""Findings of the Vela engine: a mismatch with its program, in the words of ``harness.triage``.

The bucket is kind, family and first wrong operator, as for the delegates of a lowering, so that corpus conditions
judge both alike. ``recipe`` tells the width, since some entries speak of int16 only; ``chain`` has TOSA operators.
"""

from __future__ import annotations

import hashlib

from harness.artifacts.tosa import decode_tosa
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import CRASH, Mismatch
from harness.tosa.program import PROGRAM, Program, chain, encode
from harness.tosa.translating import to_flatbuffer
from harness.triage.buckets import NO_OUTPUT, VELA_STAGE, bucket_of
from harness.triage.findings import Finding


def digest(program: Program) -> str:
    """Twelve hex digits that identify a program."""
    return hashlib.sha256(encode(program)).hexdigest()[:12]


def finding_of(mismatch: Mismatch, program: Program, accelerator: str, path: str) -> Finding:
    """Put a mismatch and its program together; ``path`` is the program's file."""
    wide = any(tensor.dtype == "INT16" for tensor in program.tensors if tensor.name in program.inputs)
    return Finding(
        bucket=bucket_of(mismatch, accelerator),
        oracle=mismatch.oracle,
        kind=mismatch.kind,
        target=accelerator,
        legs=mismatch.legs or (),
        stage=mismatch.stage,
        pass_name=mismatch.pass_name,
        message=mismatch.message,
        measured=dict(mismatch.measured),
        recipe="a16w8" if wide else "a8w8",
        case=path,
        detail=mismatch.detail,
        place=mismatch.place,
        chain=tuple(chain(program)),
    )


def death(program: Program, how: str) -> Mismatch:
    """Vela ended the process, hung, or asked for more memory than it may have.

    :param how: the signal's name, ``exit 1``, ``Hang`` or ``OutOfMemory``.
    """
    block = decode_tosa(to_flatbuffer(program)).main
    return Mismatch(
        oracle=CRASH,
        kind="exception",
        stage=VELA_STAGE,
        message=f"{PROGRAM}: Vela ended with {how} while it compiled {' -> '.join(chain(program))}",
        measured={"type": how},
        signature="|".join((how, NO_OUTPUT, "-")),
        place=tosa_place(block, [name for item in program.operators for name in item.outputs], {}),
    )
