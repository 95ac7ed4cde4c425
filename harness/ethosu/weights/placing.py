"""From weights in stream order to weights by row, column and channel.

No index of each weight is built: the stream is cut into pieces of equal layout, each piece is
reshaped to its loops, and its axes are brought into the order of the tensor. Pieces are equal over
all whole OFM blocks of a direction and all whole IFM blocks, so there are few of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.weights.order import Order

Values = NDArray[np.int16]


def place(stream: Values, order: Order, core: int) -> Values:
    """The weights of one core [kernel row, kernel column, local OFM channel, IFM channel], padding included.

    :param stream: ``order.elements(core)`` weights in stream order.
    """
    dealt = order.cores[core]
    height = 1 + max(int(sub.rows.max()) for sub in order.sub_kernels)
    width = 1 + max(int(sub.columns.max()) for sub in order.sub_kernels)
    channels = dealt.microblocks * order.microblock
    tensor = np.zeros((height, width, channels, order.ifm_blocks * order.ifm_block), np.int16)
    whole, left = divmod(dealt.microblocks, dealt.block)
    length = order.elements(core) // max(dealt.microblocks, 1) * dealt.block
    rows = stream[: whole * length].reshape(whole, length)
    block = dealt.block * order.microblock
    cut = whole * block
    target = tensor[:, :, :cut].reshape(height, width, whole, block, tensor.shape[3])
    directions = 2 if order.alternating else 1
    for first in range(min(directions, whole)):
        _place_blocks(rows[first::directions], target[:, :, first::directions], order, backward=first == 1)
    if left:
        rest = stream[whole * length :].reshape(1, -1)
        _place_blocks(rest, tensor[:, :, None, cut:], order, backward=order.alternating and whole % 2 == 1)
    return tensor


def _place_blocks(rows: Values, target: Values, order: Order, *, backward: bool) -> None:
    """Place OFM blocks of one size and direction.

    :param rows: [OFM block, weights in stream order].
    :param target: [kernel row, kernel column, OFM block, local OFM channel, IFM channel].
    """
    microblocks = target.shape[3] // order.microblock
    last = order.ifm_blocks - 1
    runs = [(0, last, order.outer), (last, 1, order.last_outer)]
    at = 0
    for start, count, outer in reversed(runs) if backward else runs:
        if not count:
            continue
        size = outer * microblocks * order.slot
        length = size * sum(sub.slots for sub in order.sub_kernels)
        blocks = rows[:, at : at + count * length].reshape(len(rows), count, length)
        at += count * length
        if backward:
            blocks = blocks[:, ::-1]
        low = start * order.ifm_block
        channels = slice(low, low + count * outer * order.inner * order.part)
        done = 0
        for sub in order.sub_kernels:
            piece = blocks[:, :, done : done + size * sub.slots]
            done += size * sub.slots
            loops = (len(rows), count, outer, microblocks, sub.slots, order.inner, order.microblock, order.part)
            taps = piece.reshape(loops).transpose(4, 0, 3, 6, 1, 2, 5, 7)[sub.filled]
            target[sub.rows, sub.columns, :, :, channels] = taps.reshape(len(taps), len(rows), target.shape[3], -1)
