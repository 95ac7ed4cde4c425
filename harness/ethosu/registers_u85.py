"""The commands of Ethos-U85 beside those that all Ethos-U have (ethos_u85_interface.hpp, ethos-u-vela 5.1.0).

``COMMANDS`` has all of them by opcode and control. The only field of OP_CONV, ``value``, says
that the weights are IFM2 (the interface's ``weights_ifm2``). A broadcast is a mask: H 1, W 2,
C 4; 8 is a scalar. ``target`` of OP_BRANCH counts bytes from the first word of the command stream
(GenerateCommandStream in ethos_u85_register_cs_generator.cpp).
"""

from __future__ import annotations

from harness.ethosu.registers import (
    ADDRESS,
    CMD0,
    CMD1,
    COMMON,
    FORMAT,
    OFM_SCALE_MODE,
    PRECISION,
    RAW_32,
    REGION,
    REGION_MODE,
    STRIDE,
    STRIDE_MODE,
    SWITCH,
    TYPE,
    WEIGHT_LENGTH,
    Field,
    bits,
    by_key,
    named,
    rows_to_specs,
    value,
)

POOLING = named("MAX", "AVERAGE", "REDUCE_SUM", "SUM", "NONE", "MIN", "ARGMAX_X", "ARGMAX_Y")
ELEMENTWISE = {
    **named("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL", "LSR", "DIV"),
    16: "CMP_EQ",
    17: "CMP_NE",
    18: "CMP_GE",
    19: "CMP_GT",
    33: "AND",
    34: "OR",
    35: "XOR",
    36: "NOT",
    42: "AND_NOT",
}
RESIZE = named("BILINEAR", "REPLICATE", "NEAREST")
STORAGE = named("TILE2X2", "TILE3X1", "CHAINED", "NONE")
BROADCAST = named("NONE", "H", "W", "HW", "C", "CH", "CW", "CWH", "SCALAR")
REVERSE = named("NONE", "H", "W", "C")
TRANSPOSE = {0: "HWC", 1: "WHC", 2: "HCW", 3: "WCH", 6: "CHW", 7: "CWH"}
ACC_FORMAT = named("I32", "I48")
ACC_INPUT = named("RESET", "KEEP", "IFM2")
ACC_OUTPUT = named("ENABLE", "DISABLE")
MICROBLOCK = named("U1X1", "U1X2", "U1X4", "U2X2", "U2X4", "U4X4")
FUNCTION = {
    0: "LUT_NONE",
    1: "LUT_U8_U8",
    4: "LUT_S8_S8",
    5: "LUT_S8_S16",
    7: "LUT_S8_S32",
    8: "LUT_S16_S16",
    9: "LUT_S16_S32",
    10: "LUT_TANH",
    11: "LUT_SIGMOID",
}
CLIP_RANGE = named("B16", "NONE")
WEIGHT_FORMAT = named("SWD", "FWD")
SPARSITY = named("NONE", "SPARSE_2_4")
OFM_ROUND = named(
    "DOUBLE_SYMMETRIC", "NATURAL", "DOUBLE_ASYMMETRIC", "SYMMETRIC", "TRUNCATE_TO_ZERO", "TRUNCATE_TO_LOWER"
)
IFM_ROUND = named("DOUBLE_SYMMETRIC", "NATURAL")
CONDITION = named("ALWAYS", "RF_TRUE")

IFM_PRECISION = (
    bits("type", 16, 1, TYPE),
    bits("precision", 18, 2, PRECISION),
    bits("format", 22, 2, FORMAT),
    bits("storage", 30, 2, STORAGE),
)
OFM_PRECISION = (
    bits("type", 16, 1, TYPE),
    bits("precision", 17, 2, PRECISION),
    bits("format", 22, 2, FORMAT),
    bits("scale_mode", 24, 1, OFM_SCALE_MODE),
    bits("reverse", 25, 2, REVERSE),
    bits("transpose", 27, 3, TRANSPOSE),
    bits("storage", 30, 2, STORAGE),
)
ACCUMULATOR = (
    bits("format", 16, 2, ACC_FORMAT),
    bits("input", 20, 2, ACC_INPUT),
    bits("output", 22, 1, ACC_OUTPUT),
    bits("microblock", 24, 3, MICROBLOCK),
)
ACTIVATION = (
    bits("function", 16, 5, FUNCTION),
    bits("table", 21, 3),
    bits("clip_range", 28, 1, CLIP_RANGE),
)
DMA_DESTINATION = (
    bits("region", 16, 3),
    bits("region_mode", 24, 1, REGION_MODE),
    bits("idx_mode", 27, 1, SWITCH),
)
DMA_SOURCE = (*DMA_DESTINATION, bits("stride_mode", 25, 2, STRIDE_MODE))
OFM_SCALE = (
    bits("shift", 16, 6),
    bits("dbl_rnd", 22, 5),
    bits("round_mode", 29, 3, OFM_ROUND),
    bits("scale", 32, 31),
)
IFM_SCALE = (*OFM_SCALE[:2], bits("round_mode", 29, 1, IFM_ROUND), OFM_SCALE[3])
RESIZE_OFFSET = (Field("value", 16, 12, signed=True),)
RESIZE_STEP = (
    bits("one_step_int", 16, 4),
    bits("blk_step_int", 20, 11),
    bits("one_step_mod", 32, 11),
    bits("blk_step_mod", 48, 11),
)

