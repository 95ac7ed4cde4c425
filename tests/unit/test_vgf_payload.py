"""Reading a VGF payload, and holding it against the TOSA graph that it was made of.

``vgf/`` holds what a linear layer compiles to for ``vgf+INT`` (executorch 1.5.1, model converter 0.9.0).
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vgf import Resource, decode_vgf
from harness.case.errors import BadInput
from harness.evidence.observation import DelegateRecord, LoweringRecord, Observation
from harness.evidence.vgf_payload import foreign_constants, tosa_against_vgf
from oracles import buffers, constants
from tests.integration.conftest import linear_case

FILES = Path(__file__).parent / "vgf"
DATA, TOSA = ((FILES / f"linear.{kind}").read_bytes() for kind in ("vgf", "tosa"))
PAYLOAD, BLOCK = decode_vgf(DATA), decode_tosa(TOSA).main
WEIGHTS = PAYLOAD.constants[0]


def test_a_file_says_what_it_takes_returns_and_holds():
    assert [str(item) for item in PAYLOAD.inputs] == ["int8 [2, 6]"]
    assert [str(item) for item in PAYLOAD.outputs] == ["int8 [2, 4]"]
    assert [(str(item.resource), len(item.data)) for item in PAYLOAD.constants] == [("int8 [4, 1, 1, 6]", 24)]
    assert WEIGHTS.resource.category == "constant"


def test_a_clean_payload_is_the_graph_s():
    assert tosa_against_vgf(BLOCK.tensors[BLOCK.inputs[0]], PAYLOAD.inputs[0], "input") is None
    assert tosa_against_vgf(BLOCK.tensors[BLOCK.outputs[0]], PAYLOAD.outputs[0], "output") is None
    assert foreign_constants(BLOCK, PAYLOAD) == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"dtype": "int16", "width": 2}, "output dtype differs"),
        ({"shape": (4, 2)}, "shape differs"),
        ({"shape": (2, 5)}, "output bytes differ"),
        ({"category": "intermediate"}, "output category"),
        ({"dtype": "format 7", "width": 0}, None),
    ],
)
def test_what_differs_at_the_border_is_told(changes, kind):
    found = tosa_against_vgf(BLOCK.tensors[BLOCK.outputs[0]], replace(PAYLOAD.outputs[0], **changes), "output")
    assert (found and found.kind) == kind


def test_a_scalar_may_have_any_rank():
    tensor = replace(BLOCK.tensors[BLOCK.outputs[0]], shape=())
    assert tosa_against_vgf(tensor, Resource("output", "int8", 1, (1,)), "output") is None


def told(payload, tosa=TOSA):
    record = DelegateRecord("lowered_module_0", "VgfBackend", tosa, payload, ("x",), ("x",), ())
    return constants.judge(Observation(linear_case("vgf+INT"), lowering=LoweringRecord(delegates=(record,))))


def test_a_changed_constant_is_told_and_the_clean_file_is_not():
    assert told(DATA) == []
    changed = bytearray(DATA)
    changed[DATA.index(WEIGHTS.data)] ^= 1
    [found] = told(bytes(changed))
    assert (found.kind, found.stage, found.pass_name) == ("payload constant differs", "vgf", "VGF")
    assert "1 of 1 constant of its VGF payload are none of the TOSA graph" in found.message


def test_a_constant_that_is_there_once_is_not_taken_twice():
    twice = replace(PAYLOAD, constants=(WEIGHTS, WEIGHTS))
    assert foreign_constants(BLOCK, twice) == ["1 (int8 [4, 1, 1, 6], 24 bytes)"]


def test_every_damaged_file_is_read_or_refused_in_one_line():
    with pytest.raises(BadInput, match="begins with"):
        decode_vgf(b"VGF2" + DATA[4:])
    for length in range(0, len(DATA), 7):
        with pytest.raises(BadInput, match="VGF payload"):
            decode_vgf(DATA[:length])
    for at in range(0, len(DATA), 3):
        for value in (0, 0x7F, 0xFF):
            with suppress(BadInput):
                decode_vgf(DATA[:at] + bytes([value]) + DATA[at + 1 :])


def test_the_buffers_oracle_counts_and_compares_the_border():
    delegate = SimpleNamespace(named="lowered_module_0 (VgfBackend)")
    assert list(buffers._converted(delegate, BLOCK, PAYLOAD)) == []
    wrong = replace(PAYLOAD, inputs=(), outputs=(replace(PAYLOAD.outputs[0], dtype="int16", width=2),))
    found = list(buffers._converted(delegate, BLOCK, wrong))
    assert [(item.kind, item.stage, item.pass_name) for item in found] == [
        ("input count", "vgf", "VGF"),
        ("output dtype differs", "vgf", "VGF"),
    ]
