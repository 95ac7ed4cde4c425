"""The registers while a stream runs, and what they say about the operation that is issued.

A register keeps its value until it is written again. One that was never written has no value
here: reading it raises ``UnsetRegister``, which becomes an issue, because what hardware holds
after reset is not the stream's to rely on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.limits import MOST_TAPS
from harness.ethosu.records import Command, StreamError, Unimplemented

_Choice = TypeVar("_Choice")

NORMAL, CHAINED, NO_STORAGE = 0, 2, 3
"""Storage of an operand: in memory, in a chain buffer, nowhere (a scalar; a result that is dropped)."""
RESET, KEEP, FROM_IFM2 = 0, 1, 2
"""Where accumulators start (ACC_FORMAT input)."""
BITS = (8, 16, 32, 64)
TRANSPOSITIONS = {0: (0, 1, 2), 1: (1, 0, 2), 2: (0, 2, 1), 3: (1, 2, 0), 6: (2, 0, 1), 7: (2, 1, 0)}
"""OFM_PRECISION transpose -> axes of the result as it lies in memory."""


class UnsetRegister(StreamError):
    """An operation depends on a register that the stream did not write before."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"depends on {name}, which no command has written")


class Registers:
    """All registers: ``held`` has their fields by name, without ``SET_``."""

    def __init__(self) -> None:
        self.held: dict[str, Mapping[str, int]] = {}

    def set(self, command: Command) -> None:
        """Keep what a ``SET_…`` command writes."""
        self.held[command.name.removeprefix("SET_")] = command.fields

    def snapshot(self) -> Mapping[str, Mapping[str, int]]:
        """All registers as they are now."""
        return dict(self.held)

    def get(self, name: str, field: str = "value") -> int:
        """:raises UnsetRegister: nothing wrote it."""
        try:
            return self.held[name][field]
        except KeyError:
            if name in self.held:
                raise
            raise UnsetRegister(name) from None

    def get_or(self, name: str, default: int, field: str = "value") -> int:
        """For registers and fields that a family of configurations does not have."""
        held = self.held.get(name)
        return default if held is None else held.get(field, default)


@dataclass(frozen=True)
class Kernel:
    """Taps, strides, dilation and padding of a convolution or pooling.

    :param height: taps, dilation not counted.
    :param reach_y: rows that the taps span: ``(height - 1) * dilation + 1``.
    """

    height: int
    width: int
    reach_y: int
    reach_x: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    part_kernel: bool
    top: int
    left: int
    bottom: int
    right: int

    @property
    def padded(self) -> bool:
        return bool(self.top or self.left or self.bottom or self.right)


def choose(values: Sequence[_Choice], code: int, what: str) -> _Choice:
    """The entry of a table.

    :raises Unimplemented: the table ends before ``code``.
    """
    if code >= len(values):
        raise Unimplemented(f"{what} {code} is not implemented")
    return values[code]


def kernel_of(registers: Registers) -> Kernel:
    """Read the KERNEL and IFM_PAD registers."""
    stride = "KERNEL_STRIDE"
    if registers.get(stride, "decomposition"):
        raise Unimplemented("kernels that are decomposed into parts of 4x4 taps are not implemented")
    dilation_y = registers.get(stride, "dilation_y") + 1
    dilation_x = registers.get(stride, "dilation_x") + 1
    reach_y, reach_x = registers.get("KERNEL_HEIGHT_M1") + 1, registers.get("KERNEL_WIDTH_M1") + 1
    if reach_y * reach_x > MOST_TAPS:
        raise Unimplemented(f"has a kernel of {reach_y}x{reach_x}; the largest that is executed has {MOST_TAPS} taps")
    return Kernel(
        height=(reach_y - 1) // dilation_y + 1,
        width=(reach_x - 1) // dilation_x + 1,
        reach_y=reach_y,
        reach_x=reach_x,
        stride_y=registers.get(stride, "stride_y_m1") + 1,
        stride_x=registers.get(stride, "stride_x_m1") + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        part_kernel=bool(registers.get(stride, "weight_order")),
        top=registers.get("IFM_PAD_TOP"),
        left=registers.get("IFM_PAD_LEFT"),
        bottom=registers.get("IFM_PAD_BOTTOM"),
        right=registers.get("IFM_PAD_RIGHT"),
    )


def feature_map_of(registers: Registers, role: str, shape: tuple[int, int, int]) -> FeatureMap:
    """Read the registers of one operand in memory.

    :param shape: height, width and depth, which follow from the operation.
    :raises Unimplemented: a storage or element size without an implementation.
    """
    if registers.get_or(f"{role}_PRECISION", 0, "storage"):
        raise Unimplemented(f"{role} storage {registers.get(f'{role}_PRECISION', 'storage')} is not implemented")
    bricks = choose((False, True), registers.get(f"{role}_PRECISION", "format"), f"{role} format")
    try:
        return mapped(registers.held, role, shape, bricks=bricks)
    except KeyError as error:
        raise UnsetRegister(*error.args) from None


def mapped(held: Mapping[str, Mapping[str, int]], role: str, shape: Sequence[int], *, bricks: bool) -> FeatureMap:
    """An operand in memory.

    :param held: registers.
    :param shape: height, width and depth.
    :raises KeyError: nothing wrote a register.
    """
    precision, *others = MAP_REGISTERS[role]
    fields = held[precision]
    values = [held[name]["value"] for name in others]
    return _feature_map(role, *shape, fields["precision"], bool(fields["type"]), bricks, *values)


MAP_REGISTERS = {
    role: tuple(
        f"{role}_{name}"
        for name in (
            "PRECISION",
            "BASE0",
            "BASE1",
            "BASE2",
            "BASE3",
            "REGION",
            "HEIGHT0_M1",
            "HEIGHT1_M1",
            "WIDTH0_M1",
            "STRIDE_Y",
            "STRIDE_X",
            "STRIDE_C",
        )
    )
    for role in ("IFM", "IFM2", "OFM")
}
"""What an operand in memory depends on beside its shape."""


@lru_cache(maxsize=1 << 14)
def _feature_map(
    role: str,
    height: int,
    width: int,
    depth: int,
    precision: int,
    signed: bool,
    bricks: bool,
    *values: int,
) -> FeatureMap:
    """The same object for the same operand: every set of inputs and every check comes to it again."""
    base0, base1, base2, base3, region, height0, height1, width0, stride_y, stride_x, stride_c = values
    return FeatureMap(
        role,
        region,
        (base0, base1, base2, base3),
        height,
        width,
        depth,
        height0 + 1,
        height1 + 1,
        width0 + 1,
        stride_y,
        stride_x,
        stride_c,
        BITS[precision],
        signed,
        bricks,
    )


def zero_point_of(registers: Registers, role: str) -> int:
    """An operand's zero point, in the sign of its type: 32768 is one of uint16 (SupportedZeroPoint in Vela)."""
    value = registers.get(f"{role}_ZERO_POINT")
    return value if registers.get(f"{role}_PRECISION", "type") else value & 0xFFFF
