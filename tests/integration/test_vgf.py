"""VGF payloads on Arm's emulation layers, where the machine has them (``tox run -e vgf``)."""

from dataclasses import replace

import numpy as np
import pytest

from harness.artifacts.program import decode_program
from harness.artifacts.program_parts import delegate_part
from harness.compat import vgf
from harness.evidence.references import TOSA, VGF
from harness.pipeline.legs import NotRunnable, legs
from harness.pipeline.legs.program_values import delegate_calls
from harness.pipeline.lowering import StageClock
from harness.workers.observing import compile_case, judge
from tests.integration.conftest import constant_join_case, linear_case, sigmoid_case, two_outputs_case

pytestmark = pytest.mark.skipif(any(True for _ in vgf.lacking()), reason="needs what 'armdiff doctor' lists for VGF")


@pytest.mark.parametrize(
    "case",
    [
        sigmoid_case("vgf"),
        sigmoid_case("vgf", "a8w8,float=n1"),
        sigmoid_case("vgf+FP", "float"),
        linear_case("vgf+INT"),
        two_outputs_case("vgf"),
        constant_join_case("vgf+INT"),
    ],
)
def test_the_payload_computes_what_its_tosa_graph_does(observed, case):
    seen = observed(case)
    assert judge(seen) == []
    assert seen.legs[VGF].ran, seen.legs[VGF]
    for run, wanted in zip(seen.legs[VGF].outputs, seen.legs[TOSA].outputs, strict=True):
        for one, other in zip(run, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_a_wrong_bit_of_an_integer_payload_is_told_exactly(observed):
    seen = observed(linear_case("vgf+INT"))
    outputs = [list(run) for run in seen.legs[VGF].outputs]
    changed = outputs[0][0].copy()
    changed.flat[0] += seen.lowering.outputs[0].domain.scale
    outputs[0][0] = changed
    wrong = replace(seen.legs[VGF], outputs=tuple(map(tuple, outputs)))
    [found] = judge(replace(seen, legs={**seen.legs, VGF: wrong}))
    assert (found.kind, found.legs, found.pass_name) == ("differs from the TOSA reference", (TOSA, VGF), "VGF")


def test_a_changed_weight_of_the_payload_shows_in_what_it_returns():
    compiled = compile_case(linear_case("vgf+INT"), StageClock())
    lowered, inputs = compiled.lowered, compiled.inputs
    data = lowered.record.program
    [delegate] = lowered.record.delegates
    clean = legs()[VGF].run(lowered, inputs)
    weights = delegate.payload.index(b"CONST00\0") if b"CONST00\0" in delegate.payload else None
    at = data.index(delegate.payload) + (weights + 40 if weights is not None else len(delegate.payload) - 8)
    changed = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
    payload = decode_program(changed).main.delegates[0].payload
    record = replace(lowered.record, program=changed, delegates=(replace(delegate, payload=payload),))
    assert not np.array_equal(legs()[VGF].run(replace(lowered, record=record), inputs)[0][0], clean[0][0])


def test_each_of_several_delegates_is_cut_out_alone():
    lowered = compile_case(sigmoid_case("vgf+INT", "a8w8,float=n1"), StageClock()).lowered
    plan = decode_program(lowered.record.program).main
    for call, record in delegate_calls(lowered, plan):
        part = decode_program(delegate_part(lowered.record.program, plan, call, len(record.inputs)).data).main
        assert [item.payload for item in part.delegates] == [record.payload]
        assert [item.delegate for item in part.calls] == [0]


def test_a_file_that_the_runtime_cannot_read_is_no_finding(monkeypatch):
    compiled = compile_case(linear_case("vgf+INT"), StageClock())
    data = compiled.lowered.record.program
    [delegate] = compiled.lowered.record.delegates
    at = data.index(delegate.payload) + 8  # the version of the format
    other = data[:at] + b"\x09\x09\x09" + data[at + 3 :]
    payload = decode_program(other).main.delegates[0].payload
    record = replace(compiled.lowered.record, program=other, delegates=(replace(delegate, payload=payload),))
    with pytest.raises(
        NotRunnable, match=r"does not read what this converter writes; use ai-ml-sdk-model-converter==0\.9\.0"
    ):
        legs()[VGF].run(replace(compiled.lowered, record=record), compiled.inputs)
