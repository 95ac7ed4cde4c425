"""Which differences between two payloads the NPU sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.ethosu.equivalence import program_difference
from tests.unit.ethosu.assembled_convolution import PLACES, SCALES, WEIGHTS, convolution, convolution_payload
from tests.unit.ethosu.assembling import U55, Commands, registers
from tests.unit.ethosu.weight_streams import plain

BEHIND = bytes(16)


def _weights(*, inside: int, outside: int) -> bytes:
    """The stream of the convolution with the first channel's weights and those beyond the last changed."""
    values = {None: outside, 0: inside, 1: -5}
    return plain([values[None if place is None else place[0]] for place in PLACES])


def _difference(
    weights: bytes, scales: bytes = SCALES, behind: bytes = BEHIND, commands: Commands | None = None
) -> str:
    one = convolution_payload(convolution(), SCALES + WEIGHTS + BEHIND)
    other = convolution_payload(commands or convolution(), scales + weights + behind)
    return program_difference(one, other, U55)


def test_the_same_bytes_are_the_same() -> None:
    assert _difference(WEIGHTS) == ""


def test_weights_beyond_the_operation_are_not_seen() -> None:
    changed = _weights(inside=5, outside=3)
    assert len(changed) == len(WEIGHTS)
    assert changed != WEIGHTS
    assert _difference(changed) == ""


def test_weights_of_the_operation_are_seen() -> None:
    assert _difference(_weights(inside=4, outside=0)).endswith(": 6 of 12 weights differ")


def test_records_of_the_operation_are_seen_and_those_behind_are_not() -> None:
    second = bytes(10) + b"\x01" + bytes(21)
    assert _difference(WEIGHTS, second).endswith(": 1 of 2 biases differ")
    third = bytes(20) + b"\x01" + bytes(11)
    assert _difference(WEIGHTS, third) == ""


def test_other_constants_count_byte_for_byte() -> None:
    found = _difference(WEIGHTS, behind=bytes(3) + b"\x07" + bytes(12))
    assert found == f"1 bytes of constants differ, first at {len(SCALES) + len(WEIGHTS) + 3:#x} of region 0"
    assert "bytes of constants" in _difference(WEIGHTS, behind=bytes(32))


def test_a_register_counts_whatever_it_does() -> None:
    found = _difference(WEIGHTS, commands=convolution(BLOCKDEP=1))
    assert "SET_BLOCKDEP {'value': 2} and then SET_BLOCKDEP {'value': 1}" in found
    longer = [*convolution(), *registers(U55, {"BLOCKDEP": 2})]
    assert "is OP_STOP {'value': 65535} and then SET_BLOCKDEP" in _difference(WEIGHTS, commands=longer)


@pytest.mark.parametrize(("outside", "found"), [(3, ""), (0, "")])
def test_streams_behind_a_copy_are_decoded_too(outside: int, found: str) -> None:
    copy = registers(
        U55,
        {
            "DMA0_SRC_REGION": {},
            "DMA0_SRC": len(SCALES),
            "DMA0_DST_REGION": {"region": 1},
            "DMA0_DST": 96,
            "DMA0_LEN": len(WEIGHTS),
        },
    )
    commands = [*copy, ("OP_DMA_START", {}), *convolution(WEIGHT_REGION=1, WEIGHT_BASE=96)]
    one = convolution_payload(commands)
    assert program_difference(one, replace(one, weights=SCALES + _weights(inside=5, outside=outside)), U55) == found
    assert "6 of 12 weights" in program_difference(
        one, replace(one, weights=SCALES + _weights(inside=4, outside=outside)), U55
    )


def test_a_stream_known_only_when_it_runs_counts_byte_for_byte() -> None:
    one = convolution_payload(convolution(WEIGHT_REGION=1, WEIGHT_BASE=0))
    other = replace(one, weights=SCALES + _weights(inside=5, outside=3))
    assert "bytes of constants differ" in program_difference(one, other, U55)
