"""The exactness table's own parts: draws, configurations, rows. Nothing here compiles or runs a model."""

import numpy as np
import pytest

from tests.exactness import conformance, table
from tests.exactness.comparing import DIFFERENT, EXACT, RAISED, UNIMPLEMENTED, VELA, Issue, Verdict, first_difference
from tests.exactness.configurations import TARGETS, configuration_for, default
from tests.exactness.program import InputSpec, draw_call, limits
from tests.exactness.store import Call, stored


def verdict(outcome, name="add-000", **more):
    return Verdict(name, "single-op", "ethos-u55-128", "default", ("ADD",), outcome, **more)


def call_of(*outputs):
    return Call((), tuple(stored(np.asarray(output, np.int32)) for output in outputs))


def test_even_draws_are_uniform_with_both_ends_and_odd_ones_are_extremes():
    spec = InputSpec((4, 500), "INT16", -300, 400)
    [uniform], [extremes] = (draw_call("p", [spec], number) for number in (0, 1))
    assert uniform.dtype == np.int16
    assert (uniform.min(), uniform.max()) == (-300, 400)
    assert len(np.unique(uniform)) > 300
    assert set(np.unique(extremes)) == {-300, -299, -2, -1, 0, 1, 2, 200, 399, 400}


def test_draws_depend_on_name_input_and_number_only():
    specs = [InputSpec((50,), "INT8", -128, 127)] * 2
    first, again, other = draw_call("p", specs, 0), draw_call("p", specs, 0), draw_call("q", specs, 0)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])


def test_a_ramp_holds_every_code_and_unique_rows_repeat_nothing():
    [ramp] = draw_call("p", [InputSpec((30, 10), "INT8", -128, 127, "ramp")], 0)
    [unique] = draw_call("p", [InputSpec((3, 7), "INT32", 0, 9, "unique")], 1)
    assert set(ramp.reshape(-1)) == set(range(-128, 128))
    assert all(len(set(row)) == 7 and row.min() >= 0 and row.max() <= 9 for row in unique)


def test_narrow_halves_wide_integers_only():
    specs = [InputSpec((200,), "INT32", -1024, 1023), InputSpec((200,), "INT8", -128, 127)]
    wide, small = draw_call("p", specs, 0, narrow=4)
    assert (wide.min(), wide.max()) == (-64, 63)
    assert (small.min(), small.max()) == (-128, 127)


@pytest.mark.parametrize(("dtype", "ends"), [("BOOL", (0, 1)), ("INT8", (-128, 127)), ("INT48", (-(2**47), 2**47 - 1))])
def test_limits(dtype, ends):
    assert limits(dtype) == ends


@pytest.mark.parametrize("target", TARGETS)
def test_programs_are_spread_over_memory_modes_and_half_keep_the_default(target):
    chosen = [configuration_for(f"add-{number:03d}", target) for number in range(200)]
    assert chosen == [configuration_for(f"add-{number:03d}", target) for number in range(200)]
    assert 0.35 < chosen.count(default(target)) / 200 < 0.65
    assert len({item.memory_mode for item in chosen}) >= (2 if "u55" in target else 3)
    assert {item.accelerator for item in chosen} == {target}


def test_the_first_difference_is_named_by_place_and_values():
    text = first_difference([np.array([[[1, 2], [3, 9]]], np.int64)], call_of([[1, 2], [3, 4]]))
    assert "1 of 4 differ (by up to 5), first at [1, 1]: 9, reference 4" in text


def test_equal_values_in_another_width_and_shape_are_no_difference():
    assert first_difference([np.array([[[0, -1]]], np.int8)], call_of([0, -1])) == ""


def test_missing_outputs_and_other_sizes_are_differences():
    assert first_difference([], call_of([1])) == "0 outputs, the reference model returns 1"
    assert "has shape (3,)" in first_difference([np.zeros(3, np.int64)], call_of([0, 0]))


def test_a_row_counts_outcomes_and_issues():
    issues = (Issue("hazard", False, "a"), Issue("overlap", True, "b"))
    counts = table.row(
        [
            verdict(EXACT, issues=issues),
            verdict(DIFFERENT, explained="narrowing-cast"),
            verdict(VELA),
            verdict(UNIMPLEMENTED),
            verdict(RAISED),
        ]
    )
    assert counts == {
        "programs": 5,
        "compiled": 4,
        "reference refused": 0,
        "compared": 2,
        "exact": 1,
        "not exact": 1,
        "explained": 1,
        "unimplemented": 1,
        "failed": 1,
        "certain issues": 1,
        "information": 1,
    }


def test_only_unexplained_wrong_outcomes_make_the_command_fail():
    wrong = [verdict(outcome) for outcome in (DIFFERENT, UNIMPLEMENTED, RAISED)]
    fine = [verdict(EXACT), verdict(VELA), verdict(DIFFERENT, explained="narrowing-cast")]
    assert table.unexplained([*wrong, *fine]) == wrong


def test_the_report_lists_wrong_programs_by_cause():
    text = "\n".join(table.lines([verdict(DIFFERENT, "add-001", detail="here"), verdict(EXACT)]))
    assert "1 NOT EXPLAINED" in text
    assert "default add-001 [ADD] different: here" in text
    assert "Not exact: none of 1 compared." in "\n".join(table.lines([verdict(EXACT)]))


@pytest.mark.parametrize(
    ("name", "family"),
    [("add-003", "add"), ("conv2d-i16-acc-012", "conv2d-i16-acc"), ("conv2d-i16-s3-012", "conv2d-i16")],
)
def test_family_of(name, family):
    assert table.family_of(name) == family


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("conv2d_1x3_1x5x9x4_i8xi8_acci32_st11_pad0000_dil11_lclbnd0", "conformance int8"),
        ("matmul_14x63x3_i16xi16_acci48", "conformance int16"),
        ("add_1x4x5x7_i32", "conformance int32"),
        ("logical_and_3x4_b", "conformance bool"),
    ],
)
def test_a_conformance_test_is_grouped_by_its_first_type(test, group):
    assert conformance.group_of(test) == group


def test_refusals_of_a_family_are_counted_by_reason_without_sizes():
    refused = [verdict(VELA, f"conv3d-s0-{number}", detail=f"kernel {number} is too large") for number in (3, 12)]
    lines = table.lines([*refused, verdict(VELA, "conv3d-s1-9", detail="no"), verdict(EXACT, "conv3d-s1-10")])
    assert lines[-1] == "  ethos-u55-128 conv3d: 1 of 4 accepted; 2 refused: kernel N is too large; 1 refused: no"
