"""Oracles that read probes, on hand-made observations; the schedule; information in listings and commands."""

import struct
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from harness.campaign.summary import Tally, as_json, counted
from harness.cli.command import main
from harness.compat.snapshots import NodeState, PassTrace, Ref, Snapshot
from harness.ethosu.accelerator import accelerator_named
from harness.evidence.observation import (
    DelegateRecord,
    Domain,
    Envelope,
    Failure,
    LoweringRecord,
    Mismatch,
    OutputType,
    oracles,
)
from harness.pipeline.probes import probes, scheduled
from harness.pipeline.probes.graphs import differences
from harness.pipeline.probes.results import FallenBack, Pieces, Repeated, Skipped, TwinRun
from harness.reports.listing import listing
from harness.triage.findings import finding_of
from harness.triage.unjudged import unjudged
from harness.workers.protocol import CaseResult, Task
from tests.unit.ethosu.assembling import STOP, U55
from tests.unit.ethosu.assembling import payload as assembled
from tests.unit.observations import CASE, STEP, observation

CLEAN = observation([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0])
FAILURE = Failure("prepare", "ValueError", "no qparams\nmore", None, "torchao.prepare:f")


def judge(name, seen):
    return oracles()[name].judge(seen)


def graph(*, scale=0.5, weight=1.0, operator="aten.relu.default", prefix=""):
    """w (constant), x -> operator -> quantize."""
    nodes = (
        NodeState(f"{prefix}w", "placeholder", "w", kind="parameter", value=np.array([weight], np.float32)),
        NodeState(f"{prefix}x", "placeholder", "x"),
        NodeState(f"{prefix}n", "call_function", operator, (Ref(f"{prefix}x"), Ref(f"{prefix}w"))),
        NodeState(f"{prefix}q", "call_function", "quantize", (Ref(f"{prefix}n"), scale, 0)),
    )
    return {node.name: node for node in nodes}


def with_graph(probe, second, *, first=None, mutated=()):
    record = LoweringRecord(reference=graph() if first is None else first, mutated=mutated)
    return replace(CLEAN, lowering=record, probes={probe: Repeated(second)})


def test_graphs_are_compared_by_everything_but_names():
    assert differences(graph(), graph(prefix="other_")) == []
    assert [item.what for item in differences(graph(), graph(operator="aten.tanh.default"))] == ["nodes"]
    [scale] = differences(graph(), graph(scale=0.25))
    assert (scale.what, scale.node) == ("arguments", "q")
    assert "0.5" in scale.first
    assert "0.25" in scale.second
    [constant] = differences(graph(), graph(weight=np.nextafter(np.float32(1), np.float32(2))))
    assert (constant.what, constant.node) == ("constant", "w")
    assert [item.what for item in differences(graph(), dict(list(graph().items())[:3]))] == ["nodes"]
    assert differences(graph(weight=np.nan), graph(weight=np.nan)) == []
    assert differences(graph(weight=0.0), graph(weight=-0.0)) != []


def test_model_unchanged_tells_tensors_from_training_flags():
    seen = replace(CLEAN, lowering=replace(CLEAN.lowering, mutated=("conv.weight", "conv.training", "training")))
    tensors, flags = judge("model-unchanged", seen)
    assert (tensors.kind, flags.kind) == ("parameters changed in place", "training flags changed")
    assert "conv.weight" in tensors.message
    assert "conv.training, training" in flags.message


def test_model_unchanged_sees_a_module_that_quantizes_differently_a_second_time():
    assert judge("model-unchanged", with_graph("requantize", graph())) == []
    [found] = judge("model-unchanged", with_graph("requantize", graph(scale=0.25)))
    assert found.kind == "quantizing twice differs"
    failed = replace(CLEAN, probes={"requantize": Repeated(failure=FAILURE)})
    [found] = judge("model-unchanged", failed)
    assert "cannot be quantized a second time: ValueError in prepare: no qparams" in found.message