COMMANDS = by_key(
    COMMON,
    rows_to_specs(
        CMD0,
        (
            (2, "OP_CONV", value(1, SWITCH)),
            (5, "OP_POOL", value(3, POOLING)),
            (6, "OP_ELEMENTWISE", value(6, ELEMENTWISE)),
            (7, "OP_RESIZE", value(2, RESIZE)),
            (17, "OP_DMA_WAIT", value(2)),
            (18, "OP_KERNEL_WAIT", value(1)),
            (261, "SET_IFM_PRECISION", IFM_PRECISION),
            (264, "SET_IFM_BROADCAST", value(4, BROADCAST)),
            (276, "SET_OFM_PRECISION", OFM_PRECISION),
            (277, "SET_OFM_BLK_WIDTH_M1", value(7)),
            (278, "SET_OFM_BLK_HEIGHT_M1", value(7)),
            (279, "SET_OFM_BLK_DEPTH_M1", value(10)),
            (292, "SET_ACC_FORMAT", ACCUMULATOR),
            (293, "SET_ACTIVATION", ACTIVATION),
            (298, "SET_RESIZE_X_SCALE_N_M1", value(11)),
            (299, "SET_RESIZE_Y_SCALE_N_M1", value(11)),
            (300, "SET_RESIZE_X_OFFSET", RESIZE_OFFSET),
            (301, "SET_RESIZE_Y_OFFSET", RESIZE_OFFSET),
            (302, "SET_WEIGHT_FORMAT", (bits("format", 16, 1, WEIGHT_FORMAT), bits("sparsity", 20, 1, SPARSITY))),
            (303, "SET_BLOCKDEP", value(3)),
            (304, "SET_DMA0_SRC_REGION", DMA_SOURCE),
            (305, "SET_DMA0_DST_REGION", DMA_DESTINATION),
            (308, "SET_DMA0_IDX_REGION", REGION),
            (384, "SET_IFM2_BROADCAST", value(4, BROADCAST)),
            (389, "SET_IFM2_PRECISION", IFM_PRECISION),
        ),
    ),
    rows_to_specs(
        CMD1,
        (
            (36, "SET_OFM_SCALE", OFM_SCALE),
            (37, "SET_IFM_SCALE", IFM_SCALE),
            (38, "SET_IFM2_SCALE", IFM_SCALE),
            (39, "SET_OP_SCALAR", RAW_32),
            (51, "SET_DMA0_SRC_STRIDE0", STRIDE),
            (52, "SET_DMA0_SRC_STRIDE1", STRIDE),
            (53, "SET_DMA0_DST_STRIDE0", STRIDE),
            (54, "SET_DMA0_DST_STRIDE1", STRIDE),
            (55, "SET_DMA0_IDX", ADDRESS),
            (56, "SET_DMA0_IDX_MAX", (bits("value", 32, 31),)),
            (57, "SET_DMA0_IDX_SKIP1", STRIDE),
            (146, "SET_WEIGHT2_BASE", ADDRESS),
            (147, "SET_WEIGHT2_LENGTH", WEIGHT_LENGTH),
            (148, "SET_WEIGHT3_BASE", ADDRESS),
            (149, "SET_WEIGHT3_LENGTH", WEIGHT_LENGTH),
            (150, "SET_RESIZE_X", RESIZE_STEP),
            (151, "SET_RESIZE_Y", RESIZE_STEP),
            (256, "OP_BRANCH", (bits("condition", 16, 1, CONDITION), bits("target", 32, 32))),
        ),
    ),
)
