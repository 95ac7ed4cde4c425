"""The program as its user sees it: MACs from shapes, errors against float, and the lines that say so."""

import numpy as np
import pytest

from harness.case.call_sites import CallSite
from harness.evidence.macs import macs
from harness.pipeline.profile import Error, Fallback, OutputError, Profile, _error, profile_of
from harness.reports.deployment import lines
from tests.unit.observations import observation

CONV = [None, None, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1]


@pytest.mark.parametrize(
    ("operator", "arguments", "shapes", "result", "count"),
    [
        ("aten.conv2d.default", CONV, [(1, 3, 8, 8), (16, 3, 3, 3)], (1, 16, 6, 6), 16 * 36 * 27),
        ("aten.convolution.default", CONV, [(1, 8, 8, 8), (8, 1, 3, 3)], (1, 8, 6, 6), 8 * 36 * 9),  # depthwise
        (
            "aten.convolution.default",
            [*CONV[:6], True, *CONV[7:]],
            [(1, 4, 5, 5), (4, 6, 2, 2)],
            (1, 6, 10, 10),
            4 * 25 * 24,
        ),
        ("aten.conv_transpose2d.input", [], [(1, 4, 5, 5), (4, 6, 2, 2)], (1, 6, 10, 10), 4 * 25 * 24),
        ("aten.linear.default", [], [(2, 7, 16), (10, 16)], (2, 7, 10), 2 * 7 * 10 * 16),
        ("aten.addmm.default", [], [(10,), (4, 16), (16, 10)], (4, 10), 4 * 10 * 16),
        ("aten.bmm.default", [], [(2, 3, 4), (2, 4, 5)], (2, 3, 5), 2 * 3 * 5 * 4),
        ("aten.add.Tensor", [], [(2, 3), (2, 3)], (2, 3), 0),
    ],
)
def test_multiply_accumulates_follow_from_shapes(operator, arguments, shapes, result, count):
    assert macs(operator, arguments, shapes, result) == count


def test_errors_are_in_decibels_and_in_the_output_s_own_unit():
    wanted, got = [[np.array([3.0, 4.0], np.float32)]], [[np.array([3.5, 4.0], np.float32)]]
    error = _error(wanted, got, [0], 0)
    assert error == Error(sqnr=pytest.approx(10 * np.log10(12.5 / 0.125)), largest=0.5, mean=0.25)
    assert _error(wanted, wanted, [0], 0) == Error(sqnr=None, largest=0.0, mean=0.0)
    assert _error(wanted, [[np.zeros(3, np.float32)]], [0], 0) is None


def test_nothing_is_told_of_what_was_not_compiled():
    assert profile_of(observation([0.0], [0.0])) is None


PROFILE = Profile(
    delegates=2,
    operators=(999, 1),
    macs=(10**6, 0),
    fallback=(Fallback(operator="aten.topk.default", count=1, nodes=("topk",), reason="not listed"),),
    leg="ethos-u-model",
    samples=1,
    errors=(
        OutputError(
            output=0,
            shape=(1, 4),
            compiled=Error(sqnr=30.04, largest=0.5, mean=0.25),
            quantized=Error(sqnr=None, largest=0.0, mean=0.0),
        ),
    ),
    payload=3000,
    commands=1000,
    weights=2048,
    scratch=4096,
    program=5120,
    cycles=12345,
    clock=5e8,
)
SITES = {"topk": CallSite(module="head", file="m.py", path="m.py", line=9)}


def test_a_target_s_lines():
    assert [*lines("ethos-u55-128", PROFILE, SITES)] == [
        "ethos-u55-128",
        "  on the NPU: 999 of 1000 operators (99.9 %) and 100 % of 1 M MACs, in 2 delegates",
        "  on the CPU: aten.topk.default at m.py:9: not listed",
        "  output 0 [1, 4]: SQNR 30.0 dB, largest error 0.5, mean 0.25; quantization explains no error",
        "  (of ethos-u-model against float eager, over 1 sample)",
        "  size: .pte 5.0 KiB, payload 2.9 KiB (commands 1000 B, weights 2.0 KiB); scratch 4.0 KiB",
        "  Vela's estimate: 12,345 cycles an inference, 0.0247 ms at 500 MHz",
    ]


def test_tosa_has_delegates_and_no_npu():
    profile = Profile(delegates=1, operators=(1, 0), macs=(0, 0), payload=900, program=2000)
    assert [*lines("TOSA-1.0+INT", profile, {})][1:] == [
        "  delegated: 1 of 1 operator (100 %), in 1 delegate",
        "  size: .pte 2.0 KiB, flatbuffers 900 B",
    ]
