"""Fixed-point arithmetic of the NPU: scaling with its rounding modes, on whole arrays.

A value is scaled as ``(value * scale + r) >> shift`` with an arithmetic shift, where ``r`` is
half a unit for NATURAL and differs for the other modes. All arrays are int64. Where a product
could leave 63 bits the same is computed in two halves, so that nothing ever wraps.

Facts: the template ``Scale`` in regor/compiler/graphir_optimiser.cpp, by which the compiler
itself folds constants, covers every rounding mode.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_LOW = 2**32 - 1
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


class Rounding(Enum):
    """How a scaled value becomes an integer; names as in the U85 interface."""

    NATURAL = "natural"
    DOUBLE_SYMMETRIC = "double symmetric"
    DOUBLE_ASYMMETRIC = "double asymmetric"
    SYMMETRIC = "symmetric"
    TRUNCATE_TO_ZERO = "truncate to zero"
    TRUNCATE_TO_LOWER = "truncate to lower"


_DOUBLE = (Rounding.DOUBLE_SYMMETRIC, Rounding.DOUBLE_ASYMMETRIC)
U55_ROUNDING = (Rounding.DOUBLE_SYMMETRIC, Rounding.TRUNCATE_TO_ZERO, Rounding.NATURAL)
U85_OFM_ROUNDING = (
    Rounding.DOUBLE_SYMMETRIC,
    Rounding.NATURAL,
    Rounding.DOUBLE_ASYMMETRIC,
    Rounding.SYMMETRIC,
    Rounding.TRUNCATE_TO_ZERO,
    Rounding.TRUNCATE_TO_LOWER,
)
U85_IFM_ROUNDING = (Rounding.DOUBLE_SYMMETRIC, Rounding.NATURAL)


def rescale(values: Ints, scale: Ints | int, shift: Ints | int, rounding: Rounding, double_round: int = 0) -> Ints:
    """``values * scale`` shifted right by ``shift``, rounded.

    :param scale: below 2**32, not negative; one number, or one for each channel (the last axis).
    :param shift: bits, 0 to 63, one or one for each channel.
    :param double_round: Ethos-U85's DBL_RND: moves the constant of the double rounding modes from
        2**30 to 2**(30 - n) and its threshold from a shift of 31 to 31 - n.
    """
    if _is_unit(scale, shift):
        return values
    if not _fits(values, scale):
        return _rescale_exactly(values, scale, shift, rounding, double_round)
    return (values * scale + _rounding_term(values, shift, rounding, double_round)) >> shift


def _is_unit(scale: Ints | int, shift: Ints | int) -> bool:
    """Whether nothing is scaled: every rounding term is below 2**shift, and not negative."""
    return isinstance(scale, int) and isinstance(shift, int) and scale == 1 << shift


def _fits(values: Ints, scale: Ints | int) -> bool:
    """Whether product and rounding term stay below 2**63."""
    if values.size == 0:
        return True
    largest = max(-int(values.min()), int(values.max()))
    factor = scale if isinstance(scale, int) else int(scale.max(initial=0))
    return largest * factor < 2**61


def _rounding_term(values: Ints, shift: Ints | int, rounding: Rounding, double_round: int) -> Ints | int:
    half: Ints | int = (1 << shift) >> 1 & _LARGEST
    if rounding is Rounding.NATURAL:
        return half
    if rounding is Rounding.TRUNCATE_TO_LOWER:
        return 0
    more = (shift > 31 - double_round) * (1 << (30 - double_round))
    if rounding in _DOUBLE and isinstance(more, int) and not more:
        return half
    negative = values < 0
    if rounding is Rounding.SYMMETRIC:
        return half - (negative & (shift > 0))
    if rounding is Rounding.TRUNCATE_TO_ZERO:
        return np.where(negative, ~(np.int64(-1) << shift), 0)
    if rounding is Rounding.DOUBLE_SYMMETRIC:
        more = np.where(negative, -more, more)
    return half + more


def _rescale_exactly(values: Ints, scale: Ints | int, shift: Ints | int, rounding: Rounding, double_round: int) -> Ints:
    """The same where product or sum may leave 63 bits; results saturate at 64.

    With values and rounding term in halves of 32 bits, product and term are ``2**33 * high + low``,
    where ``low`` is below 2**33 and so is every carry: no step leaves 64 bits.
    """
    shifts = np.asarray(shift, np.int64)
    factor = np.asarray(scale, np.int64)
    term = _rounding_term(values, shifts, rounding, double_round)
    lower = ((values & _LOW).astype(np.uint64) * factor.astype(np.uint64)).view(np.int64)
    upper = (values >> 32) * factor
    low = (lower & _LOW) + (term & _LOW)
    carry = (lower >> 32 & _LOW) + (term >> 32) + (low >> 32)
    high = (upper >> 1) + (carry >> 1) + ((upper & 1) + (carry & 1) >> 1)
    low = (low & _LOW) + ((upper ^ carry) & 1) * (1 << 32)
    left = np.maximum(33 - shifts, 0)
    small = (high << left) + (low >> np.minimum(shifts, 33))
    small = np.where(high > _LARGEST >> left, _LARGEST, np.where(high < _SMALLEST >> left, _SMALLEST, small))
    return np.where(shifts >= 33, high >> np.maximum(shifts - 33, 0), small)


def wrap(values: Ints, bits: int, signed: bool) -> Ints:
    """The low ``bits`` of each value, read as a signed or unsigned number."""
    if bits >= 64:
        return values
    low: Ints = values & ((1 << bits) - 1)
    if signed:
        low = low - ((low >> (bits - 1)) << bits)
    return low


def clipped(values: Ints, low: int, high: int) -> Ints:
    """As ``numpy.clip``, which takes three times as long for a few values."""
    return np.minimum(np.maximum(values, low), high)


def as_signed(raw: int, bits: int) -> int:
    """A register's bits, which have no sign in the command stream, read as a signed number."""
    return raw - (1 << bits) if raw >> (bits - 1) else raw


def divide_rounding_away(total: Ints, count: Ints) -> Ints:
    """``total / count`` to the nearest integer, ties away from zero (the averaging of padded pools)."""
    magnitude = (2 * np.abs(total) + count) // (2 * count)
    return np.where(total < 0, -magnitude, magnitude)
