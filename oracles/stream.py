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

from harness.evidence.observation import Mismatch, Observation, Oracle
from harness.locate.delegate_mismatches import stopped_stream, wrong_stream
from harness.locate.divergence import DelegateComparison
from harness.triage.unjudged.execution import of_streams
from oracles.buffers import delegates_at_fault


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch for each delegate, kind and operation."""
    compared: dict[str, DelegateComparison] = observation.probes.get("streams", {})
    records = {record.name: record for record in observation.lowering.delegates}
    found = [
        mismatch
        for delegate, comparison in compared.items()
        for mismatch in wrong_stream(delegate, comparison, records.get(delegate))
    ]
    stopped = {
        delegate: comparison
        for delegate, comparison in compared.items()
        if comparison.stopped and not comparison.unimplemented and not comparison.issues
    }
    damaged = any(comparison.damaged for comparison in stopped.values())
    told = delegates_at_fault(observation) if damaged else frozenset[str]()
    return found + [
        stopped_stream(delegate, comparison.stopped)
        for delegate, comparison in stopped.items()
        if comparison.stopped and not (comparison.damaged and delegate in told)
    ]


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
