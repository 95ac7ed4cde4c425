"""Envelopes of quantized graphs: what rounding leaves free of a value, where operators follow each other.

Graphs are traced by torch.fx from small functions; no export, no quantizer.
"""

import numpy as np
import pytest
import torch
from torch.ao.quantization.fx import _decomposed

from harness.evidence.rounding import originals, tables
from harness.evidence.rounding.interval import Interval
from harness.evidence.rounding.rules import Call
from harness.evidence.rounding.walk import _Walk, envelopes

assert _decomposed  # registers torch.ops.quantized_decomposed
ATEN = torch.ops.aten
SCALE = (0.1, 0, -128, 127, torch.int8)
Q = torch.ops.quantized_decomposed.quantize_per_tensor.default
DQ = torch.ops.quantized_decomposed.dequantize_per_tensor.default


def _graph(function, constants=None):
    root = torch.nn.Module()
    for name, value in (constants or {}).items():
        root.register_buffer(name, value)

    class Traced(torch.fx.Tracer):
        pass

    graph = Traced().trace(_module(root, function))
    return torch.fx.GraphModule(root, graph)


def _module(root, function):
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return Module()


def _aten_requantized(x):
    values = DQ(Q(x, 0.1, 0, -128, 127, torch.int8), 0.1, 0, -128, 127, torch.int8)
    half = ATEN.mul.Tensor(values, 0.5)
    return DQ(Q(half, 0.1, 0, -128, 127, torch.int8), 0.1, 0, -128, 127, torch.int8)


def test_only_ties_are_free_in_a_rescale():
    graph = _graph(_aten_requantized)
    inputs = np.array([0.4, 0.5, -0.3, 5.0], dtype=np.float32)  # codes 4 5 -3 50, halves 2 2.5 -1.5 25
    [envelope] = envelopes(graph, (inputs,), "rounding")
    assert np.round(envelope.low / 0.1).tolist() == [2, 2, -2, 25]
    assert np.round(envelope.high / 0.1).tolist() == [2, 3, -1, 25]


def test_saturation_is_exact():
    [envelope] = envelopes(_graph(_aten_requantized), (np.array([1000.0, -1000.0], np.float32),), "rounding")
    assert np.round(envelope.low / 0.1).tolist() == [63, -64]  # codes 127 and -128: half of 127 is a tie
    assert np.round(envelope.high / 0.1).tolist() == [64, -64]


def test_without_its_rounding_a_quantized_graph_is_the_float_function():
    [envelope] = envelopes(_graph(_aten_requantized), (np.array([0.44, 100.0], np.float32),), "quantization")
    assert envelope.low == pytest.approx([0.22, 50.0], rel=1e-6)  # not 0.2, and not clipped to 6.4
    assert envelope.high == pytest.approx([0.22, 50.0], rel=1e-6)


def test_an_operator_without_a_rule_makes_no_claim_where_its_operand_is_uncertain():
    def function(x):
        return ATEN.lgamma.default(_aten_requantized(x))

    sure = envelopes(_graph(function), (np.array([0.4], np.float32),), "rounding")[0]
    unsure = envelopes(_graph(function), (np.array([0.5], np.float32),), "rounding")[0]
    assert np.isfinite(sure.low).all()
    assert sure.unjudged == ()
    assert not np.isfinite(unsure.low).any()
    assert unsure.unjudged == ("aten.lgamma",)


def test_between_two_clamps_the_requantization_may_be_dropped():
    def function(x):
        first = ATEN.hardtanh.default(_aten_requantized(x), -1.0, 1.0)
        between = DQ(Q(first, 0.3, 0, -128, 127, torch.int8), 0.3, 0, -128, 127, torch.int8)
        return ATEN.relu.default(between)

    [envelope] = envelopes(_graph(function), (np.array([0.8], np.float32),), "rounding")
    assert envelope.low[0] == pytest.approx(0.3)  # 0.4 rounded to 0.3 by the middle domain, or kept
    assert envelope.high[0] == pytest.approx(0.4)


def _quantized(x, scale, dtype=torch.int8, qmin=-128, qmax=127):
    return DQ(Q(x, scale, 0, qmin, qmax, dtype), scale, 0, qmin, qmax, dtype)


def _sums(x, middle):
    first = ATEN.sum.dim_IntList(_quantized(x, 0.5), [1], True)
    return _quantized(ATEN.sum.dim_IntList(_quantized(first, middle), [0]), 1.0)


