"""Overlaps: in place is allowed, everything that reads after it was overwritten is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.overlap import chain_overlaps, overlaps
from harness.ethosu.records import SCRATCH, WEIGHTS, Access, Step
from tests.unit.ethosu.stream_steps import REDUCE_SUM, U55, U85, Map, copy, elementwise, kernel, pool, stream

X, FAR = Map(0x1000, (8, 8, 8)), Map(0x8000, (8, 8, 8))


def found(step: Step, accelerator: Accelerator = U55) -> list[bool]:
    """Certainty of every issue."""
    return [issue.certain for issue in overlaps(step, accelerator)]


def test_in_place() -> None:
    assert found(pool(X, X)) == []
    assert found(elementwise(X, X, second=FAR)) == []
    assert found(elementwise(FAR, X, second=X)) == []
    assert found(elementwise(X, X, second=X)) == []


def test_elsewhere() -> None:
    assert found(pool(X, FAR)) == []
    assert found(pool(X, Map(X.base + 512, (8, 8, 8)))) == []


def test_shifted_onto_what_is_read_later() -> None:
    (issue,) = overlaps(pool(X, Map(X.base + 128, (8, 8, 8))), U55)  # two rows on: the next block
    assert issue.certain
    assert issue.message == ("block 0 writes OFM[0:2, 0:8, 0:8] onto IFM[2:4, 0:8, 0:8], which block 1 reads after it")


def test_shifted_onto_what_was_read_already() -> None:
    assert found(pool(X, Map(X.base - 128, (8, 8, 8)))) == [False]


def test_one_block_is_read_before_it_is_written() -> None:
    small = Map(0x1000, (2, 8, 8))
    assert found(pool(small, Map(0x1008, (2, 8, 8)))) == [False]


@pytest.mark.parametrize(
    ("settings", "certain"),
    [
        ({"KERNEL_HEIGHT_M1": 2, "IFM_PAD_TOP": 1, "IFM_PAD_BOTTOM": 1}, True),
        ({"KERNEL_HEIGHT_M1": 1, "IFM_PAD_BOTTOM": 1}, False),
        ({"IFM_STRIDE_Y": {"value": 32}}, True),
        ({"IFM_STRIDE_Y": {"value": 128}}, False),
    ],
    ids=["the row before", "the row after", "rows of the IFM are closer", "rows of the IFM are wider"],
)
def test_not_element_by_element(settings: dict[str, Any], certain: bool) -> None:
    """Certain where a later block reads what an earlier one wrote; the other way round is information."""
    assert found(pool(X, X, **settings)) == [certain]


def test_sum_over_channels() -> None:
    deep = Map(0x1000, (4, 8, 8))
    assert found(kernel("POOL", U55, deep, Map(0x1000, (4, 8, 1)), block=(4, 8, 8), value=REDUCE_SUM)) == [False]
    flat = Map(0x1000, (4, 8, 1))
    assert found(kernel("POOL", U55, flat, flat, block=(4, 8, 8), value=REDUCE_SUM)) == []  # one channel: a copy


def test_other_format_or_element_size() -> None:
    bricks = Map(0x1000, (8, 8, 32), bricks=True)
    assert found(pool(Map(0x1000, (8, 8, 32)), bricks)) == [True]
    assert found(pool(bricks, bricks)) == []
    wide = Map(0x1000, (8, 8, 8), 16)
    assert found(pool(X, wide)) == [True]


def test_broadcast_operand_is_read_again() -> None:
    row = Map(0x1000, (1, 8, 8))
    assert found(elementwise(FAR, X, second=row, IFM2_BROADCAST={"broadcast_h": 1})) == [True]


def test_transposed_in_place() -> None:
    square = Map(0x1000, (8, 8, 16))
    assert found(pool(square, square, U85, OFM_PRECISION={"transpose": 1}), U85) == [True]
    assert found(pool(square, square, U85, OFM_PRECISION={"reverse": 1}), U85) == [True]
    assert found(pool(square, square, U85), U85) == []


def test_own_weights() -> None:
    step = pool(FAR, X, extra=(Access("WEIGHT", SCRATCH, 0x1100, 0x1200),))
    (issue,) = overlaps(step, U55)
    assert issue.message == "overwrites its own WEIGHT scratch[0x1100:0x1200] by OFM scratch[0x1000:0x1200]"
    assert found(pool(FAR, X, extra=(Access("WEIGHT", WEIGHTS, 0x1100, 0x1200),))) == []


def test_dma_onto_itself() -> None:
    assert found(copy(0, 32, 64, region=SCRATCH)) == [True]
    assert found(copy(0, 64, 64, region=SCRATCH)) == []
    assert found(copy(0, 0, 64, region=SCRATCH)) == []
    assert found(copy(0, 32, 64)) == []  # another region


def test_chains_write_once_at_their_end() -> None:
    source = Map(0x1000, (8, 8, 16))
    head = pool(source, source, U85, OFM_PRECISION={"storage": 2})
    second = Map(0x9000, (8, 8, 16))
    tail = elementwise(source, source, U85, second=second, IFM_PRECISION={"storage": 2})
    assert chain_overlaps(stream(head, tail), U85) == []
    shifted = Map(0x1100, (8, 8, 16))
    moved = elementwise(source, shifted, U85, second=second, IFM_PRECISION={"storage": 2})
    (issue,) = chain_overlaps(stream(head, moved), U85)
    assert (issue.certain, issue.step, issue.operation) == (True, 1, "ELEMENTWISE")
    assert chain_overlaps(stream(head, replace(moved, writes=())), U85) == []


def test_steps_without_registers_are_left_alone() -> None:
    step = pool(X, X)
    assert overlaps(replace(step, registers={}), U55) == []
