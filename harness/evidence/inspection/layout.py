"""How ExecuTorch lays a constant out for each TOSA operator, and how two constants may correspond.

Weights: CONV2D takes OHWI, DEPTHWISE_CONV2D HWCM, TRANSPOSE_CONV2D OHWI, CONV3D ODHWI (TOSA 1.0,
chapter on each); PyTorch has OIHW, and IOHW for a transposed convolution. A linear layer's weight
is a 1x1 kernel, a one-dimensional convolution's has one row.
"""

from __future__ import annotations

import itertools

import numpy as np

from harness.case.arrays import Array


def weights(codes: Array, op: str, groups: int) -> Array | None:
    """PyTorch's weight codes in the layout of a TOSA operator; None if the ranks do not fit."""
    if op == "CONV3D":
        return codes.transpose(0, 2, 3, 4, 1) if codes.ndim == 5 else None
    if codes.ndim == 2:
        codes = codes[:, :, None, None]
    if codes.ndim == 3:
        codes = codes[:, :, None, :]
    if codes.ndim != 4:
        return None
    if op == "CONV2D":
        return codes.transpose(0, 2, 3, 1)
    if op == "TRANSPOSE_CONV2D":
        return codes.transpose(1, 2, 3, 0)
    if op == "DEPTHWISE_CONV2D" and codes.shape[1] == 1:
        height, width = codes.shape[2:]
        return codes.transpose(2, 3, 0, 1).reshape(height, width, groups, codes.shape[0] // groups)
    return None


def share(codes: Array, part: int, parts: int, axis: int = 0) -> Array:
    """The part of a grouped operator's tensor that its ``part``-th convolution takes."""
    if parts == 1:
        return codes
    size = codes.shape[axis] // parts
    return np.take(codes, range(part * size, (part + 1) * size), axis)


def same_elements(low: Array, high: Array, stored: Array) -> bool:
    """Does ``stored`` hold a value of [low, high], reshaped, permuted or repeated?

    Passes move views, permutes and expands onto constants; which one they chose shows in values,
    not here.
    """
    return any(
        _inside(first, second, stored)
        for first, second in zip(_arrangements(low, stored), _arrangements(high, stored), strict=True)
    )


def nearest(low: Array, high: Array, stored: Array) -> tuple[Array, Array] | None:
    """The rearrangement of [low, high] in which the fewest stored values are wrong; None if none has the shape."""
    pairs = list(zip(_arrangements(low, stored), _arrangements(high, stored), strict=True))
    fitting = [pair for pair in pairs if pair[0].shape == stored.shape]
    return min(fitting, key=lambda pair: int(np.sum((stored < pair[0]) | (stored > pair[1]))), default=None)


def _arrangements(value: Array, stored: Array) -> list[Array]:
    squeezed = value.reshape([size for size in value.shape if size != 1])
    found = [value.reshape(stored.shape)] if value.size == stored.size else []
    if squeezed.ndim <= 5 and value.size == stored.size:
        for order in itertools.permutations(range(squeezed.ndim)):
            found.append(squeezed.transpose(order).reshape(stored.shape))
    if value.size != stored.size:
        try:
            found.append(np.broadcast_to(value, stored.shape))
        except ValueError:
            found += _tiled(value, stored)
    return found


def _tiled(value: Array, stored: Array) -> list[Array]:
    if value.ndim > stored.ndim:
        return []
    shape = (1,) * (stored.ndim - value.ndim) + value.shape
    if any(size == 0 or whole % size for size, whole in zip(shape, stored.shape, strict=True)):
        return []
    repeats = [whole // size for size, whole in zip(shape, stored.shape, strict=True)]
    return [np.tile(value.reshape(shape), repeats)]


def _inside(low: Array, high: Array, stored: Array) -> bool:
    if low.shape != stored.shape:
        return False
    if stored.dtype.kind == "f":
        slack = np.abs(low.astype(np.float64)) * 2.0**-20 + 1e-38
        return bool(np.all((stored >= low - slack) & (stored <= high + slack)))
    return bool(np.all((stored >= low) & (stored <= high)))