def test_a_saturation_between_int32_operators_of_one_unit_may_be_skipped():
    inputs = (np.full((2, 4), 40.0, np.float32),)  # sums of 160: beyond code 127 of step 0.5 (63.5)
    [same] = envelopes(_graph(lambda x: _sums(x, 0.5)), inputs, "rounding")
    assert (float(same.low[0]), float(same.high[0])) == (127.0, 127.0)
    small = (np.full((2, 4), 10.0, np.float32),)  # sums of 40 and of 80: nothing saturates at the end
    [free] = envelopes(_graph(lambda x: _sums(x, 0.5)), (np.full((1, 4), 20.0, np.float32),), "rounding")
    assert free.low[0] == pytest.approx(63.0)  # 63.5 saturated, then a tie
    assert free.high[0] == pytest.approx(80.0)
    [other] = envelopes(_graph(lambda x: _sums(x, 0.25)), small, "rounding")
    assert other.high[0] == pytest.approx(64.0)  # another unit: each sum saturates at 31.75


def _wide(x, follow, step=0.01):
    conv = ATEN.linear.default(_quantized(x, step, torch.int16, -32767, 32767), ATEN.ones_like.default(x), None)
    return follow(_quantized(conv, 0.001, torch.int16, -32767, 32767))


def test_an_int16_convolution_may_feed_an_int32_operator_from_its_accumulator():
    inputs = (np.full((1, 2), 30.0, np.float32),)  # 60 saturates at 32.767
    [read] = envelopes(_graph(lambda x: _wide(x, lambda value: ATEN.sum.dim_IntList(value, [1]))), inputs, "rounding")
    assert read.low[0] == pytest.approx(32.767, abs=0.01)
    assert read.high[0] == pytest.approx(60.0, abs=0.01)
    [kept] = envelopes(_graph(lambda x: _wide(x, ATEN.relu.default)), inputs, "rounding")
    assert kept.high[0] == pytest.approx(32.767, abs=0.01)


def test_an_accumulator_that_feeds_an_int32_operator_may_be_rounded_beyond_the_last_code():
    step = 32.7676 / 53717  # the sum is 32767.6 steps: rounded to 32768 before any saturation at 32767
    inputs = (np.array([[26858 * step, 26859 * step]], np.float32),)
    [read] = envelopes(_graph(lambda x: _wide(x, ATEN.abs.default, step)), inputs, "rounding")
    # a 16-bit multiplier may add or take a step (2**-15 of it): not rounded from below, rounded from above
    assert (float(read.low[0]), float(read.high[0])) == pytest.approx((32.7666, 32.769), abs=2e-5)


def _with_constant(codes, original=None, scale=0.1):
    """x times a quantized constant, with its float original if that is known."""
    graph = _graph(lambda x: ATEN.mul.Tensor(x, DQ(x, scale, 0, -128, 127, torch.int8)))
    [dequantize] = [node for node in graph.graph.nodes if node.target is DQ]
    graph.register_buffer("codes", torch.tensor(codes, dtype=torch.int8))
    with graph.graph.inserting_before(dequantize):
        dequantize.args = (graph.graph.get_attr("codes"), *dequantize.args[1:])
    if original is not None:
        [reader] = dequantize.users
        originals.note_originals(graph, {(reader.name, 1): torch.tensor(original)})
    return graph


def _of_constant(policy, *args):
    [envelope] = envelopes(_with_constant(*args), (np.array([1.0], np.float32),), policy)
    return envelope


def test_a_scale_far_above_the_values_takes_nothing_from_what_is_not_rounded():
    """A code of 3e-12 beside a zero point of -128 is lost in float64."""
    huge = (2e10, -128, -128, 127, torch.int8)
    graph = _graph(lambda x: DQ(Q(x, *huge), *huge))
    [envelope] = envelopes(graph, (np.array([0.0494], np.float32),), "quantization")
    assert (float(envelope.low[0]), float(envelope.high[0])) == pytest.approx((0.0494, 0.0494), rel=1e-6)


def test_a_quantized_constant_stands_for_its_float_original():
    inside, clipped = _of_constant("quantization", [30], [3.04]), _of_constant("quantization", [127], [14.5])
    assert (float(inside.low[0]), float(inside.high[0])) == pytest.approx((3.04, 3.04), rel=1e-6)
    assert (float(clipped.low[0]), float(clipped.high[0])) == pytest.approx((14.5, 14.5), rel=1e-6)
    assert inside.unjudged == clipped.unjudged == ()
    assert _of_constant("rounding", [127], [14.5]).high[0] == pytest.approx(12.7, rel=1e-6)


