"""Arm's FVP from this side: command line, exchange folder, process, verdict; no FVP and no torch."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from harness.case.target import parse_target
from harness.compat.vela import VelaConfiguration, configuration_of, default_configuration
from harness.evidence.observation import ValueType
from harness.pipeline.fvp.boards import BOARDS, board_of
from harness.pipeline.fvp.command import command_line, runner_line
from harness.pipeline.fvp.exchange import BadOutput, exchange_folder, read_outputs, write_inputs
from harness.pipeline.fvp.verdict import FvpFailure, check_run, fault_lines
from harness.pipeline.legs import NotRunnable

U55, U65, U85 = (BOARDS[name] for name in ("ethos-u55", "ethos-u65", "ethos-u85"))
TOOLS = "/usr/bin:/bin"


def options_of(command):
    return dict(word.split("=", 1) for flag, word in itertools.pairwise(command) if flag == "-C")


@pytest.mark.parametrize(
    ("target", "part", "board"),
    [
        ("ethos-u55-256", "", "mps3_board"),
        ("ethos-u65-512", "", "mps3_board"),
        ("ethos-u85-1024", "mps4_board.subsystem.", "mps4_board"),
    ],
)
def test_the_command_line_has_the_target_s_macs_and_the_board_s_options(target, part, board):
    command = command_line(board_of(parse_target(target)), Path("/f"), Path("/r.elf"), Path("/x"), target, 2, 60)
    options = options_of(command)
    assert command[0] == "/f"
    assert options[f"{part}ethosu.num_macs"] == target.rpartition("-")[2]
    assert options[f"{part}cpu0.semihosting-enable"] == "1"
    assert options[f"{part}cpu0.semihosting-cwd"] == "/x"
    assert options[f"{part}cpu0.semihosting-cmd_line"] == "'executor_runner -m program.pte -o out -i i0.bin -i i1.bin'"
    assert options[f"{board}.uart0.out_file"] == "'-'"
    assert {name.split("_board", 1)[0] for name in options if "_board" in name} == {board.split("_", 1)[0]}
    assert command[-4:] == ["-a", "/r.elf", "--timelimit", "60"]


def test_the_semihosting_command_line_stays_under_its_limit():
    assert len(runner_line(20)) < 256
    with pytest.raises(
        NotRunnable, match="21 inputs: its semihosting command line has 258 characters, and the FVP cuts"
    ):
        runner_line(21)
    with pytest.raises(NotRunnable, match="no inputs"):
        runner_line(0)


def test_the_stated_configurations_are_those_of_each_release():
    assert str(default_configuration("ethos-u55-64", "1.1.0")) == "ethos-u55-64 Ethos_U55_High_End_Embedded Shared_Sram"
    assert str(default_configuration("ethos-u85-256", "1.5.1")) == "ethos-u85-256 Ethos_U85_SYS_DRAM_Mid Sram_Only"
    modes = [default_configuration("ethos-u65-256", version).memory_mode for version in ("1.2.0", "1.3.1", "1.5.1")]
    assert modes == ["Sram_Only", "Sram_Only", "Dedicated_Sram_384KB"]


def test_a_delegate_says_what_it_was_compiled_for():
    class Spec:
        def __init__(self, value):
            self.value = value

    class Module:
        compile_specs = (Spec(b"TOSA-1.0+INT"), Spec(b"--accelerator-config=a --system-config=b --memory-mode=c"))

    assert configuration_of(Module) == VelaConfiguration("a", "b", "c")
    Module.compile_specs = Module.compile_specs[:1]
    assert configuration_of(Module) is None


NCHW, NHWC = (0, 1, 2, 3), (0, 2, 3, 1)


def test_channels_last_inputs_are_written_as_nhwc(tmp_path):
    array = np.arange(24, dtype=np.int8).reshape(1, 2, 3, 4)
    write_inputs(tmp_path, [array, array], [ValueType(array.shape, "int8", NCHW), ValueType(array.shape, "int8", NHWC)])
    assert (tmp_path / "i0.bin").read_bytes() == bytes(range(24))
    assert (tmp_path / "i1.bin").read_bytes() == array.transpose(0, 2, 3, 1).tobytes()
    with pytest.raises(ValueError, match=r"input 0 is int8 \[1, 2, 3, 4\], the program takes int16 \[1, 2, 3, 4\]"):
        write_inputs(tmp_path, [array], [ValueType(array.shape, "int16", NCHW)])


@pytest.mark.parametrize("order", [NCHW, NHWC, (), (3, 1, 0, 2)])
def test_outputs_come_back_in_logical_order(tmp_path, order):
    array = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    (tmp_path / "out-0.bin").write_bytes(array.transpose(order or NCHW).tobytes())
    (tmp_path / "out-1.bin").write_bytes(b"\x07")
    first, second = read_outputs(tmp_path, [ValueType(array.shape, "float32", order), ValueType((), "uint8")])
    assert first.dtype == np.float32
    assert np.array_equal(first, array)
    assert second.shape == ()
    assert second == 7


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"the runner wrote no output 0 \(int16 \[2\]\): out-0.bin is missing"),
        ({"out-0.bin": b"abc"}, r"wrote a truncated output 0 \(int16 \[2\]\): out-0.bin has 3 bytes, not 4"),
        ({"out-0.bin": b"abcde"}, r"wrote a too long output 0 .* has 5 bytes, not 4"),
        ({"out-0.bin": b"abcd", "out-1.bin": b""}, "wrote out-1.bin, and the program promises 1 outputs"),
    ],
)
def test_output_files_are_checked_to_the_byte(tmp_path, files, message):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(BadOutput, match=message):
        read_outputs(tmp_path, [ValueType((2,), "int16", (0,))])


def test_outputs_of_an_earlier_run_are_deleted():
    with exchange_folder(b"program") as folder:
        assert (folder / "program.pte").read_bytes() == b"program"
        assert len(str(folder)) < 80
        for name in ("out-0.bin", "out-12.bin", "i0.bin"):
            (folder / name).write_bytes(b"old")
        write_inputs(folder, [], [])
        assert {file.name for file in folder.iterdir()} == {"program.pte", "i0.bin"}
    assert not folder.exists()


RUNNER = "[executorch:arm_executor_runner.cpp:7 main()]"


def test_error_lines_are_told_from_others():
    output = (
        f"I {RUNNER} fine\nE: Failed to initialize timing-adapter #3\nE: Timing adapter has no effect if option "
        "--fast/-F is enabled\nEthos-U rev 1\nFast Models\nE: one\nF [x] two\n  Hard fault. pc=0\n  Assertion failed\n"
    )
    assert fault_lines(output) == ["Hard fault. pc=0", "Assertion failed", "E: one", "F [x] two"]


@pytest.mark.parametrize(
    ("status", "output", "message"),
    [
        (0, "E: one\nHard fault. x\n", "the program failed on the FVP: Hard fault. x"),
        (0, f"E {RUNNER} bad", f"the program failed on the FVP: E {RUNNER} bad"),
        (3, "text\n", "the FVP ended with exit status 3"),
        (-11, "text\n", "the FVP ended with SIGSEGV"),
        (None, "text\n", "the FVP gave no answer within its time limit of 9 s"),
        (None, "Hard fault.\n", "the program failed on the FVP: Hard fault."),
        (0, "Info: Simulation is stopping. Reason: CPU time has been exceeded.\n", "no answer within its time limit"),
    ],
)
def test_a_failed_run_says_why_first_and_ends_with_its_output(status, output, message):
    with pytest.raises(FvpFailure) as caught:
        check_run(status, "first\n" * 100 + output, 9.0)
    headline, *rest = str(caught.value).splitlines()
    assert message in headline
    assert rest[-1] == output.strip().splitlines()[-1].strip()
    assert len(rest) < 40


def test_a_run_that_ended_well_is_silent():
    check_run(0, f"I {RUNNER} Program complete, exiting.\nE: Failed to initialize timing-adapter #0\n", 9.0)


def test_what_the_runner_was_built_without_is_no_finding():
    missing_kernels = (
        "E [executorch:method.cpp:823 f()] Missing operator: [1] aten::b.out\n"
        "E [executorch:method.cpp:823 f()] Missing operator: [0] aten::a.out\nF [x] Execution failed\n"
    )
    with pytest.raises(NotRunnable, match=r"no kernel for aten::a\.out, aten::b\.out: build it with these"):
        check_run(1, missing_kernels, 9.0)
    with pytest.raises(NotRunnable, match=r"too small \(E \[x\] Memory allocation failed: 9B requested\)"):
        check_run(1, "E [x] Memory allocation failed: 9B requested\n", 9.0)
    with pytest.raises(FvpFailure, match="Hard fault"):
        check_run(1, missing_kernels + "Hard fault.\n", 9.0)
