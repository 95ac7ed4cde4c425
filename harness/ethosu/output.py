"""The end of every operation: scale, zero point, clip, table, reverse or transpose, store.

Scaling is per channel by scale records, or global by OFM_SCALE, or absent. The order of the
stages is fixed: scale, add the OFM's zero point, clip to ACTIVATION_MIN/MAX, look up, and on
Ethos-U85 reverse or transpose. Tables: 256 entries of 8, 16 or 32 bits indexed by an 8-bit value
(from -128 on if it is signed), or 512 pairs of base and slope for 16-bit values, interpolated by
the low seven bits.

Facts: GenerateActivation in both register command stream generators; ETHOS_U_FACTS sections 4, 6.
"""

from __future__ import annotations

import numpy as np

from harness.ethosu.arithmetic import U55_ROUNDING, U85_OFM_ROUNDING, Ints, Rounding, as_signed, clipped, rescale, wrap
from harness.ethosu.featuremap import FeatureMap, write
from harness.ethosu.limits import AN_ELEMENT
from harness.ethosu.npu import Npu
from harness.ethosu.operands import lut_table
from harness.ethosu.records import Unimplemented
from harness.ethosu.state import (
    BITS,
    CHAINED,
    NO_STORAGE,
    TRANSPOSITIONS,
    Registers,
    choose,
    feature_map_of,
    zero_point_of,
)
from harness.ethosu.weights import ScaleRecords

PER_CHANNEL, GLOBAL = 0, 1
_FIRST_TABLE, _FORCE_INT8 = 16, 3
_U85_TABLES = {
    1: (False, 8, 8),
    4: (True, 8, 8),
    5: (True, 8, 16),
    7: (True, 8, 32),
    8: (True, 16, 16),
    9: (True, 16, 32),
}
"""ACTIVATION function -> signed, bits of the index, bits of the result."""


def scale_mode(npu: Npu) -> int:
    """``PER_CHANNEL`` or ``GLOBAL``."""
    return npu.registers.get("OFM_PRECISION", "scale_mode")


def rounding_of(npu: Npu) -> Rounding:
    """The rounding mode of the OFM's scaling."""
    if npu.accelerator.u85:
        return choose(U85_OFM_ROUNDING, npu.registers.get("OFM_SCALE", "round_mode"), "OFM_SCALE round mode")
    return choose(U55_ROUNDING, npu.registers.get("OFM_PRECISION", "round_mode"), "OFM_PRECISION round mode")


def scaled(npu: Npu, values: Ints, records: ScaleRecords | None, *, shift_only: bool = False) -> Ints:
    """Accumulators after bias and scale.

    :param records: one for each channel where the mode is per channel; None for no scaling there.
    :param shift_only: of OFM_SCALE only the shift is applied.
    """
    if scale_mode(npu) == GLOBAL:
        registers = npu.registers
        factor, shift = registers.get("OFM_SCALE", "scale"), registers.get("OFM_SCALE", "shift")
        double_round = registers.get_or("OFM_SCALE", 0, "dbl_rnd") if npu.accelerator.u85 else 0
        return rescale(values, 1 if shift_only else factor, shift, rounding_of(npu), double_round)
    if records is None:
        return values
    return rescale(values + records.bias, records.scale, records.shift, rounding_of(npu))


def store(npu: Npu, values: Ints) -> None:
    """From scaled values [height, width, depth] to the OFM."""
    npu.budget.spend(AN_ELEMENT * values.size)
    values = _activated(npu, values + zero_point_of(npu.registers, "OFM"))
    if npu.accelerator.u85:
        _store_u85(npu, values)
        return
    height, width, depth = values.shape
    _write(npu, feature_map_of(npu.registers, "OFM", (height, width, depth)), values)


def _store_u85(npu: Npu, values: Ints) -> None:
    registers = npu.registers
    storage = registers.get("OFM_PRECISION", "storage")
    if storage == NO_STORAGE:
        return
    if storage == CHAINED:
        if registers.get("OFM_PRECISION", "reverse") or registers.get("OFM_PRECISION", "transpose"):
            raise Unimplemented("a chained OFM that is reversed or transposed is not implemented")
        bits, signed = _ofm_type(npu)
        npu.chained[registers.get("OFM_REGION")] = npu.result = wrap(values, bits, signed)
        return
    values = turned(registers, values)
    height, width, depth = values.shape
    _write(npu, feature_map_of(registers, "OFM", (height, width, depth)), values)