def test_a_large_constant_is_looked_at_in_parts(monkeypatch):
    """Some rows at a time, whose last part is smaller: each element is as in one part."""
    codes = torch.randint(-128, 128, (7, 3, 2)).to(torch.float64)
    scale, zero_point = torch.rand(7, 1, 1, dtype=torch.float64) + 0.1, torch.randint(-5, 5, (7, 1, 1))
    original = ((codes - zero_point) * scale).float() + torch.randint(0, 2, codes.shape)
    for noted in (original, None):
        whole, parts = (
            originals.stood_for(codes, scale, zero_point, noted, ends=(-128, 127), clips=True)
            for size in (originals.ELEMENTS, 12)
            if not monkeypatch.setattr(originals, "ELEMENTS", size)
        )
        assert torch.equal(whole.low, parts.low)
        assert torch.equal(whole.high, parts.high)


def test_codes_that_stand_for_something_else_are_not_excused_by_their_original():
    wrong = _of_constant("quantization", [30], [4.0])
    assert (float(wrong.low[0]), float(wrong.high[0])) == pytest.approx((2.95, 3.05), rel=1e-6)


def test_a_constant_without_a_known_original_is_bounded_by_its_codes_or_unjudged():
    inside, end = _of_constant("quantization", [30]), _of_constant("quantization", [127])
    assert (float(inside.low[0]), float(inside.high[0])) == pytest.approx((2.95, 3.05), rel=1e-6)
    assert end.high[0] == np.inf
    assert end.low[0] == pytest.approx(12.65, rel=1e-4)
    assert end.unjudged == ("constant without its float original",)


def test_originals_are_found_through_observers_and_operators_on_constants():
    root = torch.nn.Module()
    root.register_buffer("weight", torch.tensor([1.0, 2.0]))
    root.observer = torch.nn.Identity()
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    view = graph.call_function(ATEN.view.default, (graph.get_attr("weight"), [2, 1]))
    seen = graph.call_module("observer", (view,))
    graph.output(graph.call_function(ATEN.mul.Tensor, (graph.call_module("observer", (x,)), seen)))
    found = originals.constants_of(torch.fx.GraphModule(root, graph))
    assert {place: value.tolist() for place, value in found.items()} == {
        ("view_default", 0): [1.0, 2.0],
        ("mul_tensor", 1): [[1.0], [2.0]],
    }


def test_unjudged_names_only_the_operators_that_an_output_depends_on():
    def function(x):
        doubted = ATEN.lgamma.default(_aten_requantized(x))
        return doubted, _quantized(doubted, 0.1), ATEN.relu.default(_aten_requantized(x)), ATEN.sub.Tensor(doubted, x)

    first, behind, beside, after = envelopes(_graph(function), (np.array([0.5], np.float32),), "rounding")
    assert first.unjudged == behind.unjudged == after.unjudged == ("aten.lgamma",)
    assert beside.unjudged == ()
    assert (float(behind.low[0]), float(behind.high[0])) == pytest.approx((-12.8, 12.7))  # finite, and no claim


def test_a_rule_that_can_claim_nothing_is_named():
    def function(x):
        return ATEN.reciprocal.default(ATEN.sub.Tensor(_aten_requantized(x), 0.05))

    [envelope] = envelopes(_graph(function), (np.array([0.1], np.float32),), "rounding")  # 0.0 or 0.1, then minus 0.05
    assert envelope.unjudged == ("aten.reciprocal",)


def test_integers_stay_integers():
    def function(x):
        flags = ATEN.bitwise_and.Scalar(x, 3)
        shifted = ATEN.bitwise_left_shift.Tensor_Scalar(flags, 1)
        return shifted, ATEN.embedding.default(ATEN.new_ones.default(x, [8, 2], dtype=torch.float32), shifted)

    codes, rows = envelopes(_graph(function), (np.array([1, 6], np.int32),), "rounding")
    assert codes.low.tolist() == [2, 4]
    assert rows.low.tolist() == rows.high.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert codes.unjudged == rows.unjudged == ()


def test_logic_of_uncertain_truth_values():
    def function(x):
        above = ATEN.gt.Scalar(_aten_requantized(x), 0.25)
        both = ATEN.logical_and.default(above, ATEN.logical_not.default(above))
        return above, ATEN.bitwise_or.Tensor(above, x > 0), both

    above, either, both = envelopes(_graph(function), (np.array([0.5, 0.9], np.float32),), "rounding")
    assert (above.low.tolist(), above.high.tolist()) == ([0, 1], [1, 1])  # 0.2 or 0.3; 0.4 or 0.5
    assert either.low.tolist() == [1, 1]
    assert (both.low.tolist(), both.high.tolist()) == ([0, 0], [1, 0])


