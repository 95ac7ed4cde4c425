"""Each oracle on hand-made observations: it sees its own mismatch and passes the clean twin."""

import json
from dataclasses import replace

import numpy as np
import pytest

from harness.evidence.observation import (
    DelegateRecord,
    Domain,
    Envelope,
    Failure,
    LegResult,
    LoweringRecord,
    headline,
    oracles,
)
from harness.evidence.signatures import normalized
from harness.tosa.program import Program, Tensor
from harness.tosa.translating import to_flatbuffer
from tests.unit.observations import CASE, observation


def judge(name, seen):
    return oracles()[name].judge(seen)


def test_the_registry_has_the_oracles_of_this_part():
    assert {"crash", "outputs", "numeric", "quality"} <= set(oracles())


CLEAN = observation([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", ["crash", "outputs", "numeric", "quality"])
def test_a_clean_observation_passes(name):
    assert judge(name, CLEAN) == []


def test_numeric_sees_one_element_outside_its_envelope_and_measures_it_in_steps():
    [found] = judge("numeric", observation([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 3.0, 3.0]))
    assert found.kind == "outside rounding"
    assert found.measured["distance"] == 2.0
    assert found.measured["elements"] == 1
    assert "at [2]: tosa-reference 3, quantized-eager 2, 2 steps apart" in found.message


@pytest.mark.parametrize(
    ("dtype", "unit", "told"), [("int32", "units", "2 units"), ("float32", "epsilons", "epsilons of")]
)
def test_numeric_measures_what_is_not_quantized_in_its_own_unit(dtype, unit, told):
    seen = observation([0, 1, 5], [0, 1, 7])
    plain = replace(seen.lowering.outputs[0], domain=None)
    legs = {name: LegResult(((leg.outputs[0][0].astype(dtype),),)) for name, leg in seen.legs.items()}
    seen = replace(seen, legs=legs, lowering=replace(seen.lowering, outputs=(plain,)))
    [found] = judge("numeric", seen)
    assert found.measured["unit"] == unit
    assert told in found.message
    assert ("epsilon" in found.message) == (unit == "epsilons")


def test_numeric_allows_what_the_envelope_allows():
    assert judge("numeric", observation([0.0, 1.0], [0.0, 1.5], low=[0.0, 1.0], high=[0.0, 1.5])) == []
    assert judge("numeric", observation([0.0, 1.0], [0.0, 2.0], low=[0.0, 1.0], high=[0.0, 1.5])) != []


def test_numeric_prints_the_bound_it_used():
    [found] = judge("numeric", observation([0.0, 1.0], [0.0, 9.0], low=[0.0, 1.0], high=[0.0, 1.5]))
    assert found.measured["bound"] == 1.0
    assert "allowed 1 to 1.5" in found.message


def test_numeric_measures_where_the_worst_element_is_and_what_that_one_is_allowed():
    [found] = judge("numeric", observation([0.0, 1.0], [8.0, 3.0], low=[0.0, 1.0], high=[9.0, 1.0]))
    unit = found.measured["step"]
    assert (found.measured["at"], found.measured["distance"] * unit, found.measured["bound"] * unit) == (1, 2.0, 9.0)
    assert 0.0 <= found.measured["allowed"] < 0.01


def test_numeric_judges_every_output_by_itself():
    """A bug in output 0, known or not, hides none in output 1."""
    two = observation([0.0, 1.0], [0.0, 1.0], outputs=2)
    wrong = tuple(np.asarray(values, np.float32) for values in ([0.0, 2.0], [9.0, 1.0]))
    found = judge("numeric", replace(two, legs={**two.legs, "tosa-reference": LegResult((wrong,))}))
    assert [(item.measured["output"], item.measured["distance"]) for item in found] == [(0, 2.0), (1, 18.0)]


@pytest.mark.parametrize(
    ("got", "below"), [([-64.0, 0.0], 1), ([-64.0, 1.0], None), ([-62.0, 0.0], None), ([-63.5, 0.0], None)]
)
def test_numeric_notes_codes_below_qmin_where_qmin_was_expected(got, below):
    """Both elements are expected to be right (-63.5 is qmin, -127); the second must not be wrong otherwise."""
    seen = observation([-63.5, 0.0], got)
    types = replace(seen.lowering.outputs[0], domain=Domain(0.5, 0, -127, 127))
    seen = replace(seen, lowering=replace(seen.lowering, outputs=(types,)))
    places = [item.place.facts.get("below") for item in judge("numeric", seen)]
    assert places == ([] if got == [-63.5, 0.0] else [below])


def test_numeric_says_if_a_mismatch_needs_out_of_range_input():
    [found] = judge("numeric", observation([0.0], [5.0], origin="saturating", in_range=False))
    assert "out-of-range" in found.kind


def test_numeric_does_not_judge_where_the_reference_contradicts_its_envelope():
    assert judge("numeric", observation([0.0, 1.0], [0.0, 9.0], low=[0.0, 4.0], high=[0.0, 5.0])) == []


def test_numeric_does_not_judge_without_a_claim_but_sees_nan():
    infinite = {"low": [-np.inf, 0.0], "high": [np.inf, 0.0]}
    assert judge("numeric", observation([0.0, 0.0], [9.0, 0.0], **infinite)) == []
    assert judge("numeric", observation([0.0, 0.0], [0.0, np.nan], **infinite)) != []


def test_what_numeric_measures_of_a_nan_is_json():
    [found] = judge("numeric", observation([0.0, 0.0], [0.0, np.nan]))
    assert "distance" not in found.measured
    assert found.measured["elements"] == 1
    json.dumps(found.measured, allow_nan=False)


def _with(seen, *runs):
    return replace(seen, legs={**seen.legs, "tosa-reference": LegResult(runs)})


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [((), "count"), ((np.zeros((4, 1), np.float32),), "shape"), ((np.zeros(4, np.int8),), "dtype")],
)
def test_outputs_sees_count_shape_and_dtype(outputs, kind):
    [found] = judge("outputs", _with(CLEAN, outputs))
    assert found.kind == kind


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [((), "count"), ((np.zeros((1, 4), np.float32),), "shape"), ((np.zeros(4, np.int8),), None)],
)
def test_outputs_sees_what_quantization_makes_of_number_and_shape(outputs, kind):
    """Its dtype is the recipe's."""
    seen = replace(CLEAN, legs={"eager": CLEAN.legs["eager"], "quantized-eager": LegResult((outputs,))})
    found = judge("outputs", seen)
    assert [(item.kind, item.stage, item.legs) for item in found] == [
        (kind, "convert", ("eager", "quantized-eager")) for _ in found
    ]
    assert bool(found) == (kind is not None)


