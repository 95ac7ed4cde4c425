"""Scale records: a bias, a scale and a shift for each output channel, ten bytes each.

    U55, U65             bias 40 bits signed, scale 32 bits, shift 6 bits, 2 bits zero
    U85, 32-bit sums     bias 32 bits signed, scale 31 bits, 1 bit zero, shift 6 bits, 10 bits zero
    U85, 48-bit sums     bias 48 bits signed, scale 15 bits, 1 bit zero, shift 6 bits, 10 bits zero

Ethos-U65 with two cores has two streams, with the even channels and the odd ones. Zeros fill a
stream up to a multiple of 16 bytes. Ethos-U85 has one stream, whatever the cores, with records
of zeros up to a multiple of 16 channels, or of the microblock's if that is deeper.

Facts: EncodeBias, EthosUScaleSource in ethosu55/ethos_u55_weight_encoder.cpp; EncodeBias32,
EncodeBias48, EthosU85ScaleSource in ethosu85/ethos_u85_weight_encoder.cpp; lengths from
GenerateScales in the register generators, of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.records import StreamError, Unimplemented
from harness.ethosu.weights.geometry import MICROBLOCK_DEPTHS

Ints = NDArray[np.int64]
Octets = NDArray[np.uint8]

RECORD = 10
_ALIGNMENT = 16
_SHIFT_BITS = 6
_LAYOUTS = {("u55", 40): (5, 32, 9), ("u85", 32): (4, 31, 8), ("u85", 48): (6, 15, 8)}
"""Bytes of the bias, bits of the scale, byte of the shift."""


@dataclass(frozen=True, eq=False)
class ScaleRecords:
    """Records by output channel.

    :param issues: (kind, message): ``stream-length`` or ``scale-padding``. Records that a stream
        is too short for are zero.
    """

    bias: Ints
    scale: Ints
    shift: Ints
    issues: tuple[tuple[str, str], ...]


def decode_scales(
    streams: bytes | tuple[bytes, ...],
    count: int,
    accelerator: Accelerator,
    acc_bits: int,
    microblock: int | None = None,
) -> ScaleRecords:
    """Read the first ``count`` records of an operation.

    :param streams: SCALE_LENGTH bytes from SCALE_BASE; on Ethos-U65 with two cores a second stream
        of SCALE1_LENGTH bytes, which is empty (or missing) for a single channel.
    :param count: OFM_DEPTH_M1 + 1.
    :param acc_bits: Ethos-U85: 32 or 48, ACC_FORMAT.format; not used elsewhere.
    :param microblock: Ethos-U85: ACC_FORMAT.microblock, to know the padding exactly; without it
        the padding of any of the accelerator's microblocks is right.
    :raises StreamError: more streams than there are, or a number of bits that does not exist.
    """
    parts = (streams,) if isinstance(streams, bytes) else streams
    cores = 1 if accelerator.u85 else accelerator.cores
    if len(parts) > cores:
        raise StreamError(f"{len(parts)} streams of scales; {accelerator.name} has {cores}")
    key = ("u85", acc_bits) if accelerator.u85 else ("u55", 40)
    if key not in _LAYOUTS:
        raise Unimplemented(f"scales for accumulators of {acc_bits} bits; there are 32 and 48")
    records = np.zeros((count, RECORD), np.uint8)
    issues: list[tuple[str, str]] = []
    for core in range(cores):
        part = parts[core] if core < len(parts) else b""
        wanted = len(range(core, count, cores))
        name = f"scale stream {core}" if cores > 1 else "scale stream"
        lengths = _lengths(wanted, accelerator, microblock)
        if len(part) not in lengths:
            expected = " or ".join(map(str, sorted(lengths)))
            issues.append(("stream-length", f"{name}: {len(part)} bytes for {wanted} channels, which take {expected}"))
        octets = np.frombuffer(part, np.uint8)
        whole = min(wanted, len(octets) // RECORD)
        records[core::cores][:whole] = octets[: whole * RECORD].reshape(whole, RECORD)
        if octets[wanted * RECORD : max(lengths)].any():
            issues.append(("scale-padding", f"{name}: bytes behind the record of the last channel are not zero"))
    return _unpack(records, *_LAYOUTS[key], issues)


def _lengths(count: int, accelerator: Accelerator, microblock: int | None) -> set[int]:
    """Bytes that Vela writes for this many channels."""
    if not accelerator.u85:
        return {-(-count * RECORD // _ALIGNMENT) * _ALIGNMENT}
    depths = MICROBLOCK_DEPTHS[accelerator.macs]
    if microblock is not None and microblock not in depths:
        raise StreamError(f"{accelerator.name} has no microblock {microblock}; it has {sorted(depths)}")
    known = set(depths.values()) if microblock is None else {depths[microblock]}
    return {-(-count // step) * step * RECORD for step in (max(16, depth) for depth in known)}


def _unpack(records: Octets, bias: int, scale_bits: int, shift_at: int, issues: list[tuple[str, str]]) -> ScaleRecords:
    """:param bias: bytes of the bias."""
    biases = _number(records[:, :bias])
    sign = np.int64(1) << 8 * bias - 1
    scales = _number(records[:, bias:shift_at])
    tail = _number(records[:, shift_at:])
    reserved = np.flatnonzero((scales >> scale_bits) | (tail >> _SHIFT_BITS))
    if len(reserved):
        issues.append(
            (
                "scale-padding",
                f"reserved bits of {len(reserved)} scale records are not zero, first of channel {reserved[0]}",
            )
        )
    low = (np.int64(1) << scale_bits) - 1
    return ScaleRecords((biases ^ sign) - sign, scales & low, tail & ((1 << _SHIFT_BITS) - 1), tuple(issues))


def _number(octets: Octets) -> Ints:
    places = np.int64(1) << 8 * np.arange(octets.shape[1], dtype=np.int64)
    return np.asarray((octets.astype(np.int64) * places).sum(axis=1), np.int64)