@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "gelu", "floor"])
def test_a_16_bit_table_holds_its_interpolation(name):
    """Every chord of a table that TOSA's integer form interpolates, for exact and for uncertain codes."""
    overload = getattr(ATEN, name).default
    scale, step = 12.0 / 32767, 12.0 / 32767
    entries = overload(torch.arange(-32768, 32769, 128, dtype=torch.float64) * scale)
    entries = torch.round(entries / step)
    rng = np.random.default_rng(5)
    low = torch.from_numpy(rng.integers(-32000, 31000, 400).astype(np.float64))
    for spread in (0, 1, 900):
        codes = low + torch.from_numpy(rng.integers(0, spread + 1, 400).astype(np.float64))
        operand = Interval(low * scale, (low + spread) * scale, scale, 16)
        result = tables.table(Call(overload, (operand,), {}, step, (-32768 * step, 32767 * step)))
        left = torch.floor(codes / 128)
        first, second = (entries[(left + side).long() + 256] for side in (0, 1))
        value = (first + (second - first) * (codes - left * 128) / 128) * step
        assert bool((value >= result.low - 1e-9).all())
        assert bool((value <= result.high + 1e-9).all())


def test_an_integer_output_is_held_as_float64():
    """int8 has no absolute value of -128: a margin of it was negative, and the reference outside its own envelope."""
    [envelope] = envelopes(_graph(lambda x: ATEN.bitwise_and.Tensor(x, x)), (np.array([-128, 3], np.int8),), "rounding")
    assert (envelope.low.dtype, envelope.low.tolist(), envelope.high.tolist()) == (np.float64, [-128, 3], [-128, 3])


def test_values_that_nobody_reads_any_more_are_let_go_of():
    """The float64 ends of a model's weights are many times the model; what shares memory stays."""
    graph = torch.fx.symbolic_trace(
        lambda x, w: ATEN.relu_.default(ATEN.linear.default(DQ(Q(x, *SCALE), *SCALE), ATEN.neg.default(w)))
    )
    walk = _Walk(graph, "rounding", {})
    arrays = (np.ones((1, 3), np.float32), np.ones((2, 3), np.float32))
    [envelope] = walk.run(arrays)
    assert envelope.high.tolist() == [[0.0, 0.0]]
    assert {node.name for node in walk.values} == {"linear_default", "relu__default"}


def _looked_up(x, function, zero_point):
    x = DQ(Q(x, 0.01, -128, -128, 127, torch.int8), 0.01, -128, -128, 127, torch.int8)
    x = DQ(Q(x * 0.5, 0.01, -128, -128, 127, torch.int8), 0.01, -128, -128, 127, torch.int8)
    return DQ(Q(function(x), 0.1, zero_point, -128, 127, torch.int8), 0.1, zero_point, -128, 127, torch.int8)


@pytest.mark.parametrize(
    ("function", "zero_point", "wanted"),
    [(ATEN.log.default, 100, (-22.8, -4.6)), (ATEN.rsqrt.default, -128, (10.0, 25.5))],
)
def test_a_function_without_end_at_zero_is_bounded_on_the_other_side(function, zero_point, wanted):
    """Half of 0.01 may be rounded to 0 or to 0.01."""
    graph = _graph(lambda x: _looked_up(x, function, zero_point))
    [envelope] = envelopes(graph, (np.asarray([0.01], np.float32),), "rounding")
    assert envelope.unjudged == ()
    np.testing.assert_allclose([envelope.low[0], envelope.high[0]], wanted, atol=0.05)


def test_a_function_outside_its_domain_may_give_every_code_and_is_no_operator_without_a_rule():
    graph = _graph(lambda x: _looked_up(x, ATEN.asin.default, 0))
    [envelope] = envelopes(graph, (np.asarray([1.0, 2.4], np.float32),), "rounding")
    assert envelope.unjudged == ()
    np.testing.assert_allclose(envelope.low, [0.5, -12.8], atol=0.05)
    np.testing.assert_allclose(envelope.high, [0.5, 12.7], atol=0.05)


def test_without_rounding_a_number_at_the_end_of_a_domain_is_there_still():
    """1 / 0.013 * 0.013 is less than 1 in float64."""

    def function(x):
        return ATEN.acosh.default(DQ(Q(x, 0.013, -7, -128, 127, torch.int8), 0.013, -7, -128, 127, torch.int8))

    [envelope] = envelopes(_graph(function), (np.asarray([1.0], np.float32),), "quantization")
    assert envelope.unjudged == ()
    assert 0.0 <= envelope.high[0] < 1e-2


def test_an_average_errs_with_every_element_of_its_window():
    """Windows overlap: there are far more additions than elements."""
    graph = _graph(lambda x: ATEN.avg_pool1d.default(DQ(Q(x, *SCALE), *SCALE), [1200], [1]))
    [envelope] = envelopes(graph, (np.ones((1, 1, 1300), np.float32),), "rounding")
    assert np.all(envelope.high - envelope.low >= 1200 * 2.0**-23)
