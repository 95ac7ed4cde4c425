"""Findings of the Vela engine: a mismatch with its program, in the words of ``harness.triage``.

The bucket is kind, family and first wrong operator, as for the delegates of a lowering, so that corpus conditions
judge both alike. ``recipe`` tells the width, since some entries speak of int16 only; ``chain`` has TOSA operators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from harness.artifacts.tosa import decode_tosa
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import CRASH, Failure, Mismatch
from harness.evidence.signatures import signature
from harness.tosa.program import PROGRAM, Operator, Program, chain, encode
from harness.tosa.translating import to_flatbuffer
from harness.triage.buckets import NO_OUTPUT, VELA_STAGE, bucket_of
from harness.triage.findings import Finding

_RAISED = "RuntimeError"
"""What Vela raises."""
_FRAME = "ethosu.vela.vela:process_regor"
"""Where ExecuTorch sees it: the bucket of a refusal is the same as of a lowering that ends so."""


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
    message = f"Vela ended with {how} while it compiled {' -> '.join(chain(program))}"
    return _stopped(program, message, Failure(VELA_STAGE, how, NO_OUTPUT), program.operators)


def refusal(program: Program, words: str) -> Mismatch:
    """Vela raised, although its list of supported operators promises the program.

    :param words: Vela's own. They may name an operator: ``Non-passthrough operation (Resize) could not run on NPU``.
    """
    message = f"Vela refuses the graph, which its list of supported operators has: {words}"
    named = [item for item in program.operators if f"({item.op.replace('_', '')})" in words.upper()]
    return _stopped(program, message, Failure(VELA_STAGE, _RAISED, words, frame=_FRAME), named or program.operators)


def is_refusal(finding: Finding) -> bool:
    """Is it Vela's refusal of what it lists?"""
    return finding.oracle == CRASH and finding.stage == VELA_STAGE and finding.measured.get("type") == _RAISED


def _stopped(program: Program, message: str, failure: Failure, place: Sequence[Operator]) -> Mismatch:
    """Vela made no payload; the place has these operators."""
    block = decode_tosa(to_flatbuffer(program)).main
    return Mismatch(
        oracle=CRASH,
        kind="exception",
        stage=failure.stage,
        message=f"{PROGRAM}: {message}",
        measured={"type": failure.type},
        signature=signature(failure),
        place=tosa_place(block, [name for item in place for name in item.outputs], {}),
    )
