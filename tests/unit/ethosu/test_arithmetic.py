"""Rounding modes and scaling, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.arithmetic import Rounding, clipped, divide_rounding_away, rescale, wrap


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [  # -5/2, -3/2, 3/2, 5/2
        (Rounding.NATURAL, (-2, -1, 2, 3)),
        (Rounding.SYMMETRIC, (-3, -2, 2, 3)),
        (Rounding.TRUNCATE_TO_ZERO, (-2, -1, 1, 2)),
        (Rounding.TRUNCATE_TO_LOWER, (-3, -2, 1, 2)),
        (Rounding.DOUBLE_SYMMETRIC, (-2, -1, 2, 3)),
        (Rounding.DOUBLE_ASYMMETRIC, (-2, -1, 2, 3)),
    ],
)
def test_halves(rounding: Rounding, expected: tuple[int, ...]) -> None:
    assert rescale(_ints(-5, -3, 3, 5), 1, 1, rounding).tolist() == list(expected)


def test_double_rounding_is_that_of_tflites_convolutions() -> None:
    """15453 * 1174001718 / 2**40 is 16.49992; but / 2**31 it is 8447.96, rounded 8448, and / 2**9 that is 16.5."""
    accumulator, scale, shift = _ints(15453), 1174001718, 40
    assert rescale(accumulator, scale, shift, Rounding.NATURAL).tolist() == [16]
    assert rescale(accumulator, scale, shift, Rounding.DOUBLE_SYMMETRIC).tolist() == [17]


def test_double_rounding_adds_its_constant_above_a_shift_of_31() -> None:
    just_below = (1 << 31) - (1 << 30)  # half of 2**32 minus the constant
    assert rescale(_ints(just_below), 1, 32, Rounding.NATURAL).tolist() == [0]
    assert rescale(_ints(just_below), 1, 32, Rounding.DOUBLE_SYMMETRIC).tolist() == [1]
    assert rescale(_ints(-just_below - 1), 1, 32, Rounding.DOUBLE_SYMMETRIC).tolist() == [-1]
    assert rescale(_ints(-just_below - 1), 1, 32, Rounding.DOUBLE_ASYMMETRIC).tolist() == [0]
    assert rescale(_ints(just_below), 1, 31, Rounding.DOUBLE_SYMMETRIC).tolist() == [1]


def test_double_round_field_moves_constant_and_threshold() -> None:
    value = (1 << 15) - (1 << 14)
    assert rescale(_ints(value), 1, 16, Rounding.DOUBLE_SYMMETRIC, double_round=16).tolist() == [1]
    assert rescale(_ints(value), 1, 16, Rounding.DOUBLE_SYMMETRIC, double_round=14).tolist() == [0]


def test_per_channel_scale_and_shift() -> None:
    values = np.array([[[10, 10, 10]]], np.int64)
    assert rescale(values, _ints(1, 2, 3), _ints(0, 1, 2), Rounding.NATURAL).tolist() == [[[10, 10, 8]]]


def test_products_beyond_63_bits_are_exact() -> None:
    values = _ints(1 << 46, -(1 << 46))
    assert rescale(values, (1 << 31) - 1, 40, Rounding.NATURAL).tolist() == [
        ((1 << 46) * ((1 << 31) - 1) + (1 << 39)) >> 40,
        (-(1 << 46) * ((1 << 31) - 1) + (1 << 39)) >> 40,
    ]


def test_wrap_keeps_low_bits() -> None:
    assert wrap(_ints(127, 128, -129, 256), 8, True).tolist() == [127, -128, 127, 0]
    assert wrap(_ints(-1, 256), 8, False).tolist() == [255, 0]


def test_division_ties_go_away_from_zero() -> None:
    assert divide_rounding_away(_ints(3, -3, 5, -5), _ints(2, 2, 3, 3)).tolist() == [2, -2, 2, -2]


@pytest.mark.parametrize("rounding", list(Rounding))
def test_wide_products_equal_pythons(rounding: Rounding) -> None:
    """Values up to the ends of int64, scales of 32 bits, every shift: the result saturates at 64 bits."""
    ends = (-(2**63), -(2**63) + 1, -(2**62), 2**62, 2**63 - 1)
    rng = np.random.RandomState(5)
    spread = [int(sign * rng.randint(1, 2**31) << int(rng.randint(32))) for sign in (-1, 1) for _ in range(40)]
    values = np.array([*ends, *spread], np.int64)
    for shift in range(64):
        for scale in (2**32 - 1, 2**31, 0x12345679):
            wanted = [_scaled(int(value), scale, shift, rounding) for value in values]
            assert rescale(values, scale, shift, rounding).tolist() == wanted


@pytest.mark.parametrize("rounding", list(Rounding))
def test_narrow_products_equal_pythons(rounding: Rounding) -> None:
    """No product leaves 63 bits; a scale of 2**shift, by whatever shift, changes nothing."""
    values = _ints(*range(-130, 131, 13))
    for shift in range(64):
        for scale in (1, 3, 0x12345679, 1 << min(shift, 31)):
            wanted = [_scaled(int(value), scale, shift, rounding) for value in values]
            assert rescale(values, scale, shift, rounding).tolist() == wanted
            channels = np.full(len(values), scale, np.int64), np.full(len(values), shift, np.int64)
            assert rescale(values, *channels, rounding).tolist() == wanted


@pytest.mark.parametrize(("low", "high"), [(-3, 4), (4, -3)])
def test_clipping_is_numpys(low: int, high: int) -> None:
    values = _ints(*range(-6, 7))
    assert clipped(values, low, high).tolist() == np.clip(values, low, high).tolist()


def _scaled(value: int, scale: int, shift: int, rounding: Rounding) -> int:
    half = 1 << shift - 1 if shift else 0
    double = 1 << 30 if shift > 31 else 0
    term = {
        Rounding.NATURAL: half,
        Rounding.SYMMETRIC: half - (value < 0 < shift),
        Rounding.TRUNCATE_TO_LOWER: 0,
        Rounding.TRUNCATE_TO_ZERO: (1 << shift) - 1 if value < 0 else 0,
        Rounding.DOUBLE_SYMMETRIC: half + (-double if value < 0 else double),
        Rounding.DOUBLE_ASYMMETRIC: half + double,
    }[rounding]
    return max(-(2**63), min(2**63 - 1, value * scale + term >> shift))
