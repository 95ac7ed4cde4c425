"""Constants against what they were folded from: uint8 domains, which TOSA holds as INT8, and helpers of passes."""

from types import SimpleNamespace

import pytest

from harness.inspection.constants import _against
from harness.inspection.folding import folded
from tests.unit.artifacts import call, constant, output, quantize, trace


def verdict(dtype, low, high, stored, origin):
    """Is ``stored`` the constant 1.0, quantized with scale 1 / 255 and zero point ``low``?"""
    graph = trace(
        (
            call("ones", "aten.ones_like.default", "%x", shape=(1, 2), dtype="float32"),
            quantize("q", "%ones", 1 / 255, low, low, high, dtype),
            output("q"),
        )
    )
    tensor = constant("ones_pre_computed", [[stored, stored]])
    return _against(SimpleNamespace(trace=graph), tensor, origin, folded(graph.start)).verdict


@pytest.mark.parametrize("origin", ["ones", "q"])
def test_codes_of_uint8_are_bytes(origin):
    assert verdict("uint8", 0, 255, -1, origin) == "right"
    assert verdict("uint8", 0, 255, 127, origin) == "wrong"
    assert verdict("int8", -128, 127, 127, origin) == "right"
    assert verdict("int8", -128, 127, -1, origin) == "wrong"


def test_a_helper_of_another_size_is_no_folded_value():
    """A decomposition of avg_pool2d makes a full of one element, which bears the mark of the pool."""
    graph = trace((call("pool", "aten.ones_like.default", "%x", shape=(2, 1), dtype="float32"), output("pool")))
    for name, expected in (("aten_full_default_common", "unmatched"), ("pool_pre_computed", "wrong")):
        tensor = constant(name, [0.5], "FP32")
        judged = _against(SimpleNamespace(trace=graph), tensor, "pool", folded(graph.start))
        assert judged.verdict == expected, judged
