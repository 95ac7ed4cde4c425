"""What the float profile folds into a convolution, and what weights and bias are then."""

import numpy as np
import pytest

from harness.evidence.inspection.folding import folded
from harness.evidence.inspection.followed import Channels, folded_into
from tests.unit.artifacts import call, output, placeholder, snapshot

NORM = "aten._native_batch_norm_legit_no_training.default"


def graph(*between):
    statistics = [
        placeholder(name, np.asarray(value, np.float32))
        for name, value in [("g", [2.0, 4.0]), ("b", [1.0, -1.0]), ("m", [0.5, 3.0]), ("v", [3.0, 15.0])]
    ]
    conv = call("conv", "aten.convolution.default", "%x", "%w", shape=(1, 2, 4, 4))
    last = between[-1].name if between else "conv"
    return snapshot(placeholder("x"), placeholder("w"), *statistics, conv, *between, output(last))


def channels(*between):
    made = graph(*between)
    return list(folded_into(made.nodes["conv"], made, folded(made)))


def norm(of):
    return call("norm", NORM, of, "%g", "%b", "%m", "%v", 0.1, 1.0, shape=(1, 2, 4, 4))


def test_a_batch_norm_scales_weights_and_moves_the_bias():
    first = call("first", "getitem", "%norm", 0, shape=(1, 2, 4, 4))
    [made] = channels(norm("%conv"), first)
    weight = made.weight(np.ones((2, 3, 1, 1)))
    assert weight.value[:, 0, 0, 0] == pytest.approx([1.0, 1.0], rel=1e-5)  # 2 / sqrt(3 + 1), 4 / sqrt(15 + 1)
    assert made.bias(np.asarray([10.0, 20.0])).value == pytest.approx(
        [10.5, 16.0], rel=1e-5
    )  # (10 - 0.5) + 1, (20 - 3) - 1
    assert (weight.low < weight.high).all()


@pytest.mark.parametrize("target", ["aten.div.Scalar", "aten.div.Tensor_mode"])
def test_a_quotient_is_a_product(target):
    [one] = channels(call("quotient", target, "%conv", 0.25, shape=(1, 2, 4, 4)))
    assert one.factor == pytest.approx(4.0)


def test_a_quotient_of_a_constant_by_the_convolution_is_none():
    assert channels(call("quotient", "aten.div.Tensor", "%b", "%conv", shape=(1, 2, 4, 4))) == []


def test_a_product_behind_is_folded_as_well_or_not():
    first = call("first", "getitem", "%norm", 0, shape=(1, 2, 4, 4))
    half = call("half", "aten.mul.Scalar", "%first", 0.5, shape=(1, 2, 4, 4))
    one, two = channels(norm("%conv"), first, half)
    assert two.factor == pytest.approx(one.factor / 2)
    assert two.bias(np.asarray([10.0, 20.0])).value == pytest.approx([5.25, 8.0], rel=1e-5)


def test_a_transposed_convolution_has_its_output_channels_group_by_group():
    channels = Channels(np.asarray([1.0, 2.0, 3.0, 4.0]), np.zeros(1), np.zeros(1))
    scaled = channels.weight(np.ones((6, 2, 1, 1)), 2).value[:, :, 0, 0]
    assert scaled == pytest.approx(np.asarray([[1.0, 2.0]] * 3 + [[3.0, 4.0]] * 3), rel=1e-5)


@pytest.mark.parametrize(
    ("operator", "shape", "factor", "folded_in"),
    [
        ("convolution", (1, 2, 4, 4), [[[3.0]], [[5.0]]], True),
        ("convolution", (1, 2, 4, 2), [3.0, 5.0], False),  # along the columns
        ("linear", (1, 7, 2), [3.0, 5.0], True),
        ("linear", (1, 2, 7), [[3.0], [5.0]], False),
    ],
)
def test_a_factor_is_folded_if_it_is_one_a_channel(operator, shape, factor, folded_in):
    made = snapshot(
        placeholder("x"),
        placeholder("f", np.asarray(factor, np.float32)),
        call("conv", f"aten.{operator}.default", "%x", "%w", shape=shape),
        call("product", "aten.mul.Tensor", "%conv", "%f", shape=shape),
        output("product"),
    )
    found = list(folded_into(made.nodes["conv"], made, folded(made)))
    assert [item.factor.tolist() for item in found] == ([[3.0, 5.0]] if folded_in else [])


@pytest.mark.parametrize("target", ["aten.relu.default", "aten.add.Tensor"])
def test_nothing_is_folded_through_another_operator(target):
    assert channels(call("other", target, "%conv"), call("half", "aten.mul.Scalar", "%other", 0.5)) == []


def test_nothing_is_folded_where_the_result_is_read_twice():
    made = graph(call("half", "aten.mul.Scalar", "%conv", 0.5), call("sum", "aten.add.Tensor", "%half", "%conv"))
    assert list(folded_into(made.nodes["conv"], made, folded(made))) == []
