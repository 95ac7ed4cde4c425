"""The FVP leg with a stand-in executable: right outputs, and every way of failing, through the whole pipeline.

No FVP was run for these tests: ``tests/fvp_stand_in.py`` returns prepared outputs or fails as told.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.compat.vela import configuration_of, default_configuration
from harness.evidence.agreement import DIFFERS_FROM_TOSA
from harness.evidence.observation import Failure, LegResult
from harness.evidence.references import EAGER, FVP, MODEL, QUANTIZED, TOSA
from harness.locate.blame.values import blamed_values
from harness.pipeline.fvp.boards import BOARDS
from harness.pipeline.fvp.command import command_line
from harness.pipeline.fvp.discovery import find_runner
from harness.pipeline.legs import ethos_u_fvp, legs
from harness.pipeline.lowering import EdgeProgram, StageClock
from harness.workers.observing import Options, _run_leg, examine, judge, observe
from oracles.crash import judge as crashes
from tests.fvp import StandIn, ends
from tests.integration.conftest import sigmoid_case
from tests.integration.test_commands import MODEL as USER_MODEL

CASE = sigmoid_case("ethos-u55-128")


@pytest.fixture(scope="module")
def lowered():
    """The one lowering that the failure modes share, with its observation (without an FVP)."""
    kept = []
    observation = observe(CASE, StageClock(), Options(only_legs=[TOSA]), kept)
    return observation, kept[0]


@pytest.fixture
def stand_in(tmp_path, monkeypatch, lowered):
    """A stand-in that knows the right outputs of every evaluation input."""
    installed = StandIn(tmp_path / "fvp").install()
    for name, value in installed.environment.items():
        monkeypatch.setenv(name, value)
    observation, _ = lowered
    for item, outputs in zip(observation.inputs, observation.legs[TOSA].outputs, strict=True):
        installed.answer(item.arrays, outputs)
    return installed


def run(lowered):
    """The leg's result, and the observation with it and no other engine of the command stream."""
    observation, live = lowered
    result = _run_leg(legs()[FVP], live, observation.inputs, StageClock())
    kept = {name: observation.legs[name] for name in (EAGER, QUANTIZED, TOSA)}
    return result, replace(observation, legs={**kept, FVP: result})


def test_right_outputs_make_a_clean_case_through_the_pipeline(stand_in):
    observation, found = examine(CASE, StageClock(), Options(engine="fvp"))
    assert found == []
    assert observation.legs[FVP].ran
    assert observation.legs[MODEL].skipped == "not asked for: --ethos-u-engine fvp"
    for got, wanted in zip(observation.legs[FVP].outputs, observation.legs[TOSA].outputs, strict=True):
        assert got[0].dtype == wanted[0].dtype
        assert np.array_equal(got[0], wanted[0])
    calls = stand_in.calls
    assert len(calls) == len(observation.inputs) >= 4
    assert {call["macs"] for call in calls} == {"128"}
    assert {call["elf"] for call in calls} == {str(stand_in.elf)}
    assert {call["line"] for call in calls} == {"executor_runner -m program.pte -o out -i i0.bin"}
    assert all(call["stale"] == [] for call in calls)


def test_a_wrong_element_is_a_difference_from_the_reference_model(stand_in, lowered):
    observation, live = lowered
    right = observation.legs[TOSA].outputs[1][0]
    wrong = right.copy()
    wrong[0, 2] += observation.lowering.outputs[0].domain.scale
    stand_in.answer(observation.inputs[1].arrays, (wrong,))
    result, seen = run(lowered)
    assert result.ran
    [found] = judge(seen)
    assert (found.oracle, found.kind, found.legs) == ("numeric", DIFFERS_FROM_TOSA, (TOSA, FVP))
    assert (found.measured["elements"], found.measured["input"], found.measured["distance"]) == (1, 1, 1.0)
    assert blamed_values(found, seen, live) == found  # no pass did that


