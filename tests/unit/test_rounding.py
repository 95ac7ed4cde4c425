"""Envelopes: sampled operands inside their intervals must land inside the rule's result.

Graphs are traced by torch.fx from small functions; no export, no quantizer.
"""

from itertools import product

import numpy as np
import pytest
import torch
from torch.ao.quantization.fx import _decomposed

from harness.rounding import tables
from harness.rounding.interval import Interval
from harness.rounding.rules import RULES, Call
from harness.rounding.walk import envelopes

assert _decomposed  # registers torch.ops.quantized_decomposed
ATEN = torch.ops.aten
Q = torch.ops.quantized_decomposed.quantize_per_tensor.default
DQ = torch.ops.quantized_decomposed.dequantize_per_tensor.default


def _interval(rng, shape, width=0.3, scale=None, bits=8):
    low = torch.from_numpy(rng.uniform(-2.0, 2.0, shape))
    return Interval(low, low + torch.from_numpy(rng.uniform(0.0, width, shape)), scale, bits)


WORDS = {"addmm": ({}, {"alpha": -0.5, "beta": 0.0}, {"alpha": 2.0, "beta": -3.0}), "add": ({}, {"alpha": -2.0})}
CALLS = {
    "relu": (ATEN.relu.default, [(2, 3)], ()),
    "hardtanh": (ATEN.hardtanh.default, [(2, 3)], (-0.5, 0.5)),
    "cat": (ATEN.cat.default, "list", (1,)),
    "view": (ATEN.view.default, [(2, 3)], ([3, 2],)),
    "sum": (ATEN.sum.dim_IntList, [(2, 3)], ([1],)),
    "mean": (ATEN.mean.dim, [(2, 3)], ([0], True)),
    "avg_pool2d": (ATEN.avg_pool2d.default, [(1, 2, 4, 4)], ([2, 2],)),
    "max_pool2d": (ATEN.max_pool2d.default, [(1, 2, 4, 4)], ([2, 2],)),
    "conv2d": (ATEN.conv2d.default, [(1, 2, 4, 4), (3, 2, 3, 3), (3,)], ([1, 1], [1, 1])),
    "conv_transpose2d": (ATEN.conv_transpose2d.input, [(1, 2, 4, 4), (2, 3, 3, 3), (3,)], ([2, 2],)),
    "linear": (ATEN.linear.default, [(2, 4), (3, 4), (3,)], ()),
    "bmm": (ATEN.bmm.default, [(2, 3, 4), (2, 4, 2)], ()),
    "addmm": (ATEN.addmm.default, [(3,), (2, 4), (4, 3)], ()),
    "add": (ATEN.add.Tensor, [(2, 3), (3,)], ()),
    "sub": (ATEN.sub.Tensor, [(2, 3), (2, 1)], ()),
    "mul": (ATEN.mul.Tensor, [(2, 3), (2, 3)], ()),
    "maximum": (ATEN.maximum.default, [(2, 3), (2, 3)], ()),
    "abs": (ATEN.abs.default, [(2, 3)], ()),
    "neg": (ATEN.neg.default, [(2, 3)], ()),
    "softmax": (ATEN.softmax.int, [(2, 3)], (1,)),
    "gelu": (ATEN.gelu.default, [(2, 3)], ()),
    "hardswish": (ATEN.hardswish.default, [(2, 3)], ()),
    "silu": (ATEN.silu.default, [(2, 3)], ()),
    "sigmoid": (ATEN.sigmoid.default, [(2, 3)], ()),
    "tanh": (ATEN.tanh.default, [(2, 3)], ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_rule_holds_every_value_between_its_operands_ends(name):
    overload, shapes, rest = CALLS[name]
    rng = np.random.default_rng(3)
    for width, words in product((0.0, 0.3, 3.0), WORDS.get(name, ({},))):
        if shapes == "list":
            args = ([_interval(rng, (2, 2), width), _interval(rng, (2, 1), width)], *rest)
        else:
            args = (*(_interval(rng, shape, width) for shape in shapes), *rest)
        call = Call(overload, args, words)
        result = RULES[f"aten.{name}"](call)
        for _ in range(20):
            value = call.of(
                lambda item: item.low + (item.high - item.low) * torch.from_numpy(rng.uniform(size=item.low.shape))
            )
            assert bool((value >= result.low - 1e-12).all()), name
            assert bool((value <= result.high + 1e-12).all()), name
        if width == 0.0:  # exact operands: nothing but float32 error is free
            assert float((result.high - result.low).max()) < 1e-4


@pytest.mark.parametrize("kind", ["gt", "ge", "lt", "le"])
def test_a_comparison_is_certain_only_where_the_intervals_do_not_overlap(kind):
    first = Interval(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([1.0, 3.0, 3.0]))
    second = Interval(torch.tensor([2.0, 2.0, 0.0]), torch.tensor([2.5, 2.5, 1.0]))
    overload = getattr(ATEN, kind).Tensor
    result = RULES[f"aten.{kind}"](Call(overload, (first, second), {}))
    left = kind in ("lt", "le")
    assert result.low.tolist() == [left, False, not left]
    assert result.high.tolist() == [left, True, not left]


def test_division_by_an_interval_around_zero_makes_no_claim():
    first = Interval(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 2.0]))
    second = Interval(torch.tensor([-1.0, 1.0]), torch.tensor([1.0, 2.0]))
    result = RULES["aten.div"](Call(ATEN.div.Tensor, (first, second), {}))
    assert result.high.tolist()[0] == float("inf")
    assert result.low[1] == pytest.approx(0.5, rel=1e-5)


