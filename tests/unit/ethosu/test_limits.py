"""Streams of a few bytes that ask for too much: each is refused with a line that says what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from harness.artifacts.vela import VelaPayload
from harness.case.errors import BadInput
from harness.ethosu import machine
from harness.ethosu.accelerator import Accelerator, accelerator_named
from harness.ethosu.machine import execute
from harness.ethosu.memory import SCRATCH_LIMIT
from harness.ethosu.records import Unimplemented
from tests.unit.ethosu.assembling import (
    STOP,
    U55,
    U85,
    feature_map,
    io,
    kernel,
    ofm,
    operation,
    payload,
    registers,
)

AVERAGE, MAXIMUM, ADD, BILINEAR = 1, 0, 1, 0
FLAT = {f"{role}_STRIDE_{axis}": 0 for role in ("IFM", "OFM") for axis in "YXC"}


def _pool(accelerator: Accelerator, shape: tuple[int, int, int], mode: int = MAXIMUM, **settings: Any) -> VelaPayload:
    """A 1x1 pool of one row of channels that is everywhere, onto one that is everywhere."""
    made = {
        **feature_map("IFM", shape, 0),
        **ofm(accelerator, shape, 64),
        **kernel(),
        **{f"{role}_{name}": 0xFFFF for role in ("IFM", "OFM") for name in ("HEIGHT0_M1", "HEIGHT1_M1", "WIDTH0_M1")},
        **FLAT,
        "IFM_DEPTH_M1": shape[2] - 1,
        **settings,
    }
    stream = [*operation(accelerator, "OP_POOL", mode, made), STOP]
    return payload(accelerator, stream, [io((64,), 0)], [io((64,), 64)])


def _problem(made: VelaPayload, accelerator: Accelerator, **words: int) -> str:
    return str(execute(made, [np.arange(64, dtype=np.int8)], accelerator, **words).stopped)


def test_shapes_within_bounds_run() -> None:
    made = _pool(U55, (16, 16, 64))
    (output,) = execute(made, [np.arange(64, dtype=np.int8)], U55).outputs or ()
    assert output.ravel().tolist() == list(range(64))


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_a_feature_map_of_too_many_elements_is_refused(accelerator: Accelerator) -> None:
    assert "an OFM of 65536x65536x1 elements is more than" in _problem(
        _pool(accelerator, (65536, 65536, 1)), accelerator
    )


def test_padding_counts() -> None:
    made = _pool(U55, (1, 1, 65536), **kernel(127, 255, (126, 127, 0, 127)))
    assert "a padded IFM of 127x255x65536 elements is more than" in _problem(made, U55)


def test_larger_kernels_are_not_implemented() -> None:
    found = execute(_pool(U85, (1, 1, 1), **kernel(1025, 1024)), [np.arange(64, dtype=np.int8)], U85).stopped
    assert isinstance(found, Unimplemented)
    assert "has a kernel of 1025x1024; the largest that is executed has 1048576 taps" in str(found)


def test_weights_count() -> None:
    settings = {
        **feature_map("IFM", (8, 8, 32), 0),
        **ofm(U55, (1, 1, 65536), 64),
        **kernel(8, 8),
        "IFM_DEPTH_M1": 31,
        "WEIGHT_REGION": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": 16,
        "OFM_BLK_DEPTH_M1": 7,
    }
    stream = [*operation(U55, "OP_CONV", None, settings), STOP]
    made = payload(U55, stream, [io((64,), 0)], weights=bytes(16))
    assert "weights of 65536x8x8x32 elements is more than" in _problem(made, U55)


def test_the_middle_of_a_resize_counts() -> None:
    resizing = {
        f"RESIZE_{axis}{name}": value
        for axis in "XY"
        for name, value in (("", {"one_step_int": 1}), ("_SCALE_N_M1", 0), ("_OFFSET", 0))
    }
    settings = {
        **feature_map("IFM", (1, 65536, 1), 0),
        **ofm(U85, (65536, 1, 1), 64),
        **kernel(1, 65536),
        **resizing,
    }
    made = payload(U85, [*operation(U85, "OP_RESIZE", BILINEAR, settings), STOP], [io((64,), 0)])
    assert "a RESIZE halfway of 65536x65536x1 elements is more than" in _problem(made, U85)


def test_a_dma_of_too_many_runs_is_refused() -> None:
    settings = {
        "DMA0_SRC_REGION": {"region": 1, "stride_mode": 2},
        "DMA0_DST_REGION": {"region": 1},
        **{f"DMA0_{name}": 0 for name in ("SRC", "DST", "SRC_STRIDE0", "SRC_STRIDE1", "DST_STRIDE0", "DST_STRIDE1")},
        "DMA0_SIZE0": 0xFFFF,
        "DMA0_SIZE1": 0xFFFF,
        "DMA0_LEN": 1,
    }
    made = payload(U85, [*operation(U85, "OP_DMA_START", None, settings), STOP], [io((64,), 0)])
    assert "copies 4294836225 runs of 1 bytes" in _problem(made, U85)


def test_a_dma_of_no_runs_is_refused() -> None:
    u65 = accelerator_named("ethos-u65-256")
    settings = {
        "DMA0_SRC_REGION": {"region": 1},
        "DMA0_DST_REGION": {"region": 1, "stride_mode": 1},
        **{f"DMA0_{name}": 0 for name in ("SRC", "DST", "SKIP0", "SIZE0")},
        "DMA0_LEN": 8,
    }
    made = payload(u65, [*operation(u65, "OP_DMA_START", None, settings), STOP], [io((64,), 0)])
    assert "copies 0 runs of 8 bytes" in _problem(made, u65)


def test_work_is_bounded() -> None:
    made = _pool(U55, (16, 16, 64))
    assert "more work than 1000000 multiplications" in _problem(made, U55, most_work=1_000_000)
    assert execute(made, [np.arange(64, dtype=np.int8)], U55, most_work=100_000_000).stopped is None


def test_work_adds_up_over_operations() -> None:
    one = registers(U55, {"DMA0_SRC": 0})
    made = payload(U55, [*one, *[("OP_KERNEL_WAIT", {"value": 0})] * 5, STOP])
    assert execute(made, [], U55, most_work=5 << 18).stopped is None
    assert "more work than" in str(execute(made, [], U55, most_work=(5 << 18) - 1).stopped)


def test_scratch_memory_is_bounded_with_the_fast_one() -> None:
    made = replace(_pool(U55, (1, 1, 1)), fast_scratch_size=SCRATCH_LIMIT)
    with pytest.raises(BadInput, match="asks for 536875008 bytes of scratch memory"):
        execute(made, [np.arange(64, dtype=np.int8)], U55)


def test_memory_that_is_not_there_is_an_error_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def broke(npu: object) -> None:
        raise MemoryError

    monkeypatch.setitem(cast(dict[str, Any], machine._KERNELS), "OP_POOL", broke)
    assert "needs more memory than there is" in _problem(_pool(U55, (1, 1, 1)), U55)


@pytest.mark.parametrize("field", ["precision", "format"])
def test_a_format_that_is_none_is_not_guessed(field: str) -> None:
    good = feature_map("IFM", (1, 1, 1), 0)["IFM_PRECISION"]
    made = _pool(U55, (1, 1, 1), IFM_PRECISION={**good, field: 2})
    assert ("IFM format 2 is not implemented" in _problem(made, U55)) == (field == "format")


def test_accumulators_that_start_nowhere_are_not_guessed() -> None:
    made = _pool(U85, (1, 1, 1), mode=3, ACC_FORMAT={"microblock": 3, "input": 3})
    assert "ACC_FORMAT input 3 is not implemented" in _problem(made, U85)


def test_padded_averages_count_dilated_taps() -> None:
    """By the definition: taps at multiples of the dilation that lie inside."""
    size, taps, dilation, stride, before, after = 7, 3, 2, 2, 3, 2
    outputs = (size + before + after - (taps - 1) * dilation - 1) // stride + 1
    x = np.arange(1, size + 1)
    wanted = []
    for output in range(outputs):
        at = [output * stride + tap * dilation - before for tap in range(taps)]
        inside = [int(x[place]) for place in at if 0 <= place < size]
        wanted.append(int(np.floor(sum(inside) / len(inside) + 0.5)))
    settings = {
        **feature_map("IFM", (size, 1, 1), 0),
        **ofm(U85, (outputs, 1, 1), 64),
        **kernel((taps - 1) * dilation + 1, 1, (before, 0, after, 0), stride_y_m1=stride - 1, dilation_y=dilation - 1),
        "IFM_DEPTH_M1": 0,
    }
    made = payload(U85, [*operation(U85, "OP_POOL", AVERAGE, settings), STOP], [io((size,), 0)], [io((outputs,), 64)])
    (output,) = execute(made, [x.astype(np.int8)], U85).outputs or ()
    assert output.ravel().tolist() == wanted
