"""``constants``: every constant of the flatbuffer is the value that the quantized graph implies.

Matching is by provenance: a weight or bias by the convolution that reads it and the start node
which that descends from; any other constant by its name, which begins with the start node that
was folded (``aten_cat_default_pre_computed``). Exact codes are expected, in the exact layout for
weights and biases; a folded value may have been reshaped, permuted or repeated. RESCALE
parameters, zero points and TABLEs are the ``qparams`` oracle's. The constants that a VGF payload holds must be those
of the flatbuffer.

What could not be matched is reported as such, for information, with the count of what was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vgf import MAGIC, decode_vgf
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.evidence.inspection.analysis import Analysis, analyse
from harness.evidence.inspection.blame import SERIALIZER, constant_blame, literals_blame
from harness.evidence.inspection.constants import JudgedConstant, judged_constants, lost_constants
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import DelegateRecord, Mismatch, Observation, Oracle, Unjudged
from harness.evidence.references import RUNTIMES, VGF, first_of_each
from harness.evidence.vgf_payload import foreign_constants
from harness.triage.unjudged.execution import outputs_of

NAME = "constants"
UNMATCHED = "unmatched"
SHOWN = 4


def judge(observation: Observation) -> list[Mismatch]:
    """Wrong constants, one mismatch a delegate and kind; then what had no match."""
    found: list[Mismatch] = []
    record = observation.lowering
    for delegate in record.delegates:
        if delegate.trace is not None:
            found += [
                _lost(delegate.name, name, text) for name, text in lost_constants(delegate.trace, record.reference)
            ]
        found += _of_payload(delegate)
        try:
            analysis = analyse(delegate)
        except BadInput:
            continue  # ``buffers`` reports damaged artifacts
        if analysis is not None:
            found += _judge(analysis)
    return found


def _of_payload(delegate: DelegateRecord) -> Iterator[Mismatch]:
    """Constants of a VGF payload that its TOSA graph does not have."""
    if delegate.payload[:4] != MAGIC or delegate.tosa is None:
        return
    try:
        block, payload = decode_tosa(delegate.tosa).main, decode_vgf(delegate.payload)
    except BadInput:
        return  # ``buffers`` reports damaged artifacts
    if foreign := foreign_constants(block, payload):
        more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        yield Mismatch(
            NAME,
            "payload constant differs",
            f"{delegate.name}: {len(foreign)} of {counted_as(len(payload.constants), 'constant')} of its VGF payload "
            f"are none of the TOSA graph that was converted: {', '.join(foreign[:SHOWN])}{more}",
            stage="vgf",
            pass_name=RUNTIMES[VGF],
            measured={"foreign": len(foreign), "constants": len(payload.constants)},
        )


def _judge(analysis: Analysis) -> Iterator[Mismatch]:
    judged = list(judged_constants(analysis))
    wrong = (_mismatch(analysis, item) for item in judged if item.verdict == "wrong")
    yield from first_of_each(wrong, lambda mismatch: mismatch.kind)
    unmatched = [item for item in judged if item.verdict == "unmatched"]
    if unmatched:
        names = ", ".join(f"{item.tensor} ({item.message})" for item in unmatched[:SHOWN])
        more = f" and {len(unmatched) - SHOWN} more" if len(unmatched) > SHOWN else ""
        yield Mismatch(
            oracle=NAME,
            kind=UNMATCHED,
            stage="lower",
            message=f"{analysis.delegate.name}: {len(unmatched)} of {len(judged)} constants have no counterpart in the "
            f"quantized graph: {names}{more}",
            measured={"unmatched": len(unmatched), "constants": len(judged)},
            information=True,
        )


def _mismatch(analysis: Analysis, item: JudgedConstant) -> Mismatch:
    start = analysis.trace.start.nodes.get(item.origin or "")
    return Mismatch(
        oracle=NAME,
        kind=item.kind,
        stage="lower" if item.blame != "quantizer" else "convert",
        pass_name=item.blame or _blame(item, analysis),
        message=f"{analysis.delegate.name}: constant {item.tensor}"
        + (f", for {start.name} ({start.target})" if start is not None else "")
        + f": {item.message}",
        measured=item.measured,
        signature=start.target if start is not None else "",
        place=tosa_place(analysis.block, [item.tensor], {}),
        node=analysis.trace.start.call(item.origin or ""),
    )


def _blame(item: JudgedConstant, analysis: Analysis) -> str:
    """The pass that made the constant; for one that the serializer makes from a node's literals, that node's."""
    if item.tensor in analysis.trace.last.nodes:
        return constant_blame(item.tensor, analysis.trace)
    reader = next(iter(analysis.block.readers(item.tensor)), None)
    node = analysis.trace.last.nodes.get(reader.outputs[0]) if reader is not None else None
    return literals_blame(node, analysis.trace) if node is not None else SERIALIZER


def _lost(delegate: str, name: str, text: str) -> Mismatch:
    return Mismatch(
        oracle=NAME,
        kind="quantized tensor altered",
        stage="lower",
        message=f"{delegate}: {name} {text}",
        pass_name="to_edge",
    )


def unjudged(observation: Observation, found: Sequence[Mismatch]) -> Iterator[Unjudged]:
    """Constants without a counterpart, and delegates that have nothing to look at."""
    outputs = outputs_of(observation.case)
    for mismatch in found:
        if mismatch.kind == UNMATCHED:
            parts, of = (int(mismatch.measured[name]) for name in ("unmatched", "constants"))
            yield Unjudged(
                what="unmatched constants",
                why="constants have no counterpart in the quantized graph",
                outputs=outputs,
                parts=parts,
                of=of,
                unit="constants",
            )
    for delegate in observation.lowering.delegates:
        if delegate.tosa is None or delegate.trace is None:
            why = f"{delegate.backend}: qparams and constants need its flatbuffer and the graphs between the passes"
            yield Unjudged(what="qparams and constants", why=why, outputs=outputs)


ORACLE = Oracle(
    NAME,
    judge,
    unjudged,
    coarse=True,
    lowered=True,
    rank=6,
    expected="Every constant of the compiled graph is the value that the quantized module implies.",
    wrong="gets other constants",
)
