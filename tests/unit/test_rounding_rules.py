"""Rules: sampled operands inside their intervals must land inside the rule's result; tables of 8 and 16 bits."""

from itertools import product

import numpy as np
import pytest
import torch
from torch.ao.quantization.fx import _decomposed

from harness.evidence.rounding import tables
from harness.evidence.rounding.interval import Interval
from harness.evidence.rounding.rules import RULES, Call, base_name

assert _decomposed  # registers torch.ops.quantized_decomposed
ATEN = torch.ops.aten
SCALE = (0.1, 0, -128, 127, torch.int8)
Q = torch.ops.quantized_decomposed.quantize_per_tensor.default
DQ = torch.ops.quantized_decomposed.dequantize_per_tensor.default


def _interval(rng, shape, width=0.3, scale=None, bits=8):
    low = torch.from_numpy(rng.uniform(-2.0, 2.0, shape))
    return Interval(low, low + torch.from_numpy(rng.uniform(0.0, width, shape)), scale, bits)


WORDS = {
    "addmm": ({}, {"alpha": -0.5, "beta": 0.0}, {"alpha": 2.0, "beta": -3.0}),
    "add": ({}, {"alpha": -2.0}),
    "var": ({}, {"correction": 0, "keepdim": True}),
}
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
    "max": (ATEN.max.default, [(2, 3)], ()),
    "max of two": (ATEN.max.other, [(2, 3), (2, 3)], ()),
    "maximum": (ATEN.maximum.default, [(2, 3), (2, 3)], ()),
    "abs": (ATEN.abs.default, [(2, 3)], ()),
    "neg": (ATEN.neg.default, [(2, 3)], ()),
    "softmax": (ATEN.softmax.int, [(2, 3)], (1,)),
    "gelu": (ATEN.gelu.default, [(2, 3)], ()),
    "hardswish": (ATEN.hardswish.default, [(2, 3)], ()),
    "silu": (ATEN.silu.default, [(2, 3)], ()),
    "sigmoid": (ATEN.sigmoid.default, [(2, 3)], ()),
    "tanh": (ATEN.tanh.default, [(2, 3)], ()),
    "sin": (ATEN.sin.default, [(2, 9)], ()),
    "cos": (ATEN.cos.default, [(2, 9)], ()),
    "cosh": (ATEN.cosh.default, [(2, 9)], ()),
    "sinh": (ATEN.sinh.default, [(2, 3)], ()),
    "atan": (ATEN.atan.default, [(2, 3)], ()),
    "asinh": (ATEN.asinh.default, [(2, 3)], ()),
    "exp": (ATEN.exp.default, [(2, 3)], ()),
    "expm1": (ATEN.expm1.default, [(2, 3)], ()),
    "erf": (ATEN.erf.default, [(2, 3)], ()),
    "sign": (ATEN.sign.default, [(2, 3)], ()),
    "floor": (ATEN.floor.default, [(2, 3)], ()),
    "ceil": (ATEN.ceil.default, [(2, 3)], ()),
    "round": (ATEN.round.default, [(2, 3)], ()),
    "square": (ATEN.pow.Tensor_Scalar, [(2, 9)], (2,)),
    "cube": (ATEN.pow.Tensor_Scalar, [(2, 9)], (3.0,)),
    "remainder": (ATEN.remainder.Scalar, [(2, 9)], (-0.75,)),
    "elu": (ATEN.elu.default, [(2, 9)], (-0.5,)),
    "selu": (ATEN.selu.default, [(2, 3)], ()),
    "leaky_relu": (ATEN.leaky_relu.default, [(2, 9)], (-0.5,)),
    "gelu by tanh": (ATEN.gelu.default, [(2, 9)], ()),
    "prod": (ATEN.prod.dim_int, [(2, 3)], (1,)),
    "prod, kept": (ATEN.prod.dim_int, [(2, 3)], (-2, True)),
    "cumsum": (ATEN.cumsum.default, [(2, 3)], (1,)),
    "bilinear up": (ATEN.upsample_bilinear2d.vec, [(1, 2, 3, 4)], (None, False, [2.0, 2.0])),
    "bilinear down": (ATEN.upsample_bilinear2d.vec, [(1, 2, 4, 6)], ([2, 3], True, None)),
    "nearest": (ATEN.upsample_nearest2d.vec, [(1, 2, 3, 4)], (None, [2.0, 2.0])),
    "pixel_shuffle": (ATEN.pixel_shuffle.default, [(1, 4, 2, 2)], (2,)),
    "gather": (ATEN.gather.default, [(2, 3)], (1, torch.tensor([[0, 2], [1, 1]]))),
    "index_select": (ATEN.index_select.default, [(2, 3)], (1, torch.tensor([2, 0], dtype=torch.int32))),
    "index": (ATEN.index.Tensor, [(2, 3)], ([None, torch.tensor([2, 0])],)),
    "embedding": (ATEN.embedding.default, [(5, 3)], (torch.tensor([4, 0], dtype=torch.int32),)),
    "repeat_interleave": (ATEN.repeat_interleave.self_int, [(2, 3)], (2, 1)),
    "unfold_copy": (ATEN.unfold_copy.default, [(2, 5)], (1, 3, 2)),
    "flip": (ATEN.flip.default, [(2, 3)], ([1],)),
    "roll": (ATEN.roll.default, [(2, 3)], ([1], [0])),
    "full_like": (ATEN.full_like.default, [(2, 3)], (0.7,)),
    "layer_norm": (ATEN.layer_norm.default, [(2, 6)], ([6], None, None, 1e-5)),
    "var": (ATEN.var.correction, [(2, 4, 3)], ([0, 2],)),
    "var of all": (ATEN.var.default, [(2, 3)], (False,)),
    "std": (ATEN.std.correction, [(2, 6)], ()),
    "std along one": (ATEN.std.dim, [(2, 6)], ([1], True, True)),
    "group_norm": (ATEN.group_norm.default, [(2, 4, 3)], (2, None, None, 1e-5)),
}


