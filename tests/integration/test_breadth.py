"""The pass-level mode makes the very flatbuffers of whole lowerings, and sees what they would show."""

import pytest

from generators.variants import draw_variants
from harness.campaign.breadth import sweeping
from harness.campaign.breadth.partitioned_graph import PartitionedGraph
from harness.case.case import encode_case
from harness.pipeline.lowering import StageClock
from harness.workers.observing import compile_case
from harness.workers.protocol import SweepTask
from tests.faults.plant import FAULTS
from tests.integration.conftest import linear_case, relu_join_case

TARGET = "TOSA-1.0+INT"
VARIANTS = 4
FAULT = {fault.name: fault for fault in FAULTS}


def task(cases, folder):
    """The cases on disk, as one question."""
    files = [folder / f"{place}.json" for place in range(len(cases))]
    for file, case in zip(files, cases, strict=True):
        file.write_bytes(encode_case(case))
    return SweepTask(cases=tuple(map(str, files)))


@pytest.fixture
def flatbuffers(monkeypatch):
    """The flatbuffers of every variant that partitioned graphs lower, in order."""
    kept, lowered = [], PartitionedGraph.lowered

    def keeping(graph, converted):
        made = [*lowered(graph, converted)]
        kept.append([item.tosa for item in made])
        return made

    monkeypatch.setattr(PartitionedGraph, "lowered", keeping)
    return kept


@pytest.mark.parametrize("case", [relu_join_case(TARGET), linear_case(TARGET)])
def test_flatbuffers_are_those_of_whole_lowerings(case, tmp_path, flatbuffers):
    variants = draw_variants(case, 1, VARIANTS)
    swept = sweeping.sweep(task(variants, tmp_path), lambda _: None)
    whole = [[item.tosa for item in compile_case(each, StageClock()).record.delegates] for each in variants]
    assert swept.edge_programs >= 1
    assert sorted(flatbuffers) == sorted(whole)


@pytest.mark.parametrize(
    ("name", "kind"), [("conv-without-qparams", "no output qparams"), ("cat-fold-used", "folded constant differs")]
)
def test_the_faults_of_seeds_001_and_002_are_found(name, kind, tmp_path):
    """Planted, they show on every variant whose recipe leads there; without them, on none."""
    variants = draw_variants(FAULT[name].case, 1, VARIANTS)
    with FAULT[name].planted():
        found = sweeping.sweep(task(variants, tmp_path), lambda _: None)
    clean = sweeping.sweep(task(variants, tmp_path), lambda _: None)
    assert kind in {item.kind for row in found.cases for item in row.findings}
    assert kind not in {item.kind for row in clean.cases for item in row.findings}


def test_an_exception_of_a_pass_is_a_finding_of_each_variant(tmp_path):
    fault = FAULT["pass-raises"]
    variants = draw_variants(fault.case, 1, 2)
    with fault.planted():
        found = sweeping.sweep(task(variants, tmp_path), lambda _: None)
    assert [[(item.oracle, item.pass_name) for item in row.findings] for row in found.cases] == [
        [("crash", "InsertTableOpsPass")]
    ] * 2
