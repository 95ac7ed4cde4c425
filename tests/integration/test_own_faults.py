"""armdiff itself fails on a case: a problem of the run, never a finding, and nothing found is lost."""

import importlib.util
import io

import pytest

from harness.campaign.campaign import write_case
from harness.compat.releases import release_line
from harness.compat.warm.stage_cache import WorkerCache
from harness.ethosu import machine
from harness.evidence.observation import Oracle
from harness.evidence.references import MODEL
from harness.triage.proving import Remembered
from harness.workers import observing, worker
from harness.workers.case_run import run_task
from harness.workers.protocol import Task
from tests.integration.conftest import relu_join_case, sigmoid_case

U55 = "ethos-u55-128"


def broken(npu):
    raise IndexError("row 30 of 30")


def test_an_exception_of_the_model_is_a_problem_and_what_other_legs_find_counts(tmp_path, monkeypatch):
    monkeypatch.setitem(machine._KERNELS, "OP_CONV", broken)
    path = str(write_case(relu_join_case(U55), tmp_path))
    result = run_task(Task(case=path, probes="none"), lambda _: None)
    said, colon, rest = result.problem.partition("machine:")
    assert (
        said + colon
        == f"{path}: armdiff itself fails on delegate lowered_module_0: IndexError at harness.ethosu.machine:"
    )
    assert rest.endswith(": row 30 of 30; report it to armdiff with this case: it says nothing about the toolchain")
    assert result.legs[MODEL] == result.problem.removeprefix(f"{path}: ")
    assert result.legs["tosa-reference"] == "ran"
    assert not [item for item in (*result.findings, *result.unrepeated) if item.oracle in ("crash", "stream")]
    if release_line() == "default":
        assert "numeric" in {item.oracle for item in result.findings}


def test_without_a_fault_there_is_no_problem(tmp_path):
    result = run_task(Task(case=str(write_case(sigmoid_case(U55), tmp_path)), probes="none"), lambda _: None)
    assert (result.problem, result.legs[MODEL]) == (None, "ran")


@pytest.fixture
def served(tmp_path, monkeypatch):
    """``served(package)``: a worker's answer to a case, one oracle of which calls a function of that package."""

    def serve(module):
        path = str(write_case(sigmoid_case(), tmp_path))
        names = {"__name__": module}
        exec("def judge(observation):\n    raise KeyError('lowered')", names)
        monkeypatch.setattr(observing, "oracles", lambda: {"broken": Oracle("broken", names["judge"])})
        return path, worker._serve(
            Task(case=path, probes="none"), worker._Announced(io.BytesIO()), WorkerCache(), Remembered()
        )

    return serve


def test_an_exception_of_an_oracle_is_a_problem_of_its_case(served):
    path, result = served("oracles.broken")
    assert result.case == path
    assert result.findings == ()
    assert result.problem.startswith(f"{path}: armdiff itself fails on it: KeyError at oracles.broken:2: 'lowered'; ")


def test_what_the_toolchain_raises_ends_the_process(served):
    with pytest.raises(KeyError):
        served("executorch.backends.arm")


def test_the_toolchain_s_packages_are_called_what_they_are():
    from harness.case.errors import UPSTREAM

    assert [importlib.util.find_spec(name) is None for name in UPSTREAM[:4]] == [False] * 4
