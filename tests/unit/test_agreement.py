"""Legs that ran one program are compared bit for bit, and a defect is told once."""

from dataclasses import replace

import numpy as np
import pytest

from harness.case.sampling import EvaluationInput
from harness.evidence.agreement import DIFFERS_FROM_TOSA, ENGINES_DIFFER, differences, legs_to_judge
from harness.evidence.observation import Envelope, Failure, LegResult
from harness.evidence.references import FVP, MODEL, QUANTIZED, RUNTIME, RUNTIMES, TOSA
from harness.workers.case_run import _plant
from oracles import numeric, outputs
from tests.unit.observations import STEP, observation

RIGHT, WRONG, OTHER = [0.0, 1.0, 2.0], [0.0, 1.0, 3.5], [0.0, 1.5, 2.0]


def seen(fallback=(), **legs):
    """Reference and TOSA agree unless told otherwise; legs by short name."""
    base = observation(RIGHT, legs.pop("tosa", RIGHT), low=[-9.0] * 3, high=[9.0] * 3)
    named = {"model": MODEL, "fvp": FVP, "runtime": RUNTIME}
    more = {named[key]: LegResult(((np.asarray(values, np.float32),),)) for key, values in legs.items()}
    return replace(base, legs={**base.legs, **more}, lowering=replace(base.lowering, fallback=tuple(fallback)))


@pytest.mark.parametrize(
    ("legs", "expected"),
    [
        ({}, []),
        ({"model": RIGHT}, []),
        ({"model": WRONG}, [(DIFFERS_FROM_TOSA, (TOSA, MODEL))]),
        ({"fvp": WRONG}, [(DIFFERS_FROM_TOSA, (TOSA, FVP))]),
        ({"model": WRONG, "fvp": WRONG}, [(DIFFERS_FROM_TOSA, (TOSA, MODEL))]),
        ({"model": WRONG, "fvp": RIGHT}, [(ENGINES_DIFFER, (FVP, MODEL))]),
        ({"model": RIGHT, "fvp": WRONG}, [(ENGINES_DIFFER, (FVP, MODEL))]),
        ({"model": WRONG, "fvp": OTHER}, [(ENGINES_DIFFER, (FVP, MODEL)), (DIFFERS_FROM_TOSA, (TOSA, FVP))]),
        ({"tosa": OTHER, "model": RIGHT, "fvp": RIGHT}, [(DIFFERS_FROM_TOSA, (TOSA, MODEL))]),
    ],
)
def test_a_difference_is_told_once_and_names_both_legs(legs, expected):
    assert [(item.kind, item.legs) for item in differences(seen(**legs))] == expected


def test_every_output_is_compared_by_itself():
    base = observation(RIGHT, RIGHT, low=[-9.0] * 3, high=[9.0] * 3, outputs=3)
    got = tuple(np.asarray(values, np.float32) for values in (WRONG, RIGHT, OTHER))
    found = differences(replace(base, legs={**base.legs, MODEL: LegResult((got,))}))
    assert [(item.kind, item.output, item.distance) for item in found] == [
        (DIFFERS_FROM_TOSA, 0, 3.0),
        (DIFFERS_FROM_TOSA, 2, 1.0),
    ]


def test_without_the_reference_model_the_engines_are_still_compared():
    base = seen(model=WRONG, fvp=RIGHT)
    base = replace(base, legs={**base.legs, TOSA: LegResult(failure=Failure("leg", "X", "x"))})
    [found] = differences(base)
    assert found.kind == ENGINES_DIFFER
    assert legs_to_judge(base) == [MODEL]


def test_kernels_outside_delegates_cost_the_fvp_its_exact_claim():
    base = seen(fallback=["aten.gelu.default"], model=WRONG, fvp=RIGHT)
    assert [(item.kind, item.legs) for item in differences(base)] == [(DIFFERS_FROM_TOSA, (TOSA, MODEL))]
    assert legs_to_judge(base) == [TOSA, FVP]
    assert legs_to_judge(seen(model=WRONG, fvp=RIGHT)) == [TOSA]


def test_the_mismatch_measures_the_worst_element_in_steps():
    [found] = numeric.judge(seen(model=[0.0, 1.5, 3.5]))
    assert (found.kind, found.legs, found.pass_name) == (DIFFERS_FROM_TOSA, (TOSA, MODEL), None)
    assert found.measured["distance"] == 1.5 / STEP
    assert (found.measured["elements"], found.measured["of"], found.measured["inputs"]) == (2, 3, 1)
    assert (
        "output 0 [3], calibration input 0: 2 of 3 elements differ between legs that ran the same program (on 1 of 1 "
        "input); worst at [2]: ethos-u-model 3.5, tosa-reference 2, 3 steps apart (one step is 0.5)" in found.message
    )


def test_an_output_without_a_domain_is_measured_in_units():
    base = seen(model=WRONG)
    plain = replace(base.lowering.outputs[0], domain=None)
    [found] = numeric.judge(replace(base, lowering=replace(base.lowering, outputs=(plain,))))
    assert (found.measured["distance"], found.measured["unit"]) == (1.5, "units")
    assert "step" not in found.measured


