"""Which ranges are left open for want of a place for a CLAMP."""

import pytest

from harness.evidence.inspection.ranges import between_convolution_and_table
from tests.unit.artifacts import block, constant, rescale, value


def _graph(maker="CONV2D", reader="TABLE", extra=(), outputs=("t",)):
    scaled, tensors = rescale("r", "c", 1 << 30, 35, start="INT32")
    operators = [
        (maker, ("x",), ("c",), {}),
        scaled,
        ("TRANSPOSE", ("r",), ("m",), {}),
        (reader, ("m", "k"), ("t",), {}),
        *extra,
    ]
    return block(
        ["x"],
        outputs,
        operators,
        [value("x"), value("c", dtype="INT32"), *tensors, value("m"), constant("k", [0] * 256), value("t"), value("e")],
    )


@pytest.mark.parametrize("tensor", ["r", "m"])
def test_a_moved_or_unmoved_result_that_only_a_table_reads_is_between(tensor):
    assert between_convolution_and_table(_graph(), tensor)
    assert not between_convolution_and_table(_graph(maker="ADD"), tensor)
    assert not between_convolution_and_table(_graph(reader="ADD"), tensor)


def test_a_result_that_leaves_the_delegate_or_is_read_elsewhere_is_not():
    assert not between_convolution_and_table(_graph(outputs=("t", "m")), "r")
    assert not between_convolution_and_table(_graph(extra=[("ADD", ("r", "r"), ("e",), {})]), "r")
    assert not between_convolution_and_table(_graph(), "t")
    assert not between_convolution_and_table(_graph(), "x")
