"""Every planted fault is caught by its own oracle, and its clean twin gives nothing."""

import pytest

from harness.lowering import StageClock
from harness.running import judge, observe
from tests.faults.plant import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught_by_its_oracle_and_its_clean_twin_passes(fault, observed):
    assert judge(observed(fault.case)) == []
    with fault.planted():
        found = judge(observe(fault.case, StageClock()))
    own = [item for item in found if item.oracle == fault.oracle]
    assert [item.kind for item in own] == [fault.kind], [item.message for item in found]


def test_a_crash_names_pass_stage_and_upstream_frame():
    [fault] = [fault for fault in FAULTS if fault.oracle == "crash"]
    with fault.planted():
        seen = observe(fault.case, StageClock())
    assert seen.failure is not None
    assert seen.failure.stage == "lower"
    assert seen.failure.pass_name == "InsertTableOpsPass"
    assert seen.failure.type == "ValueError"


def test_every_oracle_has_a_planted_fault():
    from harness.registry import oracles

    assert {fault.oracle for fault in FAULTS} == set(oracles())
