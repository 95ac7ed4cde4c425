"""What a comparison of a payload with its TOSA graph says, as mismatches of the oracles ``numeric`` and ``stream``.

The oracles call this for the delegates of a lowering, the Vela engine for programs without PyTorch, so that both name
kinds, places and buckets alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.case.place import Fact, Place
from harness.case.traits import TOSA_PICKING
from harness.ethosu.records import StreamIssue
from harness.evidence.agreement import DIFFERS_FROM_TOSA
from harness.evidence.inspection.origins import call_made
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import DelegateRecord, Mismatch
from harness.evidence.references import MODEL, TOSA, first_of_each
from harness.locate.divergence import DelegateComparison, Origin, WrongOutput

VELA = "Vela"


def wrong_values(delegate: str, comparison: DelegateComparison, record: DelegateRecord | None) -> list[Mismatch]:
    """One mismatch for each output that is not what the TOSA graph says.

    :param delegate: its name, for the message.
    :param record: its flatbuffer, for the place, and the node of the module that it is about.
    """
    return [_wrong_value(delegate, comparison, output, record) for output in comparison.wrong]


def wrong_stream(delegate: str, comparison: DelegateComparison, record: DelegateRecord | None) -> list[Mismatch]:
    """One mismatch for each kind and operation of issue."""
    return first_of_each(
        (_issue(delegate, issue, comparison, record) for issue in comparison.issues),
        lambda mismatch: (mismatch.kind, mismatch.signature, mismatch.information),
    )


def stopped_stream(delegate: str, problem: str) -> Mismatch:
    """A stream that cannot be executed to its end."""
    return Mismatch(
        oracle="stream",
        kind="cannot be executed",
        stage="run",
        pass_name=VELA,
        message=f"{delegate}: the command stream cannot be executed: {problem}",
        measured={"delegate": delegate},
    )


def _wrong_value(
    delegate: str, comparison: DelegateComparison, output: WrongOutput, record: DelegateRecord | None
) -> Mismatch:
    found, origin = output.difference, output.origin
    return Mismatch(
        oracle="numeric",
        kind=DIFFERS_FROM_TOSA,
        pass_name=VELA,
        legs=(TOSA, MODEL),
        message=f"{delegate}, {found}{_place_of(origin)}",
        measured={
            "delegate": delegate,
            "delegate_output": found.output,
            "distance": found.largest,
            "unit": "units",
            "elements": found.elements,
            "of": found.of,
            "draw": found.draw,
            **({"operation": origin.step} if origin and origin.step is not None else {}),
            **_interval(origin),
        },
        signature=origin.tosa_operator if origin else "",
        detail="\n".join(origin.listing) if origin else "",
        place=_surroundings(record.tosa if record else None, output, comparison),
        node=call_made([origin.tensor], record) if origin and record else "",
    )


def _interval(origin: Origin | None) -> dict[str, int]:
    """The steps that may be to blame, where it is not certain which one is."""
    if origin is None or not origin.doubt or origin.earliest is None or origin.latest is None:
        return {}
    return {"earliest": origin.earliest, "latest": origin.latest}


def _surroundings(tosa: bytes | None, wrong: WrongOutput, comparison: DelegateComparison) -> Place | None:
    """Of the first wrong tensor; where none could be told, of the output."""
    if tosa is None:
        return None
    block, origin = decode_tosa(tosa).main, wrong.origin
    missing = any(issue.kind == "unwritten-output" for issue in comparison.issues)
    facts: dict[str, Fact] = {
        "share": round(wrong.difference.elements / max(wrong.difference.of, 1), 4),
        "certain": 0,
        "unwritten": int(missing),
    }
    if origin is not None:
        facts |= origin.facts
    if origin is not None and origin.tensor:
        return tosa_place(block, [origin.tensor], facts)
    return tosa_place(block, [block.outputs[wrong.difference.output]], {**facts, "told": 0})


def _place_of(origin: Origin | None) -> str:
    """The first operation that differs, in words."""
    if origin is None:
        return ""
    if origin.step is None or origin.offset is None:
        return f"; which operation is wrong first could not be told: {origin.doubt}"
    made = f", which makes {origin.tensor} ({origin.tosa_operator})" if origin.tensor else ""
    doubt = f" ({origin.doubt})" if origin.doubt else ""
    return f"; first wrong: step {origin.step} {origin.operation} at {origin.offset:#06x}{made}{doubt}"


def _tensors(
    comparison: DelegateComparison, issue: StreamIssue, block: TosaBlock, facts: Mapping[str, Fact]
) -> list[str]:
    """The tensors that the step makes; where nothing tells them, what is wrong, or what leaves the delegate."""
    made = [] if issue.step is None else _made_by(issue.step, facts.get("other"), comparison.tensors, block)
    wrong = [output.origin.tensor for output in comparison.wrong if output.origin is not None]
    return made or [*filter(None, wrong)] or [*block.outputs]


def _made_by(step: int, other: Fact | None, tensors: Mapping[int, str], block: TosaBlock) -> list[str]:
    """The tensor that a step makes; where nothing tells, what reads the other step's of a hazard, or the next one that
    something tells, with what it is made of and nothing tells; behind the last of those (a stream that stops early),
    what is computed from it next.
    """
    if step in tensors:
        return [tensors[step]]
    if isinstance(other, int) and other in tensors:
        return [name for reader in block.readers(tensors[other]) for name in reader.outputs]
    found = [tensor for index, tensor in sorted(tensors.items()) if index > step][:1]
    for tensor in found:  # grows as it goes
        producer = block.producers.get(tensor)
        sources = producer.inputs if producer is not None else ()
        untold = (name for name in sources if name in block.producers and name not in tensors.values())
        found += [name for name in untold if name not in found]
    before = [tensor for index, tensor in sorted(tensors.items()) if index < step][-1:]
    return found or [name for tensor in before for name in _computed_next(tensor, block)]


def _computed_next(tensor: str, block: TosaBlock) -> list[str]:
    """Results of the operators that compute from a tensor, at once or through those that only pick and arrange."""
    found: list[str] = []
    for reader in block.readers(tensor):
        further = [_computed_next(name, block) for name in reader.outputs] if reader.op in TOSA_PICKING else []
        found += [name for names in further for name in names] if further else reader.outputs
    return [*dict.fromkeys(found)]


def _issue(
    delegate: str, issue: StreamIssue, comparison: DelegateComparison, record: DelegateRecord | None
) -> Mismatch:
    place, node = None, ""
    if record is not None and record.tosa is not None and issue.certain:
        block = decode_tosa(record.tosa).main
        facts: dict[str, Fact] = {"issue": issue.kind, **dict(issue.seen)}
        if issue.step is not None:
            facts |= comparison.step_facts.get(issue.step, {})
        tensors = _tensors(comparison, issue, block, facts)
        place, node = tosa_place(block, tensors, facts), call_made(tensors, record)
    which = "" if issue.step is None else f" operation {issue.step}"
    at = "" if issue.offset is None else f" at {issue.offset:#06x}"
    measured: dict[str, float | int | str | bool] = {"delegate": delegate}
    if issue.step is not None:
        measured["operation"] = issue.step
    if issue.offset is not None:
        measured["offset"] = issue.offset
    return Mismatch(
        oracle="stream",
        kind=issue.kind,
        stage="run",
        pass_name=VELA,
        message=f"{delegate}:{which} {issue.operation}{at}: {issue.message}",
        measured=measured,
        signature=issue.operation,
        information=not issue.certain,
        place=place,
        node=node,
    )