def test_changed_parameters_explain_other_constants_but_no_other_operators():
    [found] = judge("model-unchanged", with_graph("requantize", graph(weight=2.0, scale=0.1), mutated=("w",)))
    assert found.kind == "parameters changed in place"
    both = judge("model-unchanged", with_graph("requantize", graph(operator="aten.tanh.default"), mutated=("w",)))
    assert [item.kind for item in both] == ["parameters changed in place", "quantizing twice differs"]


STREAM = assembled(U55, [STOP]).commands
STREAM_OF_U65 = assembled(accelerator_named("ethos-u65-256"), [STOP]).commands


def payload(*, commands=STREAM, weights=b"w" * 16, size=1, offset=0, scratch=64, reserved=b""):
    table = struct.pack("<i9i", 1, 1, 1, 1, 1, 1, 4, size, offset, 1)
    blocks = [("vela_bin_stream", b""), ("cmd_data", commands), ("weight_data", weights)]
    blocks += [
        ("scratch_size", struct.pack("<I", scratch)),
        ("inputs", table),
        ("outputs", table),
        ("vela_end_stream", b""),
    ]
    return b"".join(
        struct.pack("<16sIB11s", name.encode(), len(data), 0, reserved) + data + bytes(-len(data) % 16)
        for name, data in blocks
    )


def delegate(tosa=b"tosa", trace=None, **words):
    return DelegateRecord("lowered_module_0", "EthosUBackend", tosa, payload(**words), (), (), (), trace=trace)


def repeated(first, *second, target="ethos-u55-128"):
    lowering = replace(CLEAN.lowering, delegates=(first,), reference=graph())
    case = msgspec.structs.replace(CASE, target=target)
    return replace(CLEAN, case=case, lowering=lowering, probes={"deterministic": Repeated(graph(), second)})


def test_deterministic_passes_equal_runs_and_says_nothing_where_it_did_not_run():
    assert judge("deterministic", CLEAN) == []
    assert judge("deterministic", replace(CLEAN, probes={"deterministic": Skipped("why")})) == []
    assert judge("deterministic", repeated(delegate(), delegate())) == []


def test_deterministic_reports_the_first_level_that_differs():
    [found] = judge("deterministic", with_graph("deterministic", graph(scale=0.25)))
    assert (found.kind, found.stage) == ("quantized graph differs", "convert")
    [found] = judge("deterministic", repeated(delegate(), delegate(), delegate()))
    assert found.kind == "delegates differ"
    [found] = judge("deterministic", repeated(delegate(), delegate(tosa=b"other", weights=b"v" * 16)))
    assert (found.kind, found.stage) == ("TOSA differs", "lower")
    [found] = judge("deterministic", replace(CLEAN, probes={"deterministic": Repeated(failure=FAILURE)}))
    assert (found.kind, found.stage) == ("second run fails", "prepare")
    assert found.signature.startswith("ValueError|no qparams|")


def test_deterministic_names_the_first_pass_after_which_two_lowerings_differ():
    def trace(*graphs):
        start, *rest = (Snapshot(index - 1, f"Pass{index}", nodes) for index, nodes in enumerate(graphs))
        return PassTrace(("Pass1", "Pass2"), start, tuple(rest), True)

    first = delegate(trace=trace(graph(), graph(), graph()))
    late = delegate(b"other", trace(graph(), graph(), graph(scale=0.1)))
    [found] = judge("deterministic", repeated(first, late))
    assert found.pass_name == "Pass2"
    [found] = judge("deterministic", repeated(first, delegate(b"other", trace(graph(), graph(), graph()))))
    assert found.pass_name == "serializer"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({"commands": STREAM_OF_U65}, "a stream for ethos-u55-128 and then one for ethos-u65-256"),
        ({"commands": b"COP1" + bytes(16)}, "and the bytes are not the same"),
        ({"weights": b"w" * 15 + b"v"}, "1 bytes of constants differ, first at 0xf"),
        ({"weights": b"w" * 17}, "16 and then 17 bytes of constants"),
        ({"offset": 16}, "inputs ("),
        ({"size": 2}, "inputs ("),
        ({"scratch": 128}, "scratch_size 64 and then 128"),
    ],
)
def test_payloads_that_differ_in_what_the_npu_takes_are_different_programs(words, part):
    [found] = judge("deterministic", repeated(delegate(), delegate(**words)))
    assert (found.kind, found.pass_name) == ("payload differs", "Vela")
    assert part in found.message


