"""What the registers say of the weights and scales of a CONV or DEPTHWISE: where they are, how they are laid out.

Ranges are ``(region, start, length)`` in bytes, one for each stream: Ethos-U65-512 and the larger
Ethos-U85 read several at a time. A stream of length 0 has no bytes and its base may be unset.
"""

from __future__ import annotations

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.state import Kernel, Registers, choose
from harness.ethosu.weights import WeightGeometry

Range = tuple[int, int, int]


def weight_geometry(
    registers: Registers, kernel: Kernel, ifm_depth: int, accelerator: Accelerator, *, depthwise: bool
) -> WeightGeometry:
    """Shape and order of the weights.

    :param ifm_depth: input channels of one output channel: 1 for depthwise.
    :raises StreamError: a register was never set.
    """
    return WeightGeometry(
        ofm_depth=registers.get("OFM_DEPTH_M1") + 1,
        ifm_depth=ifm_depth,
        kernel_height=kernel.height,
        kernel_width=kernel.width,
        dilation_y=kernel.dilation_y,
        dilation_x=kernel.dilation_x,
        stride_y=kernel.stride_y,
        stride_x=kernel.stride_x,
        depthwise=depthwise,
        part_kernel=kernel.part_kernel,
        ofm_block_depth=registers.get("OFM_BLK_DEPTH_M1") + 1,
        ifm_bits=8 << registers.get("IFM_PRECISION", "precision"),
        fast=bool(registers.get("WEIGHT_FORMAT", "format")) if accelerator.u85 else False,
        sparse=bool(registers.get("WEIGHT_FORMAT", "sparsity")) if accelerator.u85 else False,
        microblock=registers.get("ACC_FORMAT", "microblock") if accelerator.u85 else 0,
    )


def weight_ranges(registers: Registers, accelerator: Accelerator) -> list[Range]:
    """Where the weight streams are, one for each core.

    :raises StreamError: a register was never set.
    """
    region, found = registers.get("WEIGHT_REGION"), []
    for core in range(accelerator.cores):
        prefix = f"WEIGHT{core or ''}"
        length = registers.get(f"{prefix}_LENGTH")
        found.append((region, registers.get(f"{prefix}_BASE") if length else 0, length))
    return found


def scale_ranges(registers: Registers, accelerator: Accelerator) -> list[Range]:
    """Where the scale records are: two runs on Ethos-U65-512 with more than one channel, else one.

    :raises StreamError: a register was never set.
    """
    region = registers.get("SCALE_REGION")
    found = [(region, registers.get("SCALE_BASE"), registers.get("SCALE_LENGTH"))]
    if accelerator.family == "u65" and accelerator.cores > 1 and (length := registers.get("SCALE1_LENGTH")):
        found.append((region, registers.get("SCALE1_BASE"), length))
    return found


def scale_layout(registers: Registers, accelerator: Accelerator) -> tuple[int, int | None]:
    """Bits of a bias, and on Ethos-U85 the code of the microblock that channels are dealt by.

    :raises StreamError: a register was never set.
    """
    if not accelerator.u85:
        return 40, None
    return choose((32, 48), registers.get("ACC_FORMAT", "format"), "ACC_FORMAT format"), registers.get(
        "ACC_FORMAT", "microblock"
    )
