"""Every planted fault is caught by its own oracle with the right blame, and its clean twin gives nothing."""

import functools
from unittest import mock

import pytest

from harness.pipeline.lowering import StageClock
from harness.pipeline.probes import scheduled
from harness.workers.observing import observe
from tests.faults import kill_table
from tests.faults.fault import patched
from tests.faults.plant import FAULTS

NAMES = [fault.name for fault in FAULTS]


@functools.cache
def row(name):
    """The row of a fault, computed once for all tests. Where its oracle has a probe of its own, no other one runs."""
    fault = FAULTS[NAMES.index(name)]

    def own(case, mode):
        found = scheduled(case, mode)
        return tuple(probe for probe in found if probe.name == fault.oracle) or found

    with mock.patch("harness.workers.observing.scheduled", own):
        return kill_table.row(fault)


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_caught_by_its_own_oracle(name):
    item = row(name)
    assert item.own is not None, [(found.oracle, found.kind, found.message) for found in item.found]


@pytest.mark.parametrize("name", NAMES)
def test_the_fault_s_own_place_is_blamed(name):
    assert row(name).blame_right, f"{row(name).blamed} was blamed, not {row(name).fault.blame}"


@pytest.mark.parametrize("name", NAMES)
def test_the_clean_twin_gives_nothing(name):
    assert [(found.oracle, found.kind, found.message) for found in row(name).clean] == []


def test_a_crash_names_pass_stage_and_upstream_frame():
    [fault] = [fault for fault in FAULTS if fault.name == "pass-raises"]
    with fault.planted():
        seen = observe(fault.case, StageClock())
    assert seen.failure is not None
    assert seen.failure.stage == "lower"
    assert seen.failure.pass_name == "InsertTableOpsPass"
    assert seen.failure.type == "ValueError"


def test_every_oracle_has_a_planted_fault():
    from harness.evidence.observation import oracles

    assert {fault.oracle for fault in FAULTS} == set(oracles())


def test_a_patch_leaves_no_trace():
    class Base:
        inherited = 1

    class Owner(Base):
        @staticmethod
        def fixed():
            return 1

    before = dict(vars(Owner))
    with patched(Owner, "fixed", None), patched(Owner, "inherited", 2):
        assert Owner.fixed is None
        assert Owner.inherited == 2
    assert dict(vars(Owner)) == before
