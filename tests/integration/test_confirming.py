"""When a case is run a second time: not for what is known, always for what is not."""

import pytest

from harness.campaign.campaign import write_case
from harness.compat.releases import release_line
from harness.triage.known import KnownBug
from harness.workers import running
from harness.workers.protocol import Task
from harness.workers.worker import run_task
from tests.integration.conftest import relu_join_case

pytestmark = pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
KNOWN = (
    KnownBug(bucket="v1/numeric/outside-rounding/run/RewriteConvPass/*/", operators=("relu", "cat")),
    KnownBug(bucket="v1/qparams/clamp-lost/lower/RewriteConvPass/*/aten.convolution.default"),
)


@pytest.fixture
def examined(tmp_path, monkeypatch):
    """``examined(**words)``: the result of the case's task, and how often the case was examined."""
    runs = []
    examine = running.examine

    def counted(*args, **words):
        runs.append(args)
        return examine(*args, **words)

    def run(**words):
        runs.clear()
        task = Task(case=str(write_case(relu_join_case(), tmp_path)), probes="none", **words)
        return run_task(task, lambda _: None), len(runs)

    monkeypatch.setattr(running, "examine", counted)
    return run


def oracles(result):
    assert result.unrepeated == ()
    return sorted((finding.oracle, finding.pass_name) for finding in result.findings if not finding.information)


def test_known_bugs_are_told_after_one_run_with_the_pass_to_blame(examined):
    result, runs = examined(known=KNOWN)
    assert runs == 1
    assert oracles(result) == [("numeric", "RewriteConvPass"), ("qparams", "RewriteConvPass")]


def test_wrong_values_of_other_operators_than_the_known_ones_are_run_again(examined):
    other = KnownBug(bucket=KNOWN[0].bucket, operators=("softmax",))
    result, runs = examined(known=(other, KNOWN[1]))
    assert runs == 2
    assert oracles(result) == [("numeric", "RewriteConvPass"), ("qparams", "RewriteConvPass")]


def test_a_bucket_that_showed_twice_settles_what_is_no_value(examined):
    result, _ = examined()
    values, structure = (
        [item.bucket for item in result.findings if item.oracle == name] for name in ("numeric", "qparams")
    )
    assert examined(known=KNOWN[:1], confirmed=tuple(structure))[1] == 1
    assert examined(known=KNOWN[1:], confirmed=tuple(values))[1] == 2
