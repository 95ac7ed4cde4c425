"""Reading what an operation reads: feature maps, chained values and scalars, with zero points off.

Every function returns int64 arrays [height, width, depth] from which the operand's zero point
has been subtracted, notes the access, and reports bytes that nothing wrote before.
"""

from __future__ import annotations

import math

import numpy as np

from harness.ethosu.arithmetic import Ints, as_signed
from harness.ethosu.featuremap import FeatureMap, read
from harness.ethosu.limits import A_TAP, AN_ELEMENT, check_elements
from harness.ethosu.npu import Npu
from harness.ethosu.records import LUT, REGION_NAMES, Access, StreamError, Unimplemented
from harness.ethosu.state import CHAINED, NO_STORAGE, Kernel, feature_map_of, zero_point_of

_BROADCAST_H, _BROADCAST_W, _BROADCAST_C, _SCALAR = 1, 2, 4, 8
NO_UPSCALE, NEAREST, ZEROS = 0, 1, 2


def ofm_shape(npu: Npu) -> tuple[int, int, int]:
    """Height, width and depth of what the operation computes (on U85: before a transposition)."""
    registers = npu.registers
    shape = registers.get("OFM_HEIGHT_M1") + 1, registers.get("OFM_WIDTH_M1") + 1, registers.get("OFM_DEPTH_M1") + 1
    check_elements("an OFM", *shape)
    return shape


def operand(npu: Npu, role: str, shape: tuple[int, int, int]) -> Ints:
    """The values of IFM or IFM2, which may be in memory or in a chain buffer."""
    check_elements(f"an {role}", *shape)
    npu.budget.spend(AN_ELEMENT * math.prod(shape))
    registers = npu.registers
    storage = registers.get_or(f"{role}_PRECISION", 0, "storage") if npu.accelerator.u85 else 0
    if storage == CHAINED:
        return _chained(npu, role, shape) - zero_point_of(registers, role)
    zero_point = zero_point_of(registers, role)
    return read_noted(npu, feature_map_of(registers, role, shape)) - zero_point


def read_noted(npu: Npu, feature_map: FeatureMap) -> Ints:
    """Read a feature map, note the access, report what was never written."""
    ranges = feature_map.accesses
    npu.reads.extend(ranges)
    values, complete = read(npu.memory, feature_map)
    if not complete:
        report_unwritten(npu, str(feature_map), ranges)
    return values


def report_unwritten(npu: Npu, what: str, ranges: tuple[Access, ...]) -> None:
    """Report how many bytes of these ranges nothing wrote."""
    region = ranges[0].region
    found = npu.memory.unwritten(region, [(item.start, item.end) for item in ranges])
    if found is not None:
        count, first = found
        name = REGION_NAMES.get(region, f"region {region}")
        npu.report(
            "unwritten-read", f"reads {count} bytes of {name} that nothing has written, from {first:#x} on ({what})"
        )


def stream_bytes(npu: Npu, role: str, region: int, start: int, length: int) -> bytes:
    """The bytes of a weight or scale stream."""
    access = Access(role, region, start, start + length)
    npu.reads.append(access)
    data, complete = npu.memory.read_bytes(region, start, start + length)
    if not complete:
        report_unwritten(npu, f"{role.lower()} stream", (access,))
    return data


def elementwise_operand(npu: Npu, role: str, shape: tuple[int, int, int]) -> Ints:
    """IFM or IFM2 of an elementwise operation on U85: broadcast, scalar, chained or whole."""
    registers = npu.registers
    mode = registers.get(f"{role}_BROADCAST")
    storage = registers.get(f"{role}_PRECISION", "storage")
    if storage == NO_STORAGE or mode & _SCALAR:
        if storage != NO_STORAGE or mode != _SCALAR:
            raise Unimplemented(f"{role} storage {storage} with broadcast mode {mode} is not implemented")
        return _scalar(npu, role)
    height, width, depth = shape
    reduced = (
        1 if mode & _BROADCAST_H else height,
        1 if mode & _BROADCAST_W else width,
        1 if mode & _BROADCAST_C else depth,
    )
    return np.broadcast_to(operand(npu, role, reduced), shape)


def _scalar(npu: Npu, role: str) -> Ints:
    """The value of OP_SCALAR in the operand's type."""
    registers = npu.registers
    raw = registers.get("OP_SCALAR")
    signed = registers.get(f"{role}_PRECISION", "type")
    value = as_signed(raw, 32) if signed else raw
    return np.full((1, 1, 1), value - zero_point_of(registers, role), np.int64)


def _chained(npu: Npu, role: str, shape: tuple[int, int, int]) -> Ints:
    buffer = npu.registers.get(f"{role}_REGION")
    if buffer not in npu.chained:
        raise StreamError(f"{role} is chain buffer {buffer}, which no operation has filled")
    values = npu.chained[buffer]
    if values.shape != shape:
        raise StreamError(f"{role} is chain buffer {buffer} with {values.shape} elements where {shape} are needed")
    return values


def windowed_ifm(npu: Npu, kernel: Kernel, depth: int) -> Ints:
    """The IFM of a convolution or pooling, upscaled, without its padding.

    Its size follows from the OFM's: (OFM - 1) * stride + reach - padding. It may be empty: Vela
    splits kernels, and all taps of a part may lie in the padding.
    """
    height, width, _ = ofm_shape(npu)
    rows = (height - 1) * kernel.stride_y + kernel.reach_y - kernel.top - kernel.bottom
    columns = (width - 1) * kernel.stride_x + kernel.reach_x - kernel.left - kernel.right
    if rows < 0 or columns < 0:
        raise StreamError(f"has an IFM of {rows}x{columns}: padding is larger than what the kernel covers")
    if rows == 0 or columns == 0:
        return np.empty((rows, columns, depth), np.int64)
    check_elements("a padded IFM", rows + kernel.top + kernel.bottom, columns + kernel.left + kernel.right, depth)
    npu.budget.spend(kernel.height * kernel.width * (A_TAP + AN_ELEMENT // 8 * height * width * depth))
    mode = npu.registers.get("IFM_UPSCALE")
    if mode == NO_UPSCALE:
        return operand(npu, "IFM", (rows, columns, depth))
    values = operand(npu, "IFM", ((rows + 1) // 2, (columns + 1) // 2, depth))
    if mode == NEAREST:
        return values.repeat(2, axis=0).repeat(2, axis=1)[:rows, :columns]
    if mode != ZEROS:
        raise Unimplemented(f"IFM_UPSCALE {mode} is not implemented")
    spread = np.zeros((rows, columns, depth), np.int64)
    spread[::2, ::2] = values
    return spread


def lut_table(npu: Npu, start: int, count: int, size: int, signed: bool) -> Ints:
    """``count`` entries of ``size`` bytes from the table memory."""
    access = Access("LUT", LUT, start, start + count * size)
    npu.reads.append(access)
    data, complete = npu.memory.read_bytes(LUT, access.start, access.end)
    if not complete:
        report_unwritten(npu, "table", (access,))
    return np.frombuffer(data, f"<{'i' if signed else 'u'}{size}").astype(np.int64)
