"""ELEMENTWISE on one or two operands, with broadcast, scalars and the scaling of each operand.

On Ethos-U55 and U65 only IFM2 is broadcast or scalar, and IFM2_BROADCAST may say that it is the
first operand. ADD and SUB scale their operands by OPA and OPB: both times a 16-bit factor, or one
of them by 32 bits and a rounded shift while the other is only shifted left, by 19 (8-bit) or 14
(16-bit). MIN, MAX, CLZ and shifts are not scaled (OFM scale mode "per channel").

MUL of 32-bit operands applies only the shift of OFM_SCALE, whatever its factor is. Vela's softmax of TFLite counts on
it: it sets 2**30 >> 31 and means >> 31. On U55 and U65 no other operation with 32-bit data has a factor.

On Ethos-U85 each operand has its own scale (IFM_SCALE, IFM2_SCALE), comparisons give -1 for true,
and logical operations work on the bits.

Facts: GenerateScalingForElementwise in both register command stream generators; SupportedOFMQuant ("supports
shift-only") in ethos_u55_constraints.cpp and ethos_u85_constraints.cpp; ETHOS_U_FACTS 6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.ethosu.arithmetic import U55_ROUNDING, U85_IFM_ROUNDING, Ints, Rounding, as_signed, rescale
from harness.ethosu.npu import Npu
from harness.ethosu.operands import elementwise_operand, ofm_shape, operand
from harness.ethosu.output import GLOBAL, rounding_of, scaled, store
from harness.ethosu.records import Unimplemented
from harness.ethosu.state import BITS, choose, zero_point_of

MUL, ADD, SUB, MIN, MAX, LRELU, ABS, CLZ, SHR, SHL, LSR, DIV = range(12)
CMP_EQ, CMP_NE, CMP_GE, CMP_GT = range(16, 20)
AND, OR, XOR, NOT, AND_NOT = 33, 34, 35, 36, 42
_UNARY = (LRELU, ABS, CLZ, NOT)
_BOTH_16, _FIRST_32, _SECOND_32 = 0, 1, 2
_UNSCALED_OPERANDS = (MUL, DIV, SHR, SHL, LSR, CLZ, AND, OR, XOR, NOT, AND_NOT)
_UNSCALED_RESULT = (SHR, SHL, LSR, DIV)
_UNIT = (1, 0)

_BINARY: dict[int, Callable[[Ints, Ints], Ints]] = {
    MUL: np.multiply,
    ADD: np.add,
    SUB: np.subtract,
    MIN: np.minimum,
    MAX: np.maximum,
    AND: np.bitwise_and,
    OR: np.bitwise_or,
    XOR: np.bitwise_xor,
    AND_NOT: lambda first, second: first & ~second,
    CMP_EQ: lambda first, second: -(first == second).astype(np.int64),
    CMP_NE: lambda first, second: -(first != second).astype(np.int64),
    CMP_GE: lambda first, second: -(first >= second).astype(np.int64),
    CMP_GT: lambda first, second: -(first > second).astype(np.int64),
}


def elementwise(npu: Npu) -> None:
    """ELEMENTWISE with the mode of the command."""
    assert npu.command is not None
    mode = npu.command.fields["value"]
    shape = ofm_shape(npu)
    first, second = _operands_u85(npu, mode, shape) if npu.accelerator.u85 else _operands_u55(npu, mode, shape)
    values = np.broadcast_to(_apply(npu, mode, first, second), shape)
    if npu.accelerator.u85:
        if mode in _UNSCALED_RESULT:
            _need_unit(npu, mode)
            store(npu, values)
            return
        npu.accumulators = values
    elif mode not in (MUL, ADD, SUB, ABS) and npu.registers.get("OFM_PRECISION", "scale_mode"):
        raise Unimplemented(f"elementwise mode {mode} with a global scale is not implemented")
    shift_only = mode == MUL and _width(npu, "IFM") == 32
    if not (shift_only or npu.accelerator.u85):
        _need_no_factor_of_32_bits(npu, mode)
    store(npu, scaled(npu, values, None, shift_only=shift_only))


def _apply(npu: Npu, mode: int, first: Ints, second: Ints) -> Ints:
    if mode in _BINARY:
        return _BINARY[mode](first, second)
    if mode == ABS:
        return np.abs(first)
    if mode == NOT:
        return ~first
    if mode == CLZ:
        return _leading_zeros(first)
    if mode in (SHR, SHL, LSR):
        return _shifted(npu, mode, first, second)
    if mode == DIV:
        return _quotient(npu, first, second)
    raise Unimplemented(f"elementwise mode {mode} is not implemented")


def _operands_u55(npu: Npu, mode: int, shape: tuple[int, int, int]) -> tuple[Ints, Ints]:
    registers = npu.registers
    ifm = operand(npu, "IFM", shape)
    if mode in _UNARY:
        return ifm, ifm
    first, second = ifm, _second_u55(npu, shape)
    if registers.get("IFM2_BROADCAST", "operand_order"):
        first, second = second, first
    if mode not in (ADD, SUB):
        return first, second
    scale_mode = registers.get("IFM_PRECISION", "scale_mode")
    factor, shift = registers.get("OPA_SCALE", "scale"), registers.get("OPA_SCALE", "shift")
    if scale_mode == _BOTH_16:
        if factor >> 16 or shift:
            raise Unimplemented(f"OPA_SCALE {factor} >> {shift} with two 16-bit scales is not implemented")
        return first * factor, second * registers.get("OPB_SCALE")
    rounding = choose(U55_ROUNDING, registers.get("IFM_PRECISION", "round_mode"), "IFM_PRECISION round mode")
    bits = 8 << registers.get("IFM_PRECISION", "precision")
    if bits > 16 or scale_mode not in (_FIRST_32, _SECOND_32):
        raise Unimplemented(f"IFM scale mode {scale_mode} with {bits}-bit operands is not implemented")
    left = 19 if bits == 8 else 14
    if scale_mode == _FIRST_32:
        return rescale(first, factor, shift, rounding), second << left
    return first << left, rescale(second, factor, shift, rounding)


def _second_u55(npu: Npu, shape: tuple[int, int, int]) -> Ints:
    """IFM2: a 16-bit constant, or a feature map that some axes repeat."""
    registers = npu.registers
    if registers.get("IFM2_BROADCAST", "constant"):
        raw = registers.get("IFM2_SCALAR")
        signed = registers.get("IFM2_PRECISION", "type")
        value = as_signed(raw, 16) if signed else raw
        return np.full((1, 1, 1), value - zero_point_of(registers, "IFM2"), np.int64)
    repeated = (registers.get("IFM2_BROADCAST", f"broadcast_{axis}") for axis in "hwc")
    reduced = [1 if flag else size for flag, size in zip(repeated, shape, strict=True)]
    return np.broadcast_to(operand(npu, "IFM2", (reduced[0], reduced[1], reduced[2])), shape)


def _operands_u85(npu: Npu, mode: int, shape: tuple[int, int, int]) -> tuple[Ints, Ints]:
    first = _scaled_operand(npu, mode, "IFM", elementwise_operand(npu, "IFM", shape))
    if mode in _UNARY:
        return first, first
    return first, _scaled_operand(npu, mode, "IFM2", elementwise_operand(npu, "IFM2", shape))


def _scaled_operand(npu: Npu, mode: int, role: str, values: Ints) -> Ints:
    registers, name = npu.registers, f"{role}_SCALE"
    factor, shift = registers.get(name, "scale"), registers.get(name, "shift")
    if mode in _UNSCALED_OPERANDS:
        if (factor, shift) != _UNIT:
            raise Unimplemented(f"elementwise mode {mode} with {name} {factor} >> {shift} is not implemented")
        return values
    rounding = choose(U85_IFM_ROUNDING, registers.get(name, "round_mode"), f"{name} round mode")
    return rescale(values, factor, shift, rounding, registers.get(name, "dbl_rnd"))


def _need_unit(npu: Npu, mode: int) -> None:
    factor, shift = npu.registers.get("OFM_SCALE", "scale"), npu.registers.get("OFM_SCALE", "shift")
    if (factor, shift) != _UNIT:
        raise Unimplemented(f"elementwise mode {mode} with OFM_SCALE {factor} >> {shift} is not implemented")


def _need_no_factor_of_32_bits(npu: Npu, mode: int) -> None:
    registers = npu.registers
    if registers.get("OFM_PRECISION", "scale_mode") != GLOBAL or 32 not in (_width(npu, "IFM"), _width(npu, "OFM")):
        return
    factor = registers.get("OFM_SCALE", "scale")
    if factor != 1:
        raise Unimplemented(f"elementwise mode {mode} with 32-bit data and an OFM_SCALE of {factor} is not implemented")


def _width(npu: Npu, role: str) -> int:
    return BITS[npu.registers.get(f"{role}_PRECISION", "precision")]


def _leading_zeros(values: Ints) -> Ints:
    """Zeros before the first one of the 32-bit value."""
    low = values & 0xFFFFFFFF
    return np.asarray(32 - np.ceil(np.log2(low.astype(np.float64) + 1)), np.int64)


def _shifted(npu: Npu, mode: int, values: Ints, amount: Ints) -> Ints:
    if amount.size and not 0 <= int(amount.min()) <= int(amount.max()) <= 63:
        raise Unimplemented(f"a shift by {int(amount.min())} to {int(amount.max())} bits is not implemented")
    if mode == SHL:
        return values << amount
    if mode == LSR:
        return (values & ((1 << _width(npu, "IFM")) - 1)) >> amount
    half = np.where(amount > 0, np.int64(1) << np.maximum(amount - 1, 0), 0)
    return (values + half if rounding_of(npu) is Rounding.NATURAL else values) >> amount


def _quotient(npu: Npu, values: Ints, divisors: Ints) -> Ints:
    """Integer division that truncates toward zero."""
    if (divisors == 0).any():
        npu.report("undefined", "divides by zero", certain=False)
        divisors = np.where(divisors == 0, 1, divisors)
    magnitude: Ints = np.abs(values) // np.abs(divisors)
    quotient: Ints = magnitude * np.sign(values) * np.sign(divisors)
    return quotient
