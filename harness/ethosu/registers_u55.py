"""The commands of Ethos-U55 and Ethos-U65 beside those that all Ethos-U have.

Both have one table (ethos_u65_interface.hpp of ethos-u-vela 5.1.0). PARALLEL_MODE and the
second streams (WEIGHT1, SCALE1) are for two cores, Ethos-U65-512; DMA of two and three
dimensions is Ethos-U65's. ``COMMANDS`` has all of them by opcode and control.

IFM_PRECISION ``scale_mode`` says how the operands of ADD and SUB are scaled: both by 16 bits,
the first (OPA) by 32, or the second (OPB) by 32 bits. ``operand_order`` ON of IFM2_BROADCAST
makes IFM2 the first operand.
"""

from __future__ import annotations

from harness.ethosu.registers import (
    ADDRESS,
    CMD0,
    CMD1,
    COMMON,
    FORMAT,
    NONE,
    OFM_SCALE_MODE,
    PRECISION,
    RAW_16,
    REGION_MODE,
    SCALE_LENGTH,
    STRIDE,
    STRIDE_MODE,
    SWITCH,
    TYPE,
    bits,
    by_key,
    named,
    rows_to_specs,
    value,
)

POOLING = named("MAX", "AVERAGE", "REDUCE_SUM")
ELEMENTWISE = named("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL")
ROUND = named("DBL", "TRUNCATE", "NATURAL")
IFM_SCALE_MODE = named("OPA_OPB_16", "OPA_32", "OPB_32")
ACC_FORMAT = named("I32", "I40", "F16")
CLIP_RANGE = {0: "OFM_PRECISION", 2: "FORCE_UINT8", 3: "FORCE_INT8", 5: "FORCE_INT16"}
FUNCTION = {0: "RELU", 3: "TANH", 4: "SIGMOID", **{16 + index: f"TABLE_{index}" for index in range(8)}}
PARALLEL_MODE = named("SINGLE_CORE", "DUAL_CORE_DEPTH")
OPERAND_ORDER = named("ORDER_B", "ORDER_A")

IFM_PRECISION = (
    bits("type", 16, 1, TYPE),
    bits("precision", 18, 2, PRECISION),
    bits("format", 22, 2, FORMAT),
    bits("scale_mode", 24, 2, IFM_SCALE_MODE),
    bits("round_mode", 30, 2, ROUND),
)
IFM2_PRECISION = IFM_PRECISION[:3]
OFM_PRECISION = (
    bits("type", 16, 1, TYPE),
    bits("precision", 17, 2, PRECISION),
    bits("format", 22, 2, FORMAT),
    bits("scale_mode", 24, 1, OFM_SCALE_MODE),
    bits("round_mode", 30, 2, ROUND),
)
ACTIVATION = (bits("function", 16, 5, FUNCTION), bits("clip_range", 28, 3, CLIP_RANGE))
DMA_REGION = (
    bits("region", 16, 3),
    bits("region_mode", 24, 1, REGION_MODE),
    bits("stride_mode", 25, 2, STRIDE_MODE),
)
BROADCAST = (
    bits("broadcast_h", 16, 1, SWITCH),
    bits("broadcast_w", 17, 1, SWITCH),
    bits("broadcast_c", 18, 1, SWITCH),
    bits("operand_order", 22, 1, OPERAND_ORDER),
    bits("constant", 23, 1, SWITCH),
)
SCALE = (bits("shift", 16, 6), bits("scale", 32, 32))

COMMANDS = by_key(
    COMMON,
    rows_to_specs(
        CMD0,
        (
            (2, "OP_CONV", NONE),
            (5, "OP_POOL", value(3, POOLING)),
            (6, "OP_ELEMENTWISE", value(6, ELEMENTWISE)),
            (17, "OP_DMA_WAIT", value(1)),
            (18, "OP_KERNEL_WAIT", value(2)),
            (261, "SET_IFM_PRECISION", IFM_PRECISION),
            (269, "SET_IFM_IB_END", value(6)),
            (276, "SET_OFM_PRECISION", OFM_PRECISION),
            (277, "SET_OFM_BLK_WIDTH_M1", value(6)),
            (278, "SET_OFM_BLK_HEIGHT_M1", value(5)),
            (279, "SET_OFM_BLK_DEPTH_M1", value(7)),
            (291, "SET_PARALLEL_MODE", value(1, PARALLEL_MODE)),
            (292, "SET_ACC_FORMAT", value(2, ACC_FORMAT)),
            (293, "SET_ACTIVATION", ACTIVATION),
            (301, "SET_AB_START", value(6)),
            (303, "SET_BLOCKDEP", value(2)),
            (304, "SET_DMA0_SRC_REGION", DMA_REGION),
            (305, "SET_DMA0_DST_REGION", DMA_REGION),
            (384, "SET_IFM2_BROADCAST", BROADCAST),
            (385, "SET_IFM2_SCALAR", RAW_16),
            (389, "SET_IFM2_PRECISION", IFM2_PRECISION),
            (397, "SET_IFM2_IB_START", value(6)),
        ),
    ),
    rows_to_specs(
        CMD1,
        (
            (36, "SET_OFM_SCALE", SCALE),
            (37, "SET_OPA_SCALE", SCALE),
            (38, "SET_OPB_SCALE", (bits("value", 32, 16),)),
            (51, "SET_DMA0_SKIP0", STRIDE),
            (52, "SET_DMA0_SKIP1", STRIDE),
            (146, "SET_SCALE1_BASE", ADDRESS),
            (147, "SET_SCALE1_LENGTH", SCALE_LENGTH),
        ),
    ),
)