APPROXIMATED = ("atan", "expm1", "elu", "selu", "celu")


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
        result = RULES[base_name(overload)](call)
        for _ in range(20):
            value = call.of(
                lambda item: item.low + (item.high - item.low) * torch.from_numpy(rng.uniform(size=item.low.shape))
            )
            assert value.shape == result.low.shape
            assert bool((value >= result.low - 1e-12).all()), name
            assert bool((value <= result.high + 1e-12).all()), name
        if width == 0.0:  # exact operands: nothing but float32 error is free, and what float forms leave out
            assert float((result.high - result.low).max()) < (5e-4 if name in APPROXIMATED else 1e-4)


@pytest.mark.parametrize("kind", ["gt", "ge", "lt", "le"])
def test_a_comparison_is_certain_only_where_the_intervals_do_not_overlap(kind):
    first = Interval(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([1.0, 3.0, 3.0]))
    second = Interval(torch.tensor([2.0, 2.0, 0.0]), torch.tensor([2.5, 2.5, 1.0]))
    overload = getattr(ATEN, kind).Tensor
    result = RULES[f"aten.{kind}"](Call(overload, (first, second), {}))
    left = kind in ("lt", "le")
    assert result.low.tolist() == [left, False, not left]
    assert result.high.tolist() == [left, True, not left]


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("add", [1, 3], [2, 4]), ("sub", [1, 1], [2, 2]), ("mul", [0, 2], [0, 3])]
)
def test_a_truth_value_beside_a_number_is_zero_or_one(kind, low, high):
    first = Interval(torch.tensor([1.0, 2.0]).double(), torch.tensor([2.0, 3.0]).double())
    second = Interval(torch.tensor([False, True]), torch.tensor([False, True]))
    result = RULES[f"aten.{kind}"](Call(getattr(ATEN, kind).Tensor, (first, second), {}))
    assert result.low.tolist() == pytest.approx(low, abs=1e-5)
    assert result.high.tolist() == pytest.approx(high, abs=1e-5)


