"""Decoding: words written out by hand against the interface, and every command of both tables there and back."""

from __future__ import annotations

import struct

import pytest

from harness.ethosu.accelerator import ACCELERATORS, Accelerator, accelerator_named
from harness.ethosu.commands import (
    command_table,
    decode_commands,
    driver_actions,
    encode_command,
    field_text,
    reserved_bits,
)
from harness.ethosu.records import Command, StreamError, Unimplemented
from harness.ethosu.registers import CMD1, CommandSpec
from tests.unit.ethosu.assembling import STOP, U55, U85, payload

U65_512 = accelerator_named("ethos-u65-512")
CONFIG_U55_128, ID = 0x0000_1807, 0x1006_0000
HEAD = struct.pack("<III", 0x0010_0001, CONFIG_U55_128, ID)


def _data(words: list[int], head: bytes = HEAD) -> bytes:
    tag = 2 | (len(words) >> 16) << 8 | (len(words) & 0xFFFF) << 16
    return b"COP1" + head + struct.pack(f"<I{len(words)}I", tag, *words)


def _one(words: list[int], accelerator: Accelerator) -> Command:
    head = payload(accelerator, []).commands[4:16]
    (command,) = decode_commands(_data(words, head), accelerator)
    return command


@pytest.mark.parametrize(
    ("accelerator", "words", "name", "fields"),
    [
        (U55, [0x0003_0005], "OP_POOL", {"value": 3}),
        (U55, [0xFF80_0118], "SET_OFM_ZERO_POINT", {"value": -128}),
        (U55, [0xFF80_0126], "SET_ACTIVATION_MIN", {"value": 0xFF80}),
        (U55, [0x00AB_4000, 0x1234_5678], "SET_IFM_BASE0", {"value": 0xAB_1234_5678}),
        (U55, [0x00FF_4015, 0xFFFF_FFFC], "SET_OFM_STRIDE_Y", {"value": -4}),
        (U55, [0x0001_4015, 0x0000_0002], "SET_OFM_STRIDE_Y", {"value": 0x1_0000_0002}),
        (U55, [0x001F_4024, 0x8000_0001], "SET_OFM_SCALE", {"shift": 31, "scale": 0x8000_0001}),
        (
            U55,
            [0x8145_0105],
            "SET_IFM_PRECISION",
            {"type": 1, "precision": 1, "format": 1, "scale_mode": 1, "round_mode": 2},
        ),
        (
            U55,
            [0x8147_0114],
            "SET_OFM_PRECISION",
            {"type": 1, "precision": 3, "format": 1, "scale_mode": 1, "round_mode": 2},
        ),
        (  # strides 3 (lsb 0, msb 1) and 4 (lsb 1, msb 1)
            U55,
            [0x024E_0122],
            "SET_KERNEL_STRIDE",
            {
                "stride_x_m1": 2,
                "stride_y_m1": 3,
                "weight_order": 1,
                "dilation_x": 1,
                "dilation_y": 0,
                "decomposition": 0,
            },
        ),
        (
            U85,
            [0x5A43_0114],
            "SET_OFM_PRECISION",
            {"type": 1, "precision": 1, "format": 1, "scale_mode": 0, "reverse": 1, "transpose": 3, "storage": 1},
        ),
        (
            U85,
            [0xA57F_4024, 0x4000_0001],
            "SET_OFM_SCALE",
            {"shift": 63, "dbl_rnd": 21, "round_mode": 5, "scale": 0x4000_0001},
        ),
        (U85, [0x0FFF_012C], "SET_RESIZE_X_OFFSET", {"value": -1}),
        (
            U85,
            [0x0052_4096, 0x0003_0001],
            "SET_RESIZE_X",
            {"one_step_int": 2, "blk_step_int": 5, "one_step_mod": 1, "blk_step_mod": 3},
        ),
        (U85, [0x0000_4027, 0xFFFF_FFFF], "SET_OP_SCALAR", {"value": 0xFFFF_FFFF}),
        (U85, [0x0001_4100, 0x0000_0040], "OP_BRANCH", {"condition": 1, "target": 64}),
    ],
)
def test_words_of_the_interface(accelerator: Accelerator, words: list[int], name: str, fields: dict[str, int]) -> None:
    command = _one(words, accelerator)
    assert (command.name, command.words, dict(command.fields)) == (name, tuple(words), fields)
    assert command.offset == 20
    assert reserved_bits(command, accelerator) == 0


