"""disasm of a case, of its program, and of what vela makes of its graph by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from harness.case.case import encode_case
from harness.cli.command import main
from tests.integration.conftest import linear_case, sigmoid_case

TARGET = "ethos-u55-128"


def run(*arguments):
    return CliRunner().invoke(main, ["disasm", *map(str, arguments)])


@pytest.fixture(scope="module")
def lowered(observed):
    return observed(linear_case(target=TARGET)).lowering


def test_a_program_lists_its_delegate(tmp_path, lowered):
    file = tmp_path / "linear.pte"
    file.write_bytes(lowered.program)
    result = run(file)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("Ethos-U55 with 128 MACs, 24 KiB of SHRAM")
    assert any(line.startswith("input 0: ") for line in lines)
    [convolution] = [index for index, line in enumerate(lines) if "; step" in line and "CONV 1x1" in line]
    assert "IFM  int8 2x1x6 " in lines[convolution + 1] or "IFM  int8 1x2x6 " in lines[convolution + 1]
    assert any("weights 4x1x1x6: 24 of " in line for line in lines[convolution:])
    assert not any("not known" in line or "reserved bits" in line for line in lines)
    assert lines[-1].endswith("OP_STOP                  0xffff")


def test_a_case_is_lowered_first_and_lists_the_same(tmp_path, lowered, workers_forked):
    (tmp_path / "linear.pte").write_bytes(lowered.program)
    (tmp_path / "case.json").write_bytes(encode_case(linear_case(target="TOSA-1.0+INT")))
    wanted = run(tmp_path / "linear.pte")
    for given in (tmp_path, tmp_path / "case.json"):
        result = run(given, "--target", TARGET)
        assert result.exit_code == 0, result.output
        assert result.stdout == wanted.stdout


def test_a_program_without_an_ethos_u_delegate(tmp_path, observed):
    file = tmp_path / "sigmoid.pte"
    file.write_bytes(observed(sigmoid_case()).lowering.program)
    result = run(file)
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.endswith("has no Ethos-U delegate (delegates: TOSABackend); compile it for an Ethos-U target")


def test_the_npz_of_vela_itself(tmp_path, lowered):
    file = tmp_path / "linear.tosa"
    file.write_bytes(lowered.delegates[0].tosa)
    options = [f"--accelerator-config={TARGET}", "--output-format=raw", f"--output-dir={tmp_path}"]
    command = [sys.executable, "-m", "ethosu.vela", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = run(tmp_path / "linear_vela.npz", "--target", TARGET)
    assert result.exit_code == 0, result.output
    assert "weights 4x1x1x6: 24 of " in result.output
    assert "not known" not in result.output


def test_a_recipe_that_does_not_fit_the_target(tmp_path, workers_forked):
    (tmp_path / "case.json").write_bytes(encode_case(sigmoid_case(target="TOSA-1.0+FP", recipe="float")))
    result = run(tmp_path, "--target", TARGET)
    assert result.exit_code == 2
    [line] = [line for line in result.output.splitlines() if line.startswith("armdiff: ") and "starting" not in line]
    assert "$.recipe: recipe 'float' does not fit target 'ethos-u55-128'" in line


def test_a_case_that_does_not_lower_names_the_stage(tmp_path, monkeypatch):
    from harness.workers import emission
    from harness.workers.protocol import EmitTask

    def fails(quantized, clock):
        clock.enter("lower")
        raise ValueError("no such thing\nmore lines")

    file = tmp_path / "case.json"
    file.write_bytes(encode_case(sigmoid_case(target=TARGET)))
    monkeypatch.setattr(emission, "compile_program", fails)
    stages = []
    emitted = emission.emit_program(EmitTask(case=str(file)), stages.append)
    assert emitted.program == b""
    assert emitted.problem == f"{file}: stage lower fails with ValueError: no such thing"
    assert stages[0] == "build"
