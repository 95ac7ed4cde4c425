"""The ``stream`` oracle, and delegates in ``numeric``, on hand-made comparisons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generators.tosa_graph import TosaGraph
from harness.ethosu.records import StreamIssue
from harness.evidence.observation import DelegateRecord, Observation
from harness.locate.delegate_mismatches import wrong_stream
from harness.locate.divergence import DelegateComparison, Difference, Origin, WrongOutput
from harness.tosa.translating import to_flatbuffer
from harness.triage.buckets import bucket_of
from oracles import stream
from oracles.numeric import ORACLE as NUMERIC
from oracles.stream import ORACLE as STREAM
from tests.unit.observations import observation

CLEAN = DelegateComparison(compared=4)
HAZARD = StreamIssue("hazard", "a KERNEL_WAIT is missing", "DMA_START", 3, 0x1A4)
DIFFERENCE = Difference(
    0, 3, 16, (0, 1), -35, 127, 162, (((0, 1), -35, 127),), "3 of the 4 in [0, 0..3]", "random integers 0"
)
ORIGIN = Origin(
    step=2,
    operation="CONV",
    offset=0x168,
    tensor="t7",
    tosa_operator="TABLE",
    elements=3,
    of=16,
    repair="",
    earliest=2,
    doubt="",
    draw="random integers 0",
    listing=("000168  OP_CONV",),
)


def _observed(comparison: DelegateComparison) -> Observation:
    made = observation([1.0, 2.0], [1.0, 2.0])
    legs = {**made.legs, "ethos-u-model": made.legs["tosa-reference"]}
    return replace(made, legs=legs, probes={"streams": {"lowered_module_0": comparison}})


def test_a_clean_stream_is_no_finding() -> None:
    assert STREAM.judge(_observed(CLEAN)) == []
    assert NUMERIC.judge(_observed(CLEAN)) == []
    assert STREAM.judge(observation([1.0], [1.0])) == []


def test_an_issue_names_delegate_operation_and_place() -> None:
    [found] = STREAM.judge(_observed(replace(CLEAN, issues=(HAZARD,))))
    assert found.message == "lowered_module_0: operation 3 DMA_START at 0x01a4: a KERNEL_WAIT is missing"
    assert (found.kind, found.pass_name, found.information) == ("hazard", "Vela", False)
    assert bucket_of(found, "ethos-u85-256") == "v1/stream/hazard/run/Vela/ethos-u85/DMA_START"


def test_behind_the_last_step_that_is_told_the_place_is_what_is_computed_next() -> None:
    """x -> ABS -> SLICE -> MATMUL: the stream stops at a step of the product."""
    graph = TosaGraph("u55")
    made = graph.add("ABS", [graph.input((1, 1, 4), "INT8")], (1, 1, 4), "INT8")
    part = graph.add("SLICE", [made, graph.dims((0, 0, 0)), graph.dims((1, 1, 2))], (1, 1, 2), "INT8")
    graph.add("MATMUL", [part, graph.input((1, 2, 1), "INT8"), *[graph.scalar(0, "INT8")] * 2], (1, 1, 1), "INT32")
    record = DelegateRecord("d", "vela", to_flatbuffer(graph.program()), b"", (), (), ())
    comparison = replace(CLEAN, issues=(HAZARD,), tensors={2: made.name})
    [found] = wrong_stream("d", comparison, record)
    assert found.place is not None
    assert [found.place.operators[index].op for index in found.place.here] == ["MATMUL"]


def test_uncertain_issues_are_information_and_apart_from_certain_ones() -> None:
    doubtful = replace(HAZARD, certain=False)
    found = STREAM.judge(_observed(replace(CLEAN, issues=(doubtful, HAZARD, HAZARD))))
    assert [(item.information, "1 more like it" in item.message) for item in found] == [(True, False), (False, True)]


def test_a_stream_that_ends_early_is_told_once() -> None:
    stopped = replace(CLEAN, compared=0, stopped="command at 0x0040: no such opcode")
    assert [item.kind for item in STREAM.judge(_observed(stopped))] == ["cannot be executed"]
    assert [item.kind for item in STREAM.judge(_observed(replace(stopped, issues=(HAZARD,))))] == ["hazard"]


def test_a_payload_that_buffers_condemns_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = _observed(replace(CLEAN, compared=0, stopped="has 1 outputs, the TOSA graph 2", damaged=True))
    assert [item.kind for item in STREAM.judge(damaged)] == ["cannot be executed"]
    told = {"lowered_module_0"}
    monkeypatch.setattr(stream, "delegates_at_fault", lambda seen: told if seen is damaged else set())
    assert STREAM.judge(damaged) == []
    told = {"lowered_module_1"}
    assert [item.kind for item in STREAM.judge(damaged)] == ["cannot be executed"]
    ended = _observed(replace(CLEAN, compared=0, stopped="command at 0x0040: no such opcode"))
    assert [item.kind for item in STREAM.judge(ended)] == ["cannot be executed"]


def test_what_only_the_model_lacks_is_no_finding() -> None:
    assert STREAM.judge(_observed(replace(CLEAN, stopped="RESIZE mode 1", unimplemented=True))) == []


def test_a_delegate_that_differs_is_told_with_its_first_wrong_operation() -> None:
    [found] = NUMERIC.judge(_observed(replace(CLEAN, wrong=(WrongOutput(DIFFERENCE, ORIGIN),))))
    assert found.message.endswith("; first wrong: step 2 CONV at 0x0168, which makes t7 (TABLE)")
    assert "3 of 16 elements differ on random integers 0" in found.message
    assert found.detail == "000168  OP_CONV"
    assert found.measured["distance"] == 162
    assert bucket_of(found, "ethos-u55-128").endswith("/differs-from-the-TOSA-reference/run/Vela/ethos-u55/TABLE")


def test_the_program_is_not_told_beside_its_delegate() -> None:
    made = _observed(replace(CLEAN, wrong=(WrongOutput(DIFFERENCE),)))
    wrong = observation([1.0, 2.0], [1.5, 2.0]).legs["tosa-reference"]
    made = replace(made, legs={**made.legs, "ethos-u-model": wrong})
    assert len(NUMERIC.judge(made)) == 1
    alone = NUMERIC.judge(replace(made, probes={}))
    assert [(item.legs, item.kind) for item in alone] == [
        (("tosa-reference", "ethos-u-model"), "differs from the TOSA reference")
    ]