def test_a_payload_cut_short_is_told():
    short = replace(delegate(), payload=delegate().payload[:-16])
    [found] = judge("deterministic", repeated(delegate(), short))
    assert found.kind == "payload differs"
    assert f"{len(delegate().payload)} and then {len(short.payload)} bytes" in found.message


def test_bytes_that_the_npu_never_takes_are_no_difference():
    assert judge("deterministic", repeated(delegate(), delegate(reserved=b"noise"))) == []


def twin(*values, inputs=(0,)):
    run = TwinRun("order of cat", "aten.cat", "cat", inputs, ((np.asarray(values, np.float32),),))
    return replace(CLEAN, probes={"metamorphic": run})


def test_metamorphic_wants_equal_bits_and_measures_in_steps():
    assert judge("metamorphic", CLEAN) == []
    assert judge("metamorphic", replace(CLEAN, probes={"metamorphic": Skipped("no relation applies")})) == []
    assert judge("metamorphic", twin(0.0, 1.0, 2.0, 3.0)) == []
    [found] = judge("metamorphic", twin(0.0, 1.0, 2.0, 4.0))
    assert (found.kind, found.signature) == ("order of cat", "aten.cat")
    assert found.measured["distance"] == 1.0 / STEP
    assert "at [3]: original 3, twin 4, 2 steps apart" in found.message
    assert "made by hand" in found.message


def test_metamorphic_sees_another_shape_and_stays_quiet_where_the_original_is_wrong():
    [found] = judge("metamorphic", twin(0.0, 1.0, 2.0))
    assert "outputs are" in found.message
    wrong = observation([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 9.0])
    assert judge("metamorphic", replace(wrong, probes=twin(0.0, 1.0, 2.0, 3.0).probes)) == []


def pieces(*inside, out=(0.0, 1.0, 2.0, 3.0), low=0.0, high=1.0):
    """The output, and behind it one value inside, which may be from ``low`` to ``high``."""
    exact = np.array([0.0, 1.0, 2.0, 3.0])
    held = Envelope(np.full(2, low), np.full(2, high))
    return Pieces(
        cuts=(("conv2d_1", "aten.conv2d"),),
        inputs=(0,),
        types=(*CLEAN.lowering.outputs, OutputType((2,), "float32", Domain(STEP, 0, -128, 127))),
        reference=((exact.astype(np.float32), np.array([0.5, 0.5], np.float32)),),
        compiled=((np.array(out, np.float32), np.array(inside, np.float32)),),
        rounding=((Envelope(exact, exact), held),),
    )


def test_inside_names_the_node_whose_value_is_wrong():
    assert judge("inside", CLEAN) == []
    assert judge("inside", replace(CLEAN, probes={"inside": Skipped("no value inside can be seen")})) == []
    assert judge("inside", replace(CLEAN, probes={"inside": pieces(0.0, 1.0)})) == []
    [found] = judge("inside", replace(CLEAN, probes={"inside": pieces(0.0, 2.5)}))
    assert (found.oracle, found.kind, found.signature) == ("inside", "outside rounding", "aten.conv2d")
    assert "conv2d_1 (aten.conv2d) [2], calibration input 0: 1 of 2 elements outside" in found.message
    assert "made by hand" in found.message
    assert found.measured["value"] == "conv2d_1"
    [found] = judge("inside", replace(CLEAN, probes={"inside": pieces(0.0, 1.0, out=(0.0, 1.0, 2.0, 9.0))}))
    assert "): output 0 [4], calibration" in found.message
    assert "value" not in found.measured


