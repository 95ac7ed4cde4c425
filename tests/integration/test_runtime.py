"""ExecuTorch's runtime in its own process, and the leg that runs the .pte on it."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.program import decode_program
from harness.compat.runtime import RuntimeDied, RuntimeRefused, end_running, running, started
from harness.compat.runtime.kernels import misreads
from harness.evidence.references import QUANTIZED, RUNTIME, RUNTIMES, TOSA
from harness.pipeline.legs import NotRunnable, legs
from harness.pipeline.legs.executorch import ProgramUnlike
from harness.pipeline.lowering import StageClock
from harness.workers.observing import compile_case, judge
from tests.integration.conftest import constant_join_case, linear_case, sigmoid_case, two_outputs_case

PROGRAM = (Path(__file__).parents[1] / "hostile/files/neg.pte").read_bytes()
READY = 'print(\'{"backends": [], "blobs": []}\', flush=True); sys.stdin.readline();'


@pytest.fixture(scope="module")
def lowered():
    """sigmoid left on the CPU between two delegates, and its evaluation inputs."""
    compiled = compile_case(sigmoid_case(recipe="a8w8,float=n1"), StageClock())
    return compiled.lowered, compiled.inputs


def with_program(lowered, data):
    return replace(lowered, record=replace(lowered.record, program=data))


@pytest.mark.parametrize(
    "case",
    [
        sigmoid_case(),
        sigmoid_case(recipe="a8w8,float=n0|n1"),
        sigmoid_case("TOSA-1.0+FP", "float"),
        sigmoid_case("ethos-u55-128", "a8w8,float=n1"),
        linear_case(recipe="a8w8,float=n0"),
        two_outputs_case(),
        constant_join_case(),
    ],
)
def test_the_runtime_returns_what_the_reference_returns(observed, case):
    seen = observed(case)
    assert judge(seen) == []
    leg = seen.legs[RUNTIME]
    assert leg.ran, leg
    for run, wanted in zip(leg.outputs, seen.legs[TOSA].outputs, strict=True):
        for one, other in zip(run, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_a_file_without_delegates_is_loaded_as_it_is(observed):
    seen = observed(sigmoid_case(recipe="a8w8,float=n0|n1"))
    assert decode_program(seen.lowering.program).main.delegates == ()
    assert seen.legs[RUNTIME].ran


def test_what_only_the_runtime_gets_wrong_is_blamed_on_it(observed):
    seen = observed(sigmoid_case())
    outputs = tuple((array + 1.0,) for (array,) in seen.legs[TOSA].outputs)
    wrong = replace(seen, legs={**seen.legs, RUNTIME: replace(seen.legs[RUNTIME], outputs=outputs)})
    [found] = judge(wrong)
    assert (found.oracle, found.kind, found.pass_name) == ("numeric", "outside rounding", RUNTIMES[RUNTIME])
    assert found.legs == (QUANTIZED, RUNTIME)
    both = {TOSA: replace(seen.legs[TOSA], outputs=outputs), RUNTIME: wrong.legs[RUNTIME]}
    assert [item.legs[1] for item in judge(replace(seen, legs={**seen.legs, **both}))] == [TOSA]


def test_a_description_that_differs_from_the_edge_program_is_told(lowered):
    program, inputs = lowered
    other = compile_case(linear_case(), StageClock()).lowered
    with pytest.raises(ProgramUnlike, match=r"input 0 is float32 \[2, 6\] \(48 bytes\), the edge program has float32 "):
        legs()[RUNTIME].run(with_program(program, other.record.program), inputs)


def test_a_damaged_file_is_no_finding_of_this_leg(lowered):
    with pytest.raises(NotRunnable, match="ExecuTorch program"):
        legs()[RUNTIME].run(with_program(lowered[0], b"12345678"), lowered[1])


def test_what_the_runtime_refuses_is_told_with_its_own_words():
    with pytest.raises(RuntimeRefused, match=r"(?s)^Backend EthosUBackend is not registered.*Failed to load"):
        running().load("x", PROGRAM)
    assert running().describe(PROGRAM)["taken"] == [{"dtype": 6, "sizes": [1, 1, 4, 4], "bytes": 64}]


def test_a_runtime_that_dies_is_told_and_the_next_case_gets_another(lowered):
    first = running()
    os.kill(first.process.pid, signal.SIGSEGV)
    with pytest.raises(RuntimeDied, match="ended with SIGSEGV while it should"):
        first.describe(PROGRAM)
    assert legs()[RUNTIME].run(*lowered)
    assert running() is not first


def test_runtimes_end_before_their_process_does():
    one = running()
    end_running()
    assert one.process.poll() is not None
    assert running() is not one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit(7)", "exit 7 while it should start"),
        (f"import os, sys, time; {READY} time.sleep(60)", "Hang while it should describe a program"),
        (f"import os, sys; {READY} print('last words', file=sys.stderr); os.abort()", r"(?s)SIGABRT.*last words"),
    ],
)
def test_each_end_of_a_process_has_its_name(tmp_path, text, told):
    script = tmp_path / "serving.py"
    script.write_text(text)
    with pytest.raises(RuntimeDied, match=told):
        started(script=script, seconds=0.5).describe(b"")


@pytest.mark.parametrize(
    ("version", "dtype", "told"), [("1.4.1", "int32", True), ("1.4.1", "int64", False), ("1.5.1", "int32", False)]
)
def test_a_release_that_misreads_zero_points_is_not_trusted(version, dtype, told):
    calls = [("quantized_decomposed::dequantize_per_channel.out", ("int32", "float32", dtype, "", "float32"))]
    assert (misreads(calls, version) is not None) == told
    assert misreads([("aten::add.out", ("int32", "int32", "int32"))], version) is None


def test_what_a_kernel_refuses_begins_with_its_name_and_its_reason():
    log = (
        "[cpuinfo_utils.cpp:52] Failed to open midr file /sys/devices/system/cpu/cpu0/regs/identification/midr_el1\n"
        "[index_util.cpp:24] Check failed (index.scalar_type() == ScalarType::Long): Expected dtype int64 for index\n"
        "[method.cpp:1483] KernelCall failed at instruction 0:2 in operator aten::gather.out: 0x12\n"
    )
    first = str(RuntimeRefused("RuntimeError: failed with error 0x12", log)).splitlines()[0]
    assert first.startswith("aten::gather.out: Check failed (index.scalar_type() == ScalarType::Long): Expected dtype")
    assert RuntimeRefused("error", "[registry.cpp:1] Missing operator: [2] my::op.out\n").lacks == "my::op.out"
    assert str(RuntimeRefused("error", "")) == "error"
    log = (
        "[VGFBackend.cpp:1044] Failed to find extension VK_KHR_maintenance5\n"
        "[VGFBackend.cpp:572] VGF execute: args=2 IOs=2 inputs=1 outputs=1\n"
        "[VGFBackend.cpp:767] Output tensor byte size 48 does not match IO allocation 24\n"
    )
    assert str(RuntimeRefused("error", log)).startswith("Output tensor byte size 48 does not match")
