"""The third proof in a worker: a finding of Vela's is known by its smallest program, whatever it looks like."""

import msgspec
import pytest

from harness.triage.corpus import default_corpus, read_entry
from harness.triage.known import classified, kind_of_proof
from harness.workers.case_run import run_task
from harness.workers.protocol import Task

ENTRY = read_entry(default_corpus() / "found" / "vela-u55-amax-into-slice")


def told(fingerprints: tuple[str, ...], *, confirm: bool = True, **changes):
    """What the entry's case shows where the entry has no condition: the bug, and the findings of its bucket."""
    bug = msgspec.structs.replace(ENTRY.bug, conditions=(), corrections=(), fingerprints=fingerprints, **changes)
    task = Task(case=str(ENTRY.folder / "case.json"), known=(bug,), probes="none", confirm=confirm)
    result = run_task(task, lambda _: None)
    assert bool(result.proofs) == (confirm and bool(fingerprints)), "processor time of proofs"
    return bug, [item for item in result.findings if item.bucket == ENTRY.bug.bucket]


@pytest.mark.parametrize("operators", [ENTRY.bug.operators, ("softmax",)], ids=["resembling", "new"])
def test_the_smallest_program_proves_it(operators):
    bug, found = told(ENTRY.status.fingerprints, operators=operators)
    assert found
    for item in found:
        assert (item.state, item.entry, kind_of_proof(item)) == ("known", ENTRY.name, "reduction")
        assert item.fingerprint in ENTRY.status.fingerprints
        assert item.proof.startswith("reduced to 2 operators: its smallest program is that of vela-u55-amax-into-slice")
        assert classified(item, (bug,)) == item, "reports judge it anew"
        assert classified(item, ()).state == "new"


@pytest.mark.parametrize(
    ("fingerprints", "confirm"),
    [(("values: x0 int8 [1]; v0 = CLAMP(x0)",), True), ((), True), (ENTRY.status.fingerprints, False)],
)
def test_another_fingerprint_proves_nothing_and_neither_does_a_run_that_confirms_nothing(fingerprints, confirm):
    _, found = told(fingerprints, confirm=confirm)
    assert {item.state for item in found} == {"resembling"}
