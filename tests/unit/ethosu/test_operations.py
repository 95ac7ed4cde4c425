"""Operations of the model on streams made by hand, against values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.ethosu.accelerator import Accelerator, accelerator_named
from harness.ethosu.machine import Execution, execute
from harness.ethosu.memory import FILL
from harness.ethosu.records import Unimplemented
from tests.unit.ethosu.assembling import (
    STOP,
    U55,
    U85,
    Commands,
    feature_map,
    io,
    kernel,
    ofm,
    operation,
    payload,
    registers,
)

IN, SECOND, OUT = 0, 512, 1024
Shape = tuple[int, int, int]


def _run(
    accelerator: Accelerator,
    commands: Commands,
    inputs: list[np.ndarray],
    shape: Shape,
    size: int = 1,
    weights: bytes = b"",
) -> Execution:
    places = [io(array.shape, offset, array.itemsize) for array, offset in zip(inputs, (IN, SECOND), strict=False)]
    made = payload(accelerator, [*commands, STOP], places, [io(shape, OUT, size)], weights)
    return execute(made, inputs, accelerator)


def _result(execution: Execution, shape: Shape) -> list[Any]:
    assert execution.outputs is not None, execution.stopped
    assert execution.issues == ()
    return execution.outputs[0].reshape(shape).tolist()


def _pool(accelerator: Accelerator, mode: int, shape: Shape, out: Shape, **changes: Any) -> Commands:
    depth = {"IFM_DEPTH_M1": shape[2] - 1}
    settings = {**feature_map("IFM", shape, IN), **depth, **ofm(accelerator, out, OUT), **kernel(), **changes}
    return operation(accelerator, "OP_POOL", mode, settings)


def _binary(accelerator: Accelerator, mode: int, shape: Shape, size: int = 1, **changes: Any) -> Commands:
    settings = {
        **feature_map("IFM", shape, IN, size),
        **feature_map("IFM2", shape, SECOND, size),
        **ofm(accelerator, shape, OUT, size),
        "IFM2_BROADCAST": {} if not accelerator.u85 else 0,
    }
    if accelerator.u85:
        unit = {"scale": 1, "round_mode": 1}
        settings |= {"IFM_BROADCAST": 0, "IFM_SCALE": unit, "IFM2_SCALE": unit}
    else:
        settings |= {"OPA_SCALE": {"scale": 1}, "OPB_SCALE": 1}
    return operation(accelerator, "OP_ELEMENTWISE", mode, {**settings, **changes})


def _codes(*values: int, dtype: str = "i1") -> np.ndarray:
    return np.array(values, dtype).reshape(1, 1, -1)


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_max_pool_skips_padding(accelerator: Accelerator) -> None:
    ifm = np.array([[-5, -7], [-9, -8]], np.int8).reshape(2, 2, 1)
    commands = _pool(accelerator, 0, (2, 2, 1), (3, 3, 1), **kernel(2, 2, (1, 1, 1, 1)))
    assert _result(_run(accelerator, commands, [ifm], (3, 3, 1)), (3, 3)) == [[-5, -5, -7], [-5, -5, -7], [-9, -8, -8]]


def test_padded_average_divides_by_taps_inside_with_ties_away_from_zero() -> None:
    ifm = np.array([3, 4, -3], np.int8).reshape(1, 3, 1)
    commands = _pool(U55, 1, (1, 3, 1), (1, 3, 1), **kernel(1, 3, (0, 1, 0, 1)))
    assert _result(_run(U55, commands, [ifm], (1, 3, 1)), (3,)) == [4, 1, 1]


def test_unpadded_average_of_u55_is_a_sum_that_the_scale_divides() -> None:
    ifm = np.array([10, 20], np.int8).reshape(1, 2, 1)
    commands = _pool(U55, 1, (1, 2, 1), (1, 1, 1), **kernel(1, 2), OFM_SCALE={"scale": 1 << 30, "shift": 31})
    assert _result(_run(U55, commands, [ifm], (1, 1, 1)), (1,)) == [15]


def test_zero_points_leave_before_and_join_after_scaling() -> None:
    ifm = np.array([10, 20], np.int8).reshape(1, 2, 1)
    changes = {"IFM_ZERO_POINT": 4, "OFM_ZERO_POINT": -7, "OFM_SCALE": {"scale": 3, "shift": 1}}
    commands = _pool(U55, 1, (1, 2, 1), (1, 2, 1), **changes)
    assert _result(_run(U55, commands, [ifm], (1, 2, 1)), (2,)) == [2, 17]


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_reduce_sum_adds_channels(accelerator: Accelerator) -> None:
    ifm = np.array([[1, 2, 3], [-4, 5, 6]], np.int8).reshape(1, 2, 3)
    commands = _pool(accelerator, 2, (1, 2, 3), (1, 2, 1))
    assert _result(_run(accelerator, commands, [ifm], (1, 2, 1)), (2,)) == [6, 7]


def test_rows_of_padding_have_a_sum_of_zero() -> None:
    ifm = np.array([[1, 2, 3], [-4, 5, 6]], np.int8).reshape(1, 2, 3)
    commands = _pool(U55, 2, (1, 2, 3), (3, 2, 1), IFM_PAD_BOTTOM=2)
    assert _result(_run(U55, commands, [ifm], (3, 2, 1)), (3, 2)) == [[6, 7], [0, 0], [0, 0]]


@pytest.mark.parametrize(("mode", "expected"), [(6, [[1], [0]]), (7, [[1, 0, 0]])])
def test_argmax_gives_the_first_maximum(mode: int, expected: list[list[int]]) -> None:
    ifm = np.array([[3, 9, 9], [7, 7, 1]], np.int8).reshape(2, 3, 1)
    shape, size = ((2, 1, 1), (1, 3)) if mode == 6 else ((1, 3, 1), (2, 1))
    changes = {**kernel(*size), "OFM_SCALE": {"scale": 1, "shift": 16, "round_mode": 1}}
    commands = _pool(U85, mode, (2, 3, 1), shape, **changes)
    assert _result(_run(U85, commands, [ifm], shape), shape[:2]) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [(1, [[1, 1, 2], [1, 1, 2], [3, 3, 4]]), (2, [[1, 0, 2], [0, 0, 0], [3, 0, 4]])]
)
def test_upscaling(mode: int, expected: list[list[int]]) -> None:
    ifm = np.array([[1, 2], [3, 4]], np.int8).reshape(2, 2, 1)
    commands = _pool(U55, 0, (2, 2, 1), (3, 3, 1), IFM_UPSCALE=mode)
    assert _result(_run(U55, commands, [ifm], (3, 3, 1)), (3, 3)) == expected


@pytest.mark.parametrize("accelerator", [U55, U85])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [(0, [12, -10]), (1, [7, -3]), (2, [-1, 7]), (3, [3, -5]), (4, [4, 2])],
)
def test_binary_elementwise(accelerator: Accelerator, mode: int, expected: list[int]) -> None:
    changes: dict[str, Any] = {}
    if mode in (3, 4) and not accelerator.u85:  # not scaled
        changes["OFM_PRECISION"] = {"type": 1, "round_mode": 2}
    commands = _binary(accelerator, mode, (1, 1, 2), **changes)
    assert _result(_run(accelerator, commands, [_codes(3, 2), _codes(4, -5)], (1, 1, 2)), (2,)) == expected


def test_first_operand_is_scaled_and_the_other_shifted() -> None:
    changes = {
        "IFM_PRECISION": {"type": 1, "scale_mode": 1, "round_mode": 2},
        "OPA_SCALE": {"scale": 3 << 28, "shift": 10},
        "OFM_SCALE": {"scale": 1, "shift": 19},
    }
    first, second = 10, 7
    expected = (first * (3 << 28) + 512 >> 10) + (second << 19) + (1 << 18) >> 19
    changes |= {"OFM_PRECISION": {"type": 1, "precision": 1, "scale_mode": 1, "round_mode": 2}}
    changes |= {"OFM_STRIDE_X": 2, "OFM_STRIDE_Y": 2, "ACTIVATION_MIN": 0x8000, "ACTIVATION_MAX": 0x7FFF}
    commands = _binary(U55, 1, (1, 1, 1), **changes)
    assert _result(_run(U55, commands, [_codes(first), _codes(second)], (1, 1, 1), 2), (1,)) == [expected]


def test_operand_order_makes_the_scalar_the_first_operand() -> None:
    changes = {
        "IFM2_BROADCAST": {"constant": 1, "operand_order": 1},
        "IFM2_SCALAR": 0xFFFF,
        "IFM2_PRECISION": {"type": 1},
    }
    commands = _binary(U55, 2, (1, 1, 2), **changes)
    assert _result(_run(U55, commands, [_codes(3, -4)], (1, 1, 2)), (2,)) == [-4, 3]


def test_scalar_operand_of_u85_is_32_bits_wide() -> None:
    changes = {
        "IFM2_PRECISION": {"type": 1, "precision": 2, "storage": 3},
        "IFM2_BROADCAST": 8,
        "OP_SCALAR": 0xFFFF0000,
    }
    commands = _binary(U85, 1, (1, 1, 1), 4, **changes, ACTIVATION={"clip_range": 1})
    assert _result(_run(U85, commands, [_codes(5, dtype="i4")], (1, 1, 1), 4), (1,)) == [5 - 65536]


def test_broadcast_of_u85_repeats_axes_of_either_operand() -> None:
    changes = {"IFM_BROADCAST": 4, "IFM2_BROADCAST": 2}
    commands = _binary(U85, 1, (1, 2, 3), **changes)
    commands = [*commands[:-1], *registers(U85, {"IFM_STRIDE_X": 1, "IFM2_STRIDE_X": 3}), commands[-1]]
    inputs = [np.array([10, 20], np.int8).reshape(1, 2, 1), _codes(1, 2, 3)]
    assert _result(_run(U85, commands, inputs, (1, 2, 3)), (2, 3)) == [[11, 12, 13], [21, 22, 23]]


@pytest.mark.parametrize(
    ("mode", "expected"), [(16, [-1, 0]), (17, [0, -1]), (18, [-1, 0]), (19, [0, 0]), (42, [0, 8])]
)
def test_comparisons_give_minus_one_and_bits_are_bits(mode: int, expected: list[int]) -> None:
    commands = _binary(U85, mode, (1, 1, 2))
    assert _result(_run(U85, commands, [_codes(3, 12), _codes(3, 20)], (1, 1, 2)), (2,)) == expected


@pytest.mark.parametrize(("round_mode", "expected"), [(1, [3, -2]), (5, [2, -3])])
def test_arithmetic_shift_rounds_only_if_natural(round_mode: int, expected: list[int]) -> None:
    changes = {"OFM_SCALE": {"scale": 1, "round_mode": round_mode}}
    commands = _binary(U85, 8, (1, 1, 2), **changes)
    assert _result(_run(U85, commands, [_codes(5, -5), _codes(1, 1)], (1, 1, 2)), (2,)) == expected


def test_leading_zeros_of_32_bits() -> None:
    values = _codes(0, 1, -1, 1 << 30, (1 << 31) - 1, dtype="i4")
    commands = _binary(U85, 7, (1, 1, 5), 4, ACTIVATION={"clip_range": 1})
    assert _result(_run(U85, commands, [values], (1, 1, 5), 4), (5,)) == [32, 31, 0, 1, 1]


@pytest.mark.parametrize("accelerator", [U55, U85])
def test_product_of_32_bits_is_shifted_and_not_multiplied_again(accelerator: Accelerator) -> None:
    unclipped = {"clip_range": 1} if accelerator.u85 else {}
    scale = {"scale": 1 << 30, "shift": 31, **({"round_mode": 1} if accelerator.u85 else {})}
    commands = _binary(accelerator, 0, (1, 1, 3), 4, ACTIVATION=unclipped, OFM_SCALE=scale)
    inputs = [_codes(1 << 20, -(1 << 20), (1 << 31) - 1, dtype="i4"), _codes(3 << 11, 3 << 10, 1 << 30, dtype="i4")]
    # 3 * 2**31, -1.5 * 2**31 and 2**61 - 2**30, in units of 2**31 with ties up
    assert _result(_run(accelerator, commands, inputs, (1, 1, 3), 4), (3,)) == [3, -1, 1 << 30]


@pytest.mark.parametrize("mode", [1, 2])
def test_factor_on_other_32_bit_elementwise_operations_of_u55_is_refused(mode: int) -> None:
    commands = _binary(U55, mode, (1, 1, 1), 4, OFM_SCALE={"scale": 1 << 30, "shift": 31})
    execution = _run(U55, commands, [_codes(1, dtype="i4"), _codes(1, dtype="i4")], (1, 1, 1), 4)
    assert isinstance(execution.stopped, Unimplemented)
    assert "32-bit data and an OFM_SCALE of 1073741824" in str(execution.stopped)


def test_division_truncates_toward_zero() -> None:
    commands = _binary(U85, 11, (1, 1, 4), 4, ACTIVATION={"clip_range": 1})
    inputs = [_codes(7, -7, 7, -7, dtype="i4"), _codes(2, 2, -2, -2, dtype="i4")]
    assert _result(_run(U85, commands, inputs, (1, 1, 4), 4), (4,)) == [3, -3, -3, 3]


def test_clip_comes_before_the_table() -> None:
    table = bytes((255 - index) for index in range(256))  # entry of code v is 127 - v
    load = operation(
        U55,
        "OP_DMA_START",
        None,
        {
            "DMA0_SRC_REGION": {},
            "DMA0_SRC": 0,
            "DMA0_DST_REGION": {"region_mode": 1},
            "DMA0_DST": 24 * 1024 - 2048 + 256,
            "DMA0_LEN": 256,
        },
    )
    changes = {"ACTIVATION": {"function": 17}, "ACTIVATION_MIN": 0xFFFE, "ACTIVATION_MAX": 5}
    commands = load + _pool(U55, 1, (1, 1, 4), (1, 1, 4), **changes)
    execution = _run(U55, commands, [_codes(-128, -2, 4, 99)], (1, 1, 4), weights=table)
    assert _result(execution, (4,)) == [-127, -127, 123, 122]


def test_16_bit_table_interpolates() -> None:
    pairs = np.zeros((512, 2), "<i2")
    pairs[256 + 2] = 100, 64  # values 256 to 383
    load = operation(
        U85,
        "OP_DMA_START",
        None,
        {
            "DMA0_SRC_REGION": {},
            "DMA0_SRC": 0,
            "DMA0_DST_REGION": {"region_mode": 1},
            "DMA0_DST": 0,
            "DMA0_LEN": 2048,
        },
    )
    settings = {
        **feature_map("IFM", (1, 1, 2), IN, 2),
        "IFM_DEPTH_M1": 1,
        **ofm(U85, (1, 1, 2), OUT, 2),
        **kernel(),
        "ACTIVATION": {"function": 8},
    }
    commands = load + operation(U85, "OP_POOL", 3, settings)
    execution = _run(U85, commands, [_codes(256, 259, dtype="i2")], (1, 1, 2), 2, weights=pairs.tobytes())
    assert _result(execution, (2,)) == [100, 100 + (64 * 3 + 64 >> 7)]


@pytest.mark.parametrize(
    ("code", "shape", "expected"),
    [
        (1, (3, 2, 1), [1, 4, 2, 5, 3, 6]),
        (2, (2, 1, 3), [1, 2, 3, 4, 5, 6]),
        (3, (3, 1, 2), [1, 4, 2, 5, 3, 6]),
        (6, (1, 2, 3), [1, 2, 3, 4, 5, 6]),
        (7, (1, 3, 2), [1, 4, 2, 5, 3, 6]),
    ],
)
def test_transposition_on_the_way_out(code: int, shape: Shape, expected: list[int]) -> None:
    ifm = np.arange(1, 7, dtype=np.int8).reshape(2, 3, 1)
    changes = {**feature_map("OFM", shape, OUT), "OFM_PRECISION": {"type": 1, "scale_mode": 1, "transpose": code}}
    commands = _pool(U85, 3, (2, 3, 1), (2, 3, 1), **changes)
    assert _result(_run(U85, commands, [ifm], shape), (6,)) == expected


def test_reverse_on_the_way_out() -> None:
    ifm = np.arange(1, 7, dtype=np.int8).reshape(1, 3, 2)
    changes = {"OFM_PRECISION": {"type": 1, "scale_mode": 1, "reverse": 2}}
    commands = _pool(U85, 3, (1, 3, 2), (1, 3, 2), **changes)
    assert _result(_run(U85, commands, [ifm], (1, 3, 2)), (6,)) == [5, 6, 3, 4, 1, 2]


def test_chain_buffer_carries_values_between_operations() -> None:
    chained = {"type": 1, "scale_mode": 1, "storage": 2}
    first = _pool(
        U85, 3, (1, 1, 2), (1, 1, 2), OFM_PRECISION=chained, OFM_REGION=3, OFM_SCALE={"scale": 3, "round_mode": 1}
    )
    second = _binary(U85, 1, (1, 1, 2), IFM_PRECISION={"type": 1, "storage": 2}, IFM_REGION=3)
    inputs = [_codes(2, 3), _codes(10, 20)]
    assert _result(_run(U85, first + second, inputs, (1, 1, 2)), (2,)) == [16, 29]


def test_accumulators_are_kept_and_start_from_ifm2() -> None:
    keep = {"ACC_FORMAT": {"microblock": 3, "output": 1}, "OFM_PRECISION": {"type": 1, "scale_mode": 1, "storage": 3}}
    ifm2 = feature_map("IFM2", (1, 1, 2), SECOND, 4)
    first = _pool(
        U85, 3, (1, 1, 2), (1, 1, 2), **{**keep, **ifm2, "ACC_FORMAT": {"microblock": 3, "output": 1, "input": 2}}
    )
    second = _pool(U85, 3, (1, 1, 2), (1, 1, 2), ACC_FORMAT={"microblock": 3, "input": 1})
    inputs = [_codes(2, 3), np.array([100, -100], np.int32).reshape(1, 1, 2)]
    assert _result(_run(U85, first + second, inputs, (1, 1, 2)), (2,)) == [104, -94]


def test_resize_bilinear_and_nearest() -> None:
    ifm = np.array([0, 8], np.int8).reshape(1, 2, 1)
    step = {"one_step_int": 0, "one_step_mod": 1}
    settings = {
        **feature_map("IFM", (1, 2, 1), IN),
        "IFM_UPSCALE": 0,
        **ofm(U85, (1, 3, 1), OUT),
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 1,
        "RESIZE_X_SCALE_N_M1": 1,
        "RESIZE_Y_SCALE_N_M1": 1,
        "RESIZE_X": step,
        "RESIZE_Y": step,
        "RESIZE_X_OFFSET": 0,
        "RESIZE_Y_OFFSET": 0,
    }
    bilinear = operation(U85, "OP_RESIZE", 0, {**settings, "OFM_SCALE": {"scale": 1, "shift": 18, "round_mode": 1}})
    assert _result(_run(U85, bilinear, [ifm], (1, 3, 1)), (3,)) == [0, 4, 8]
    nearest = operation(U85, "OP_RESIZE", 2, {**settings, "OFM_SCALE": {"scale": 1, "shift": 16, "round_mode": 1}})
    assert _result(_run(U85, nearest, [ifm], (1, 3, 1)), (3,)) == [0, 8, 8]


def test_gather_selects_rows() -> None:
    settings = {
        "DMA0_SRC_REGION": {"region": 1, "stride_mode": 1, "idx_mode": 1},
        "DMA0_SRC": IN,
        "DMA0_DST_REGION": {"region": 1},
        "DMA0_DST": OUT,
        "DMA0_LEN": 2,
        "DMA0_SIZE0": 3,
        "DMA0_SRC_STRIDE0": 2,
        "DMA0_DST_STRIDE0": 2,
        "DMA0_IDX_REGION": 1,
        "DMA0_IDX": SECOND,
        "DMA0_IDX_MAX": 3,
    }
    inputs = [np.arange(8, dtype=np.int8).reshape(1, 4, 2), np.array([3, 0, 3], np.int32).reshape(1, 1, 3)]
    commands = operation(U85, "OP_DMA_START", None, settings)
    assert _result(_run(U85, commands, inputs, (1, 3, 2)), (6,)) == [6, 7, 0, 1, 6, 7]
    beyond = [inputs[0], np.array([3, 4, 0], np.int32).reshape(1, 1, 3)]
    stopped = _run(U85, commands, beyond, (1, 3, 2)).stopped
    assert "DMA0_IDX_MAX allows 0 to 3" in str(stopped)


def test_dma_of_u65_skips_at_the_destination() -> None:
    settings = {
        "DMA0_SRC_REGION": {"region": 1},
        "DMA0_SRC": IN,
        "DMA0_DST_REGION": {"region": 1, "stride_mode": 1},
        "DMA0_DST": OUT,
        "DMA0_LEN": 2,
        "DMA0_SIZE0": 2,
        "DMA0_SKIP0": 1,
    }
    u65 = accelerator_named("ethos-u65-256")
    execution = _run(u65, operation(u65, "OP_DMA_START", None, settings), [_codes(1, 2, 3, 4)], (1, 1, 5))
    assert execution.outputs is not None
    assert execution.outputs[0].ravel().tolist() == [1, 2, FILL - 256, 3, 4]
    assert [issue.kind for issue in execution.issues] == ["unwritten-output"]


def test_branches_follow_the_last_single_result() -> None:
    decrement = _binary(U85, 2, (1, 1, 1), OFM_BASE0=IN)  # IN -= SECOND
    loop = [("OP_BRANCH", {"condition": 1, "target": 0})]
    copy = _pool(U85, 3, (1, 1, 1), (1, 1, 1))
    execution = _run(U85, decrement + loop + copy, [_codes(3), _codes(1)], (1, 1, 1))
    assert _result(execution, (1,)) == [0]
    assert [step.kind for step in execution.steps].count("ELEMENTWISE") == 3
