"""What has to be known to read a weight stream: the shape of the weights and how they were ordered.

Everything comes from registers (and the operation that is issued), so it can be had from the
command stream alone. The number of MACs and of cores comes from the accelerator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.records import StreamError, Unimplemented

MICROBLOCK_DEPTHS = {
    128: {1: 8, 0: 16},
    256: {1: 16, 2: 8, 3: 8},
    512: {3: 16, 2: 16},
    1024: {3: 32, 2: 32, 4: 16},
    2048: {3: 64, 2: 64, 5: 16},
}
"""Ethos-U85: depth of a microblock by MACs and ACC_FORMAT.microblock (s_EthosU85Configs in ethos_u85.cpp)."""

MOST_TAPS = 1 << 16
"""Vela splits kernels of more than 64 by 64 taps; beyond this a register is wrong."""


@dataclass(frozen=True)
class WeightGeometry:
    """Shape and order of an operation's weights.

    :param ofm_depth: OFM_DEPTH_M1 + 1: channels of this operation, which may be a part of a layer's.
    :param ifm_depth: IFM_DEPTH_M1 + 1 (1 or anything for depthwise: not used there).
    :param kernel_height: taps, undilated: KERNEL_HEIGHT_M1 // dilation_y + 1.
    :param kernel_width: KERNEL_WIDTH_M1 // dilation_x + 1.
    :param dilation_y: KERNEL_STRIDE.dilation_y + 1.
    :param dilation_x: KERNEL_STRIDE.dilation_x + 1.
    :param stride_y: KERNEL_STRIDE.stride_y_m1 + 1; matters on Ethos-U85 for part-kernel and depthwise.
    :param stride_x: KERNEL_STRIDE.stride_x_m1 + 1.
    :param depthwise: the operation is DEPTHWISE.
    :param part_kernel: KERNEL_STRIDE.weight_order is PART_KERNEL_FIRST; not used for depthwise.
    :param ofm_block_depth: OFM_BLK_DEPTH_M1 + 1.
    :param ifm_bits: 8 << IFM_PRECISION.precision.
    :param fast: Ethos-U85, WEIGHT_FORMAT.format is FWD: one stream whatever the cores.
    :param sparse: Ethos-U85, WEIGHT_FORMAT.sparsity is SPARSE_2_4.
    :param microblock: Ethos-U85, ACC_FORMAT.microblock, the code.
    """

    ofm_depth: int
    ifm_depth: int
    kernel_height: int
    kernel_width: int
    dilation_y: int
    dilation_x: int
    stride_y: int
    stride_x: int
    depthwise: bool
    part_kernel: bool
    ofm_block_depth: int
    ifm_bits: int
    fast: bool = False
    sparse: bool = False
    microblock: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[OFM channel, kernel row, kernel column, IFM channel (one for depthwise)]."""
        return self.ofm_depth, self.kernel_height, self.kernel_width, 1 if self.depthwise else self.ifm_depth

    @property
    def elements(self) -> int:
        first, second, third, fourth = self.shape
        return first * second * third * fourth


@dataclass(frozen=True)
class WeightStatistics:
    """Numbers about one operation's weights.

    :param compressed_bytes: length of all streams.
    :param elements: weights in the streams, padding included.
    :param zeros: of the tensor, as ``minimum`` and ``maximum``.
    """

    compressed_bytes: int
    elements: int
    zeros: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Weights:
    """Decoded weights.

    :param values: [OFM channel, kernel row, kernel column, IFM channel], the last of size 1 for
        depthwise; zero points are subtracted already, as the NPU multiplies with these. Read-only.
    :param issues: (kind, message): ``stream-length`` if a stream has fewer or more weights than the
        operation needs, ``weight-padding`` if weights outside the tensor (or bits behind the
        last) are not zero.
    """

    values: NDArray[np.int16]
    issues: tuple[tuple[str, str], ...]
    statistics: WeightStatistics


def microblock_depth(geometry: WeightGeometry, accelerator: Accelerator) -> int:
    """Output channels of a microblock.

    :raises StreamError: the microblock is not one of this Ethos-U85.
    """
    if not accelerator.u85:
        return accelerator.ofm_ublock_depth
    depths = MICROBLOCK_DEPTHS[accelerator.macs]
    if geometry.microblock not in depths:
        raise StreamError(f"{accelerator.name} has no microblock {geometry.microblock}; it has {sorted(depths)}")
    return depths[geometry.microblock]


def check_geometry(geometry: WeightGeometry, accelerator: Accelerator) -> None:
    """Refuse what the order of weights is not defined for.

    :raises StreamError: a size, stride or dilation that no register can hold.
    :raises Unimplemented: a format or data type that no encoder writes.
    """
    sizes = (*geometry.shape, geometry.ofm_block_depth, geometry.stride_y, geometry.stride_x)
    if min(sizes) < 1:
        raise StreamError(f"weights of {geometry.shape} in blocks of {geometry.ofm_block_depth}: sizes begin at 1")
    if not (1 <= geometry.dilation_y <= 2 and 1 <= geometry.dilation_x <= 2):
        raise StreamError(f"dilation {geometry.dilation_y}x{geometry.dilation_x}; there are 1 and 2")
    if geometry.kernel_height * geometry.kernel_width > MOST_TAPS:
        raise Unimplemented(f"a kernel of {geometry.kernel_height}x{geometry.kernel_width} taps")
    if geometry.ifm_bits not in (8, 16):
        raise Unimplemented(f"weights for an IFM of {geometry.ifm_bits} bits; there are 8 and 16")
    if (geometry.fast or geometry.sparse) and not accelerator.u85:
        raise StreamError(f"{accelerator.name} has neither the fast weight format nor sparsity")
    if (geometry.fast or geometry.sparse) and geometry.depthwise:
        raise Unimplemented("the fast weight format or sparsity in a depthwise convolution")
