"""The interpreter of pass states against the TOSA reference model, and brackets of real bugs."""

import numpy as np
import pytest

from harness.blame.bracket import bracket_values
from harness.blame.interpreter import run_graph
from harness.compat.releases import release_line
from harness.edge import run_edge_program
from harness.judging import TOSA
from harness.legs import arrays_of
from harness.lowering import StageClock
from harness.running import examine, observe
from tests.faults.cases import add_case, clamps_case, mul_case
from tests.faults.plant import FAULTS
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
}


def kept(case):
    live = []
    return observe(case, StageClock(), keep=live), live[0]


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


@pytest.mark.parametrize("name", ["sigmoid", "linear", "add", "mul", "clamps"])
def test_every_graph_of_a_clean_lowering_can_be_evaluated_and_is_right(name):
    seen, lowered = kept(CLEAN[name])
    calls = []

    def right(outputs):
        wanted = seen.legs["quantized-eager"].outputs[0]
        domain = seen.lowering.outputs[0].domain
        calls.append(float(np.max(np.abs(outputs[0] - wanted[0]))) / domain.scale)
        return calls[-1] <= 1.01

    bracket = bracket_values(lowered, seen.inputs[0].arrays, right)
    [delegate] = lowered.record.delegates
    assert len(calls) == len(lowered.graphs[delegate.name])  # none was beyond the interpreter
    assert bracket.first_wrong == "serializer"  # right after every pass: only what follows could be at fault
    assert max(calls) <= 1.01


@pytest.mark.parametrize("fault", [item for item in FAULTS if item.oracle == "numeric"], ids=lambda item: item.name)
def test_planted_value_faults_are_bracketed(fault):
    with fault.planted():
        _, found = examine(fault.case, StageClock())
    [numeric] = [item for item in found if item.oracle == "numeric"]
    assert numeric.pass_name == fault.blame
    in_vela = numeric.kind == "differs from the TOSA reference"  # named by operation: no pass is at fault
    assert ("; first wrong: step" if in_vela else "first wrong after") in numeric.message


@pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
def test_without_blame_no_graph_is_copied_and_no_pass_named():
    _, found = examine(relu_join_case(), StageClock(), blame=False)
    [numeric] = [item for item in found if item.oracle == "numeric"]
    assert numeric.pass_name is None
