"""Constants against what they were folded from: uint8 domains (INT8 in TOSA), helpers of passes, split-off biases."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.evidence.inspection.constants import _against, _bias, _data, _pad_value, _weight
from harness.evidence.inspection.folding import folded
from tests.unit.artifacts import block, call, constant, dequantize, output, placeholder, quantize, trace, value


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


def test_a_copy_in_another_type_is_a_cast():
    start = (
        placeholder("a", [1, 2]),
        call("copy", "dim_order_ops._to_dim_order_copy.default", "%a", shape=(2,), dtype="float32"),
        output("copy"),
    )
    assert folded(trace(start).start)["copy"].value.dtype == "float32"
    assert folded(trace(start).start)["a"].value.dtype.kind == "i"


def test_a_helper_of_another_size_is_no_folded_value():
    """A decomposition of avg_pool2d makes a full of one element, which bears the mark of the pool."""
    graph = trace((call("pool", "aten.ones_like.default", "%x", shape=(2, 1), dtype="float32"), output("pool")))
    for name, expected in (("aten_full_default_common", "unmatched"), ("pool_pre_computed", "wrong")):
        tensor = constant(name, [0.5], "FP32")
        judged = _against(SimpleNamespace(trace=graph), tensor, "pool", folded(graph.start))
        assert judged.verdict == expected, judged


@pytest.mark.parametrize(("added", "verdict"), [([7, -9], "right"), ([7, -8], "wrong"), (None, "wrong")])
def test_a_bias_may_be_added_behind_the_convolution(added, verdict):
    """Executorch 1.2 and earlier leave an int16 convolution a bias of zeros, and add its own afterwards."""
    graph = trace(
        (
            placeholder("w", [[1], [2]]),
            placeholder("b", [7, -9]),
            call("linear", "aten.linear.default", "%x", "%w", "%b"),
            output("linear"),
        )
    )
    zeros = constant("zeros", [0, 0], "INT32")
    operators = [("CONV2D", ("x", "w", "zeros"), ("conv",), {})]
    tensors = [value("x"), value("conv"), zeros]
    if added is not None:
        operators += [("RESHAPE", ("b", "shape"), ("wide",), {}), ("ADD", ("conv", "wide"), ("sum",), {})]
        tensors += [constant("b", added, "INT32"), value("wide"), value("sum")]
    graph_block = block(["x"], ["conv"], operators, tensors)
    analysis = SimpleNamespace(
        trace=graph, block=graph_block, origins=SimpleNamespace(group=lambda name: graph_block.operators)
    )
    start = graph.start.nodes["linear"]
    judged = list(_bias(analysis, zeros, graph_block.operators[0], start, folded(graph.start)))
    assert [item.verdict for item in judged] == [verdict]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [([12] * 3, "right"), ([3] * 3, "right"), ([12, 3, 12], "unmatched"), ([5] * 3, "unmatched")],
)
def test_what_an_index_is_multiplied_by_is_a_product_of_sizes(stored, expected):
    graph = trace((placeholder("x", shape=(2, 3, 4)), call("i", "aten.index.Tensor", "%x", ["%k"]), output("i")))
    judged = _against(SimpleNamespace(trace=graph), constant("aten_full_default", stored, "INT32"), "i", {})
    assert judged.verdict == expected


@pytest.mark.parametrize(
    ("target", "made", "stored", "expected"),
    [
        ("aten.div.Tensor_mode", "int32", ([[0]], "INT32"), "right"),
        ("aten.div.Tensor_mode", "int32", ([[1]], "INT32"), "unmatched"),
        ("dim_order_ops._to_dim_order_copy.default", "int8", ([[0]], "FP32"), "right"),
        ("dim_order_ops._to_dim_order_copy.default", "int8", ([[1]], "FP32"), "unmatched"),
        ("dim_order_ops._to_dim_order_copy.default", "float32", ([[0]], "FP32"), "unmatched"),
    ],
)
def test_what_rounds_down_or_drops_a_fraction_compares_with_zero(target, made, stored, expected):
    graph = trace((placeholder("x"), call("d", target, "%x", 9, dtype=made), output("d")))
    judged = _against(SimpleNamespace(trace=graph), constant("aten_full_default", *stored), "d", {})
    assert judged.verdict == expected


@pytest.mark.parametrize(("stored", "expected"), [([3, 3], "right"), ([4, 4], "wrong")])
def test_a_tensor_of_integers_filled_with_a_number_holds_its_whole_part(stored, expected):
    node = call("full", "aten.full_like.default", "%x", 3.2, shape=(2,), dtype="int32")
    graph = trace((placeholder("x"), node, output("full")))
    judged = _against(SimpleNamespace(trace=graph), constant("made", stored, "INT32"), "full", folded(graph.start))
    assert judged.verdict == expected


@pytest.mark.parametrize(
    ("norm", "stored", "expected"),
    [
        (("native_layer_norm", [3, 4]), [1 / 12], "right"),
        (("native_layer_norm", [3, 4]), [1 / 4] * 2, "right"),
        (("native_layer_norm", [3, 4]), [1 / 5], "unmatched"),
        (("native_group_norm", None, None, 2, 6, 4, 3), [1 / 8], "right"),
        (("native_group_norm", None, None, 2, 6, 4, 3), [1 / 12], "unmatched"),
        (("var",), [1 / 11], "right"),
    ],
)
def test_what_a_sum_is_multiplied_by_to_become_a_mean_is_one_over_the_number_of_elements(norm, stored, expected):
    name, *rest = norm
    node = call("n", f"aten.{name}.default", "%x", *rest, kwargs={"correction": 1})
    graph = trace((placeholder("x", shape=(2, 3, 4)), node, output("n")))
    judged = _against(SimpleNamespace(trace=graph), constant("aten_full_default", stored, "FP32"), "n", {})
    assert judged.verdict == expected


@pytest.mark.parametrize(("stored", "expected"), [([[[7]]], "right"), ([[[8]]], "unmatched")])
def test_an_integer_that_an_operator_reads_may_have_any_name_and_shape(stored, expected):
    graph = trace(
        (
            placeholder("x"),
            placeholder("seven", [7]),
            call("and", "aten.bitwise_and.Tensor", "%x", "%seven"),
            output("and"),
        )
    )
    held = constant("made_by_a_pass", stored, "INT32")
    graph_block = block(
        ["x"], ["and"], [("BITWISE_AND", ("x", held.name), ("and",), {})], [value("x"), held, value("and")]
    )
    analysis = SimpleNamespace(trace=graph, block=graph_block, origins=SimpleNamespace(of={0: "and"}))
    assert _data(analysis, held, graph_block.operators[0], folded(graph.start)).verdict == expected


@pytest.mark.parametrize(("stored", "expected"), [([[-128]], "right"), ([[-127]], "unmatched")])
def test_a_quantized_scalar_may_have_the_rank_of_the_other_operands(stored, expected):
    """``tril``: where(mask, x, 0), whose zero a pass makes a tensor named after no node."""
    graph = trace(
        (
            placeholder("x", shape=(2, 5)),
            placeholder("mask", dtype="bool"),
            placeholder("zero", 0.0),
            quantize("codes", "%zero", 0.5, -128),
            dequantize("number", "%codes", 0.5, -128),
            call("where", "aten.where.self", "%mask", "%x", "%number"),
            output("where"),
        )
    )
    held = constant("made_by_a_pass", stored)
    graph_block = block(["x"], ["where"], [("SELECT", ("x", held.name), ("where",), {})], [value("x"), held])
    analysis = SimpleNamespace(trace=graph, block=graph_block, origins=SimpleNamespace(of={0: "where"}))
    assert _data(analysis, held, graph_block.operators[0], folded(graph.start)).verdict == expected


@pytest.mark.parametrize(("stored", "expected"), [([1, 1], "right"), ([1, 2], "wrong")])
def test_the_kernel_that_a_cumsum_becomes_holds_ones(stored, expected):
    start = call("sum", "aten.cumsum.default", "%x", 1)
    assert _weight(SimpleNamespace(), constant("kernel", [[stored]]), None, start, {}).verdict == expected


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("dtype", "held", "expected"),
    [
        ("float32", ([[1.5]], "FP32"), "right"),
        ("float32", ([[1.25]], "FP32"), "unmatched"),
        ("float32", ([[1]], "INT8"), "unmatched"),
        ("bool", ([[1.5]], "FP32"), "right"),
    ],
)
def test_a_number_that_a_float_operator_reads_is_right_in_float_only(dtype, held, expected, marked):
    """In codes it would be right by chance. The constant may have the mark of its operator."""
    node = call("sum", "aten.add.Tensor", "%x", "%y", dtype=dtype, kwargs={"alpha": 1.5, "other": 1})
    mark = replace(placeholder("made_by_a_pass"), origin="sum")
    later = [("folding", (mark,))] if marked else []
    graph = trace((placeholder("x"), placeholder("y"), node, output("sum")), *later)
    made = constant("made_by_a_pass", *held)
    graph_block = block(["y"], ["mul"], [("MUL", ("y", made.name), ("mul",), {})], [value("y"), made, value("mul")])
    analysis = SimpleNamespace(trace=graph, block=graph_block, origins=SimpleNamespace(of={0: "sum"}))
    assert _data(analysis, made, graph_block.operators[0], {}).verdict == expected


@pytest.mark.parametrize(("stored", "expected"), [(-128, "right"), (0, "unmatched")])
def test_a_maximum_is_padded_with_the_lowest_code(stored, expected):
    pool = call("pool", "aten.max_pool2d.default", "%x", [3, 3])
    graph = trace((placeholder("x"), pool, quantize("q", "%pool", 0.5, 0), output("q")))
    analysis = SimpleNamespace(trace=graph, origins=SimpleNamespace(of={0: "pool"}))
    assert _pad_value(analysis, constant("padding", [stored]), SimpleNamespace(index=0)).verdict == expected
