"""CONV and DEPTHWISE: sums of products over a window, with weights from a stream or from IFM2.

The IFM's zero point is subtracted before the product, so padding contributes nothing. Sums are
matrix products in float64, which is exact for integers below 2**53: 40 and 48-bit accumulators
stay far below that. On Ethos-U85 the accumulators may start from IFM2 or from what the last
operation left (ACC_FORMAT), and weights may come from IFM2, [1, OFM depth, IFM depth].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import Ints
from harness.ethosu.limits import check_elements
from harness.ethosu.npu import Npu
from harness.ethosu.operands import ofm_shape, operand, stream_bytes, windowed_ifm
from harness.ethosu.output import GLOBAL, PER_CHANNEL, scale_mode, scaled, store
from harness.ethosu.records import Unimplemented
from harness.ethosu.state import FROM_IFM2, KEEP, RESET, Kernel, kernel_of
from harness.ethosu.weight_registers import scale_layout, scale_ranges, weight_geometry, weight_ranges
from harness.ethosu.weights import ScaleRecords, WeightGeometry, Weights, decode_scales, decode_weights

_MOST_COLUMNS = 1 << 24
_MOST_KEPT = 1 << 21
"""Weights of an operation that are kept for the next run of the same stream."""


def convolution(npu: Npu) -> None:
    """CONV."""
    kernel = kernel_of(npu.registers)
    depth = npu.registers.get("IFM_DEPTH_M1") + 1
    height, width, channels = ofm_shape(npu)
    npu.budget.spend(kernel.height * kernel.width * depth * height * width * channels)
    ifm = windowed_ifm(npu, kernel, depth)
    if npu.accelerator.u85 and npu.command is not None and npu.command.fields["value"]:
        if (kernel.reach_y, kernel.reach_x) != (1, 1):
            raise Unimplemented(
                f"CONV with weights from IFM2 and a {kernel.reach_y}x{kernel.reach_x} kernel is not implemented"
            )
        weights = operand(npu, "IFM2", (1, channels, depth)).transpose(1, 0, 2)[:, :, None, :].astype(np.float64)
    else:
        weights = read_weights(npu, kernel, depth, depthwise=False).values.astype(np.float64)
    sums = _sums(padded(ifm, kernel), weights, kernel, (height, width))
    accumulate(npu, sums)


def depthwise(npu: Npu) -> None:
    """DEPTHWISE: channel n of the OFM from channel n of the IFM."""
    kernel = kernel_of(npu.registers)
    height, width, channels = ofm_shape(npu)
    ifm = padded(windowed_ifm(npu, kernel, channels), kernel)
    weights = read_weights(npu, kernel, 1, depthwise=True).values.astype(np.int64)
    sums = np.zeros((height, width, channels), np.int64)
    for y, x, patch in taps(ifm, kernel, (height, width)):
        sums += patch * weights[:, y, x, 0]
    accumulate(npu, sums)


def accumulate(npu: Npu, sums: Ints, join: Callable[[Ints, Ints], Ints] = np.add) -> None:
    """Add to (or otherwise join with) where the accumulators start, and unless they are kept for later, finish."""
    if npu.accelerator.u85:
        start = npu.registers.get("ACC_FORMAT", "input")
        if start == FROM_IFM2:
            sums = join(sums, operand(npu, "IFM2", ofm_shape(npu)))
        elif start == KEEP:
            if npu.accumulators is None or npu.accumulators.shape != sums.shape:
                held = "none" if npu.accumulators is None else str(npu.accumulators.shape)
                raise Unimplemented(f"ACC_FORMAT keeps accumulators of shape {held} for an OFM of {sums.shape}")
            sums = join(sums, npu.accumulators)
        elif start != RESET:
            raise Unimplemented(f"ACC_FORMAT input {start} is not implemented")
        npu.accumulators = sums
        if npu.registers.get("ACC_FORMAT", "output"):
            return
    store(npu, scaled(npu, sums, read_scales(npu)))


def read_weights(npu: Npu, kernel: Kernel, ifm_depth: int, *, depthwise: bool) -> Weights:
    """The decoded weights [OFM channel, y, x, IFM channel] of the operation under way."""
    registers, accelerator = npu.registers, npu.accelerator
    check_elements("weights", registers.get("OFM_DEPTH_M1") + 1, kernel.height, kernel.width, ifm_depth)
    streams = [stream_bytes(npu, "WEIGHT", *place) for place in weight_ranges(registers, accelerator)]
    geometry = weight_geometry(registers, kernel, ifm_depth, accelerator, depthwise=depthwise)
    decode = _weights if geometry.elements <= _MOST_KEPT else decode_weights
    weights = decode(tuple(streams), geometry, accelerator)
    for kind, message in weights.issues:
        npu.report(kind, message)
    return weights


@lru_cache(maxsize=256)
def _weights(streams: tuple[bytes, ...], geometry: WeightGeometry, accelerator: Accelerator) -> Weights:
    return decode_weights(streams, geometry, accelerator)


def read_scales(npu: Npu) -> ScaleRecords | None:
    """The scale records of the operation under way, or None where scaling is global."""
    if scale_mode(npu) == GLOBAL:
        return None
    assert scale_mode(npu) == PER_CHANNEL
    registers = npu.registers
    streams = [stream_bytes(npu, "SCALE", *place) for place in scale_ranges(registers, npu.accelerator)]
    bits, microblock = scale_layout(registers, npu.accelerator)
    records = _scales(tuple(streams), registers.get("OFM_DEPTH_M1") + 1, npu.accelerator, bits, microblock)
    for kind, message in records.issues:
        npu.report(kind, message)
    return records


@lru_cache(maxsize=256)
def _scales(
    streams: tuple[bytes, ...], count: int, accelerator: Accelerator, bits: int, microblock: int | None
) -> ScaleRecords:
    return decode_scales(streams, count, accelerator, bits, microblock)


def padded(ifm: Ints, kernel: Kernel, value: int = 0) -> Ints:
    """The IFM with its padding."""
    if not kernel.padded:
        return ifm
    widths = ((kernel.top, kernel.bottom), (kernel.left, kernel.right), (0, 0))
    return np.pad(ifm, widths, constant_values=value)


def taps(ifm: Ints, kernel: Kernel, size: tuple[int, int]) -> list[tuple[int, int, Ints]]:
    """For each tap of the kernel, row by row: its position, and the inputs of all outputs under it."""
    height, width = size
    found = []
    for y in range(kernel.height):
        for x in range(kernel.width):
            top, left = y * kernel.dilation_y, x * kernel.dilation_x
            rows = slice(top, top + (height - 1) * kernel.stride_y + 1, kernel.stride_y)
            columns = slice(left, left + (width - 1) * kernel.stride_x + 1, kernel.stride_x)
            found.append((y, x, ifm[rows, columns]))
    return found


def _sums(ifm: Ints, weights: NDArray[np.float64], kernel: Kernel, size: tuple[int, int]) -> Ints:
    """Sums of products [height, width, OFM depth]; weights are [OFM depth, y, x, IFM depth]."""
    height, width = size
    channels, depth = weights.shape[0], weights.shape[3]
    patches = taps(ifm.astype(np.float64), kernel, size)
    if height * width * depth * len(patches) <= _MOST_COLUMNS:
        columns = np.stack([patch for _, _, patch in patches], axis=2).reshape(height * width, -1)
        flat = weights.reshape(channels, -1)
        return (columns @ flat.T).astype(np.int64).reshape(height, width, channels)
    sums = np.zeros((height * width, channels))
    for y, x, patch in patches:
        sums += patch.reshape(height * width, depth) @ weights[:, y, x].T
    return sums.astype(np.int64).reshape(height, width, channels)
