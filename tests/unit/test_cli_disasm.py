"""The verb disasm on small files: what is listed, and what is one line; nothing here starts a worker."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from harness.artifacts.vela import VelaPayload
from harness.cli.command import main
from harness.ethosu.disassembly import listing
from tests.unit.ethosu.assembling import STOP, U55, io, payload, registers


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["disasm", *map(str, arguments)])


def _line(result: Result, status: int = 2) -> str:
    assert result.exit_code == status
    [line] = result.output.strip().splitlines()
    return str(line)


def _made() -> VelaPayload:
    return payload(U55, [*registers(U55, {"IFM_REGION": 1}), ("OP_KERNEL_WAIT", {"value": 0}), STOP], [io((4,), 0)])


def _file(folder: Path, made: VelaPayload) -> Path:
    file = folder / "x.npz"
    arrays = {
        f"{side}_{name}": [] for side in ("input", "output") for name in ("elem_size", "offset", "region", "shape")
    }
    arrays |= {"input_shape": [made.inputs[0].shape], "input_elem_size": [1], "input_offset": [0], "input_region": [1]}
    sizes = {"scratch_shape": [made.scratch_size], "scratch_fast_shape": [0]}
    np.savez(file, cmd_data=made.commands, weight_data=made.weights, **sizes, **arrays)  # type: ignore[arg-type]
    return file


def test_the_listing_of_an_npz(tmp_path: Path) -> None:
    result = _run(_file(tmp_path, _made()))
    assert result.exit_code == 0
    assert result.output.splitlines() == list(listing(_made(), U55))
    assert "  ; step 0: KERNEL_WAIT 0" in result.output.splitlines()


def test_the_neighbourhood_of_an_offset(tmp_path: Path) -> None:
    result = _run(_file(tmp_path, _made()), "--around", "0x18", "--target", "ethos-u55-128", "--delegate", 0)
    assert [line[0] for line in result.output.splitlines()] == [" ", ">", " ", " "]
    text = _line(_run(_file(tmp_path, _made()), "--around", 12))
    assert text.endswith("x.npz, delegate 0 has no command there; use 0x14 to 0x1c")


def test_json_has_every_command_and_no_text(tmp_path: Path) -> None:
    file = _file(tmp_path, _made())
    data = json.loads(_run(file, "--json", "-").output)
    assert data["file"] == str(file)
    [delegate] = data["delegates"]
    assert delegate["delegate"] == 0
    assert [item["name"] for item in delegate["commands"]] == ["SET_IFM_REGION", "OP_KERNEL_WAIT", "OP_STOP"]
    assert _run(file, "--json", tmp_path / "out.json").output.splitlines() == list(listing(_made(), U55))
    assert json.loads((tmp_path / "out.json").read_text()) == data


def test_a_stream_for_another_accelerator(tmp_path: Path) -> None:
    text = _line(_run(_file(tmp_path, _made()), "--target", "ethos-u85-256"))
    assert "x.npz, delegate 0: the stream is for Ethos-U55 with 128 MACs, 24 KiB of SHRAM, and it is taken for" in text
    assert text.endswith("ethos-u85-256; leave out --target, or compile it for that target")


def test_a_stream_that_cannot_be_decoded(tmp_path: Path) -> None:
    made = _made()
    broken = made.commands[:20] + b"\xff\x03\0\0" + made.commands[24:]
    text = _line(_run(_file(tmp_path, VelaPayload(broken, b"", 0, made.inputs, ()))))
    assert "x.npz, delegate 0: command at 0x0014: ethos-u55-128 has no cmd0 opcode 1023 (word 0x000003ff)" in text


def test_a_delegate_that_is_not_there(tmp_path: Path) -> None:
    assert _line(_run(_file(tmp_path, _made()), "--delegate", 1)).endswith("x.npz; use 0 to 0")


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "is no payload (it begins with b''); give a .pte, a .npz of vela --output-format raw, or a case"),
        (b"[build-system]", "is no payload (it begins with b'[build-s')"),
        (b"PK\3\4 and nothing more", "Vela .npz: cannot be read (File is not a zip file); write it with vela"),
        (b"\x10\0\0\0ET12\0\0", "ExecuTorch program: is damaged"),
        (b"vela_bin_stream\0", "Vela payload: ends at byte 16, inside the header"),
        (b"{}", "object missing required field `graph`"),
    ],
)
def test_files_that_hold_no_stream(tmp_path: Path, data: bytes, part: str) -> None:
    file = tmp_path / "x"
    file.write_bytes(data)
    text = _line(_run(file))
    assert text.startswith(f"armdiff: {file}: ")
    assert part in text


def test_a_folder_without_a_case(tmp_path: Path) -> None:
    assert _line(_run(tmp_path)).endswith("cannot be read (No such file or directory); give a case.json or its folder")


def test_a_case_without_a_command_stream() -> None:
    seed = Path(__file__).parents[2] / "corpus" / "seeds" / "001-conv-relu-cat"
    assert _line(_run(seed)).endswith(
        "is a case for TOSA-1.0+INT+FP, which has no command stream; give --target, e.g. ethos-u55-128"
    )