def test_the_largest_along_a_dimension_has_every_place_that_may_be_the_first():
    item = Interval(torch.tensor([[1.0, 2.0, 0.0], [3.0, 1.0, 1.0]]), torch.tensor([[2.5, 3.0, 0.0], [4.0, 1.0, 1.0]]))
    values, places = RULES["aten.max"](Call(ATEN.max.dim, (item, 1), {}))
    assert (values.low.tolist(), values.high.tolist()) == ([2.0, 3.0], [3.0, 4.0])
    assert (places.low.tolist(), places.high.tolist()) == ([0.0, 0.0], [1.0, 0.0])
    _, sure = RULES["aten.min"](Call(ATEN.min.dim, (item, 1), {}))
    assert sure.tolist() == [2, 1]


def test_what_is_made_of_many_operations_is_known_only_as_far_as_a_quantize_node_rounds_it():
    known = Interval(*[torch.rand(1, 2, 3, 3, generator=torch.manual_seed(0)).double()] * 2)
    wide = Interval(known.low, known.high + 0.1)
    grid = Interval(*[torch.zeros(1, 2, 2, 2).double()] * 2)

    def sampled(item, scale):
        return RULES["aten.grid_sampler"](Call(ATEN.grid_sampler.default, (item, grid, 0, 0, False), {}, scale))

    assert sampled(known, 0.1).low.shape == (1, 2, 2, 2)
    for item, scale in ((known, None), (wide, 0.1)):
        with pytest.raises(ValueError, match="no rule"):
            sampled(item, scale)


def test_division_by_an_interval_around_zero_makes_no_claim():
    first = Interval(torch.tensor([1.0, 1.0]), torch.tensor([2.0, 2.0]))
    second = Interval(torch.tensor([-1.0, 1.0]), torch.tensor([1.0, 2.0]))
    result = RULES["aten.div"](Call(ATEN.div.Tensor, (first, second), {}))
    assert result.high.tolist()[0] == float("inf")
    assert result.low[1] == pytest.approx(0.5, rel=1e-5)


def test_a_rounded_quotient_is_rounded_at_both_ends():
    first = Interval(torch.tensor([1.2, -1.2, 0.5]), torch.tensor([1.4, -1.1, 1.5]))
    for mode, low, high in (("floor", [1, -2, 0], [1, -2, 1]), ("trunc", [1, -1, 0], [1, -1, 1])):
        result = RULES["aten.div"](Call(ATEN.div.Tensor_mode, (first, 1.0), {"rounding_mode": mode}))
        assert (result.low.tolist(), result.high.tolist()) == (low, high)


def test_argmax_may_be_any_place_that_may_hold_the_largest():
    item = Interval(torch.tensor([[0.0, 1.0, 0.5], [2.0, 2.0, 0.0]]), torch.tensor([[0.9, 1.1, 1.0], [2.0, 2.0, 0.0]]))
    sure = RULES["aten.argmax"](Call(ATEN.argmax.default, (item, 1), {}))
    assert sure.tolist() == [1, 0]  # of equal ones the first
    wide = Interval(item.low, item.high + torch.tensor([0.0, 0.0, 0.5]))
    unsure = RULES["aten.argmax"](Call(ATEN.argmax.default, (wide, -1, True), {}))
    assert (unsure.low.tolist(), unsure.high.tolist()) == ([[1.0], [0.0]], [[2.0], [0.0]])


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


def test_rows_of_a_cache_that_are_written_lie_where_the_source_lies():
    rng = np.random.default_rng(0)
    cache, source = _interval(rng, (3, 2)), _interval(rng, (1, 2))
    before = cache.low.clone()
    call = Call(ATEN.index_copy_.default, (cache, 0, torch.tensor([1]), source), {})
    result = RULES[base_name(call.overload)](call)
    for end in ("low", "high"):
        wanted = getattr(cache, end).clone()
        wanted[1] = getattr(source, end)[0]
        assert torch.equal(getattr(result, end), wanted)
    assert torch.equal(cache.low, before)  # the operand is as it was