def test_what_no_piece_judges_is_unjudged_and_the_outputs_own_envelopes_do_not_count():
    covering = Envelope(np.full(4, -64.0), np.full(4, 63.5))
    seen = replace(CLEAN, rounding=((covering,),), probes={"inside": pieces(0.0, 1.0)})
    assert [item.what for item in unjudged(replace(seen, probes={}), ())] == ["envelope covers all codes"]
    assert list(unjudged(seen, ())) == []
    [left] = unjudged(replace(seen, probes={"inside": pieces(0.0, 1.0, low=-64.0, high=63.5)}), ())
    assert (left.what, left.outputs, left.parts, left.of) == ("envelope covers all codes", (0,), 2, 2)


def test_delegation_tells_listed_operators_once_each_as_information():
    fallen = (
        FallenBack("aten.sigmoid.default", "s0", "yes", "rank 7"),
        FallenBack("aten.sigmoid.default", "s1", "yes"),
        FallenBack("aten.tanh.default", "t", "yes", "not quantized", float_by_recipe=True),
        FallenBack("aten.view_copy.default", "v", "yes", "… leading to an empty partition."),
        FallenBack("aten.sort.default", "o", "no", "not listed"),
        FallenBack("aten.foo.default", "f", "unknown"),
    )
    [found] = judge("delegation", replace(CLEAN, probes={"delegation": fallen}))
    assert (found.information, found.signature, found.measured["nodes"]) == (True, "aten.sigmoid.default", 2)
    assert "aten.sigmoid.default (s0, s1) runs on the CPU although upstream lists it for this target: rank 7" in (
        found.message
    )
    [silent] = judge("delegation", replace(CLEAN, probes={"delegation": fallen[1:2]}))
    assert "the partitioner reported no reason" in silent.message


def test_the_registry_finds_probes_and_the_schedule_depends_on_the_case_alone():
    assert set(probes()) == {"deterministic", "inside", "metamorphic", "requantize"}
    assert {probe.name for probe in scheduled(CASE, "all")} == set(probes())
    assert scheduled(CASE, "none") == ()
    cases = [msgspec.structs.replace(CASE, samples=count) for count in range(1, 400)]
    drawn = [scheduled(case, "default") for case in cases]
    assert drawn == [scheduled(case, "default") for case in cases]
    assert 5 <= sum(len(chosen) > 1 for chosen in drawn) <= 45  # 20 expected
    assert {chosen[0].name for chosen in map(scheduled, cases, ["judging"] * len(cases)) if len(chosen) == 1} == {
        "inside"
    }
    unquantized = msgspec.structs.replace(CASE, target="TOSA-1.0+FP", recipe="float")
    assert {probe.name for probe in scheduled(unquantized, "all")} == {"deterministic"}


INFORMATION = finding_of(
    Mismatch("delegation", "supported operator on the CPU", "sigmoid (s) runs", signature="s", information=True),
    CASE,
    "c.json",
)


def test_information_is_listed_apart_and_does_not_count_unless_strict():
    assert INFORMATION.information
    tally, strict = Tally(), Tally(strict=True)
    for each in (tally, strict):
        each.add(CaseResult(case="c.json", findings=(INFORMATION,)))
    text = "\n".join(listing(tally))
    assert tally.new == []
    assert "information, not counted (--strict counts it): 1, 1 kind" in text
    assert "sigmoid (s) runs" in text
    assert "new finding" not in text
    assert strict.new == [INFORMATION]
    assert "1 new finding, 1 kind" in "\n".join(listing(strict))
    assert as_json(tally)["findings"][0]["information"] is True
    assert counted([INFORMATION], strict=False) == []


@pytest.mark.parametrize("verb", ["fuzz", "check", "replay", "census"])
def test_commands_take_the_probes_option(verb):
    text = CliRunner().invoke(main, [verb, "--help"]).output
    assert "--probes [default|all|none]" in text
    assert ("--strict" in text) == (verb != "census")
    assert Task(case="c").probes == "default"