def turned(registers: Registers, values: Ints) -> Ints:
    """Reversed and transposed as the OFM is stored (Ethos-U85).

    :raises Unimplemented: an unknown transposition.
    """
    reverse, transpose = registers.get("OFM_PRECISION", "reverse"), registers.get("OFM_PRECISION", "transpose")
    if transpose not in TRANSPOSITIONS:
        raise Unimplemented(f"OFM transposition {transpose} is not implemented")
    return (np.flip(values, reverse - 1) if reverse else values).transpose(TRANSPOSITIONS[transpose])


def _write(npu: Npu, feature_map: FeatureMap, values: Ints) -> None:
    npu.writes.extend(feature_map.accesses)
    write(npu.memory, feature_map, values)
    npu.result = values


def _ofm_type(npu: Npu) -> tuple[int, bool]:
    registers = npu.registers
    return BITS[registers.get("OFM_PRECISION", "precision")], bool(registers.get("OFM_PRECISION", "type"))


def _activated(npu: Npu, values: Ints) -> Ints:
    return _activated_u85(npu, values) if npu.accelerator.u85 else _activated_u55(npu, values)


def _limits(npu: Npu, signed: bool) -> tuple[int, int]:
    """ACTIVATION_MIN and MAX in the sign of the feature map."""
    low, high = npu.registers.get("ACTIVATION_MIN"), npu.registers.get("ACTIVATION_MAX")
    return (as_signed(low, 16), as_signed(high, 16)) if signed else (low, high)


def _activated_u55(npu: Npu, values: Ints) -> Ints:
    """Clip and table of U55 and U65: OFMs of 32 bits are clipped only if the range is forced."""
    registers = npu.registers
    bits, signed = _ofm_type(npu)
    clip_range, function = registers.get("ACTIVATION", "clip_range"), registers.get("ACTIVATION", "function")
    if clip_range not in (0, _FORCE_INT8):
        raise Unimplemented(f"activation clip range {clip_range} is not implemented")
    if clip_range == _FORCE_INT8:
        low, high = _limits(npu, True)
        values = clipped(values, max(low, -128), min(high, 127))
    elif bits <= 16:
        values = clipped(values, *_limits(npu, signed))
    if function == 0:
        return values
    if function < _FIRST_TABLE:
        raise Unimplemented(f"activation function {function} is not implemented")
    base = npu.accelerator.lut_memory - 2048 + 256 * (function - _FIRST_TABLE)
    if bits == 16:
        return _interpolated(npu, values, base, 16)
    return _looked_up(npu, values, base, signed or clip_range == _FORCE_INT8, bits)


def _activated_u85(npu: Npu, values: Ints) -> Ints:
    registers = npu.registers
    _, signed = _ofm_type(npu)
    function = registers.get("ACTIVATION", "function")
    if registers.get("ACTIVATION", "clip_range") == 0:
        values = clipped(values, *_limits(npu, signed))
    if function == 0:
        return values
    if function not in _U85_TABLES:
        raise Unimplemented(f"activation function {function} is not implemented")
    index_signed, index_bits, result_bits = _U85_TABLES[function]
    table = registers.get("ACTIVATION", "table")
    if index_bits == 16:
        return _interpolated(npu, values, table * 2048, result_bits)
    return _looked_up(npu, values, table * 32 * result_bits, index_signed, result_bits)


def _looked_up(npu: Npu, values: Ints, base: int, signed: bool, bits: int) -> Ints:
    """A table of 256 entries; the index is the low byte of the value."""
    table = lut_table(npu, base, 256, bits // 8, signed)
    entries: Ints = table[(values + (128 if signed else 0)) & 0xFF]
    return entries


def _interpolated(npu: Npu, values: Ints, base: int, bits: int) -> Ints:
    """A table of 512 pairs; 32-bit results keep the seven fraction bits."""
    pairs = lut_table(npu, base, 1024, 2, True).reshape(512, 2)
    index, fraction = ((values >> 7) + 256) & 0x1FF, values & 127
    start: Ints = pairs[index, 0]
    slope: Ints = pairs[index, 1]
    if bits == 32:
        return (start << 7) + slope * fraction
    return start + ((slope * fraction + 64) >> 7)
