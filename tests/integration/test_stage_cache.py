"""A graph's targets in sequence, sharing what they may: byte for byte what each gets by itself."""

import msgspec
import pytest
import torch
from executorch.exir.program import _program

from harness.campaign.campaign import write_case
from harness.case.target import DEFAULT_TARGETS
from harness.compat.warm import stage_cache
from harness.compat.warm.stage_cache import NO_CACHE, WorkerCache
from harness.ethosu.equivalence import payload_difference
from harness.pipeline.lowering import StageClock
from harness.pipeline.probes.graphs import differences
from harness.triage.corpus import bugs_of, default_corpus, entries
from harness.triage.known import KnownBug, kind_of_proof
from harness.workers.case_run import run_task
from harness.workers.observing import Options, compile_case
from harness.workers.protocol import Task
from tests.integration.conftest import linear_case, relu_join_case, sigmoid_case


@pytest.fixture(autouse=True)
def tricks(monkeypatch):
    """All stages are cached inside a test."""
    monkeypatch.setattr(stage_cache, "_on", {stage_cache.QUANTIZED, stage_cache.EDGE})


@pytest.fixture
def calls(monkeypatch):
    """How often upstream exported, and made an edge program."""
    counts = {"export": 0, "edge": 0}
    export, generate = torch.export.export, _program._gen_edge_manager_for_partitioners

    def counted_export(*args, **words):
        counts["export"] += 1
        return export(*args, **words)

    def counted_generate(*args, **words):
        counts["edge"] += 1
        return generate(*args, **words)

    monkeypatch.setattr(torch.export, "export", counted_export)
    monkeypatch.setattr(_program, "_gen_edge_manager_for_partitioners", counted_generate)
    return counts


def compiled(case, stages=NO_CACHE):
    torch.compiler.reset()
    return compile_case(case, StageClock(), Options(stages=stages))


def assert_same(case, kept, anew):
    assert kept.failure is None
    assert anew.failure is None
    one, other = kept.record, anew.record
    assert differences(one.reference, other.reference) == []
    for name in ("outputs", "domains", "mutated", "fallback"):
        assert getattr(one, name) == getattr(other, name), (case.target, name)
    assert [item.tosa for item in one.delegates] == [item.tosa for item in other.delegates]
    if "u85" in case.target:
        for first, second in zip(one.delegates, other.delegates, strict=True):
            assert payload_difference(first.payload, second.payload) == ""
    else:
        assert one.program == other.program


@pytest.mark.parametrize(
    "make",
    [
        relu_join_case,
        lambda target: sigmoid_case(target, "a16w8"),
        lambda target: linear_case(target, "a8w8,per-tensor,qmin=-127,act=fixed,io=fixed"),
        lambda target: msgspec.structs.replace(relu_join_case(target), recipe="a8w8,edited=cat"),
        lambda target: msgspec.structs.replace(relu_join_case(target), recipe="a8w8,float=n0"),
    ],
    ids=["a8w8", "a16w8", "fixed", "edited", "float-node"],
)
def test_three_targets_share_what_is_quantized_and_get_the_same(calls, make):
    cases = [make(target) for target in DEFAULT_TARGETS]
    cache = WorkerCache()
    kept = [compiled(case, cache.stages(case, takes=True)) for case in cases]
    assert calls == {"export": 4, "edge": 1}
    for case, found in zip(cases, kept, strict=True):
        assert_same(case, found, compiled(case))


def test_a_target_that_keeps_other_nodes_whole_makes_its_own_edge_program(calls):
    cases = [linear_case(target, "a8w8,float=n0") for target in ("TOSA-1.0+INT+FP", "TOSA-1.0+INT")]
    cache = WorkerCache()
    kept = [compiled(case, cache.stages(case, takes=True)) for case in cases]
    assert calls["edge"] == 2
    for case, found in zip(cases, kept, strict=True):
        assert_same(case, found, compiled(case))


def _other_scale(taken):
    """Damage the edge program that is handed out: it has other scales than the graph that it is compared with."""
    if hasattr(taken, "exported_program"):
        for node in taken.exported_program().graph_module.graph.nodes:
            if "quantize_per_tensor" in str(node.target):
                node.update_arg(1, node.args[1] * 2)
    return taken


def _raises(taken):
    raise ZeroDivisionError("what was kept is broken")


@pytest.mark.parametrize("damage", [_other_scale, _raises])
def test_what_shows_only_with_something_kept_is_no_finding_and_is_told(tmp_path, monkeypatch, damage):
    tied_to = stage_cache._Copy.tied_to
    monkeypatch.setattr(stage_cache._Copy, "tied_to", lambda copy, model: damage(tied_to(copy, model)))
    cache = WorkerCache()
    first, second = [
        run_task(Task(case=str(write_case(sigmoid_case(target), tmp_path)), probes="none"), lambda _: None, cache)
        for target in DEFAULT_TARGETS[:2]
    ]
    assert (first.findings, first.unrepeated) == ((), ())
    assert second.findings == ()
    assert second.unrepeated


def test_a_case_whose_branches_are_measured_takes_nothing(tmp_path, monkeypatch, calls):
    monkeypatch.setattr("harness.workers.case_run.is_measured", lambda case, corrections: True)
    cache = WorkerCache()
    for target in DEFAULT_TARGETS[:2]:
        task = Task(case=str(write_case(sigmoid_case(target), tmp_path)))
        monkeypatch.setattr("harness.workers.observing.scheduled", lambda case, mode: ())
        assert run_task(task, lambda _: None, cache).branches is not None
    assert calls == {"export": 4, "edge": 2}


def test_a_proof_takes_the_stages_that_were_made_before_its_correction_applies(calls):
    [folder] = default_corpus().rglob("neg-ignores-scale")
    task = Task(case=str(folder / "case.json"), probes="none", known=tuple(bugs_of(entries([default_corpus()]))))
    shared = run_task(task, lambda _: None, WorkerCache())
    assert calls == {"export": 3, "edge": 1}  # the float graph twice, for its quantizer runs anew
    anew = run_task(task, lambda _: None)
    assert calls == {"export": 7, "edge": 3}
    assert [(item.bucket, item.proof) for item in shared.findings] == [
        (item.bucket, item.proof) for item in anew.findings
    ]
    assert "correction" in map(kind_of_proof, shared.findings)


def test_a_correction_that_the_case_never_comes_to_is_not_run(calls):
    bug = KnownBug(entry="mine", bucket="", corrections=("ceil-pool-crops-input",))
    [folder] = default_corpus().rglob("neg-ignores-scale")
    task = Task(case=str(folder / "case.json"), probes="none", known=(bug,))
    runs = []
    found = run_task(task, lambda _: None, WorkerCache(), begins=runs.append)
    assert runs == ["again"]
    assert {item.state for item in found.findings} == {"new"}