def test_a_16_bit_table_may_interpolate_and_an_8_bit_one_may_not():
    value = torch.tensor([0.3337])
    narrow = Interval(value, value, scale=4.0 / 255, bits=8)
    wide = Interval(value, value, scale=4.0 / 32767, bits=16)
    step = 1.0 / 32767
    exact = tables.table(Call(ATEN.sigmoid.default, (narrow,), {}, step, (-1.0, 1.0)))
    chord = tables.table(Call(ATEN.sigmoid.default, (wide,), {}, step, (-1.0, 1.0)))
    assert float(exact.high - exact.low) < step / 4
    assert step <= float(chord.high - chord.low) < 3 * step


def test_a_function_that_cancels_may_be_off_by_epsilons_of_its_argument():
    """gelu below zero: a thousand epsilons of the result (a drawn graph, 2026-11-23)."""
    value = torch.tensor([-3.5504706390202045], dtype=torch.float64)
    result = tables.table(Call(ATEN.gelu.default, (Interval(value, value, bits=8),), {}, 5e-5, (-0.0128, 0.0)))
    in_float32 = float(torch.nn.functional.gelu(value.float()))
    assert float(result.low) <= in_float32 <= float(result.high)
    assert float(result.high - result.low) < 5e-5 / 50  # steps


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


def test_quantization_policy_explains_half_a_step_and_clipping():
    [envelope] = envelopes(_graph(_aten_requantized), (np.array([0.44, 100.0], np.float32),), "quantization")
    assert envelope.low[0] <= 0.22 - 0.05
    assert envelope.high[0] >= 0.22 + 0.05
    assert envelope.high[0] < 0.22 + 0.11
    assert envelope.low[1] <= 6.4
    assert envelope.high[1] >= 50.0


def test_an_operator_without_a_rule_makes_no_claim_where_its_operand_is_uncertain():
    def function(x):
        return ATEN.erfinv.default(_aten_requantized(x))

    sure = envelopes(_graph(function), (np.array([0.4], np.float32),), "rounding")[0]
    unsure = envelopes(_graph(function), (np.array([0.5], np.float32),), "rounding")[0]
    assert np.isfinite(sure.low).all()
    assert sure.unjudged == ()
    assert not np.isfinite(unsure.low).any()
    assert unsure.unjudged == ("aten.erfinv",)


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


def _wide(x, follow):
    conv = ATEN.linear.default(_quantized(x, 0.01, torch.int16, -32767, 32767), ATEN.ones_like.default(x), None)
    return follow(_quantized(conv, 0.001, torch.int16, -32767, 32767))


def test_an_int16_convolution_may_feed_an_int32_operator_from_its_accumulator():
    inputs = (np.full((1, 2), 30.0, np.float32),)  # 60 saturates at 32.767
    [read] = envelopes(_graph(lambda x: _wide(x, lambda value: ATEN.sum.dim_IntList(value, [1]))), inputs, "rounding")
    assert read.low[0] == pytest.approx(32.767, abs=0.01)
    assert read.high[0] == pytest.approx(60.0, abs=0.01)
    [kept] = envelopes(_graph(lambda x: _wide(x, ATEN.relu.default)), inputs, "rounding")
    assert kept.high[0] == pytest.approx(32.767, abs=0.01)


def test_a_constant_at_the_end_of_its_codes_may_have_been_clipped():
    def function(x):
        codes = ATEN.full_like.default(x, 127, dtype=torch.int8)
        return ATEN.mul.Tensor(x, DQ(codes, 0.1, 0, -128, 127, torch.int8))

    graph = _graph(function)
    inputs = (np.array([1.0], np.float32),)
    assert envelopes(graph, inputs, "quantization")[0].high[0] == np.inf
    assert envelopes(graph, inputs, "quantization")[0].low[0] == pytest.approx(12.65, rel=1e-4)
    assert envelopes(graph, inputs, "rounding")[0].high[0] == pytest.approx(12.7, rel=1e-4)