def test_outputs_sees_a_wrong_shape_behind_another_dtype_and_beside_that_of_a_runtime():
    codes, floats, long = np.zeros(4, np.uint8), np.zeros(4, np.float32), np.zeros((1, 4), np.float32)
    legs = {"eager": (floats, floats), "quantized-eager": (codes, long), "executorch": (codes, floats)}
    seen = replace(CLEAN, legs={name: LegResult((outputs,)) for name, outputs in legs.items()})
    assert [item.legs for item in judge("outputs", seen)] == [
        ("eager", "quantized-eager"),
        ("quantized-eager", "executorch"),
    ]
    short = replace(CLEAN, legs={"eager": CLEAN.legs["eager"], "quantized-eager": LegResult(((floats,),) * 2)})
    assert [item.kind for item in judge("outputs", short)] == ["runs"]


def test_outputs_sees_a_missing_run():
    [found] = judge("outputs", _with(CLEAN))
    assert found.kind == "runs"


def test_outputs_sees_swapped_outputs_but_not_equal_ones():
    one, two = np.array([1.0], np.float32), np.array([2.0], np.float32)
    base = observation([1.0], [1.0], outputs=2)

    def legs(wanted, got):
        return replace(base, legs={"quantized-eager": LegResult((wanted,)), "tosa-reference": LegResult((got,))})

    [found] = judge("outputs", legs((one, two), (two, one)))
    assert found.kind == "order"
    assert judge("outputs", legs((one, one), (one, one))) == []
    assert judge("outputs", legs((one, two), (one, two))) == []


