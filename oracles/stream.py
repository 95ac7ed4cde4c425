"""``stream``: does the command stream that Vela emitted do anything that it must not do?

Judges what the functional model saw while it executed a payload, and what can be read from the
stream afterwards: accesses outside a region, reads of bytes that nothing wrote, registers used
before they are set, weight and scale streams of the wrong length, overlapping IFM and OFM,
missing waits (hazards), operations emitted twice, outputs that nothing wrote. What depends on a
property of the hardware that no public text settles is information.

One mismatch for each kind, operation and delegate. Vela is to blame: the TOSA graph is right as
far as the other oracles can tell, and the stream is wrong whatever it computes. A payload whose tables
are at fault is left to the ``buffers`` oracle, which reads the same tables, where that sees it.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.case.place import Fact
from harness.ethosu.records import StreamIssue
from harness.evidence.inspection.origins import call_made
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import DelegateRecord, Mismatch, Observation, Oracle
from harness.evidence.references import first_of_each
from harness.locate.divergence import DelegateComparison
from harness.triage.unjudged.execution import of_streams
from oracles.buffers import delegates_at_fault

VELA = "Vela"


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch for each delegate, kind and operation."""
    compared: dict[str, DelegateComparison] = observation.probes.get("streams", {})
    records = {record.name: record for record in observation.lowering.delegates}
    found = [
        mismatch
        for delegate, comparison in compared.items()
        for mismatch in first_of_each(
            (_mismatch(delegate, issue, comparison, records.get(delegate)) for issue in comparison.issues),
            lambda mismatch: (mismatch.kind, mismatch.signature, mismatch.information),
        )
    ]
    stopped = {
        delegate: comparison
        for delegate, comparison in compared.items()
        if comparison.stopped and not comparison.unimplemented and not comparison.issues
    }
    damaged = any(comparison.damaged for comparison in stopped.values())
    told = delegates_at_fault(observation) if damaged else frozenset[str]()
    return found + [
        _stopped(delegate, comparison.stopped)
        for delegate, comparison in stopped.items()
        if comparison.stopped and not (comparison.damaged and delegate in told)
    ]


def _tensors(
    comparison: DelegateComparison, issue: StreamIssue, block: TosaBlock, facts: Mapping[str, Fact]
) -> list[str]:
    """The tensors that the step makes; where nothing tells them, what is wrong, or what leaves the delegate."""
    made = [] if issue.step is None else _made_by(issue.step, facts.get("other"), comparison.tensors, block)
    wrong = [output.origin.tensor for output in comparison.wrong if output.origin is not None]
    return made or [*filter(None, wrong)] or [*block.outputs]


def _made_by(step: int, other: Fact | None, tensors: Mapping[int, str], block: TosaBlock) -> list[str]:
    """The tensor that a step makes; where nothing tells, what reads the other step's of a hazard, or the next one that
    something tells, with what it is made of and nothing tells.
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
    return found


def _mismatch(
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


def _stopped(delegate: str, problem: str) -> Mismatch:
    return Mismatch(
        oracle="stream",
        kind="cannot be executed",
        stage="run",
        pass_name=VELA,
        message=f"{delegate}: the command stream cannot be executed: {problem}",
        measured={"delegate": delegate},
    )


ORACLE = Oracle(
    "stream",
    judge,
    lambda observation, _: of_streams(observation),
    coarse=True,
    probed=True,
    rank=1,
    form="stream",
    expected="Vela's command stream reads and writes only what belongs to it, and each operation once.",
    wrong="gets a command stream that is wrong",
)
