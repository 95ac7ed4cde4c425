"""Real lowerings, step by step: what a step leaves, and variants that are tried on steps instead of compiled."""

import msgspec
import pytest
import torch

from harness.campaign.campaign import write_case
from harness.campaign.certify import single_steps
from harness.case.reading import read_case
from harness.compat.releases import installed
from harness.pipeline.lowering import StageClock
from harness.triage.corpus import default_corpus
from harness.workers.observing import compile_case
from harness.workers.protocol import CompareTask
from tests.integration.conftest import linear_case, uniform

pytestmark = pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="uses corrections for 1.5.1")


@pytest.fixture(autouse=True)
def one_thread():
    """Children are forked from this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def steps_of(case):
    """What every step of a compile leaves, in order."""
    from harness.compat.steps import steps_run_by

    found = []

    def run_step(name, subject, run, remains, *, first):
        result = run(subject)
        found.append((name, remains(result), first))
        return result

    with steps_run_by(run_step):
        assert compile_case(case, StageClock()).failure is None
    return found


def test_steps_are_partitioning_and_every_pass_and_leave_the_same_every_time():
    found = steps_of(linear_case())
    names = [name for name, _, _ in found]
    assert names[0] == "partition"
    assert {"FoldAndAnnotateQParamsPass", "RewriteConvPass"} <= {*names[1:]}
    assert [name for name, _, first in found if first] == ["partition"]
    assert found == steps_of(linear_case())


def test_what_a_step_leaves_tells_weights_and_qparams_apart():
    case = linear_case()
    plain = {name: remains for name, remains, _ in steps_of(case)}
    weights = msgspec.structs.replace(case, seeds=msgspec.structs.replace(case.seeds, weights=9))
    calibration = msgspec.structs.replace(case, calibration={"x": uniform(-2.0, 2.0)})
    for other in (weights, calibration):
        changed = {name: remains for name, remains, _ in steps_of(other)}
        assert changed["FoldAndAnnotateQParamsPass"] != plain["FoldAndAnnotateQParamsPass"]


def compared(case, folder, *names):
    """Rows by correction, and how often the case was lowered."""
    from harness.campaign.certify.comparing import compare

    stages = []
    task = CompareTask(case=str(write_case(case, folder)), variants=tuple((name,) for name in names))
    rows = compare(task, stages.append).comparisons
    return {row.variant[0]: (row.same, row.what, row.reached) for row in rows}, stages.count("lower")


def test_variants_that_leave_every_step_alone_are_not_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(single_steps, "_reached", {})
    case = read_case(default_corpus() / "found" / "avg-pool-zero-point-quantized-twice")
    names = ("avg-pool-zero-point-literal", "constant-keeps-quantized-dtype", "negative-pad-sliced")
    first, lowerings = compared(case, tmp_path, *names)
    assert [first[name][0] for name in names] == [False, True, True]
    assert [first[name][2] for name in names] == [True, True, False], "which of them the stock compile came to"
    assert lowerings == 3  # stock, and two corrections whose places a step reached for the first time
    again, lowerings = compared(case, tmp_path, *names)
    assert again == first
    assert lowerings == 2  # the second one was tried on its step
