"""Vela's raw .npz: what a payload takes from it, and one line for each way in which it can be wrong."""

from __future__ import annotations

import contextlib
import io
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest

from harness.artifacts import npz
from harness.artifacts.npz import decode_npz, payload_of_npz
from harness.artifacts.vela import VelaIO
from harness.case.errors import BadInput

COMMANDS = b"COP1" + bytes(range(12)) + bytes(4)


def _arrays(**changes: Any) -> dict[str, Any]:
    """As Vela gives them to numpy.savez: byte strings, lists of numbers, and pickles that nobody asked for."""
    arrays = {
        "cmd_data": COMMANDS,
        "weight_data": b"\1\2\0\0",
        "scratch_shape": [64],
        "scratch_fast_shape": [32],
        "input_shape": [[1, 1, 1, 2, 4, 4], [1, 1, 1, 1, 1, 3]],
        "input_elem_size": [1, 2],
        "input_offset": [32, 0],
        "input_region": [1, 2],
        "output_shape": [[1, 1, 1, 2, 4, 4]],
        "output_elem_size": [4],
        "output_offset": [16],
        "output_region": [1],
        "input_quantization": np.array([{"scale": 1}], dtype=object),
        "variable_shape": [],
        **changes,
    }
    return {name: value for name, value in arrays.items() if value is not None}


def _file(compressed: bool = False, **changes: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **_arrays(**changes))
    return stream.getvalue()


def _problem(data: bytes) -> str:
    with pytest.raises(BadInput) as caught:
        decode_npz(data)
    text = str(caught.value)
    assert text.startswith("Vela .npz: ")
    assert text.endswith("; write it with vela --output-format raw")
    assert "\n" not in text
    return text


def test_shapes_of_fewer_sizes_get_ones_in_front() -> None:
    payload = decode_npz(_file(output_shape=[[2, 4, 4, 1]]))
    assert [item.shape for item in payload.outputs] == [(1, 1, 2, 4, 4, 1)]


@pytest.mark.parametrize("compressed", [False, True])
def test_everything_that_a_payload_needs(compressed: bool) -> None:
    payload = decode_npz(_file(compressed))
    assert payload.commands == COMMANDS
    assert payload.weights == b"\1\2\0\0"
    assert (payload.scratch_size, payload.fast_scratch_size) == (64, 32)
    assert payload.inputs == (VelaIO((1, 1, 1, 2, 4, 4), 1, 32, 1), VelaIO((1, 1, 1, 1, 1, 3), 2, 0, 2))
    assert payload.outputs == (VelaIO((1, 1, 1, 2, 4, 4), 4, 16, 1),)


def test_arrays_in_memory_are_the_same_payload() -> None:
    assert payload_of_npz(_arrays()) == decode_npz(_file())
    commands = np.frombuffer(COMMANDS, np.uint8)
    assert payload_of_npz(_arrays(cmd_data=commands)) == decode_npz(_file(cmd_data=commands))


def test_no_weights_no_inputs_and_no_fast_scratch() -> None:
    nothing = {f"input_{name}": [] for name in ("shape", "elem_size", "offset", "region")}
    payload = decode_npz(_file(weight_data=b"", scratch_fast_shape=None, **nothing))
    assert (payload.weights, payload.inputs, payload.fast_scratch_size) == (b"", (), 0)


def test_columns_first_is_read_in_its_order() -> None:
    shapes = np.asfortranarray(np.arange(1, 13).reshape(2, 6))
    payload = decode_npz(_file(input_shape=shapes))
    assert [item.shape for item in payload.inputs] == [tuple(row) for row in shapes.tolist()]


