"""Duplicates: repetitions that are redundant, and those that are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.duplicates import duplicates
from harness.ethosu.records import Step
from tests.unit.ethosu.stream_steps import SMALL, U55, U85, Map, copy, elementwise, pool, stream, table_of, wait

X, Y, Z = (Map(base, (8, 8, 8)) for base in (0x0, 0x1000, 0x2000))


def found(steps: Sequence[Step], accelerator: Accelerator = U55) -> list[tuple[int | None, bool]]:
    """Step and certainty of every issue."""
    return [(issue.step, issue.certain) for issue in duplicates(stream(*steps), accelerator)]


def test_emitted_twice() -> None:
    step = pool(X, Y)
    assert found([step, step]) == [(1, True)]
    assert found([step, pool(X, Z), step]) == [(2, True)]
    (issue,) = duplicates(stream(step, step), U55)
    assert issue.message.startswith("repeats step 0: ")


def test_the_block_dependency_makes_no_difference() -> None:
    assert found([pool(X, Y), pool(X, Y, BLOCKDEP=3)]) == [(1, True)]


@pytest.mark.parametrize(
    "between", [pool(Z, X), pool(Z, Y), copy(0, 0x10, 16)], ids=["input written", "output written", "input loaded"]
)
def test_changed_in_between(between: Step) -> None:
    assert found([pool(X, Y), between, pool(X, Y)]) == []


@pytest.mark.parametrize(
    "other",
    [
        pool(X, Y, value=0),
        pool(X, Z),
        pool(Z, Y),
        pool(X, Y, IFM_ZERO_POINT=3),
        pool(X, Y, ACTIVATION={"function": 16}),
        pool(X, Y, block=(4, 8, 8)),
    ],
)
def test_another_operation(other: Step) -> None:
    assert found([pool(X, Y), other]) == []


def test_registers_of_other_operations_make_no_difference() -> None:
    step = pool(X, Y)
    later = replace(step, registers={**step.registers, "IFM2_BASE0": {"value": 7}, "DMA0_SRC": {"value": 1}})
    assert found([step, later]) == [(1, True)]
    binary = elementwise(X, Y, second=Z)
    kernel = replace(binary, registers={**binary.registers, "KERNEL_HEIGHT_M1": {"value": 4}})
    assert found([binary, kernel]) == [(1, True)]
    scaled = replace(binary, registers={**binary.registers, "IFM2_ZERO_POINT": {"value": 4}})
    assert found([binary, scaled]) == []


def test_in_place_is_information() -> None:
    assert found([pool(X, X), pool(X, X)]) == [(1, False)]


def test_a_result_that_was_read_in_between_may_be_another_tensor_s() -> None:
    """Vela's stream of cat([y, x]) and relu(x.repeat(1, 2)): the cat's second half is where the last copy was."""
    x, y, first, last = (Map(base, (1, 1, 6)) for base in (0x10, 0x0, 0x30, 0x36))
    steps = [
        *(pool(x, last), pool(x, first)),
        pool(Map(0x30, (1, 1, 12)), Map(0x50, (1, 1, 12))),
        *(pool(x, last), pool(y, first)),
    ]
    assert found(steps, U85) == [(3, False)]
    issues = duplicates(stream(*steps), U85)
    assert issues[0].message.endswith("; step 2 reads the result before, so it may be another tensor's")
    assert found([*steps[:2], *steps[3:]], U85) == [(2, True)]


def test_dma() -> None:
    load = copy(0, 0x1000, 64)
    assert found([load, load]) == [(1, False)]
    assert found([load, wait("DMA", 0), pool(X, Y), load]) == []  # overwritten
    assert found([load, copy(64, 0x1000, 64), load]) == []


def test_tables_of_small_accelerators_are_overwritten_by_accumulators() -> None:
    load = copy(0, SMALL.lut_memory - 2048, 256, table=True)
    assert found([load, pool(X, Y, SMALL), load], SMALL) == []
    assert found([load, pool(X, Y, SMALL, extra=(table_of(SMALL),)), load], SMALL) == [(2, False)]
    load = copy(0, U55.lut_memory - 2048, 256, table=True)
    assert found([load, pool(X, Y), load]) == [(2, False)]


@pytest.mark.parametrize(
    "settings",
    [{"ACC_FORMAT": {"input": 1}}, {"ACC_FORMAT": {"output": 1}}, {"OFM_PRECISION": {"storage": 2}}],
    ids=["adds to kept accumulators", "keeps its result there", "chained"],
)
def test_what_depends_on_more_than_memory(settings: dict[str, dict[str, int]]) -> None:
    step = pool(Map(0, (8, 8, 16)), Map(0x1000, (8, 8, 16)), U85, **settings)
    assert found([step, step], U85) == []
    plain = pool(Map(0, (8, 8, 16)), Map(0x1000, (8, 8, 16)), U85)
    assert found([plain, plain], U85) == [(1, True)]


def test_waits_are_no_operations() -> None:
    assert found([wait("DMA", 0), wait("DMA", 0), wait("KERNEL", 1), wait("KERNEL", 1)]) == []