def _samples(spec: CommandSpec) -> list[dict[str, int]]:
    """Every field at its lowest, at its highest, and each in turn at its highest with the others at zero."""
    lowest = {field.name: -(1 << field.bits - 1) if field.signed else 0 for field in spec.fields}
    highest = {field.name: lowest[field.name] + (1 << field.bits) - 1 for field in spec.fields}
    alone = [{name: highest[name] if name == chosen else 0 for name in highest} for chosen in highest]
    return [lowest, highest, *alone]


@pytest.mark.parametrize("accelerator", [U55, U65_512, U85])
def test_every_command_survives_encoding_and_decoding(accelerator: Accelerator) -> None:
    specs = command_table(accelerator).values()
    commands = [(spec.name, fields) for spec in specs for fields in _samples(spec)]
    decoded = decode_commands(payload(accelerator, commands).commands, accelerator)
    assert [(item.name, dict(item.fields)) for item in decoded] == commands
    assert [encode_command(item.name, item.fields, accelerator) for item in decoded] == [item.words for item in decoded]
    assert not any(reserved_bits(item, accelerator) for item in decoded)
    sizes = [4 * len(item.words) for item in decoded]
    assert [item.offset for item in decoded] == [20 + sum(sizes[:index]) for index in range(len(sizes))]


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_tables_have_sane_fields(accelerator: Accelerator) -> None:
    specs = list(command_table(accelerator).values())
    assert len(specs) == (111 if accelerator.u85 else 97)
    assert len({spec.name for spec in specs}) == len(specs)
    for spec in specs:
        masks = [field.mask for field in spec.fields]
        assert sum(masks) & 0xFFFF == 0, spec  # opcode and control
        assert sum(masks) < 1 << (64 if spec.control == CMD1 else 32), spec
        assert sum(mask.bit_count() for mask in masks) == sum(field.bits for field in spec.fields), spec
        assert sum(masks).bit_count() == sum(field.bits for field in spec.fields), spec  # nothing overlaps
        for field in spec.fields:
            assert len(spec.fields) > 1 or field.name == "value"
            assert field.names is None or max(field.names) < 1 << field.bits


def test_reserved_bits_are_shown_and_not_refused() -> None:
    word = 0x0080_0100 | 1 << 12  # PAD_TOP has seven bits; bits 10 to 13 belong to nothing
    command = _one([word], U55)
    assert (command.name, dict(command.fields)) == ("SET_IFM_PAD_TOP", {"value": 0})
    assert reserved_bits(command, U55) == 1 << 23 | 1 << 12
    pair = _one([0x0100_4000, 0], U55)
    assert reserved_bits(pair, U55) == 1 << 24
    assert reserved_bits(_one([0x0000_4026, 0x0001_0000], U55), U55) == 1 << 48


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([0x0000_0007], "command at 0x0014: ethos-u55-128 has no cmd0 opcode 7 (word 0x00000007)"),
        ([0x0000_0104, 0x0000_4027], "command at 0x0018: ethos-u55-128 has no cmd1 opcode 39"),
        ([0x0000_8000], "control is 2, where 0 and 1 are known"),
        ([0x0000_C002], "control is 3"),
        ([0x0000_0104, 0x0000_4020], "command at 0x0018: SET_WEIGHT_BASE has no second word"),
    ],
)
def test_words_that_are_no_command_are_refused(words: list[int], part: str) -> None:
    with pytest.raises(StreamError) as caught:
        decode_commands(_data(words), U55)
    assert part in str(caught.value)


def test_a_long_stream_has_its_length_in_three_bytes() -> None:
    words = [0x0000_0012] * 70_000
    assert driver_actions(_data(words)).length == 280_000


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "begin with b''"),
        (b"COP3" + HEAD, "begin with b'COP3', not with COP1"),
        (b"COP1" + HEAD + b"\0\0", "have 18 bytes, which is no whole number of words"),
        (b"COP1" + HEAD, "there is no command stream"),
        (_data([0], HEAD[:8]), "command at 0x0010: unknown driver action 0"),  # the stream's tag is taken for the ID
        (b"COP1" + HEAD[:8], "command at 0x0004: the optimiser configuration is cut off"),
        (_data([0], HEAD + HEAD), "command at 0x0010: a second optimiser configuration"),
        (_data([0], b""), "command at 0x0004: the command stream comes before any optimiser configuration"),
        (_data([0], HEAD + b"\x03\0\0\0"), "command at 0x0010: unknown driver action 3 (word 0x00000003)"),
        (_data([0, 0])[:-4], "said to have 2 words, and 1 are left"),
        (_data([0]) + b"\0\0\0\0", "command at 0x0018: 1 words follow the command stream of 1 words"),
        (_data([0]) + _data([0])[4:], "5 words follow the command stream"),
        (_data([0], b"\x01\0\x10\0" + struct.pack("<II", 0x7000_1807, ID)), "names product 7"),
    ],
)
def test_driver_actions_that_are_wrong_are_one_line(data: bytes, part: str) -> None:
    with pytest.raises(StreamError) as caught:
        driver_actions(data)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_second_format_is_not_guessed() -> None:
    with pytest.raises(Unimplemented, match="COP2"):
        driver_actions(b"COP2" + bytes(64))


