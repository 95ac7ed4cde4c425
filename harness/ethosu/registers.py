"""The words of commands: how a field lies in them, and the commands that all Ethos-U have.

Bits are counted in the 32-bit word of a *cmd0* command (opcode in bits 0..9, control in bits
14..15, parameter in bits 16..31) and in the 64-bit pair of a *cmd1* command, whose second word,
the payload, is bits 32..63. A field that lies in two places has its low bits at ``low`` and its
high bits at ``high``: addresses and strides (40 bits: payload and bits 16..23) and the two
convolution strides.

A command with one field calls it ``value``. Strides and DMA skips are signed 40 bits, zero
points signed 16 bits, offsets of RESIZE signed 12 bits. ACTIVATION_MIN and ACTIVATION_MAX, and
the scalars (IFM2_SCALAR 16 bits, OP_SCALAR 32 bits), are the raw bits without a sign: whether
they have one depends on the type of the feature map that they belong to. Names that end in
``_m1`` hold the number minus one.

Facts: the ``npu_*_t`` structures and the enumerations of ethos_u65_interface.hpp (Ethos-U55 and
U65) and ethos_u85_interface.hpp in ethos-u-vela 5.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CMD0, CMD1 = 0, 1
OPCODE_BITS, CONTROL_AT = 0x3FF, 14


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a command.

    :param low: lowest bit.
    :param width: bits from ``low`` on.
    :param names: what its values are called; None for a number.
    :param high: lowest bit of the part that holds the high bits.
    :param high_width: bits of that part; 0 for a field that lies in one place.
    :param hexadecimal: people read it as an address or as raw bits.
    """

    name: str
    low: int
    width: int
    signed: bool = False
    names: Mapping[int, str] | None = None
    high: int = 0
    high_width: int = 0
    hexadecimal: bool = False

    @property
    def bits(self) -> int:
        """The width of the whole field."""
        return self.width + self.high_width

    @property
    def mask(self) -> int:
        """The bits of the command that it occupies."""
        return (1 << self.width) - 1 << self.low | (1 << self.high_width) - 1 << self.high


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command of the table.

    :param control: ``CMD0`` or ``CMD1``.
    :param name: the interface's name without ``NPU_``.
    """

    control: int
    opcode: int
    name: str
    fields: tuple[Field, ...]

    @property
    def key(self) -> int:
        """Opcode and control where they lie in the first word."""
        return self.opcode | self.control << CONTROL_AT

    @property
    def reserved(self) -> int:
        """The bits that belong to no field, and must be zero."""
        used = OPCODE_BITS | 3 << CONTROL_AT
        for field in self.fields:
            used |= field.mask
        return ~used & (1 << (64 if self.control == CMD1 else 32)) - 1


Fields = tuple[Field, ...]
Row = tuple[int, str, Fields]


def bits(name: str, low: int, width: int, names: Mapping[int, str] | None = None) -> Field:
    """An unsigned field, or one of an enumeration."""
    return Field(name, low, width, names=names)


def value(width: int, names: Mapping[int, str] | None = None) -> Fields:
    """The only field of a command: unsigned, from bit 16 on."""
    return (bits("value", 16, width, names),)


def named(*names: str) -> Mapping[int, str]:
    """Names of the values from 0 on."""
    return dict(enumerate(names))


def rows_to_specs(control: int, rows: tuple[Row, ...]) -> tuple[CommandSpec, ...]:
    """The commands of a table whose rows are opcode, name and fields."""
    return tuple(CommandSpec(control, *row) for row in rows)


def by_key(*tables: tuple[CommandSpec, ...]) -> Mapping[int, CommandSpec]:
    """Commands of several tables by their key.

    :raises ValueError: two of them have one key.
    """
    specs: dict[int, CommandSpec] = {}
    for spec in (spec for table in tables for spec in table):
        if spec.key in specs:
            raise ValueError(f"{spec.name} and {specs[spec.key].name} have one opcode")
        specs[spec.key] = spec
    return specs


NONE: Fields = ()
NUMBER = value(16)
MINUS_ONE = value(16)
REGION = value(3)
ZERO_POINT = (Field("value", 16, 16, signed=True),)
RAW_16 = (Field("value", 16, 16, hexadecimal=True),)
RAW_32 = (Field("value", 32, 32, hexadecimal=True),)
ADDRESS = (Field("value", 32, 32, high=16, high_width=8, hexadecimal=True),)
STRIDE = (Field("value", 32, 32, signed=True, high=16, high_width=8),)
WEIGHT_LENGTH = (bits("value", 32, 32),)
SCALE_LENGTH = (bits("value", 32, 20),)

TYPE = named("unsigned", "signed")
PRECISION = named("8", "16", "32", "64")
FORMAT = named("NHWC", "NHCWB16")
OFM_SCALE_MODE = named("PER_CHANNEL", "GLOBAL")
UPSCALE = named("NONE", "NEAREST", "ZEROS")
WEIGHT_ORDER = named("DEPTH_FIRST", "PART_KERNEL_FIRST")
DILATION = named("NONE", "X2")
DECOMPOSITION = named("D8X8", "D4X4")
REGION_MODE = named("EXTERNAL", "INTERNAL")
STRIDE_MODE = named("D1", "D2", "D3")
SWITCH = named("OFF", "ON")

KERNEL_STRIDE = (
    Field("stride_x_m1", 16, 1, high=22, high_width=1),
    Field("stride_y_m1", 17, 1, high=25, high_width=1),
    bits("weight_order", 18, 1, WEIGHT_ORDER),
    bits("dilation_x", 19, 1, DILATION),
    bits("dilation_y", 20, 1, DILATION),
    bits("decomposition", 21, 1, DECOMPOSITION),
)

COMMON = rows_to_specs(
    CMD0,
    (
        (0, "OP_STOP", RAW_16),
        (1, "OP_IRQ", RAW_16),
        (3, "OP_DEPTHWISE", NONE),
        (16, "OP_DMA_START", NONE),
        (19, "OP_PMU_MASK", value(1)),
        (256, "SET_IFM_PAD_TOP", value(7)),
        (257, "SET_IFM_PAD_LEFT", value(7)),
        (258, "SET_IFM_PAD_RIGHT", value(8)),
        (259, "SET_IFM_PAD_BOTTOM", value(8)),
        (260, "SET_IFM_DEPTH_M1", MINUS_ONE),
        (263, "SET_IFM_UPSCALE", value(2, UPSCALE)),
        (265, "SET_IFM_ZERO_POINT", ZERO_POINT),
        (266, "SET_IFM_WIDTH0_M1", MINUS_ONE),
        (267, "SET_IFM_HEIGHT0_M1", MINUS_ONE),
        (268, "SET_IFM_HEIGHT1_M1", MINUS_ONE),
        (271, "SET_IFM_REGION", REGION),
        (273, "SET_OFM_WIDTH_M1", MINUS_ONE),
        (274, "SET_OFM_HEIGHT_M1", MINUS_ONE),
        (275, "SET_OFM_DEPTH_M1", MINUS_ONE),
        (280, "SET_OFM_ZERO_POINT", ZERO_POINT),
        (282, "SET_OFM_WIDTH0_M1", MINUS_ONE),
        (283, "SET_OFM_HEIGHT0_M1", MINUS_ONE),
        (284, "SET_OFM_HEIGHT1_M1", MINUS_ONE),
        (287, "SET_OFM_REGION", REGION),
        (288, "SET_KERNEL_WIDTH_M1", MINUS_ONE),
        (289, "SET_KERNEL_HEIGHT_M1", MINUS_ONE),
        (290, "SET_KERNEL_STRIDE", KERNEL_STRIDE),
        (294, "SET_ACTIVATION_MIN", RAW_16),
        (295, "SET_ACTIVATION_MAX", RAW_16),
        (296, "SET_WEIGHT_REGION", REGION),
        (297, "SET_SCALE_REGION", REGION),
        (306, "SET_DMA0_SIZE0", NUMBER),
        (307, "SET_DMA0_SIZE1", NUMBER),
        (393, "SET_IFM2_ZERO_POINT", ZERO_POINT),
        (394, "SET_IFM2_WIDTH0_M1", MINUS_ONE),
        (395, "SET_IFM2_HEIGHT0_M1", MINUS_ONE),
        (396, "SET_IFM2_HEIGHT1_M1", MINUS_ONE),
        (399, "SET_IFM2_REGION", REGION),
    ),
) + rows_to_specs(
    CMD1,
    (
        (0, "SET_IFM_BASE0", ADDRESS),
        (1, "SET_IFM_BASE1", ADDRESS),
        (2, "SET_IFM_BASE2", ADDRESS),
        (3, "SET_IFM_BASE3", ADDRESS),
        (4, "SET_IFM_STRIDE_X", STRIDE),
        (5, "SET_IFM_STRIDE_Y", STRIDE),
        (6, "SET_IFM_STRIDE_C", STRIDE),
        (16, "SET_OFM_BASE0", ADDRESS),
        (17, "SET_OFM_BASE1", ADDRESS),
        (18, "SET_OFM_BASE2", ADDRESS),
        (19, "SET_OFM_BASE3", ADDRESS),
        (20, "SET_OFM_STRIDE_X", STRIDE),
        (21, "SET_OFM_STRIDE_Y", STRIDE),
        (22, "SET_OFM_STRIDE_C", STRIDE),
        (32, "SET_WEIGHT_BASE", ADDRESS),
        (33, "SET_WEIGHT_LENGTH", WEIGHT_LENGTH),
        (34, "SET_SCALE_BASE", ADDRESS),
        (35, "SET_SCALE_LENGTH", SCALE_LENGTH),
        (48, "SET_DMA0_SRC", ADDRESS),
        (49, "SET_DMA0_DST", ADDRESS),
        (50, "SET_DMA0_LEN", (Field("value", 32, 32, high=16, high_width=8),)),
        (128, "SET_IFM2_BASE0", ADDRESS),
        (129, "SET_IFM2_BASE1", ADDRESS),
        (130, "SET_IFM2_BASE2", ADDRESS),
        (131, "SET_IFM2_BASE3", ADDRESS),
        (132, "SET_IFM2_STRIDE_X", STRIDE),
        (133, "SET_IFM2_STRIDE_Y", STRIDE),
        (134, "SET_IFM2_STRIDE_C", STRIDE),
        (144, "SET_WEIGHT1_BASE", ADDRESS),
        (145, "SET_WEIGHT1_LENGTH", WEIGHT_LENGTH),
    ),
)