@pytest.mark.parametrize(
    "name",
    ["cmd_data", "weight_data", "scratch_shape"]
    + [f"{side}_{name}" for side in ("input", "output") for name in ("shape", "elem_size", "offset", "region")],
)
def test_a_missing_array_is_named(name: str) -> None:
    assert f"has no array {name};" in _problem(_file(**{name: None}))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"cmd_data": b"COP9"}, "has cmd_data that begins with b'COP9'"),
        ({"cmd_data": np.arange(4)}, "has cmd_data of type int64, not bytes"),
        ({"weight_data": np.array([None])}, "has pickled objects in weight_data"),
        ({"scratch_shape": [1, 2]}, "has scratch_shape [1, 2] where one size is expected"),
        ({"scratch_shape": [-1]}, "has scratch_shape [-1] where"),
        ({"scratch_fast_shape": 3}, "has scratch_fast_shape of type int64 and shape []"),
        ({"input_shape": [[1, 1, 1, 1, 1, 2, 3]]}, "has input_shape of type int64 and shape [1, 7]"),
        ({"input_offset": [1.5, 2.5]}, "has input_offset of type float64"),
        ({"input_region": [1]}, "has 1 entries in input_region and 2 in input_shape"),
        ({"output_elem_size": [0]}, "says that output 0 is"),
        ({"output_offset": [-16]}, "says that output 0 is"),
        ({"output_shape": [[1, 1, 1, 2, 4, -4]]}, "says that output 0 is"),
    ],
)
def test_an_array_that_is_wrong_is_named(changes: dict[str, Any], part: str) -> None:
    assert part in _problem(_file(**changes))


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _npy(shape: str, data: bytes, dtype: str = "|u1") -> bytes:
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def test_a_header_that_asks_for_more_than_there_is() -> None:
    text = _problem(_zip({"cmd_data.npy": _npy("(1099511627776,)", b"COP1")}))
    assert "has an array cmd_data of shape [1099511627776] and type uint8 in 4 bytes" in text
    assert "of shape [-4]" in _problem(_zip({"cmd_data.npy": _npy("(-4,)", b"COP1")}))
    assert "in 5 bytes" in _problem(_zip({"cmd_data.npy": _npy("(4,)", b"COP1!")}))
    assert "without a readable header" in _problem(_zip({"cmd_data.npy": b"COP1"}))
    assert "without a readable header" in _problem(_zip({"cmd_data.npy": _npy("(4,)", b"COP1", "no type")}))


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = _file(compressed=True, weight_data=bytes(100_000))
    assert len(bomb) < 10_000
    opened: list[str] = []
    original = zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda self, item: opened.append(item.filename) or original(self, item)
    )
    monkeypatch.setattr(npz, "MOST_BYTES", 50_000)
    assert "has more than 50000 bytes in its arrays, weight_data among them" in _problem(bomb)
    assert opened == ["cmd_data.npy"]


def test_a_member_that_unpacks_to_more_than_it_says_is_cut_off() -> None:
    data = bytearray(_zip({"cmd_data.npy": _npy("(1000000,)", bytes(1_000_000))}, zipfile.ZIP_DEFLATED))
    directory = data.rindex(b"PK\1\2")
    for at in (22, directory + 24):  # the uncompressed size, in both headers
        data[at : at + 4] = (1000).to_bytes(4, "little")
    assert "CRC" in _problem(bytes(data)) or "in 9" in _problem(bytes(data))


def test_other_compression_methods_are_refused() -> None:
    member = {"cmd_data.npy": _npy("(4,)", b"COP1")}
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert f"has cmd_data in compression method {method}" in _problem(_zip(member, method))


def test_a_file_cut_off_anywhere_is_one_line() -> None:
    data = _file()
    for length in range(0, len(data) - 1, 97):
        _problem(data[:length])


def test_a_file_with_any_byte_changed_is_a_payload_or_bad_input() -> None:
    data = bytearray(_file())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of odd headers
        for at in range(0, len(data), 7):
            data[at] ^= 0xA5
            with contextlib.suppress(BadInput):
                decode_npz(bytes(data))
            data[at] ^= 0xA5