FAILURES = {
    "hard-fault": "the program failed on the FVP: Hard fault. irq=-13",
    "assert": "the program failed on the FVP: Assertion failed: false",
    "error": "the program failed on the FVP: E [executorch:EthosUBackend_Cortex_M.cpp:116 platform_execute()]",
    "exit": "the FVP ended with exit status 3",
    "time-over": "the FVP gave no answer within its time limit of 60 s",
    "truncate": "the runner wrote a truncated output 0 (float32 [1, 4]): out-0.bin has 15 bytes, not 16",
    "too-long": "the runner wrote a too long output 0 (float32 [1, 4]): out-0.bin has 17 bytes, not 16",
    "extra": "the runner wrote out-7.bin, and the program promises 1 outputs",
    "once": "the runner wrote no output 0 (float32 [1, 4]): out-0.bin is missing",
}


@pytest.mark.parametrize("mode", FAILURES)
def test_a_failure_is_a_crash_finding_with_its_cause_and_last_words(stand_in, lowered, mode):
    stand_in.mode(mode)
    result, seen = run(lowered)
    assert isinstance(result.failure, Failure)
    [found] = crashes(seen)
    assert found.stage == f"leg:{FVP}"
    assert found.message.startswith(f"FvpFailure during leg:{FVP}: {FAILURES[mode]}")
    assert "STAND-IN FOR AN ARM FVP" in result.failure.detail
    assert [item.oracle for item in judge(seen)] == ["crash"]
    assert len(stand_in.calls) == (2 if mode == "once" else 1)


def test_causes_fall_into_buckets_of_their_own(stand_in, lowered):
    signatures = set()
    for mode in FAILURES:
        stand_in.mode(mode)
        stand_in.forget_calls()
        _, seen = run(lowered)
        signatures |= {found.signature for found in crashes(seen)}
    assert len(signatures) == len(FAILURES)


def test_a_hang_ends_with_the_time_limit_and_takes_its_children_along(stand_in, lowered, monkeypatch):
    monkeypatch.setenv("ARMDIFF_FVP_TIME_LIMIT", "2")
    stand_in.mode("hang")
    _, seen = run(lowered)
    [found] = crashes(seen)
    assert "the FVP gave no answer within its time limit of 2 s" in found.message
    [call] = stand_in.calls
    assert call["limit"] == 2
    for pid in (call["pid"], (stand_in.folder / "child").read_text()):
        assert ends(pid)


@pytest.mark.parametrize(
    ("mode", "reason"), [("kernel", "the FVP's runner has no kernel for aten::gelu.out"), ("memory", "are too small")]
)
def test_what_the_runner_lacks_skips_the_leg_with_the_reason(stand_in, lowered, mode, reason):
    stand_in.mode(mode)
    result, seen = run(lowered)
    assert reason in result.skipped
    assert judge(seen) == []


def test_a_case_that_takes_too_long_is_skipped_and_no_finding(stand_in, lowered, monkeypatch):
    monkeypatch.setattr(ethos_u_fvp, "CASE_SECONDS", 60.0)
    result, _ = run(lowered)
    assert result.skipped.startswith("the FVP needs more than 60 s for the inputs of a case")
    assert len(stand_in.calls) == 1


def test_no_runner_for_the_program_skips_the_leg(stand_in, lowered, monkeypatch):
    monkeypatch.delenv("ARMDIFF_FVP_ELF_U55_128")
    result, _ = run(lowered)
    assert "there is no runner ELF for ethos-u55-128" in result.skipped
    assert "there is no runner ELF for ethos-u55-128" in legs()[FVP].skip(ethos_u_fvp.parse_target(CASE.target))


def test_the_stated_configuration_is_what_the_installed_release_compiles_for(lowered):
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    _, live = lowered
    [delegate] = live.record.delegates
    compiled = configuration_of(getattr(live.edge_program.graph_module, delegate.name))
    assert compiled == default_configuration(CASE.target)
    for target in ("ethos-u65-512", "ethos-u85-2048"):
        flags = " ".join(EthosUCompileSpec(target).compiler_flags)
        stated = default_configuration(target)
        assert f"--system-config={stated.system_config}" in flags
        assert f"--memory-mode={stated.memory_mode}" in flags