def test_a_leg_outside_the_envelope_too_is_told_once():
    """Model and reference model have the same bug of a pass: that is one mismatch, against quantized eager."""
    base = seen(tosa=WRONG, model=WRONG)
    envelope = Envelope(np.asarray(RIGHT), np.asarray(RIGHT))
    [found] = numeric.judge(replace(base, rounding=((envelope,),)))
    assert (found.kind, found.legs) == ("outside rounding", (QUANTIZED, TOSA))
    [found] = numeric.judge(replace(seen(model=WRONG), rounding=((envelope,),)))
    assert (found.kind, found.legs) == (DIFFERS_FROM_TOSA, (TOSA, MODEL))


def test_a_model_that_runs_alone_is_judged_by_envelopes():
    base = seen(model=WRONG)
    envelope = Envelope(np.asarray(RIGHT), np.asarray(RIGHT))
    alone = replace(base, legs={**base.legs, TOSA: LegResult(skipped="not asked for")}, rounding=((envelope,),))
    [found] = numeric.judge(alone)
    assert (found.kind, found.legs) == ("outside rounding", (QUANTIZED, MODEL))


def runs(base, leg, *values, in_range=(True, True)):
    """The same observation on two inputs, where ``leg`` returned ``values`` and the others RIGHT."""
    items = tuple(EvaluationInput("fresh draw", base.inputs[0].arrays, inside) for inside in in_range)
    right = (np.asarray(RIGHT, np.float32),)
    legs = {name: LegResult((right, right)) for name in base.legs}
    legs[leg] = LegResult(tuple((np.asarray(one, np.float32),) for one in values))
    return replace(base, inputs=items, legs=legs, rounding=None)


def test_the_worst_input_is_one_in_range_if_any_shows_it():
    base = seen(model=RIGHT)
    [found] = differences(runs(base, MODEL, OTHER, WRONG))
    assert (found.run, found.runs, found.distance) == (1, 2, 3.0)
    [found] = differences(runs(base, MODEL, OTHER, WRONG, in_range=(True, False)))
    assert (found.run, found.runs, found.distance) == (0, 2, 1.0)


def test_no_number_against_a_number_is_a_difference_without_a_distance():
    nan = [0.0, np.nan, 2.0]
    assert differences(seen(tosa=nan, model=nan)) == []
    [found] = numeric.judge(seen(model=nan))
    assert "distance" not in found.measured
    assert "worst at [1]: ethos-u-model nan, tosa-reference 1 (one step" in found.message
    assert differences(seen(tosa=[0.0, 1.0, 2.0], model=[-0.0, 1.0, 2.0])) == []


def test_an_engine_s_leg_does_not_make_the_census_s_planted_error_visible():
    """The census measures envelopes: next to a leg that is compared bit for bit every error shows."""
    seen_by_model = seen(model=RIGHT)  # with an envelope that is wide
    assert _plant(seen_by_model) is False
    sharp = Envelope(np.asarray(RIGHT), np.asarray(RIGHT))
    assert _plant(replace(seen_by_model, rounding=((sharp,),))) is True


def test_shapes_that_differ_are_left_to_the_outputs_oracle():
    base = seen(model=RIGHT)
    short = replace(base, legs={**base.legs, MODEL: LegResult(((np.zeros(2, np.float32),),))})
    assert differences(short) == []
    assert [item.kind for oracle in (numeric, outputs) for item in oracle.judge(short)] == ["shape"]
    fewer = replace(base, legs={**base.legs, MODEL: LegResult(())})
    assert differences(fewer) == []
    assert [item.kind for item in outputs.judge(fewer)] == ["runs"]


def numeric_and_outputs(**legs):
    """What the two oracles say where envelopes allow nothing but the reference."""
    item = seen(**legs)
    exact = np.asarray(RIGHT)
    rounding = tuple(tuple(replace(one, low=exact, high=exact) for one in row) for row in item.rounding)
    found = [*numeric.judge(replace(item, rounding=rounding)), *outputs.judge(item)]
    return [(one.oracle, one.kind, one.legs[1], one.pass_name) for one in found]


@pytest.mark.parametrize(
    ("legs", "expected"),
    [
        ({"runtime": RIGHT}, []),
        ({"runtime": WRONG}, [("numeric", "outside rounding", RUNTIME, RUNTIMES[RUNTIME])]),
        ({"tosa": OTHER, "runtime": WRONG}, [("numeric", "outside rounding", TOSA, None)]),
        ({"tosa": OTHER, "runtime": RIGHT}, [("numeric", "outside rounding", TOSA, None)]),
        ({"runtime": RIGHT[:2]}, [("outputs", "shape", RUNTIME, None)]),
        ({"tosa": RIGHT[:2], "runtime": RIGHT[:2]}, [("outputs", "shape", TOSA, None)]),
    ],
)
def test_the_runtime_is_told_only_of_what_is_its_own(legs, expected):
    assert numeric_and_outputs(**legs) == expected


def test_without_the_reference_model_the_runtime_is_judged_and_nobody_is_blamed():
    base = observation(RIGHT, RIGHT)
    legs = {**base.legs, TOSA: LegResult(skipped="no"), RUNTIME: LegResult(((np.asarray(WRONG, np.float32),),))}
    [found] = numeric.judge(replace(base, legs=legs))
    assert (found.legs, found.pass_name) == ((QUANTIZED, RUNTIME), None)
