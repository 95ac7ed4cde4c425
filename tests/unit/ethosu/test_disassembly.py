"""Listings of streams made by hand: what each line says, and what is said where registers do not tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.artifacts.vela import VelaPayload
from harness.ethosu.commands import decode_commands
from harness.ethosu.disassembly import as_data, listing
from harness.ethosu.operation_text import Constants
from harness.ethosu.records import StreamError
from harness.ethosu.state import Registers
from tests.unit.ethosu.assembled_convolution import BLOCK, PLACES, WEIGHTS, convolution, convolution_payload
from tests.unit.ethosu.assembling import (
    STOP,
    U55,
    U85,
    feature_map,
    ofm,
    operation,
    payload,
    registers,
)


def _said(lines: list[str]) -> list[str]:
    return [line.removeprefix("  ; ") for line in lines if line.startswith("  ; ")]


def test_a_convolution() -> None:
    lines = list(listing(convolution_payload(convolution()), U55))
    last = 32 + len(WEIGHTS)
    size = len(convolution_payload(convolution()).commands) - 20
    assert lines[:6] == [
        "Ethos-U55 with 128 MACs, 24 KiB of SHRAM; architecture 1.0.6",
        f"{len(convolution()) + 1} commands (2 operations) in {size} bytes from 0x14",
        f"region 0: weights, {last} bytes",
        "region 1: scratch, 128 bytes",
        "input 0: 1x1x1x4x5x3 with 8 bits each, 60 bytes at scratch[0x0:0x3c]",
        "output 0: 1x1x1x4x5x2 with 8 bits each, 40 bytes at scratch[0x40:0x68]",
    ]
    assert lines[7] == "  000014  0001010f           SET_IFM_REGION           1"
    assert "  000018  00004000 00000000  SET_IFM_BASE0            0x0" in lines
    precision = "type=signed precision=8 format=NHWC scale_mode=PER_CHANNEL round_mode=NATURAL"
    assert any(line.endswith(f"80010114           SET_OFM_PRECISION        {precision}") for line in lines)
    assert _said(lines) == [
        "step 0: CONV 1x2 s1x1 d1x1 pad 0,1,0,0 depth first",
        "  IFM  int8 4x5x3 NHWC scratch[0x0:0x3c] strides y,x 15,3 zp -128",
        "  OFM  int8 4x5x2 NHWC scratch[0x40:0x68] strides y,x 10,2 zp 0",
        f"  weights {len(WEIGHTS)} bytes at weights[0x20:{last:#x}]",
        f"  weights 2x1x2x3: 12 of {len(PLACES)} in the stream, {12 / len(WEIGHTS):.2f} to a byte, 0 zeros, -5 to 5",
        "  scales 32 bytes at weights[0x0:0x20], PER_CHANNEL NATURAL",
        "  clip -128 to 127 (OFM_PRECISION), TABLE_2",
        "  block 4x2x8, blockdep 2, accumulators I32",
    ]
    assert lines[-1].endswith("ffff0000           OP_STOP                  0xffff")


def test_registers_are_kept_and_steps_are_counted() -> None:
    again = [("OP_KERNEL_WAIT", {"value": 0}), *registers(U55, {"OFM_BASE0": 8}), ("OP_CONV", {})]
    lines = _said(list(listing(convolution_payload([*convolution(), *again]), U55)))
    assert lines[8] == "step 1: KERNEL_WAIT 0"
    assert lines[9].startswith("step 2: CONV 1x2")
    assert lines[11] == "  OFM  int8 4x5x2 NHWC scratch[0x8:0x30] strides y,x 10,2 zp 0"


def test_tiles_pieces_and_bricks_are_told() -> None:
    changes = {
        "OFM_PRECISION": {"type": 1, "precision": 1, "format": 1, "scale_mode": 0},
        "OFM_STRIDE_Y": 160,
        "OFM_STRIDE_C": 640,
        "OFM_HEIGHT0_M1": 2,
        "OFM_BASE2": 0x400,
    }
    line = next(
        line
        for line in _said(list(listing(convolution_payload(convolution(**changes)), U55)))
        if line.startswith("  OFM")
    )
    assert line == (
        "  OFM  int16 4x5x2 NHCWB16 scratch[0x40:0x484] in 20 pieces strides y,c 160,640 "
        "tiles of 3/4 rows, 5 columns at 0x40,0x0,0x400,0x0 zp 0"
    )


@pytest.mark.parametrize(
    ("register", "line"),
    [
        ("OFM_STRIDE_Y", "  operands: not known: 'OFM_STRIDE_Y' is missing or unknown"),
        ("SCALE_BASE", "  scaling: not known: depends on SCALE_BASE, which no command has written"),
        ("WEIGHT_BASE", "  weights: not known: depends on WEIGHT_BASE, which no command has written"),
        ("BLOCKDEP", "  block: not known: depends on BLOCKDEP, which no command has written"),
        ("KERNEL_STRIDE", "step 0: title: not known: depends on KERNEL_STRIDE, which no command has written"),
    ],
)
def test_a_register_never_set_is_named_in_its_line_and_the_others_stay(register: str, line: str) -> None:
    said = _said(list(listing(convolution_payload(convolution(**{register: None})), U55)))
    assert line in said
    assert "  clip -128 to 127 (OFM_PRECISION), TABLE_2" in said


def test_weights_that_cannot_be_decoded_say_why() -> None:
    said = _said(list(listing(convolution_payload(convolution(WEIGHT_LENGTH=16)), U55)))
    assert any(line.startswith("  weights: not known: ") for line in said)
    beyond = _said(list(listing(convolution_payload(convolution(WEIGHT_BASE=4096)), U55)))
    assert "  weights not decoded: their bytes are known only when the stream runs" in beyond


def test_weights_behind_a_copy_are_decoded() -> None:
    copy = registers(
        U55,
        {
            "DMA0_SRC_REGION": {},
            "DMA0_SRC": 32,
            "DMA0_DST_REGION": {"region": 1},
            "DMA0_DST": 96,
            "DMA0_LEN": len(WEIGHTS),
        },
    )
    commands = [*copy, ("OP_DMA_START", {}), *convolution(WEIGHT_REGION=1, WEIGHT_BASE=96)]
    said = _said(list(listing(convolution_payload(commands), U55)))
    assert said[:4] == [
        "step 0: DMA_START",
        f"  from weights[0x20:{32 + len(WEIGHTS):#x}]",
        f"  to   scratch[0x60:{96 + len(WEIGHTS):#x}]",
        f"  {len(WEIGHTS)} bytes",
    ]
    assert any(" 0 zeros, -5 to 5" in line for line in said)


def _copied(**changes: Any) -> Registers:
    settings = {"DMA0_SRC_REGION": {}, "DMA0_SRC": 2, "DMA0_DST_REGION": {"region": 1}, "DMA0_DST": 16, "DMA0_LEN": 4}
    made = payload(U55, registers(U55, {**settings, **changes}))
    held = Registers()
    for command in decode_commands(made.commands, U55):
        held.set(command)
    return held


def test_constants_follow_copies_and_forget_what_is_overwritten() -> None:
    constants = Constants(bytes(range(16)))
    assert constants.find(0, 3, 2) == b"\3\4"
    assert constants.find(0, 15, 2) is None
    assert constants.find(1, 16, 1) is None
    constants.note(_copied())
    assert constants.find(1, 17, 3) == b"\3\4\5"
    assert constants.find(1, 15, 2) is None
    assert constants.find(2, 17, 1) is None
    constants.note(_copied(DMA0_SRC=8, DMA0_DST=18, DMA0_LEN=1))
    assert constants.find(1, 18, 1) == b"\x08"
    assert constants.find(1, 17, 3) is None
    assert constants.find(1, 16, 2) == b"\2\3"
    constants.note(_copied(DMA0_DST_REGION={"region": 1, "region_mode": 1}))  # into the table memory
    assert constants.find(1, 18, 1) == b"\x08"
    constants.note(_copied(DMA0_SRC_REGION={"region": 1}))
    assert constants.find(1, 16, 2) is None


def test_elementwise_on_u85_with_a_scalar_and_a_chained_result() -> None:
    settings = {
        **feature_map("IFM", (1, 2, 3), 16),
        **feature_map("IFM2", (1, 2, 3), 0),
        "IFM2_PRECISION": {"type": 1, "precision": 2, "storage": 3},
        "IFM_BROADCAST": 0,
        "IFM2_BROADCAST": 8,
        "OP_SCALAR": 0xFFFF_FFFE,
        **ofm(U85, (1, 2, 3), 64),
        "OFM_PRECISION": {"type": 1, "precision": 0, "scale_mode": 1, "storage": 2},
        "OFM_REGION": 3,
        "IFM_SCALE": {"scale": 7, "shift": 3, "round_mode": 1},
        "IFM2_SCALE": {"scale": 1, "shift": 0, "round_mode": 0},
        "ACTIVATION": {"function": 4, "table": 2, "clip_range": 1},
        **BLOCK,
    }
    made = payload(U85, [*operation(U85, "OP_ELEMENTWISE", 1, settings), STOP])
    assert _said(list(listing(made, U85))) == [
        "step 0: ELEMENTWISE ADD",
        "  IFM  int8 1x2x3 NHWC scratch[0x10:0x16] strides y,x 6,3 zp 0",
        "  IFM2 scalar 0xfffffffe, int32 zp 0",
        "  OFM  chain buffer 3, int8 zp 0",
        "  IFM scale 7 >> 3 NATURAL",
        "  IFM2 scale 1 >> 0 DOUBLE_SYMMETRIC",
        "  scale 1 >> 0 NATURAL",
        "  clip -128 to 127 (NONE), LUT_S8_S8 2",
        "  block 4x2x8, blockdep 2, accumulators I32 RESET ENABLE U2X2",
    ]


def test_elementwise_on_u55_with_a_scalar_as_the_first_operand() -> None:
    settings = {
        **feature_map("IFM", (1, 2, 3), 16),
        **feature_map("IFM2", (1, 2, 3), 0),
        "IFM_PRECISION": {"type": 1, "precision": 0, "scale_mode": 1, "round_mode": 2},
        "IFM2_BROADCAST": {"constant": 1, "operand_order": 1},
        "IFM2_SCALAR": 0xFFF0,
        "IFM2_ZERO_POINT": 2,
        "OPA_SCALE": {"scale": 9, "shift": 4},
        **ofm(U55, (1, 2, 3), 64),
        "ACC_FORMAT": 0,
        **BLOCK,
    }
    made = payload(U55, [*operation(U55, "OP_ELEMENTWISE", 2, settings), STOP])
    assert _said(list(listing(made, U55)))[:6] == [
        "step 0: ELEMENTWISE SUB",
        "  IFM  int8 1x2x3 NHWC scratch[0x10:0x16] strides y,x 6,3 zp 0",
        "  IFM2 scalar 0xfff0 zp 2",
        "  IFM2 is the first operand",
        "  OFM  int8 1x2x3 NHWC scratch[0x40:0x46] strides y,x 6,3 zp 0",
        "  operands OPA 9 >> 4, OPB 0, OPA_32 NATURAL",
    ]


def test_product_of_32_bits_has_a_shift_alone() -> None:
    settings = {
        **feature_map("IFM", (1, 2, 3), 0, 4),
        **feature_map("IFM2", (1, 2, 3), 64, 4),
        "IFM2_BROADCAST": {},
        **ofm(U55, (1, 2, 3), 128, 4),
        "OFM_SCALE": {"scale": 1 << 30, "shift": 31},
        "ACC_FORMAT": 0,
        **BLOCK,
    }
    made = payload(U55, [*operation(U55, "OP_ELEMENTWISE", 0, settings), STOP])
    assert "  scale >> 31 NATURAL" in _said(list(listing(made, U55)))


def test_a_gather_on_u85() -> None:
    settings = {
        "DMA0_SRC_REGION": {"region": 1, "idx_mode": 1, "stride_mode": 1},
        "DMA0_SRC": 64,
        "DMA0_SRC_STRIDE0": 8,
        "DMA0_LEN": 4,
        "DMA0_SIZE0": 5,
        "DMA0_DST_REGION": {"region": 1},
        "DMA0_DST": 256,
        "DMA0_DST_STRIDE0": 4,
        "DMA0_IDX_REGION": 1,
        "DMA0_IDX": 512,
        "DMA0_IDX_MAX": 9,
    }
    made = payload(U85, [*registers(U85, settings), ("OP_DMA_START", {}), STOP])
    assert _said(list(listing(made, U85))) == [
        "step 0: DMA_START",
        "  from scratch from 0x40 STRIDE0 8",
        "  to   scratch from 0x100 STRIDE0 4",
        "  1 x 5 runs of 4 bytes",
        "  indices at scratch[0x200:0x214], at most 9",
    ]


def test_a_branch_is_told_with_its_fields() -> None:
    made = payload(U85, [("OP_BRANCH", {"condition": 1, "target": 64}), STOP])
    assert _said(list(listing(made, U85))) == ["step 0: BRANCH RF_TRUE 64"]


def test_only_the_neighbourhood_of_an_offset() -> None:
    made = convolution_payload(convolution())
    whole = list(listing(made, U55))
    at = next(index for index, line in enumerate(whole) if "OP_CONV" in line)
    offset = int(whole[at].split()[0], 16)
    found = list(listing(made, U55, around=offset + 3, context=1))
    assert found[0] == whole[at - 1]
    assert found[1] == ">" + whole[at][1:]
    assert found[2:] == whole[at + 1 :]
    assert len(list(listing(made, U55, around=20, context=3))) == 4
    for outside in (16, offset + 8):
        with pytest.raises(StreamError, match="there is no command at"):
            list(listing(made, U55, around=outside))


def test_reserved_bits_show() -> None:
    made = convolution_payload(convolution())
    broken = made.commands[:20] + (0x0011_010F).to_bytes(4, "little") + made.commands[24:]
    lines = list(listing(VelaPayload(broken, made.weights, 128, made.inputs, made.outputs), U55))
    assert lines[7].endswith("SET_IFM_REGION           1 (reserved bits 0x100000)")


def test_data_for_json_say_the_same() -> None:
    made = convolution_payload(convolution())
    data = json.loads(json.dumps(as_data(made, U55)))
    lines = list(listing(made, U55))
    assert data["accelerator"] == "ethos-u55-128"
    assert data["regions"] == {"weights": 32 + len(WEIGHTS), "scratch": 128}
    assert data["inputs"] == [{"shape": [1, 1, 1, 4, 5, 3], "element_size": 1, "offset": 0, "bytes": 60, "region": 1}]
    assert data["commands"][1] == {
        "offset": 24,
        "words": [0x4000, 0],
        "name": "SET_IFM_BASE0",
        "fields": {"value": 0},
        "text": "0x0",
    }
    assert len(data["commands"]) == len(convolution()) + 1
    [operation_] = data["operations"]
    assert (operation_["step"], operation_["kind"]) == (0, "CONV")
    assert operation_["text"] == _said(lines)
