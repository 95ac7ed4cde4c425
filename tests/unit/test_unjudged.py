"""What was not judged is found in hand-made observations, and added up so that no output counts twice."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from harness.case.case import encode_case
from harness.compat.snapshots import NodeState, Ref
from harness.evidence.observation import (
    DelegateRecord,
    Domain,
    Envelope,
    Failure,
    LegResult,
    LoweringRecord,
    Mismatch,
    OutputType,
    Unjudged,
)
from harness.locate.divergence import DelegateComparison
from harness.triage.unjudged import unjudged
from harness.triage.unjudged.counting import UnjudgedTally, lines, rows
from harness.triage.unjudged.execution import of_a_lost_case, of_own_fault, of_streams
from tests.unit.observations import CASE, STEP, observation

VALUES = [[0.0, 0.5, 1.0, -1.0]]
LOWEST, HIGHEST = -128 * STEP, 127 * STEP


def found(seen, *mismatches):
    return {item.what: item for item in unjudged(seen, mismatches)}


def enveloped(low, high, *operators, **changes):
    """An observation whose one output may lie from ``low`` to ``high``."""
    seen = observation(VALUES, VALUES, low=np.broadcast_to(low, (1, 4)), high=np.broadcast_to(high, (1, 4)))
    envelope = replace(seen.rounding[0][0], unjudged=operators)
    return replace(seen, rounding=((envelope,),), **changes)


def test_what_is_judged_whole_is_not_told():
    assert found(observation(VALUES, VALUES)) == {}
    assert found(enveloped(-1.5, 1.5)) == {}


def test_an_infinite_end_is_not_judged_element_by_element():
    item = found(enveloped(-1.0, [[np.inf, 0.5, 1.0, 1.0]]))["envelope without an end"]
    assert (item.outputs, item.parts, item.of, item.unit, item.leg) == ((0,), 1, 4, "elements", "tosa-reference")


@pytest.mark.parametrize(("low", "high", "parts"), [(LOWEST, HIGHEST, 4), (LOWEST + STEP, HIGHEST, 0)])
def test_an_envelope_that_covers_all_codes_judges_nothing(low, high, parts):
    told = found(enveloped(low, high))
    assert sum(item.parts for item in told.values()) == parts
    assert list(told) == (["envelope covers all codes"] if parts else [])


def test_a_truth_value_that_may_be_both_is_not_judged():
    seen = enveloped(False, True)
    types = OutputType((1, 4), "bool")
    ran = LegResult(((np.zeros((1, 4), bool),),))
    seen = replace(seen, lowering=LoweringRecord(outputs=(types,)), legs=dict.fromkeys(seen.legs, ran))
    assert found(seen)["envelope covers all codes"].parts == 4
    assert found(replace(seen, rounding=((Envelope(np.zeros((1, 4)), np.zeros((1, 4))),),))) == {}


def test_a_reference_outside_its_own_envelope_is_told():
    item = found(enveloped(-0.5, [[0.0, 0.5, 0.5, 0.5]]))["unsound envelope"]
    assert (item.outputs, item.parts, item.of) == ((0,), 2, 4)


@pytest.mark.parametrize(("low", "high", "parts"), [(-np.inf, np.inf, 4), (LOWEST, HIGHEST, 4), (-1.0, 1.0, 0)])
def test_an_operator_without_a_rule_is_named_whatever_became_of_its_envelope(low, high, parts):
    told = found(enveloped(low, high, "aten.sin"))
    assert list(told) == ["aten.sin"]
    item = told["aten.sin"]
    assert (item.why, item.outputs, item.parts, item.of) == ("no rule of rounding", (0,), parts, 4)


def test_an_operator_is_blamed_for_the_outputs_that_depend_on_it_only():
    seen = observation(VALUES, VALUES, outputs=2)
    envelope = replace(seen.rounding[0][0], unjudged=("aten.sin",))
    call = "call_function"
    graph = (
        NodeState("x", "placeholder", "x"),
        NodeState("sin", call, "aten.sin.default", (Ref("x"),)),
        NodeState("view", call, "aten.view.default", (Ref("sin"),)),
        NodeState("relu", call, "aten.relu.default", (Ref("x"),)),
        NodeState("output", "output", "output", ((Ref("relu"), Ref("view")),)),
    )
    record = replace(seen.lowering, reference={node.name: node for node in graph})
    seen = replace(seen, rounding=((envelope, envelope),), lowering=record)
    assert found(seen)["aten.sin"].outputs == (1,)
    without = replace(seen, lowering=replace(record, reference={}))
    assert found(without)["aten.sin"].outputs == (0, 1)


def test_legs_that_do_not_fit_are_told():
    assert found(observation(VALUES, [[0.0, 1.0]]))["legs that do not fit"].outputs == (0,)


def test_quality_without_a_bound_is_told_beside_rounding():
    infinite = Envelope(np.full((1, 4), -np.inf), np.full((1, 4), np.inf), ("aten.sin",))
    told = list(unjudged(observation(VALUES, VALUES, quantization=infinite), ()))
    assert [(item.what, item.leg, item.parts) for item in told] == [("aten.sin", "quantized-eager", 4)]
    covering = Envelope(np.full((1, 4), LOWEST), np.full((1, 4), HIGHEST))
    assert list(found(observation(VALUES, VALUES, quantization=covering))) == ["quality: envelope covers all codes"]
    sharp = Envelope(np.array(VALUES) - STEP, np.array(VALUES) + STEP)
    assert found(observation(VALUES, VALUES, quantization=sharp)) == {}


FAILURE = Failure("lower", "ValueError", "no such\nthing")


def test_a_compile_that_failed_leaves_every_output_unjudged():
    seen = replace(observation(VALUES, VALUES), failure=FAILURE, rounding=None)
    assert list(unjudged(seen, ())) == [
        Unjudged(what="lower failed", why="ValueError: no such", outputs=(0,)),
    ]


def test_a_leg_that_failed_is_told_and_not_its_envelopes():
    seen = enveloped(-np.inf, np.inf)
    legs = {**seen.legs, "tosa-reference": LegResult(failure=replace(FAILURE, stage="leg:tosa-reference"))}
    [item] = unjudged(replace(seen, legs=legs), ())
    assert (item.what, item.leg, item.outputs) == ("tosa-reference failed", "tosa-reference", (0,))


def test_a_process_that_died_and_a_fault_of_ours_are_told(tmp_path):
    (tmp_path / "case.json").write_bytes(encode_case(CASE))
    path = str(tmp_path / "case.json")
    [item] = of_a_lost_case(path, Failure("vela", "SIGSEGV", "no native output"))
    assert (item.what, item.why, item.outputs) == ("vela failed", "SIGSEGV: no native output", (0,))
    assert [item.outputs for item in of_own_fault(path, "armdiff failed")] == [(0,)]
    assert of_a_lost_case(str(tmp_path / "none.json"), FAILURE) == ()


def on_u55(comparison=None, *, model=None, fvp=None):
    """An observation of an Ethos-U target.

    :param model: why the functional model's leg was skipped; ``fvp`` likewise.
    """
    seen = observation(VALUES, VALUES)
    ran = seen.legs["tosa-reference"]
    legs = {
        **seen.legs,
        "ethos-u-model": LegResult(skipped=model) if model else ran,
        "ethos-u-fvp": LegResult(skipped=fvp) if fvp else ran,
    }
    case = SimpleNamespace(target="ethos-u55-128", graph=CASE.graph)
    return replace(seen, case=case, legs=legs, probes={"streams": {"d0": comparison}} if comparison else {})


def test_refused_draws_are_counted():
    refused = ("random integers 0: the model returned TOSA_ERROR", "random integers 1: the model returned TOSA_ERROR")
    item = found(on_u55(DelegateComparison(compared=2, refused=refused), fvp="no FVP"))["refused draws"]
    assert (item.parts, item.of, item.unit, item.outputs) == (2, 4, "draws", (0,))
    assert item.why.endswith("the model returned TOSA_ERROR")
    assert found(on_u55(DelegateComparison(compared=4), fvp="no FVP")) == {}


@pytest.mark.parametrize(
    ("comparison", "what"),
    [
        (DelegateComparison(stopped="NPU_OP_X", unimplemented=True), "not in the functional model"),
        (DelegateComparison(stopped="it ends early"), "stream cannot be executed"),
        (DelegateComparison(fault="KeyError in machine.py"), "armdiff failed"),
    ],
)
def test_a_stream_that_was_not_executed_is_told_once_unless_the_fvp_ran(comparison, what):
    [item] = unjudged(on_u55(comparison, model="it ends early: …", fvp="no FVP"), ())
    assert (item.what, item.outputs, item.leg) == (what, (0,), "ethos-u-model")
    assert found(on_u55(comparison, model="it ends early: …")) == {}


@pytest.mark.parametrize(
    ("model", "fvp", "told"),
    [
        ("delegate output 0 is torch.int8", "no FVP", True),
        ("delegate output 0 is torch.int8", None, False),
        (None, "no FVP", False),
        ("not asked for", "not asked for", False),
        ("not asked for: --ethos-u-engine fvp", "needs more than 60 s", True),
    ],
)
def test_a_stream_that_no_leg_ran_is_told_unless_that_was_asked_for(model, fvp, told):
    assert ("no leg ran the command stream" in found(on_u55(model=model, fvp=fvp))) == told


def test_unmatched_constants_and_delegates_without_a_flatbuffer_are_counted():
    mismatch = Mismatch("constants", "unmatched", "3 of 7", measured={"unmatched": 3, "constants": 7}, information=True)
    item = found(observation(VALUES, VALUES), mismatch)["unmatched constants"]
    assert (item.parts, item.of, item.unit) == (3, 7, "constants")
    assert "unmatched constants" not in found(observation(VALUES, VALUES), replace(mismatch, kind="wrong"))
    seen = observation(VALUES, VALUES)
    record = DelegateRecord("d0", "VgfBackend", None, b"", (), (), ())
    seen = replace(seen, lowering=replace(seen.lowering, delegates=(record,)))
    assert found(seen)["qparams and constants"].why.startswith("VgfBackend: ")


def test_int16_codes_are_covered_from_its_own_qmin():
    seen = enveloped(-32767 * STEP, 32767 * STEP)
    types = (OutputType((1, 4), "float32", Domain(STEP, 0, -32767, 32767)),)
    assert found(replace(seen, lowering=LoweringRecord(outputs=types)))["envelope covers all codes"].parts == 4


SIN = Unjudged(what="aten.sin", why="no rule of rounding", leg="tosa-reference", outputs=(0, 1), parts=8, of=8)
QUALITY = replace(SIN, why="no rule for what quantization may cost", leg="quantized-eager", outputs=(1,), parts=2, of=4)
LOST = Unjudged(what="lower failed", why="ValueError: size 3", outputs=(0,))


def counted(*cases):
    tally = UnjudgedTally()
    for items in cases:
        tally.add(items)
    return tally


def test_nothing_unjudged_has_no_words():
    tally = counted((), ())
    assert (tally.total.phrase, lines(tally), rows(tally), tally.leg("eager")) == ("", [], {}, "")


def test_an_output_counts_once_a_case_however_many_reasons_there_are():
    tally = counted((SIN, QUALITY), (LOST,), ())
    assert tally.total.phrase == "3 outputs of 2 cases unjudged (aten.sin, lower failed)"
    assert tally.leg("tosa-reference") == "2 outputs of 1 case (aten.sin)"
    assert tally.leg("quantized-eager") == "1 output of 1 case (aten.sin)"
    assert rows(tally)["aten.sin"] == {
        "outputs": 2,
        "cases": 1,
        "why": "1x no rule of rounding; 1x no rule for what quantization may cost",
        "parts": {"elements": {"unjudged": 10, "of": 12}},
    }


def test_every_reason_has_a_line_the_most_outputs_first():
    other = replace(LOST, why="ValueError: size 7")
    assert lines(counted((SIN,), (LOST,), (other,), (LOST,))) == [
        "unjudged: lower failed: 3 outputs of 3 cases: ValueError: size 3",
        "unjudged: aten.sin: 2 outputs of 1 case, 8 of 8 elements: no rule of rounding",
    ]


def test_a_phrase_names_a_few_reasons_and_counts_the_rest():
    items = [replace(LOST, what=f"reason {number}") for number in range(6)]
    assert counted(items).total.phrase == (
        "1 output of 1 case unjudged (reason 0, reason 1, reason 2, reason 3 and 2 more)"
    )


def test_merging_runs_counts_as_one_run():
    one, other = counted((SIN, QUALITY)), counted((SIN,), (LOST,))
    one.merge(other)
    assert one == counted((SIN, QUALITY), (SIN,), (LOST,))


@pytest.mark.parametrize(
    ("leg", "told"),
    [
        (LegResult(skipped="there is no Vulkan loader"), True),
        (LegResult(skipped="not asked for"), False),
        (LegResult(outputs=((np.zeros(4, np.float32),),)), False),
        (None, False),
    ],
)
def test_a_vgf_payload_that_nobody_ran_is_told(leg, told):
    base = observation([0.0], [0.0])
    legs = {**base.legs, **({"vgf": leg} if leg else {})}
    seen = replace(base, case=msgspec.structs.replace(base.case, target="vgf"), legs=legs)
    found = [item.what for item in of_streams(seen)]
    assert found == (["no leg ran the VGF payload"] if told else [])
