"""Hazards: each rule with a stream that breaks it and one that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazards import hazards
from harness.ethosu.records import SCRATCH, Access, Step
from tests.unit.ethosu.stream_steps import (
    DUAL,
    REDUCE_SUM,
    SMALL,
    U55,
    U85,
    Map,
    copy,
    elementwise,
    kernel,
    pool,
    stream,
    table_of,
    wait,
)

X, Y, Z = (Map(base, (8, 8, 8)) for base in (0x0, 0x1000, 0x2000))
FAR = Map(0x8000, (8, 8, 8))
FARTHER = Map(0x9000, (8, 8, 8))


def found(steps: Sequence[Step], accelerator: Accelerator = U55) -> list[tuple[int | None, bool]]:
    """Step and certainty of every issue."""
    return [(issue.step, issue.certain) for issue in hazards(stream(*steps), accelerator)]


# ---- kernel and DMA ----


@pytest.mark.parametrize(
    ("source", "target"),
    [(0x3000, X.base), (0x3000, Y.base), (Y.base, 0x3000)],
    ids=[
        "it overwrites what the kernel reads",
        "it overwrites what the kernel writes",
        "it reads what the kernel writes",
    ],
)
def test_dma_after_kernel(source: int, target: int) -> None:
    dma = copy(source, target, 64, region=SCRATCH)
    assert found([pool(X, Y), dma]) == [(1, True)]
    assert found([pool(X, Y), wait("KERNEL", 0), dma]) == []
    assert found([pool(FAR, Z), dma]) == []


def test_kernel_after_dma() -> None:
    assert found([copy(0, X.base, 64), pool(X, Y)]) == [(1, True)]
    assert found([copy(0, X.base, 64), wait("DMA", 0), pool(X, Y)]) == []
    assert found([copy(X.base, 0x3000, 64, region=SCRATCH), pool(X, Y)]) == []  # both read
    weights = Access("WEIGHT", SCRATCH, 0x3000, 0x3040)
    reader = pool(X, Y, extra=(weights,))
    assert found([copy(0, 0x3000, 64), reader]) == [(1, True)]
    assert found([copy(0, 0x3040, 64), reader]) == []


def test_a_wait_keeps_the_newest() -> None:
    dma = copy(Y.base, 0x3000, 64, region=SCRATCH)
    later = pool(FAR, FARTHER)
    assert found([pool(X, Y), later, wait("KERNEL", 1), dma]) == []
    assert found([later, pool(X, Y), wait("KERNEL", 1), dma]) == [(3, True)]


def test_hardware_ends_the_oldest_kernel_when_a_third_is_issued() -> None:
    dma = copy(Y.base, 0x3000, 64, region=SCRATCH)
    others = [pool(FAR, FARTHER), pool(FAR, Z)]
    assert found([pool(X, Y), others[0], dma]) == [(2, True)]
    assert found([pool(X, Y), *others, dma]) == []


def test_hardware_ends_the_oldest_dma() -> None:
    first, others = copy(0, X.base, 64), [copy(64 * n, 0x4000 + 64 * n, 64) for n in range(4)]
    for accelerator, most in ((U55, 1), (DUAL, 2), (U85, 4)):
        reader = pool(X, Y, accelerator)
        assert found([first, *others[: most - 1], reader], accelerator) == [(most, True)]
        assert found([first, *others[:most], reader], accelerator) == []


def test_dma_after_dma() -> None:
    pair = [copy(0, 0x3000, 64), copy(64, 0x3000, 64)]
    assert found(pair, U85) == [(1, True)]
    assert found(pair, DUAL) == [(1, False)]
    assert found(pair, U55) == []  # one at a time
    assert found([pair[0], wait("DMA", 0), pair[1]], U85) == []


def test_every_row_that_an_index_can_select_counts() -> None:
    values = Map(0x1000, (1, 10, 64))
    registers: dict[str, Any] = {"DMA0_IDX_MAX": 9, "DMA0_SRC_STRIDE0": 64}
    gather = copy(values.base, 0x3000, 64, region=SCRATCH, **registers)
    indexed = replace(gather, registers={**gather.registers, "DMA0_SRC_REGION": {"idx_mode": 1, "stride_mode": 0}})
    last_row = pool(FAR, Map(values.base + 9 * 64, (1, 1, 64)), U85)
    assert found([last_row, indexed], U85) == [(1, True)]
    assert found([last_row, gather], U85) == []


def test_the_table_memory_is_where_small_accelerators_accumulate() -> None:
    load = copy(0, SMALL.lut_memory - 2048, 256, table=True)
    assert found([pool(X, Y, SMALL), load], SMALL) == [(1, True)]
    assert found([pool(X, Y, SMALL, extra=(table_of(SMALL),)), wait("KERNEL", 0), load], SMALL) == []
    assert found([pool(X, Y), copy(0, U55.lut_memory - 2048, 256, table=True)]) == []
    assert found([pool(X, Y, extra=(table_of(U55),)), copy(0, U55.lut_memory - 2048, 256, table=True)]) == [(1, True)]


# ---- kernel and kernel ----


@pytest.mark.parametrize("dependency", [0, 1, 2, 3])
def test_block_by_block(dependency: int) -> None:
    """Four blocks each: block i of the reader meets block i of the writer, which is block 3 - i from the end."""
    steps = [pool(X, Y), pool(Y, Z, BLOCKDEP=dependency)]
    assert found(steps) == []
    short = replace_shape(steps, 4)  # two blocks each: one job may run ahead
    assert found(short) == ([] if dependency <= 1 else [(1, True)])


def replace_shape(steps: list[Step], rows: int) -> list[Step]:
    maps = [Map(base, (rows, 8, 8)) for base in (0x0, 0x1000, 0x2000)]
    dependency = steps[1].registers["BLOCKDEP"]["value"]
    return [pool(maps[0], maps[1]), pool(maps[1], maps[2], BLOCKDEP=dependency)]


def test_a_kernel_that_reads_all_channels_needs_the_last_block() -> None:
    deep, wide = Map(0x1000, (2, 8, 32)), Map(0x2000, (2, 8, 1))
    writer = pool(Map(0, (2, 8, 32)), deep, block=(2, 8, 16))
    reader = kernel("POOL", U55, deep, wide, block=(2, 8, 8), value=REDUCE_SUM, BLOCKDEP=1)
    assert found([writer, reader]) == [(1, True)]
    assert found([writer, replace_dependency(reader, 0)]) == []
    slices = kernel(
        "POOL", U55, Map(0x1000, (2, 8, 32), 16), wide, block=(2, 8, 8), value=REDUCE_SUM, BLOCKDEP=1
    )  # 16 channels at a time: the first job reads those of the first block
    assert found([pool(Map(0, (2, 8, 32), 16), Map(0x1000, (2, 8, 32), 16), block=(2, 8, 16)), slices]) == []
    assert found([pool(Map(0, (2, 8, 32), 16), Map(0x1000, (2, 8, 32), 16), block=(2, 8, 16)),
                  replace_dependency(slices, 2)]) == [(1, True)]  # fmt: skip


def replace_dependency(step: Step, value: int) -> Step:
    return replace(step, registers={**step.registers, "BLOCKDEP": {"value": value}})


def test_the_halo_of_a_kernel_counts() -> None:
    out = Map(0x2000, (8, 8, 8))
    sides: dict[str, Any] = {f"IFM_PAD_{side}": 2 for side in ("TOP", "BOTTOM")}
    tall = kernel("POOL", U55, Y, out, block=(4, 8, 8), value=1, KERNEL_HEIGHT_M1=4, BLOCKDEP=1, **sides)
    writer = pool(X, Y, block=(6, 8, 8))  # rows 6 and 7 last; the first block of 4 reads up to row 5
    assert found([writer, tall]) == []
    more = kernel("POOL", U55, Y, out, block=(4, 8, 8), value=1, KERNEL_HEIGHT_M1=6, BLOCKDEP=1,
                  IFM_PAD_TOP=3, IFM_PAD_BOTTOM=3)  # fmt: skip
    assert found([writer, more]) == [(1, True)]  # up to row 6


def test_strides_larger_than_the_kernel_move_jobs_by_the_stride() -> None:
    source, out = Map(0x1000, (16, 8, 8)), Map(0x2000, (6, 8, 8))
    writer = pool(Map(0, (16, 8, 8)), source, block=(5, 8, 8))  # rows 15 last
    reader = kernel("POOL", U55, source, out, block=(2, 8, 8), value=1, KERNEL_STRIDE={"stride_y_m1": 2}, BLOCKDEP=3)
    assert found([writer, reader]) == [(1, True)]  # job 2 reads row 15 itself
    assert found([writer, replace_dependency(reader, 2)]) == []


def test_second_operand_and_both_halves_of_one_tensor() -> None:
    whole = Map(0x1000, (8, 8, 8))
    upper, lower = Map(0x1000, (4, 8, 8)), Map(0x1000 + 4 * 64, (4, 8, 8))
    out = Map(0x2000, (4, 8, 8))
    writer = pool(X, whole, block=(4, 8, 8))
    for first, second in ((upper, lower), (lower, upper)):
        steps = [writer, elementwise(first, out, second=second, block=(4, 8, 8), BLOCKDEP=1)]
        assert found(steps) == [(1, True)]
        assert found([steps[0], replace_dependency(steps[1], 0)]) == []
    assert found([writer, elementwise(upper, out, second=FAR, block=(4, 8, 8), BLOCKDEP=1)]) == []


def test_broadcast_operand() -> None:
    row = Map(0x1000, (1, 8, 8))
    writer = pool(Map(0, (1, 8, 8)), row)
    step = elementwise(X, Z, second=row, IFM2_BROADCAST={"broadcast_h": 1}, BLOCKDEP=1)
    assert found([writer, step]) == [(1, True)]
    assert found([writer, replace_dependency(step, 0)]) == []


def test_a_transposing_writer_is_compared_by_address() -> None:
    """Square, written column by column: the last block are the last columns, which the first job reads."""
    columns = Map(0x1000, (8, 8, 8), strides=(8, 64))
    steps = [pool(X, columns), pool(Y, Z, BLOCKDEP=1)]
    assert found(steps) == [(1, True)]
    assert found([steps[0], replace_dependency(steps[1], 0)]) == []


def test_u85_transposition_and_reversal() -> None:
    source, target, out = (Map(base, (8, 8, 16)) for base in (0, 0x1000, 0x2000))
    for moved in ({"transpose": 1}, {"reverse": 1}):
        steps = [pool(source, target, U85, OFM_PRECISION=moved), pool(target, out, U85, BLOCKDEP=1)]
        assert found(steps, U85) == [(1, True)], moved
        assert found([steps[0], replace_dependency(steps[1], 0)], U85) == []
    assert found([pool(source, target, U85), pool(target, out, U85, BLOCKDEP=1)], U85) == []


def test_u85_product_reads_all_rows_of_ifm2_for_its_channels() -> None:
    weights, x, out = Map(0x1000, (1, 48, 64)), Map(0x8000, (1, 4, 64)), Map(0x9000, (1, 4, 48))
    writer = pool(Map(0, (1, 48, 64)), weights, U85, block=(2, 24, 64))
    product = kernel("CONV", U85, x, out, second=weights, value=1, block=(2, 4, 48), BLOCKDEP=1)
    assert found([writer, product], U85) == [(1, True)]
    narrow = kernel("CONV", U85, x, out, second=weights, value=1, block=(2, 4, 16), BLOCKDEP=1)
    assert found([writer, narrow], U85) == []


def test_u85_resize_reads_as_far_as_its_weights_are_not_zero() -> None:
    source, out = Map(0x1000, (4, 8, 16)), Map(0x8000, (7, 8, 16))
    writer = pool(Map(0, (4, 8, 16)), source, U85, block=(1, 8, 16))
    steps: dict[str, Any] = {
        "RESIZE_Y_SCALE_N_M1": 1,
        "RESIZE_X_SCALE_N_M1": 0,
        "RESIZE_X": {"one_step_int": 1, "one_step_mod": 0},
    }
    step = kernel(
        "RESIZE", U85, source, out, value=0, block=(1, 8, 16), KERNEL_HEIGHT_M1=3, KERNEL_WIDTH_M1=7, BLOCKDEP=3,
        RESIZE_Y={"one_step_int": 0, "one_step_mod": 1}, RESIZE_Y_OFFSET=0, RESIZE_X_OFFSET=0, **steps,
    )  # fmt: skip
    assert found([writer, step], U85) == []  # output row 0 is input row 0, not a mixture with row 1
    assert found([writer, replace_dependency(step, 4)], U85) == [(1, True)]  # output row 1 lies between rows 0 and 1


def test_rolling_buffer() -> None:
    """The rows that the reader wraps around to are at the second base."""
    tiles: dict[str, Any] = {"IFM_HEIGHT0_M1": 5, "IFM_BASE2": 0x1000}
    reader = pool(Map(0x1080, (8, 8, 8)), Z, BLOCKDEP=3, **tiles)  # rows 2 to 7, then 0 and 1 of the buffer
    assert found([pool(Map(0, (2, 8, 8)), Map(0x1000, (2, 8, 8))), reader]) == []
    assert found([pool(Map(0, (2, 8, 8)), Map(0x1100, (2, 8, 8))), reader]) == [(1, True)]


def test_kernels_that_were_waited_for_are_no_matter() -> None:
    steps = replace_shape([pool(X, Y), pool(Y, Z, BLOCKDEP=3)], 4)
    assert found([steps[0], wait("KERNEL", 0), steps[1]]) == []
    assert found([steps[0], wait("KERNEL", 1), steps[1]]) == [(2, True)]


def test_write_after_read_and_write_after_write_stay_in_order() -> None:
    assert found([pool(X, Y), pool(Z, X, BLOCKDEP=3)]) == []
    assert found([pool(X, Y), pool(Z, Y, BLOCKDEP=3)]) == []


def test_table_before_a_kernel_without_one() -> None:
    user = pool(X, Y, SMALL, extra=(table_of(SMALL),))
    assert found([user, pool(FAR, FARTHER, SMALL, BLOCKDEP=1)], SMALL) == [(1, True)]
    assert found([user, pool(FAR, FARTHER, SMALL)], SMALL) == []
    assert found([user, pool(FAR, FARTHER, SMALL, BLOCKDEP=3, extra=(table_of(SMALL),))], SMALL) == []
    assert found([pool(X, Y, extra=(table_of(U55),)), pool(FAR, FARTHER, BLOCKDEP=3)]) == []


def test_the_kernel_before_the_previous_one_is_information() -> None:
    one = Map(0x8000, (1, 8, 8))
    between = pool(one, Map(0x9000, (1, 8, 8)), BLOCKDEP=3)
    rows = [Map(base, (2, 8, 8)) for base in (0, 0x1000, 0x2000)]
    steps = [pool(rows[0], rows[1]), between, pool(rows[1], rows[2], BLOCKDEP=2)]
    assert found(steps) == [(2, False)]
    assert found([*steps[:2], replace_dependency(steps[2], 1)]) == []
    assert found([steps[0], replace_dependency(between, 0), steps[2]]) == []
    again = stream(*steps, *steps)
    assert [issue.step for issue in hazards(again, U55)] == [2]
    assert hazards(again, U55)[0].message.endswith("(1 more in this stream)")


# ---- chains ----


def chain(source: Map, target: Map, **first: Any) -> list[Step]:
    """A POOL into chain buffer 0 and an ADD of FAR from there."""
    other = Map(0xA000, source.shape)
    stored = {"OFM_PRECISION": {"storage": 2}, "OFM_REGION": 0}
    head = pool(source, target, U85, **stored, **first)
    tail = elementwise(source, target, U85, second=other, IFM_PRECISION={"storage": 2}, IFM_REGION=0, **first)
    return [head, tail]


def test_a_chain_is_one_kernel_for_its_successor() -> None:
    maps = [Map(base, (4, 8, 16)) for base in (0, 0x1000, 0x2000)]
    links = chain(maps[0], maps[1])
    assert found([*links, pool(maps[1], maps[2], U85, BLOCKDEP=1)], U85) == []
    assert found([*links, pool(maps[1], maps[2], U85, BLOCKDEP=2)], U85) == [(2, True)]
    assert found([pool(maps[2], maps[0], U85), *chain(maps[0], maps[1], BLOCKDEP=2)], U85) == [(1, True)]


def test_a_later_kernel_of_a_chain_waits_for_dma_itself() -> None:
    maps = [Map(base, (4, 8, 16)) for base in (0, 0x1000)]
    head, tail = chain(*maps)
    load = copy(0, 0xA000, 64)
    assert found([load, head, tail], U85) == [(2, True)]
    assert found([load, head, wait("DMA", 0), tail], U85) == []


def test_counting_of_chains_decides_certainty() -> None:
    """KERNEL_WAIT 1 after chain and kernel: the chain has ended if it counts as one kernel or as two."""
    maps = [Map(base, (4, 8, 16)) for base in (0, 0x1000)]
    links, other = chain(*maps), pool(FAR, FARTHER, U85)
    dma = copy(maps[1].base, 0x3000, 64, region=SCRATCH)
    assert found([*links, other, wait("KERNEL", 1), dma], U85) == []
    assert found([*links, other, dma], U85) == [(3, True)]  # either way the last two are outstanding
    reads_first = copy(0, maps[0].base, 64)
    assert found([other, *links, reads_first], U85) == [(3, True)]
    writes = copy(FARTHER.base, 0x3000, 64, region=SCRATCH)
    assert found([other, *links, writes], U85) == [(3, False)]  # ended if the chain counts as two kernels


def test_messages_name_both_operations_and_what_is_safe() -> None:
    (issue,) = hazards(stream(*replace_shape([pool(X, Y), pool(Y, Z, BLOCKDEP=3)], 4)), U55)
    assert (issue.kind, issue.operation, issue.step) == ("hazard", "POOL", 1)
    assert issue.message == (
        "has BLOCKDEP 3: IFM[0:2, 0:8, 0:8] may be read before POOL (step 0) has written OFM[0:2, 0:8, 0:8]; "
        "at most 1 is safe"
    )


def test_steps_without_the_registers_are_left_alone() -> None:
    bare = Step(0, pool(X, Y).command, {"BLOCKDEP": {"value": 3}}, pool(Y, Z).reads, ())
    assert found([pool(X, Y), bare]) == []
