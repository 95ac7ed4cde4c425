"""The SHRAM of Ethos-U55 and U65: OFM blocks, input buffers and accumulators must fit into it.

SHRAM consists of banks of 1 KiB. The first two are the output buffer; input buffers follow, up to
IFM_IB_END, and accumulators from AB_START up to the tables, which take the last two banks where
they are reserved or in use. Input buffer and accumulators hold two blocks each and are rounded to a
granule of banks. An elementwise operation has no accumulators; the buffer of its IFM2 begins at
IFM2_IB_START.

The sizes are those of TryBlockConfig and GetArchIFMBlockSize in ethos_u55.cpp and of
try_block_config in architecture_allocator.py, which agree: an operation whose buffers overlap cannot
work, so those are certain. The OFM block is a multiple of the microblock and at most 32x64x128
(try_block_config calls any other invalid).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import block_of, operation_of, uses_table
from harness.ethosu.records import Step
from harness.ethosu.state import BITS

_OUTPUT_BANKS, _TABLE_BANKS, _BANK = 2, 2, 1024
_SUBKERNEL = 8
_BLOCK_MAX = (32, 64, 128)
_ACCUMULATOR_BITS = {0: 32, 1: 40, 2: 16}
"""ACC_FORMAT -> bits."""


@dataclass(frozen=True)
class Granules:
    """Banks that a buffer is rounded to, and the microblock (height, width, depth).

    :param ifm: by bits of the IFM.
    :param elementwise: the same for elementwise operations.
    :param accumulator: by bits.
    """

    microblock: tuple[int, int, int]
    ifm: dict[int, int]
    elementwise: dict[int, int]
    accumulator: dict[int, int]


def _granules(microblock: tuple[int, int, int], values: tuple[int, ...]) -> Granules:
    ifm8, ifm16, element8, element16, ifm32, acc16, acc32, acc40 = values
    return Granules(
        microblock,
        {8: ifm8, 16: ifm16, 32: ifm32},
        {8: element8, 16: element16, 32: ifm32},
        {16: acc16, 32: acc32, 40: acc40},
    )


_BY_MACS = {
    32: _granules((1, 1, 4), (2, 2, 2, 2, 4, 4, 4, 4)),
    64: _granules((1, 1, 8), (2, 2, 2, 2, 4, 4, 4, 8)),
    128: _granules((1, 2, 8), (4, 4, 4, 4, 8, 4, 8, 12)),
    256: _granules((2, 2, 8), (8, 8, 8, 8, 16, 8, 16, 20)),
}
"""s_EthosU55Configs (ethos_u55.cpp) and s_EthosU65Configs (ethos_u65.cpp), by MACs of one core."""


def shram_limits(step: Step, accelerator: Accelerator) -> Iterator[tuple[str, bool]]:
    """Broken rules of one kernel step, each with whether it is certain.

    :raises KeyError: a register that the rules need was never set.
    """
    granules = _BY_MACS[min(accelerator.macs // accelerator.cores, 256)]
    registers = step.registers
    block = block_of(step)
    yield from _block_size(block, granules.microblock)
    bits = BITS[step.value("IFM_PRECISION", "precision")]
    if bits > 32:
        yield f"the IFM has {bits} bits", True
        return
    end, start = registers["IFM_IB_END"]["value"], registers["AB_START"]["value"]
    tables = accelerator.shram_banks - _table_banks(step, accelerator)
    if not _OUTPUT_BANKS <= end <= start <= tables:
        order = f"input buffers up to bank {end}, accumulators from {start} and tables from {tables}"
        yield f"SHRAM is out of order: {order}", True
    elif step.kind == "ELEMENTWISE":
        yield from _elementwise_buffers(step, block, bits, granules, end)
    else:
        yield from _buffers(step, accelerator, block, bits, granules, (end, start, tables))


def _block_size(block: tuple[int, ...], microblock: tuple[int, int, int]) -> Iterator[tuple[str, bool]]:
    for axis, size, limit, unit in zip(("HEIGHT", "WIDTH", "DEPTH"), block, _BLOCK_MAX, microblock, strict=True):
        if size > limit:
            yield f"the OFM block's {axis} is {size}, more than {limit}", True
        if size % unit:
            yield f"the OFM block's {axis} is {size}, no multiple of the microblock's {unit}", True


def _table_banks(step: Step, accelerator: Accelerator) -> int:
    """Banks at the end that accumulators must not reach."""
    return 0 if accelerator.shares_tables and not uses_table(step.reads) else _TABLE_BANKS


def _banks(size: int, granule: int) -> int:
    """Banks of a double buffer for blocks of ``size`` bytes."""
    banks = 2 * -(-size // _BANK)
    return -(-banks // granule) * granule


def _ifm_banks(rows: int, columns: int, depth: int, bits: int, granule: int) -> int:
    return _banks(rows * columns * -(-depth * bits // 64) * 8, granule)


def _elementwise_buffers(
    step: Step, block: tuple[int, ...], bits: int, granules: Granules, end: int
) -> Iterator[tuple[str, bool]]:
    rows, columns = (-(-size // unit) * unit for size, unit in zip(block[:2], granules.microblock[:2], strict=True))
    needed = _ifm_banks(rows, columns, block[2], bits, granules.elementwise[bits])
    if _OUTPUT_BANKS + needed > end:
        yield f"the IFM needs banks {_OUTPUT_BANKS} to {_OUTPUT_BANKS + needed}, input buffers end at {end}", True
    if not any(access.role == "IFM2" for access in step.reads):
        return
    second = step.registers["IFM2_IB_START"]["value"]
    if second < _OUTPUT_BANKS + needed:
        yield f"the IFM needs banks {_OUTPUT_BANKS} to {_OUTPUT_BANKS + needed}, IFM2 begins at {second}", True
    if second + needed > end:
        yield f"IFM2 needs banks {second} to {second + needed}, input buffers end at {end}", True


def _buffers(
    step: Step,
    accelerator: Accelerator,
    block: tuple[int, ...],
    bits: int,
    granules: Granules,
    banks: tuple[int, int, int],
) -> Iterator[tuple[str, bool]]:
    end, start, tables = banks
    accumulator = _ACCUMULATOR_BITS[step.registers["ACC_FORMAT"]["value"]]
    block = _fitted(step, block, granules.microblock)
    size = block[0] * block[1] * -(-block[2] // 8) * 8 * accumulator // 8
    needed = _banks(size, granules.accumulator[accumulator])
    if start + needed > tables:
        yield f"accumulators need banks {start} to {start + needed}, tables begin at {tables}", True
    rows, columns = _ifm_block(step, block, granules.microblock)
    operation = operation_of(step, accelerator)
    depth = operation.slice_depth or block[2]
    ifm = _ifm_banks(rows, columns, depth, bits, granules.ifm[bits])
    if _OUTPUT_BANKS + ifm > end:
        yield f"the IFM needs banks {_OUTPUT_BANKS} to {_OUTPUT_BANKS + ifm}, input buffers end at {end}", True


def _fitted(step: Step, block: tuple[int, ...], microblock: tuple[int, int, int]) -> tuple[int, ...]:
    """One row where a one-row OFM has a one-row kernel on a two-row microblock (FitBlockForOFM)."""
    one_row = step.registers["OFM_HEIGHT_M1"]["value"] == 0 and step.registers["KERNEL_HEIGHT_M1"]["value"] == 0
    return (1, *block[1:]) if one_row and microblock[0] == 2 else block


def _ifm_block(step: Step, block: tuple[int, ...], microblock: tuple[int, int, int]) -> tuple[int, int]:
    """Rows and columns of IFM for one block; kernels over 8 are worked on in parts."""
    registers = step.registers
    upscale = registers["IFM_UPSCALE"]["value"]
    scale, rounding = (2 if upscale else 1), (1 if upscale == 1 else 0)
    found = []
    for axis, (size, name, stride) in enumerate(
        zip(block[:2], ("KERNEL_HEIGHT_M1", "KERNEL_WIDTH_M1"), ("stride_y_m1", "stride_x_m1"), strict=True)
    ):
        reach = min(registers[name]["value"] + 1, _SUBKERNEL)
        needed = -(-((size - 1) * (registers["KERNEL_STRIDE"][stride] + 1) + reach + rounding) // scale)
        found.append(-(-needed // microblock[axis]) * microblock[axis])
    return found[0], found[1]
