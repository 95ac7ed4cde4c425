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

from harness.divergence import DelegateComparison
from harness.ethosu.records import StreamIssue
from harness.judging import first_of_each
from harness.observation import Mismatch, Observation, Oracle
from harness.unjudged.execution import of_streams
from oracles import buffers

VELA = "Vela"


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch for each delegate, kind and operation."""
    compared: dict[str, DelegateComparison] = observation.probes.get("streams", {})
    found = [
        mismatch
        for delegate, comparison in compared.items()
        for mismatch in first_of_each(
            (_mismatch(delegate, issue) for issue in comparison.issues),
            lambda mismatch: (mismatch.kind, mismatch.signature, mismatch.information),
        )
    ]
    stopped = {
        delegate: comparison
        for delegate, comparison in compared.items()
        if comparison.stopped and not comparison.unimplemented and not comparison.issues
    }
    damaged = any(comparison.damaged for comparison in stopped.values())
    told = [mismatch.message for mismatch in buffers.judge(observation)] if damaged else []
    return found + [
        _stopped(delegate, comparison.stopped)
        for delegate, comparison in stopped.items()
        if comparison.stopped and not (comparison.damaged and any(f"{delegate} (" in text for text in told))
    ]


def _mismatch(delegate: str, issue: StreamIssue) -> Mismatch:
    place = "" if issue.step is None else f" operation {issue.step}"
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
        message=f"{delegate}:{place} {issue.operation}{at}: {issue.message}",
        measured=measured,
        signature=issue.operation,
        information=not issue.certain,
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


ORACLE = Oracle("stream", judge, lambda observation, _: of_streams(observation))