def test_outputs_sees_swapped_codes_of_outputs_in_different_domains():
    base = observation([1.0], [1.0], outputs=2)
    other = replace(base.lowering.outputs[1], domain=Domain(0.25, 3, -128, 127))
    base = replace(base, lowering=replace(base.lowering, outputs=(base.lowering.outputs[0], other)))
    wanted = (np.array([1.0], np.float32), np.array([1.0], np.float32))  # codes 2 and 7
    got = (np.array([3.5], np.float32), np.array([-0.25], np.float32))  # codes 7 and 2
    legs = {"quantized-eager": LegResult((wanted,)), "tosa-reference": LegResult((got,))}
    [found] = judge("outputs", replace(base, legs=legs))
    assert found.kind == "order"


def test_quality_sees_float_outside_what_the_quantized_graph_stands_for():
    without_rounding = Envelope(np.array([0.0, 0.5]), np.array([0.5, 1.5]))
    seen = observation([0.5, 2.0], [0.5, 2.0], eager=[0.5, 4.0], quantization=without_rounding)
    [found] = judge("quality", seen)
    assert "float 4, quantized 2; without its rounding the quantized graph gives 0.5 to 1.5" in found.message
    unit = seen.lowering.outputs[0].domain.scale
    assert found.measured["input"] == 0
    assert found.measured["excess"] * unit == pytest.approx(2.5 - 0.5 * unit, abs=0.01)
    assert found.measured["bound"] == 0.5 / unit + 0.5  # rounding took the second element from 1.5 to 2
    assert judge("quality", observation([0.5, 1.0], [0.5, 1.0], eager=[0.2, 1.2], quantization=without_rounding)) == []


@pytest.mark.parametrize(("eager", "zero"), [([0.0, 1.0], 1), ([0.2, 1.0], 0), ([0.0, 1.5], 0)])
def test_quality_says_whether_the_float_model_gives_zero_for_all_that_is_wrong(eager, zero):
    """By that, attention of a row that is hidden whole is told from anything else that is wrong with attention."""
    graph = Envelope(np.array([0.5, 1.0]), np.array([0.5, 1.0]))
    [found] = judge("quality", observation([0.5, 1.0], [0.5, 1.0], eager=eager, quantization=graph))
    assert found.place is not None
    assert found.place.facts["float_zero"] == zero


def test_quality_leaves_half_a_step_to_the_output_s_own_rounding_and_judges_no_infinite_end():
    exact = Envelope(np.array([1.0, -np.inf]), np.array([1.0, np.inf]))
    step = CLEAN.lowering.outputs[0].domain.scale
    near, far = [1.0 + 0.49 * step, 9.0], [1.0 + 0.6 * step, 9.0]
    assert judge("quality", observation([1.0, 1.0], [1.0, 1.0], eager=near, quantization=exact)) == []
    [found] = judge("quality", observation([1.0, 1.0], [1.0, 1.0], eager=far, quantization=exact))
    assert found.measured["elements"] == 1


def test_model_unchanged_names_what_changed():
    [found] = judge("model-unchanged", replace(CLEAN, lowering=replace(CLEAN.lowering, mutated=("conv.weight",))))
    assert "conv.weight" in found.message
    assert judge("model-unchanged", CLEAN) == []


def test_buffers_sees_a_dropped_input_and_whether_later_ones_shift():
    def seen(inputs, tosa_inputs):
        delegate = DelegateRecord("lowered_module_0", "TOSABackend", b"", b"", inputs, tosa_inputs, ())
        return judge("buffers", replace(CLEAN, lowering=replace(CLEAN.lowering, delegates=(delegate,))))

    assert seen(("x", "y"), ("x", "y")) == []
    [last] = seen(("x", "y"), ("x",))
    assert last.kind == "delegate input dropped"
    [first] = seen(("x", "y"), ("y",))
    assert first.kind == "delegate input dropped, later inputs shift"
    assert "called with 2 inputs, its TOSA graph has 1: input 0 (x) is gone" in first.message


FAILURE = Failure(
    "lower",
    "ValueError",
    "RewriteConvPass: no qparams in node tosa_conv2d_default\nmore",
    "RewriteConvPass",
    "executorch.backends.arm._passes.rewrite_conv_pass:call",
)


def test_crash_reports_stage_pass_and_signature():
    [found] = judge("crash", replace(CLEAN, failure=FAILURE))
    assert (found.stage, found.pass_name) == ("lower", "RewriteConvPass")
    assert (
        found.signature
        == "ValueError|RewriteConvPass: no qparams in node NAME|executorch.backends.arm._passes.rewrite_conv_pass:call"
    )


