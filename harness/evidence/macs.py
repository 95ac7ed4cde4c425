"""Multiply-accumulates of one operator, from shapes: convolutions and matrix products; nothing else has any.

A result element of a convolution takes one for each weight of its channel, one of a matrix product one for each element
of the shared axis. Padding counts, as it does in Vela's "Neural network macs".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]
_CONVOLUTIONS = ("convolution", "conv1d", "conv2d", "conv3d")
_TRANSPOSED = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_PRODUCTS = {"mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "addmm": 1, "baddbmm": 1}
"""Operators and the place of their first factor."""
_TRANSPOSES = 6
"""The argument of ``aten.convolution`` that says that it is a transposed one."""


def macs(operator: str, arguments: Sequence[object], shapes: Sequence[Shape | None], result: Shape) -> int:
    """Multiply-accumulates of one call.

    :param operator: ``aten.conv2d.default``.
    :param shapes: of each argument; None for one that is no tensor.
    :param result: shape of the result.
    """
    name = operator.split(".")[1] if operator.count(".") > 1 else operator
    if name in _PRODUCTS:
        shape = shapes[_PRODUCTS[name]]
        return math.prod(result) * shape[-1] if shape else 0
    if name not in (*_CONVOLUTIONS, *_TRANSPOSED):
        return 0
    data, weights = shapes[0], shapes[1]
    if data is None or weights is None:
        return 0
    transposed = name in _TRANSPOSED or (name == "convolution" and arguments[_TRANSPOSES] is True)
    return math.prod(data if transposed else result) * math.prod(weights[1:])