def test_driver_actions_as_vela_writes_them() -> None:
    data = _data([0x0000_0000], HEAD + struct.pack("<III", 5, 5, 5))
    actions = driver_actions(data)
    assert (actions.start, actions.length) == (32, 4)
    assert (actions.product, actions.macs, actions.shram, actions.streams) == ("u55", 128, 24, 0)
    assert (actions.architecture, actions.optimiser, actions.stream_version) == ((1, 0, 6), (0, 1), 0)
    assert actions.accelerator is U55
    u85 = driver_actions(_data([0], struct.pack("<III", 0x0010_0001, 0x2000_201B, 0x2000_0000)))
    assert (u85.macs, u85.streams, u85.stream_version, u85.architecture) == (2048, 4, 1, (2, 0, 0))
    assert u85.accelerator.name == "ethos-u85-2048"
    two_cores = driver_actions(_data([0], struct.pack("<III", 0x0010_0001, 0x1000_6009, ID)))
    assert (two_cores.shram, two_cores.accelerator) == (96, U65_512)


def test_another_accelerators_stream_is_refused_and_both_are_named() -> None:
    made = payload(U55, [STOP]).commands
    for accelerator in ACCELERATORS.values():
        if accelerator is U55:
            continue
        with pytest.raises(StreamError) as caught:
            decode_commands(made, accelerator)
        assert f"Ethos-U55 with 128 MACs, 24 KiB of SHRAM, and it is taken for {accelerator.name}" in str(caught.value)
    assert decode_commands(made, U55)[0].name == "OP_STOP"


def test_a_configuration_that_no_accelerator_has() -> None:
    actions = driver_actions(_data([0], struct.pack("<III", 1, 0x0000_180B, ID)))
    with pytest.raises(StreamError, match="Ethos-U55 with 2048 MACs"):
        _ = actions.accelerator


@pytest.mark.parametrize(
    ("accelerator", "name", "field", "value", "text"),
    [
        (U55, "SET_IFM_PRECISION", "precision", 1, "16"),
        (U55, "SET_IFM_PRECISION", "round_mode", 2, "NATURAL"),
        (U55, "SET_IFM_PRECISION", "round_mode", 3, "3 (not a known value)"),
        (U85, "SET_OFM_SCALE", "round_mode", 2, "DOUBLE_ASYMMETRIC"),
        (U55, "OP_ELEMENTWISE", "value", 9, "SHL"),
        (U85, "OP_ELEMENTWISE", "value", 42, "AND_NOT"),
        (U85, "OP_ELEMENTWISE", "value", 12, "12 (not a known value)"),
        (U55, "SET_ACTIVATION", "function", 19, "TABLE_3"),
        (U85, "SET_ACTIVATION", "function", 9, "LUT_S16_S32"),
        (U85, "SET_OFM_PRECISION", "transpose", 6, "CHW"),
        (U55, "SET_IFM_BASE0", "value", 4096, "0x1000"),
        (U55, "SET_IFM_STRIDE_Y", "value", -8, "-8"),
        (U55, "SET_IFM_DEPTH_M1", "value", 7, "7"),
    ],
)
def test_field_text(accelerator: Accelerator, name: str, field: str, value: int, text: str) -> None:
    assert field_text(name, field, value, accelerator) == text


def test_commands_and_fields_that_do_not_exist() -> None:
    with pytest.raises(StreamError, match="ethos-u55-128 has no command 'SET_OP_SCALAR'"):
        field_text("SET_OP_SCALAR", "value", 0, U55)
    with pytest.raises(StreamError, match="SET_IFM_REGION has no field 'region'"):
        field_text("SET_IFM_REGION", "region", 0, U55)
    with pytest.raises(StreamError, match="SET_IFM_REGION has the fields"):
        encode_command("SET_IFM_REGION", {}, U55)
    for value in (8, -1):
        with pytest.raises(StreamError, match=rf"value has 3 bits, no room for {value}"):
            encode_command("SET_IFM_REGION", {"value": value}, U55)
    with pytest.raises(StreamError, match="no room for 32768"):
        encode_command("SET_IFM_ZERO_POINT", {"value": 32768}, U55)
