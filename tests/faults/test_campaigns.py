"""Plants among known bugs: a campaign reports them as new and blames them. A few here; tox -e planted runs all."""

import functools
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.compat.releases import installed
from harness.workers.protocol import Task
from tests.faults.campaigns import PLANTS, Row, between, outcome
from tests.faults.payload_plants import at_operations
from tests.forked import Forked
from tests.integration.conftest import sigmoid_case

written_for = pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="written for executorch 1.5.1")
QUICK = ("elementwise-ofm-zero-point", "blockdep", "conv-multiplier", "conv-bias")


@pytest.fixture(scope="module")
def row_of():
    """The row of a plant, computed once, in a process of its own: what makes it fast stays in a process for good."""
    plants = {plant.name: plant for plant in PLANTS}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield functools.cache(lambda name: Row(plants[name], *pool.submit(outcome, name).result()))


@written_for
@pytest.mark.parametrize("name", QUICK)
def test_a_plant_among_known_bugs_is_reported_as_new(name, row_of):
    row = row_of(name)
    assert row.verdict == "new", [(item.bucket, item.state, item.entry, item.proof) for item in row.found]


@written_for
@pytest.mark.parametrize("name", QUICK)
def test_it_is_blamed_and_nobody_else(name, row_of):
    assert set(row_of(name).blamed) == {"right"}
    assert row_of(name).place_right, row_of(name).places


def test_there_are_plants_enough_and_half_of_them_in_the_payload():
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 24
    assert sum(plant.in_payload for plant in PLANTS) >= 12


def test_a_register_is_changed_for_its_operation_only():
    zero, one = {"value": 0}, {"value": 1}
    plant = at_operations(("OP_CONV",), "SET_OFM_ZERO_POINT", "value", lambda value: value + 1)
    stream = [("SET_OFM_ZERO_POINT", zero), ("OP_CONV", {}), ("OP_ELEMENTWISE", {})]
    assert plant(stream, None) == [
        ("SET_OFM_ZERO_POINT", zero),
        ("SET_OFM_ZERO_POINT", one),
        ("OP_CONV", {}),
        ("SET_OFM_ZERO_POINT", zero),
        ("OP_ELEMENTWISE", {}),
    ]
    without = [("OP_CONV", {}), ("OP_STOP", {})]
    assert plant(without, None) == without


def test_a_bracket_holds_the_passes_behind_its_first():
    found = between("RewriteConvPass..ExirToTosaPass")
    assert found[-1] == "ExirToTosaPass"
    assert "RewriteConvPass" not in found


@pytest.fixture
def case(tmp_path):
    file = tmp_path / "case.json"
    file.write_bytes(encode_case(sigmoid_case()))
    return Task(case=str(file))


def test_a_case_that_ends_its_process_is_a_finding(case, monkeypatch):
    def dies(task, announce, *_):
        announce("vela")
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr("harness.workers.case_run.run_task", dies)
    with Forked() as pool:
        [result] = pool.run([case])
    [finding] = result.findings
    assert (finding.oracle, finding.stage) == ("crash", "vela")
    assert "SIGSEGV" in finding.bucket


def test_bad_input_is_a_problem_and_no_finding(case, monkeypatch):
    def refuses(*_):
        raise BadInput("x", "is bad", "mend it")

    monkeypatch.setattr("harness.workers.case_run.run_task", refuses)
    with Forked() as pool:
        [result] = pool.run([case])
    assert result.problem is not None
    assert "mend it" in result.problem
    assert not result.findings