def test_crash_reports_a_leg_that_failed():
    broken = replace(
        CLEAN, legs={**CLEAN.legs, "tosa-reference": LegResult(failure=replace(FAILURE, stage="leg:tosa-reference"))}
    )
    [found] = judge("crash", broken)
    assert found.stage == "leg:tosa-reference"


def test_where_vela_raised_the_place_says_how_many_outputs_of_its_graph_are_inputs_or_constants():
    tensors = (Tensor("x", (1, 2), "INT8"), *(Tensor(name, (1,), "INT8", (3,)) for name in "cd"))
    tosa = to_flatbuffer(Program(tensors, (), ("x",), ("x", "c", "d")))
    failure = Failure("vela", "RuntimeError", "Compilation failed: Output tensor x does not have any writers.")
    [found] = judge("crash", replace(CLEAN, failure=failure, lowering=LoweringRecord(refused=tosa)))
    assert (found.place.graph, found.place.facts) == ("aten", {"passed_on": 1, "constant": 2})
    [found] = judge("crash", replace(CLEAN, failure=failure))
    assert found.place is None


def test_the_sign_of_what_is_no_number_says_nothing():
    assert normalized("range of [-nan, nan]") == "range of [nan, nan]"


def test_a_size_and_the_symbol_that_stood_for_it_are_one():
    assert normalized("no device from s51") == normalized("no device from 43") == "no device from N"


def test_a_node_s_name_is_none_also_without_an_underscore():
    message = "Output tensor {} does not have any writers."
    assert normalized(message.format("getitem")) == normalized(message.format("getitem_3"))
    assert normalized(message.format("getitem")) == normalized(message.format("aten_add_tensor"))


def test_normalized_messages_do_not_depend_on_names_sizes_and_addresses():
    first = normalized("shape [1, 4, 8] of aten_add_tensor_3 at 0x7f00 in /usr/lib/a/b.py does not fit n12")
    second = normalized("shape [7, 2] of aten_mul_tensor at 0x11 in /opt/c/d.py does not fit n3")
    assert first == second == "shape [N] of NAME at H in PATH does not fit NAME"


def test_normalized_messages_do_not_depend_on_the_edge_that_they_name():
    message = "no observer inserted: '({})' not in"
    names = ("x, le", "c0, gt", "squeeze_1, le", "n0, lt_2")
    assert {normalized(message.format(each)) for each in names} == {"no observer inserted: 'EDGE' not in"}
    assert normalized("of shape '(3, 4)'") != normalized("of shape '(a, b)'")


def test_normalized_messages_do_not_depend_on_the_order_of_a_set():
    first = normalized("Supported dtypes are {torch.int8, torch.bool, torch.int16}")
    second = normalized("Supported dtypes are {torch.int16, torch.int8, torch.bool}")
    assert first == second == "Supported dtypes are {torch.bool, torch.intN, torch.intN}"


def test_a_first_line_that_announces_another_brings_it_along():
    vela = "Compilation failed: Validation error:\nMaxPool:\n - ERROR_IF(pad_top < 0)\n - At least one pad\n"
    assert headline(vela) == "Compilation failed: Validation error: MaxPool: - ERROR_IF(pad_top < 0)"
    assert headline("one\ntwo") == "one"
    assert headline("nothing follows:\n") == "nothing follows:"
    assert headline("") == ""


def test_a_mismatch_names_no_leg_that_did_not_run():
    skipped = replace(CLEAN, legs={**CLEAN.legs, "tosa-reference": LegResult(skipped="not installed")})
    assert all(judge(name, skipped) == [] for name in oracles())
    assert CASE.target == "TOSA-1.0+INT"


def test_subnormal_float_results_may_be_flushed_to_zero():
    base = observation([1e-39, 1.0], [0.0, 1.0])
    floats = replace(base.lowering.outputs[0], domain=None)
    assert judge("numeric", replace(base, lowering=replace(base.lowering, outputs=(floats,)))) == []
    visible = replace(observation([1e-30, 1.0], [0.0, 1.0]), lowering=replace(base.lowering, outputs=(floats,)))
    assert judge("numeric", visible) != []
