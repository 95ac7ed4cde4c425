"""Register limits: every rule with a step that breaks it; the same step without the change is clean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.registers import register_limits
from harness.ethosu.records import SCRATCH, WEIGHTS, Access, Step
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
    table_of,
)

X, Y, Z = (Map(base, (8, 8, 16)) for base in (0x0, 0x1000, 0x2000))
WEIGHT = Access("WEIGHT", WEIGHTS, 0, 64)
SCALE = Access("SCALE", WEIGHTS, 64, 144)
STREAMS: dict[str, Any] = {"WEIGHT_BASE": 0, "WEIGHT_LENGTH": 64, "SCALE_BASE": 64, "SCALE_LENGTH": 80}


def found(step: Step, accelerator: Accelerator) -> list[tuple[str, bool]]:
    return [(issue.message, issue.certain) for issue in register_limits(step, accelerator)]


def conv(accelerator: Accelerator, **settings: Any) -> Step:
    """A 1x1 convolution with weights and scales."""
    more: dict[str, Any] = {f"WEIGHT{core}_LENGTH": 0 for core in range(1, accelerator.cores)} | {"SCALE1_LENGTH": 0}
    block = (2, 8, 16) if accelerator.u85 else (2, 4, 16)
    value = 0 if accelerator.u85 else None
    return kernel(
        "CONV", accelerator, X, Y, block=block, value=value, extra=(WEIGHT, SCALE), **STREAMS, **more, **settings
    )


def ordinary(kind: str, accelerator: Accelerator, **settings: Any) -> Step:
    if kind == "conv":
        return conv(accelerator, **settings)
    if kind == "pool":
        return pool(X, Y, accelerator, **settings)
    if kind == "add":
        return elementwise(X, Y, accelerator, second=Z, **settings)
    if kind == "resize":
        return resize(**settings)
    assert kind == "dma"
    return copy(0, 0x40, 64, **settings)


def resize(**settings: Any) -> Step:
    usual: dict[str, Any] = {}
    for axis in "XY":
        usual[f"RESIZE_{axis}"] = {"one_step_int": 1, "one_step_mod": 0}
        usual |= {f"RESIZE_{axis}_SCALE_N_M1": 0, f"RESIZE_{axis}_OFFSET": 0}
    return kernel(
        "RESIZE", U85, X, Y, value=0, block=settings.pop("block", (1, 8, 16)), KERNEL_HEIGHT_M1=7, KERNEL_WIDTH_M1=7,
        IFM2_ZERO_POINT=settings.pop("IFM2_ZERO_POINT", 0),
        **usual | settings,
    )  # fmt: skip


@pytest.mark.parametrize("accelerator", [U55, SMALL, DUAL, U85], ids=lambda item: item.name)
@pytest.mark.parametrize("kind", ["conv", "pool", "add", "dma"])
def test_ordinary_steps_are_clean(kind: str, accelerator: Accelerator) -> None:
    assert found(ordinary(kind, accelerator), accelerator) == []


def test_ordinary_resize_is_clean() -> None:
    assert found(resize(), U85) == []


BROKEN: list[tuple[str, Accelerator, dict[str, Any], str, bool]] = [
    # feature maps
    ("pool", U55, {"IFM_PRECISION": {"precision": 1}, "IFM_BASE0": 1}, "IFM_BASE0 is 0x1, no multiple of 2", True),
    ("pool", U85, {"IFM_PRECISION": {"precision": 1}, "IFM_BASE0": 1}, "IFM_BASE0 is 0x1, no multiple of 2", False),
    ("pool", U55, {"OFM_PRECISION": {"precision": 1}, "OFM_STRIDE_Y": 257}, "OFM_STRIDE_Y is 257", True),
    ("pool", U85, {"OFM_PRECISION": {"format": 1}, "OFM_BASE0": 0x1008}, "OFM_BASE0 is 0x1008, no multiple", True),
    ("pool", U55, {"OFM_PRECISION": {"format": 1}, "OFM_STRIDE_C": 136}, "OFM_STRIDE_C is 136, no multiple", True),
    # streams
    ("conv", U55, {"WEIGHT_LENGTH": 60}, "WEIGHT_LENGTH is 60, no multiple of 16", True),
    ("conv", U85, {"WEIGHT_BASE": 8}, "WEIGHT_BASE is 0x8, no multiple of 16", True),
    ("conv", U55, {"SCALE_LENGTH": 70}, "SCALE_LENGTH is 70, no multiple of 16", True),
    ("conv", U55, {"SCALE_BASE": 72}, "SCALE_BASE is 0x48, no multiple of 16", False),
    ("conv", DUAL, {"WEIGHT1_LENGTH": 8, "WEIGHT1_BASE": 0}, "WEIGHT1_LENGTH is 8, no multiple of 16", True),
    # kernels
    ("pool", U55, {"KERNEL_STRIDE": {"stride_x_m1": 3}}, "the strides are 1x4, more than 3", True),
    ("pool", U85, {"value": 1, "KERNEL_WIDTH_M1": 8, "IFM_PAD_LEFT": 4, "IFM_PAD_RIGHT": 4}, "a 1x9 kernel", True),
    ("conv", U55, {"KERNEL_HEIGHT_M1": 64}, "the kernel reaches over 65x1", False),
    # data types
    ("add", U55, {"IFM2_PRECISION": {"precision": 1}}, "IFM has 8 bits and IFM2 16", True),
    ("add", U85, {"IFM2_PRECISION": {"precision": 1}}, "IFM has 8 bits and IFM2 16", True),
    ("add", U55, {"value": 9, "IFM_ZERO_POINT": 2}, "IFM_ZERO_POINT is 2", True),
    ("pool", U55, {"OFM_PRECISION": {"precision": 1}, "ACTIVATION": {"function": 17}}, "for a table of 8 slots", True),
    ("pool", U55, {"OFM_PRECISION": {"format": 1}, "OFM_STRIDE_X": -16}, "an NHCWB16 OFM has a negative stride", True),
    # SHRAM
    ("pool", U55, {"OFM_BLK_WIDTH_M1": 6}, "the OFM block's WIDTH is 7, no multiple of the microblock's 2", True),
    ("pool", U55, {"OFM_BLK_HEIGHT_M1": 32}, "the OFM block's HEIGHT is 33, more than 32", True),
    ("conv", U55, {"AB_START": 15}, "accumulators need banks 15 to 23, tables begin at 22", True),
    ("conv", U55, {"IFM_IB_END": 4}, "the IFM needs banks 2 to 6, input buffers end at 4", True),
    ("conv", U55, {"IFM_IB_END": 16}, "SHRAM is out of order: input buffers up to bank 16, accumulators from 14", True),
    ("add", U55, {"IFM2_IB_START": 4}, "the IFM needs banks 2 to 6, IFM2 begins at 4", True),
    ("add", U55, {"IFM2_IB_START": 20}, "IFM2 needs banks 20 to 24, input buffers end at 22", True),
    ("conv", SMALL, {"extra_read": table_of(SMALL), "AB_START": 12}, "accumulators need banks 12 to 16", True),
    # DMA
    ("dma", U55, {"DMA0_SRC": 8}, "DMA0_SRC is 0x8, no multiple of 16", True),
    ("dma", U55, {"DMA0_LEN": 60}, "DMA0_LEN is 0x3c, no multiple of 16", True),
    ("dma", DUAL, {"DMA0_DST_REGION": {"region_mode": 1, "region": 1}, "DMA0_DST": 0x48}, "DMA0_DST is 0x48", True),
    # Ethos-U85
    ("pool", U85, {"OFM_PRECISION": {"transpose": 4}}, "transposition 4, which is none", True),
    ("pool", U85, {"OFM_PRECISION": {"transpose": 2}, "OFM_BLK_DEPTH_M1": 143}, "has width 144, more than 128", True),
    ("pool", U85, {"OFM_PRECISION": {"transpose": 2, "format": 1}}, "blocks of 8 channels, no whole bricks", True),
    ("pool", U85, {"OFM_PRECISION": {"reverse": 3}, "OFM_BLK_DEPTH_M1": 31}, "channels has blocks of 32", False),
    ("pool", U85, {"ACC_FORMAT": {"microblock": 5}}, "microblock 5, which ethos-u85-256 has not", True),
    ("pool", U85, {"OFM_BLK_HEIGHT_M1": 2}, "the OFM block is 3x8x16, no multiple of 2x2x8", False),
    ("pool", U85, {"OFM_PRECISION": {"transpose": 1, "reverse": 1}}, "transposition 1 and reversal 1", True),
    ("add", U85, {"OFM_PRECISION": {"transpose": 1}}, "an elementwise operation has transposition 1", True),
    ("conv", U85, {"OFM_BLK_WIDTH_M1": 127, "OFM_BLK_HEIGHT_M1": 3}, "a block needs 32768 bytes of accumulators", True),
    ("pool", U85, {"value": REDUCE_SUM, "ACC_FORMAT": {"format": 1}}, "REDUCE_SUM has accumulators of 48 bits", True),
    ("pool", U85, {"ACC_FORMAT": {"input": 2}, "IFM2_PRECISION": {"precision": 1}}, "from an IFM2 of 16 bits", True),
    ("pool", U85, {"value": 4}, "POOL NONE has accumulators that do not start from IFM2", False),
    ("pool", U85, {"ACTIVATION": {"function": 5, "table": 4}}, "ACTIVATION has table 4 of 4", True),
    ("resize", U85, {"RESIZE_X_OFFSET": 1}, "RESIZE_X_OFFSET is 1, outside -1 to 0", True),
    ("resize", U85, {"RESIZE_Y": {"one_step_mod": 1}}, "RESIZE_Y has a remainder of 1 of 1", True),
    ("resize", U85, {"block": (2, 8, 16)}, "OFM blocks of 2 rows, not 1", True),
    ("resize", U85, {"block": (1, 8, 32)}, "OFM blocks of 32 channels, more than 16", False),
    ("resize", U85, {"IFM2_ZERO_POINT": 3}, "IFM2_ZERO_POINT 3, not 0", True),
    ("resize", U85, {"IFM_UPSCALE": 1}, "a RESIZE has IFM_UPSCALE 1", True),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "accelerator", "change", "message", "certain"), BROKEN)
def test_broken_rules(kind: str, accelerator: Accelerator, change: dict[str, Any], message: str, certain: bool) -> None:
    change = dict(change)
    read = change.pop("extra_read", None)
    if "value" in change and kind in ("pool", "add"):
        step = ordinary(kind, accelerator, value=change.pop("value"))
    else:
        step = ordinary(kind, accelerator, **({"block": change.pop("block")} if "block" in change else {}))
    registers = dict(step.registers)
    for name, given in change.items():
        registers[name] = {**registers.get(name, {}), **(given if isinstance(given, dict) else {"value": given})}
    step = replace(step, registers=registers, reads=(*step.reads, *((read,) if read else ())))
    messages = found(step, accelerator)
    assert [item for item in messages if message in item[0]] == [
        (text, certain) for text, _ in messages if message in text
    ]
    assert any(message in text for text, _ in messages), messages


def test_reduce_sum_wants_linear_feature_maps() -> None:
    deep, flat = Map(0, (4, 8, 32), 32, bricks=True), Map(0x4000, (4, 8, 1))
    step = kernel("POOL", U55, deep, flat, block=(2, 4, 8), value=REDUCE_SUM)
    assert ("REDUCE_SUM has an NHCWB16 IFM of 32 bits", True) in found(step, U55)
    narrow = kernel("POOL", DUAL, Map(0, (4, 8, 32), bricks=True), flat, block=(2, 4, 8), value=REDUCE_SUM)
    assert found(narrow, DUAL) == [("REDUCE_SUM has an NHCWB16 IFM of 8 bits", False)]
    linear = Map(0, (4, 8, 32), 32)
    assert found(kernel("POOL", U55, linear, flat, block=(2, 4, 8), value=REDUCE_SUM), U55) == []
    wide = kernel("POOL", U55, linear, flat, block=(2, 4, 8), value=REDUCE_SUM, ACC_FORMAT=1)
    assert ("REDUCE_SUM of 32 bits has accumulators of 40 bits", True) in found(wide, U55)


def test_one_row_needs_one_row_of_accumulators() -> None:
    """A block of two rows fits where the OFM has one (the microblock of 256 MACs has two)."""
    line = Map(0, (1, 64, 16)), Map(0x4000, (1, 64, 16))
    step = kernel("POOL", DUAL, *line, block=(2, 64, 16), value=1, AB_START=30, IFM_IB_END=30)
    assert found(step, DUAL) == []
    tall = kernel(
        "POOL",
        DUAL,
        Map(0, (2, 64, 16)),
        Map(0x4000, (2, 64, 16)),
        block=(2, 64, 16),
        value=1,
        AB_START=32,
        IFM_IB_END=30,
    )
    assert [text for text, _ in found(tall, DUAL)] == ["accumulators need banks 32 to 48, tables begin at 46"]


def test_product_with_ifm2_has_a_kernel_of_one() -> None:
    second = Map(0x2000, (1, 16, 16))
    step = kernel("CONV", U85, X, Y, second=second, value=1, block=(2, 8, 16))
    assert found(step, U85) == []
    registers = {**step.registers, "KERNEL_WIDTH_M1": {"value": 2}}
    assert ("a product with IFM2 has a 1x3 kernel", True) in found(replace(step, registers=registers), U85)


def test_unset_registers_are_left_to_the_machine() -> None:
    step = conv(U55)
    for name in step.registers:
        bare = {other: fields for other, fields in step.registers.items() if other != name}
        assert [item for item in found(replace(step, registers=bare), U55) if item[1]] == []


def test_waits_have_no_limits() -> None:
    assert register_limits(Step(0, replace(copy(0, 0, 16).command, name="OP_DMA_WAIT"), {}), U55) == []


def test_ethos_u65_dma_in_memory_needs_no_alignment() -> None:
    step = copy(3, 5, 7, region=SCRATCH)
    assert found(step, DUAL) == []
    assert len(found(step, U55)) == 3
    assert found(step, U85) == []
