"""POOL: maxima, minima, averages and sums over a window, and the copies that are built on them.

Vela uses a 1x1 AVERAGE (U55, U65) or SUM or NONE (U85) as its universal copy, rescale, clip and
table operation. Padding is skipped: it is no candidate of a maximum and is not counted by an
average. On U55 an AVERAGE is a plain sum, scaled by OFM_SCALE, unless there is padding: then the
hardware divides by the number of taps that lie inside, ties away from zero. On U85 AVERAGE always
divides. REDUCE_SUM adds all channels of the IFM. ARGMAX_X and ARGMAX_Y give the position of the
first maximum within the window; their OFM_SCALE of 1 >> 16 only strips the value that hardware
packs beside it.
"""

from __future__ import annotations

import numpy as np

from harness.ethosu.arithmetic import Ints, divide_rounding_away
from harness.ethosu.convolution import accumulate, padded, read_scales, taps
from harness.ethosu.npu import Npu
from harness.ethosu.operands import ofm_shape, windowed_ifm
from harness.ethosu.output import GLOBAL, scale_mode, scaled, store
from harness.ethosu.records import Unimplemented
from harness.ethosu.state import FROM_IFM2, RESET, Kernel, kernel_of

MAX, AVERAGE, REDUCE_SUM, SUM, NO_IFM, MIN, ARGMAX_X, ARGMAX_Y = range(8)
_FAR = 1 << 62


def pooling(npu: Npu) -> None:
    """POOL with the mode of the command."""
    assert npu.command is not None
    mode = npu.command.fields["value"]
    if not npu.accelerator.u85 and mode > REDUCE_SUM:
        raise Unimplemented(f"pooling mode {mode} is not implemented")
    if mode == NO_IFM:
        if npu.registers.get("ACC_FORMAT", "input") != FROM_IFM2:
            raise Unimplemented("POOL without an IFM whose accumulators do not start from IFM2 is not implemented")
        accumulate(npu, np.zeros(ofm_shape(npu), np.int64))
        return
    kernel = kernel_of(npu.registers)
    if mode == REDUCE_SUM:
        _reduce_sum(npu, kernel)
        return
    _, _, channels = ofm_shape(npu)
    ifm = windowed_ifm(npu, kernel, channels)
    if mode in (AVERAGE, SUM):
        _sum(npu, kernel, ifm, divide=mode == AVERAGE and (npu.accelerator.u85 or kernel.padded))
    else:
        _select(npu, kernel, ifm, mode)


def _reduce_sum(npu: Npu, kernel: Kernel) -> None:
    if (kernel.reach_y, kernel.reach_x) != (1, 1):
        raise Unimplemented(f"REDUCE_SUM with a {kernel.reach_y}x{kernel.reach_x} kernel is not implemented")
    ifm = windowed_ifm(npu, kernel, npu.registers.get("IFM_DEPTH_M1") + 1)
    ifm = padded(ifm, kernel)[:: kernel.stride_y, :: kernel.stride_x]
    accumulate(npu, np.broadcast_to(ifm.sum(axis=2, keepdims=True), ofm_shape(npu)))


def _sum(npu: Npu, kernel: Kernel, ifm: Ints, *, divide: bool) -> None:
    height, width, _ = ofm_shape(npu)
    (_, _, total), *others = taps(padded(ifm, kernel), kernel, (height, width))
    for _, _, patch in others:
        total = total + patch
    if not divide:
        accumulate(npu, total)
        return
    _need_reset(npu, "AVERAGE")
    average = divide_rounding_away(total, _inside(kernel, ifm.shape[0], ifm.shape[1], (height, width))[:, :, None])
    npu.accumulators = average
    store(npu, scaled(npu, average, read_scales(npu)))


def _inside(kernel: Kernel, rows: int, columns: int, size: tuple[int, int]) -> Ints:
    """How many taps lie inside the IFM, for each output [height, width]."""

    def along(count: int, stride: int, dilation: int, taps_: int, before: int, limit: int) -> Ints:
        first = before - np.arange(count, dtype=np.int64) * stride  # the tap that lies on row 0, in undilated taps
        outside, covered = -(-first // dilation), -(-(first + limit) // dilation)
        return np.clip(covered, 0, taps_) - np.clip(outside, 0, taps_)

    vertical = along(size[0], kernel.stride_y, kernel.dilation_y, kernel.height, kernel.top, rows)
    horizontal = along(size[1], kernel.stride_x, kernel.dilation_x, kernel.width, kernel.left, columns)
    return np.maximum(vertical[:, None] * horizontal, 1)


def _select(npu: Npu, kernel: Kernel, ifm: Ints, mode: int) -> None:
    height, width, _ = ofm_shape(npu)
    sign = -1 if mode == MIN else 1
    candidates = taps(padded(ifm * sign, kernel, -_FAR), kernel, (height, width))
    _, _, best = candidates[0]
    position = np.zeros(best.shape, np.int64)
    for y, x, patch in candidates[1:]:
        if mode in (ARGMAX_X, ARGMAX_Y):
            position = np.where(patch > best, x if mode == ARGMAX_X else y, position)
        best = np.maximum(best, patch)
    if mode in (ARGMAX_X, ARGMAX_Y):
        _need_reset(npu, "ARGMAX")
        _store_positions(npu, kernel, position, mode)
        return
    accumulate(npu, best * sign, np.minimum if mode == MIN else np.maximum)


def _store_positions(npu: Npu, kernel: Kernel, position: Ints, mode: int) -> None:
    across = kernel.width if mode == ARGMAX_Y else kernel.height
    scale = npu.registers.get("OFM_SCALE", "scale"), npu.registers.get("OFM_SCALE", "shift")
    if across != 1 or kernel.padded or scale != (1, 16) or scale_mode(npu) != GLOBAL:
        raise Unimplemented(
            f"ARGMAX with a {kernel.height}x{kernel.width} kernel, padding or OFM_SCALE {scale} is not implemented"
        )
    store(npu, position)


def _need_reset(npu: Npu, what: str) -> None:
    """Selection and division do not mix with accumulators that start elsewhere or are kept."""
    registers = npu.registers
    if npu.accelerator.u85 and (registers.get("ACC_FORMAT", "input") != RESET or registers.get("ACC_FORMAT", "output")):
        raise Unimplemented(f"{what} with accumulators that are kept or start from IFM2 is not implemented")
