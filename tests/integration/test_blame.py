"""The interpreter of pass states against the TOSA reference model, and brackets of real bugs."""

import pytest

from harness.case import memory
from harness.compat.releases import release_line
from harness.evidence.references import RUNTIMES, TOSA
from harness.locate.blame.bracket import AFTER, Bracket, bracket_values, stages
from harness.locate.blame.interpreter import run_graph
from harness.locate.blame.values import judge_of
from harness.pipeline.edge_program import run_edge_program
from harness.pipeline.legs import arrays_of
from harness.pipeline.lowering import StageClock
from harness.workers.observing import Options, examine, observe
from tests.faults.blame_survey import CASES, survey_row
from tests.faults.cases import add_case, clamps_case, mul_case
from tests.faults.plant import FAULTS
from tests.faults.value_plants import PLANTS
from tests.integration.conftest import (
    constant_join_case,
    linear_case,
    relu_join_case,
    sigmoid_case,
    two_outputs_case,
)

CLEAN = {
    "sigmoid": sigmoid_case(),
    "sigmoid-a16w8": sigmoid_case(recipe="a16w8"),
    "linear": linear_case(),
    "linear-a16w8": linear_case(recipe="a16w8"),
    "two-outputs": two_outputs_case(),
    "constant-join": constant_join_case(),
    "add": add_case(),
    "mul": mul_case(),
    "clamps": clamps_case(),
    "conv-join": relu_join_case(),
    "softmax": CASES["softmax"],
    "softmax-a16w8": CASES["wide-softmax"],
    "mean": CASES["mean"],
    "mean-a16w8": CASES["wide-mean"],
}


def kept(case):
    live = []
    return observe(case, StageClock(), keep=live), live[0]


def test_graphs_share_the_constants_that_no_pass_changed():
    """Else a model's weights are kept once a pass."""
    _, lowered = kept(CLEAN["linear"])
    [graphs] = lowered.graphs.values()
    shared = {}
    for graph in graphs:
        for name, tensor in graph.constants.items():
            shared.setdefault((name, tensor.dtype, tensor.numpy().tobytes()), set()).add(tensor.data_ptr())
    assert max(sum(name in graph.constants for graph in graphs) for name, *_ in shared) > 2
    assert all(len(places) == 1 for places in shared.values())


@pytest.mark.parametrize("name", CLEAN)
def test_the_last_graph_gives_the_very_codes_of_the_reference_model(name):
    seen, lowered = kept(CLEAN[name])
    [delegate] = lowered.record.delegates
    last = lowered.graphs[delegate.name][-1]

    def interpreted(_, module, tensors):
        return run_graph(last, dict(zip(delegate.inputs, tensors, strict=True)), delegate.trace.passes)

    for item, wanted in zip(seen.inputs, seen.legs[TOSA].outputs, strict=True):
        got = arrays_of(run_edge_program(lowered.edge_program, item.arrays, interpreted))
        assert [array.tobytes() for array in got] == [array.tobytes() for array in wanted]


@pytest.mark.parametrize("name", ["add", "clamps", "softmax", "softmax-a16w8", "mean"])
def test_every_graph_of_a_clean_lowering_can_be_evaluated_and_is_right(name):
    seen, lowered = kept(CLEAN[name])
    [delegate] = lowered.record.delegates
    for run, item in enumerate(seen.inputs):
        judge = judge_of(seen, run, 0)
        final = seen.legs[TOSA].outputs[run]
        found = stages(lowered, delegate.name, item.arrays, judge, {}, final)
        assert [stage.name for stage in found] == [graph.name for graph in lowered.graphs[delegate.name]] + [AFTER]
        assert {stage.name for stage in found if not (stage.right and stage.alike)} == set()
        assert bracket_values(lowered, item.arrays, judge) == Bracket()


@pytest.mark.parametrize(
    "fault",
    [item for item in FAULTS if item.oracle == "numeric" and item.blame not in RUNTIMES.values()],
    ids=lambda item: item.name,
)
def test_planted_value_faults_are_bracketed(fault):
    with fault.planted():
        _, found = examine(fault.case, StageClock())
    [numeric] = [item for item in found if item.oracle == "numeric"]
    assert numeric.pass_name == fault.blame
    in_vela = numeric.kind == "differs from the TOSA reference"  # named by operation: no pass is at fault
    assert ("; first wrong: step" if in_vela else "first wrong after") in numeric.message


def test_a_large_case_is_lowered_again_for_its_blame(monkeypatch):
    """It keeps no graphs: those of a network are hundreds of megabytes."""
    fault = next(item for item in FAULTS if item.oracle == "numeric" and item.blame not in RUNTIMES.values())
    monkeypatch.setattr(memory, "LARGE", 0)
    _, lowered = kept(fault.case)
    assert not any(lowered.graphs.values())
    with fault.planted():
        _, found = examine(fault.case, StageClock())
    [numeric] = [item for item in found if item.oracle == "numeric"]
    assert numeric.pass_name == fault.blame


@pytest.mark.parametrize(
    ("plant", "case"),
    [("rescale32-scale", "softmax"), ("clamp-codes", "mean"), ("table-rolled", "mean"), ("multiplier", "softmax")],
)
def test_faults_behind_softmax_and_mean_name_their_pass(plant, case):
    [planted] = [item for item in PLANTS if item.name == plant]
    row = survey_row(planted, case)
    assert (row.verdict, row.named) == ("exact", planted.culprit)


@pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
def test_without_blame_no_graph_is_copied_and_no_pass_named():
    _, found = examine(relu_join_case(), StageClock(), Options(blame=False))
    [numeric] = [item for item in found if item.oracle == "numeric"]
    assert numeric.pass_name is None
