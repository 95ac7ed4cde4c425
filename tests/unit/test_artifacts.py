"""Readers of payloads and flatbuffers on hand-made bytes: what they read, and how they refuse."""

import struct

import flatbuffers
import pytest

from harness.artifacts.flatbuffer import Damage, root_table
from harness.artifacts.program import decode_program
from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vela import VelaIO, decode_vela
from harness.case.errors import BadInput


def block(name, data=b"", external=0):
    header = struct.pack("<16sIB11s", name.encode(), len(data), external, b"")
    return header + data + bytes(-len(data) % 16)


def entries(*rows):
    return struct.pack("<i", len(rows)) + b"".join(struct.pack("<9i", *row) for row in rows)


ROW = (1, 1, 1, 1, 2, 4, 2, 48, 1)
BLOCKS = {
    "vela_bin_stream": b"",
    "cmd_data": b"COP1" + bytes(8),
    "weight_data": bytes(range(20)),
    "scratch_size": struct.pack("<I", 64),
    "inputs": entries(ROW, ROW),
    "outputs": entries(ROW),
    "vela_end_stream": b"",
}


def payload(**changes):
    return b"".join(block(name, data) for name, data in {**BLOCKS, **changes}.items() if data is not None)


def test_a_payload_s_blocks_and_tables():
    read = decode_vela(payload())
    assert (read.commands, read.weights, read.scratch_size) == (b"COP1" + bytes(8), bytes(range(20)), 64)
    assert len(read.inputs) == 2
    assert read.outputs == (VelaIO((1, 1, 1, 1, 2, 4), 2, 48, 1),)
    assert (read.outputs[0].elements, read.outputs[0].bytes, read.outputs[0].end) == (8, 16, 64)


def test_an_external_block_is_found_in_the_program_s_named_data():
    data = b"".join(
        block(name, b"key" if name == "weight_data" else held, name == "weight_data") for name, held in BLOCKS.items()
    )
    assert decode_vela(data, {"key": b"far away"}).weights == b"far away"
    with pytest.raises(BadInput, match="whose key 'key' the program does not hold"):
        decode_vela(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "ends at byte 0"),
        (payload()[:-1], "ends at byte"),
        (payload() + b"x", "1 bytes after its last block"),
        (payload(weight_data=None), "has no block weight_data"),
        (payload(cmd_data=b"NOPE"), "begin with b'NOPE'"),
        (payload(scratch_size=b"\0"), "1 bytes of scratch_size"),
        (payload(inputs=b""), "0 bytes of inputs"),
        (payload(inputs=struct.pack("<i", 2**31 - 1)), "4 bytes of inputs for 2147483647 entries"),
        (payload(outputs=entries((1, 1, 1, 1, -2, 4, 1, 0, 1))), "says that output 0 is"),
        (block("cmd_data", b"COP1"), "has a block 'cmd_data' at byte 0"),
        (block("vela_bin_stream") + struct.pack("<16sIB11s", b"inputs", 2**32 - 1, 0, b""), "with 0 bytes left"),
    ],
)
def test_a_damaged_payload_is_refused_with_the_place(data, problem):
    with pytest.raises(BadInput) as refused:
        decode_vela(data)
    assert problem in str(refused.value)
    assert str(refused.value).startswith("Vela payload: ")


def small_table():
    """Field 0: int32 7, field 1: int32s [1, 2], field 2 absent, field 3: "abc"."""
    builder = flatbuffers.Builder(64)
    text = builder.CreateString("abc")
    builder.StartVector(4, 2, 4)
    builder.PrependInt32(2)
    builder.PrependInt32(1)
    numbers = builder.EndVector()
    builder.StartObject(4)
    builder.PrependInt32Slot(0, 7, 0)
    builder.PrependUOffsetTRelativeSlot(1, numbers, 0)
    builder.PrependUOffsetTRelativeSlot(3, text, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def test_fields_of_a_table():
    table = root_table(small_table())
    assert (table.number(0, "i"), table.numbers(1, "i"), table.text(3)) == (7, (1, 2), "abc")
    assert (table.number(2, "i", 5), table.numbers(2, "i"), table.table(2), table.tables(2)) == (5, (), None, [])
    assert table.number(9, "i", 3) == 3
    assert table.span(2) is None


def test_no_vector_is_longer_than_the_file():
    data = small_table()
    table = root_table(data)
    start = table.span(1)[0] - 4
    damaged = data[:start] + struct.pack("<I", 2**31) + data[start + 4 :]
    with pytest.raises(Damage, match="entries past the end"):
        root_table(damaged).numbers(1, "i")


def test_no_file_lists_more_than_its_budget():
    table = root_table(small_table())
    table.budget.take(table.budget.left - 2, "the rest of it")
    assert table.numbers(1, "i") == (1, 2)
    with pytest.raises(Damage, match="more than the file can hold"):
        table.numbers(1, "i")


@pytest.mark.parametrize(
    "data", [b"", b"ET12", bytes(64), b"\xff\xff\xff\xffET12" + bytes(32), b"\x08\0\0\0ET12" + bytes(32)]
)
def test_what_is_no_program_is_refused(data):
    with pytest.raises(BadInput, match="ExecuTorch program"):
        decode_program(data)


@pytest.mark.parametrize(
    "data", [b"", b"TOSA", bytes(64), b"\xff\xff\xff\xffTOSA" + bytes(32), b"\x08\0\0\0TOSA" + bytes(32)]
)
def test_what_is_no_tosa_graph_is_refused(data):
    with pytest.raises(BadInput, match="TOSA flatbuffer"):
        decode_tosa(data)