def test_the_conventions_are_those_of_the_installed_upstream(tmp_path, monkeypatch):
    from executorch.backends.arm.test.runner_utils import _elf_path_candidates

    monkeypatch.setenv("EXECUTORCH_ROOT", str(tmp_path))
    for board in BOARDS.values():
        for portable in (False, True):
            for elf in [item for item in _elf_path_candidates(board.folder, portable) if tmp_path in item.parents]:
                elf.parent.mkdir(parents=True)
                elf.write_text("")
                found = find_runner(board, board.built, {"EXECUTORCH_ROOT": str(tmp_path)}, tmp_path)
                assert (found.elf, found.portable) == (elf, portable)
                elf.unlink()
                while not any(elf.parent.iterdir()):
                    elf.parent.rmdir()
                    elf = elf.parent


@pytest.mark.parametrize("family", BOARDS)
def test_for_upstream_s_own_targets_the_command_line_is_upstream_s(tmp_path, monkeypatch, family):
    import torch
    from executorch.backends.arm.test import runner_utils

    class Caught(Exception):
        pass

    def caught(command, **options):
        raise Caught(command)

    board, elf = BOARDS[family], tmp_path / "elf"
    elf.write_text("")
    specs = [SimpleNamespace(arg=SimpleNamespace(name="x"))]
    exported = SimpleNamespace(graph_signature=SimpleNamespace(input_specs=specs))
    manager = SimpleNamespace(buffer=b"", exported_program=lambda: exported)
    monkeypatch.setattr(runner_utils, "_run_cmd", caught)
    with pytest.raises(Caught) as upstream:
        runner_utils.run_target(manager, (torch.zeros(1),), tmp_path, board.folder, elf, 60)
    [command] = upstream.value.args
    assert command_line(board, Path(board.binary), elf, tmp_path, board.built.target, 1, 60) == command


def test_channels_last_inputs_and_outputs_keep_their_dim_order():
    import torch

    class Twice(torch.nn.Module):
        def forward(self, x, y):
            return x + x, y * y

    inputs = torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last), torch.zeros(1, 2, 3, 4)
    exported = torch.export.export(Twice(), inputs)
    program = EdgeProgram(exported.graph_module, exported.graph_signature, {})
    takes, promises = ethos_u_fvp.program_types(program)
    assert [value.dim_order for value in takes] == [(0, 2, 3, 1), (0, 1, 2, 3)]
    assert [value.dim_order for value in promises] == [(0, 2, 3, 1), (0, 1, 2, 3)]
    assert {(value.shape, value.dtype) for value in (*takes, *promises)} == {((1, 2, 3, 4), "float32")}


def test_the_command_reports_a_hard_fault_as_a_finding(tmp_path, monkeypatch, armdiff_here):
    installed = StandIn(tmp_path / "fvp").install()
    installed.mode("hard-fault")
    for name, value in installed.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "model.py").write_text(USER_MODEL)
    words = ["check", "model.py", "--target", "ethos-u55-128", "--jobs", "1", "--probes", "none", "--json", "out.json"]
    result = armdiff_here(*words, cwd=tmp_path)
    assert result.exit_code == 1, result.output
    data = json.loads((tmp_path / "out.json").read_text())
    [found] = [item for item in data["findings"] if item["stage"] == f"leg:{FVP}"]
    assert found["oracle"] == "crash"
    assert "Hard fault. irq=-13" in found["message"]
    assert "STAND-IN FOR AN ARM FVP" in found["detail"]
    unjudged = "1 output of 1 case (ethos-u-fvp failed)"
    assert data["legs"][FVP] == {"ran": 0, "skipped": 1, "why": "1x failed", "unjudged": unjudged}
    assert len(installed.calls) == 3  # found, found again, and tried with the corrections whose code it came to


def test_a_leg_that_is_skipped_while_it_runs_is_no_failure(lowered):
    observation, live = lowered
    bare = replace(live, record=replace(live.record, delegates=()))
    result = _run_leg(legs()[FVP], bare, observation.inputs, StageClock())
    assert result == LegResult(skipped="the program has no Ethos-U delegate: nothing of it runs on the NPU")
