"""TOSA operators of the interpreter on numbers worked out by hand."""

import pytest
import torch

from harness.locate.blame.dialect import KERNELS, Context, Unsupported, encoded_ratio

NONE = Context({})


def codes(*values, dtype=torch.int8):
    return torch.tensor(values, dtype=dtype)


def test_rescale_rounds_halves_upward_and_saturates():
    rescale = KERNELS["RESCALE"]
    got = rescale(NONE, codes(1, -1, 3, -3, 127), torch.int8, [0.5], 0, 0)
    assert got.tolist() == [1, 0, 2, -1, 64]
    assert rescale(NONE, codes(127, -128), torch.int8, [4.0], 0, 5).tolist() == [127, -128]
    assert rescale(NONE, codes(10, 10), torch.int32, [2.0], 3, 0).tolist() == [14, 14]


def test_rescale_multiplies_by_the_ratio_that_tosa_encodes():
    rescale = KERNELS["RESCALE"]
    third = 1.0 / 3.0
    assert encoded_ratio(third, 31) == (round(third * 2**32), 32)
    assert encoded_ratio(third, 15) == (round(third * 2**16), 16)
    assert encoded_ratio(1.0 - 2.0**-40, 31) == (2**30, 30)
    assert encoded_ratio(2.0**-40, 31) == (2**30 >> 8, 62)
    wide = codes(3 * 2**20, dtype=torch.int64)  # int48: 15 bits of multiplier
    assert rescale(NONE, wide, torch.int32, [third], 0, 0).tolist() == [(3 * 2**20 * 21845 + 2**15) >> 16]
    assert rescale(NONE, wide.to(torch.int32), torch.int32, [third], 0, 0).tolist() == [2**20]


@pytest.mark.parametrize("scale", [-1.0, 2.0**40])
def test_a_ratio_without_an_encoding_is_not_evaluated(scale):
    with pytest.raises(Unsupported):
        KERNELS["RESCALE"](NONE, codes(1), torch.int8, [scale], 0, 0)


def test_rescale_takes_one_scale_a_channel():
    got = KERNELS["RESCALE"](NONE, codes([10, 10], [20, 20], dtype=torch.int32), torch.int8, [1.0, 0.1], 0, 0)
    assert got.tolist() == [[10, 1], [20, 2]]


def test_rescale_reads_unsigned_bytes():
    got = KERNELS["RESCALE"](NONE, codes(-1, -128), torch.int32, [1.0], 0, 0, input_unsigned=True)
    assert got.tolist() == [255, 128]
    got = KERNELS["RESCALE"](NONE, codes(255, 300, dtype=torch.int32), torch.int8, [1.0], 0, 0, output_unsigned=True)
    assert got.tolist() == [-1, -1]


def test_convolution_subtracts_the_zero_point_and_not_from_padding():
    x = torch.full((1, 2, 2, 1), 7, dtype=torch.int8)
    w = torch.ones((1, 3, 3, 1), dtype=torch.int8)
    bias = torch.tensor([100], dtype=torch.int32)
    got = KERNELS["CONV2D"](Context({0: 5}), x, w, bias, [1, 1], [1, 1, 1, 1], [1, 1])
    assert got.reshape(-1).tolist() == [108] * 4


@pytest.mark.parametrize(("dtype", "accumulator"), [(torch.int8, torch.int32), (torch.int16, torch.int64)])
def test_accumulators_are_int32_and_for_16_bits_int48(dtype, accumulator):
    x, w = codes([1, 2], dtype=dtype), codes([3], [4], dtype=dtype)
    got = KERNELS["MATMUL"](NONE, x[None], w[None])
    assert (got.dtype, got.tolist()) == (accumulator, [[[11]]])


def test_depthwise_keeps_channels_apart():
    x = torch.tensor([1, 2], dtype=torch.int8).reshape(1, 1, 1, 2)
    w = torch.tensor([10, 20, 30, 40], dtype=torch.int8).reshape(1, 1, 2, 2)
    got = KERNELS["DEPTHWISE_CONV2D"](NONE, x, w, torch.zeros(4, dtype=torch.int32), [1, 1], [0] * 4, [1, 1])
    assert got.reshape(-1).tolist() == [10, 20, 60, 80]


def test_tables_look_up_and_interpolate():
    table = KERNELS["TABLE"]
    assert table(NONE, codes(-128, 0, 127), torch.arange(-128, 128).to(torch.int8)).tolist() == [-128, 0, 127]
    entries = (torch.arange(513) * 10).to(torch.int16)
    got = table(NONE, codes(-32768, 0, 64, dtype=torch.int16), entries)
    assert got.tolist() == [0, 2560 << 7, (2560 << 7) + 640]


def test_average_pooling_leaves_padding_out_of_the_count():
    x = torch.tensor([[4, 8], [12, 16]], dtype=torch.int8).reshape(1, 2, 2, 1)
    got = KERNELS["AVG_POOL2D"](NONE, x, 0, 0, [2, 2], [2, 2], [1, 1, 1, 1], torch.int32)
    assert got.reshape(-1).tolist() == [4, 8, 12, 16]


def test_max_pooling_ignores_padding():
    x = torch.full((1, 2, 2, 1), -5, dtype=torch.int8)
    assert KERNELS["MAX_POOL2D"](NONE, x, [2, 2], [1, 1], [1, 1, 1, 1]).unique().tolist() == [-5]


def test_negate_saturates_around_its_zero_points():
    assert KERNELS["NEGATE"](Context({0: 0}, 0), codes(-128, 5)).tolist() == [127, -5]
    assert KERNELS["NEGATE"](Context({0: 10}, 3), codes(10, 12)).tolist() == [3, 1]


def test_multiplication_shifts_with_rounding():
    got = KERNELS["MUL"](NONE, codes(3, 5, dtype=torch.int32), codes(1, 1, dtype=torch.int32), shift=1)
    assert got.tolist() == [2, 3]


@pytest.mark.parametrize(("value", "axis"), [(1, 0), (3, 1)])
def test_padding_goes_where_its_axis_is(value, axis):
    padding = [0, 0, 0, 0]
    padding[2 * axis] = 1
    got = KERNELS["PAD"](NONE, codes([5, 6]), padding, value=value)
    assert got.shape == ((2, 2) if axis == 0 else (1, 3))
    assert got.reshape(-1)[0] == value
