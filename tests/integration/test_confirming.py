"""When a case is run a second time: not for what is known, always for what is not."""

import msgspec
import pytest

from harness.campaign.campaign import write_case
from harness.case.case import Case, Constant, Graph, Input
from harness.compat.releases import release_line
from harness.triage.conditions import Condition
from harness.triage.known import KnownBug
from harness.workers import case_run
from harness.workers.case_run import run_task
from harness.workers.protocol import Task
from tests.integration.conftest import node, relu_join_case, uniform

pytestmark = pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
VALUES = "v1/numeric/outside-rounding/run/RewriteConvPass/*/"
CLAMP = "v1/qparams/clamp-lost/lower/RewriteConvPass/*/aten.convolution.default"
FOLDED = "clamped-constant-keeps-codes"
FIX = ("fused-activation-keeps-clamp",)
KNOWN = (
    KnownBug(entry="values", bucket=VALUES, operators=("relu", "cat"), corrections=FIX),
    KnownBug(entry="clamp", bucket=CLAMP, corrections=FIX),
)


@pytest.fixture
def examined(tmp_path, monkeypatch):
    """``examined(**words)``: the result of a case's task, and how often the case was examined."""
    runs = []
    examine = case_run.examine

    def counted(*args, **words):
        runs.append(args)
        return examine(*args, **words)

    def run(case=None, **words):
        runs.clear()
        task = Task(case=str(write_case(case or relu_join_case(), tmp_path)), probes="none", **words)
        return run_task(task, lambda _: None), len(runs)

    monkeypatch.setattr(case_run, "examine", counted)
    return run


def oracles(result):
    assert result.unrepeated == ()
    return sorted((finding.oracle, finding.pass_name) for finding in result.findings if not finding.information)


def test_a_correction_proves_known_bugs_in_one_run_more_with_the_pass_to_blame(examined):
    result, runs = examined(known=KNOWN)
    assert runs == 2
    assert oracles(result) == [("numeric", "RewriteConvPass"), ("qparams", "RewriteConvPass")]
    found = {(item.entry, item.state, item.proof) for item in result.findings if not item.information}
    proof = "correction fused-activation-keeps-clamp alone takes it away"
    assert found == {("values", "known", proof), ("clamp", "known", proof)}


def test_a_condition_proves_a_known_bug_without_another_run(examined):
    condition = Condition(path=("CONV2D",), shows=("qparams/clamp-lost",))
    clamp = KnownBug(entry="clamp", bucket=CLAMP, conditions=(condition,))
    result, runs = examined(known=(clamp, KNOWN[0]))
    assert runs == 2  # the other one is proved by its correction
    assert {item.entry: item.proof.split(" ", 1)[0] for item in result.findings if not item.information} == {
        "clamp": "condition",
        "values": "correction",
    }


def test_what_only_resembles_a_known_bug_is_run_again(examined):
    unproved = tuple(msgspec.structs.replace(bug, corrections=()) for bug in KNOWN)
    result, runs = examined(known=unproved)
    assert runs == 2
    assert {(item.entry, item.state) for item in result.findings if not item.information} == {
        ("values", "resembling"),
        ("clamp", "resembling"),
    }


def test_wrong_values_of_other_operators_than_the_known_ones_are_run_again_and_still_proved(examined):
    """No entry looks like them; the correction whose code the case came to takes them away all the same."""
    other = msgspec.structs.replace(KNOWN[0], entry="conv-relu-clamp-dropped", operators=("softmax",))
    result, runs = examined(known=(other, KNOWN[1]))
    assert runs == 3
    assert [item.entry for item in result.findings if item.oracle == "numeric"] == ["conv-relu-clamp-dropped"]


def test_a_bucket_that_showed_twice_settles_what_is_no_value(examined):
    result, _ = examined()
    values, structure = (
        [item.bucket for item in result.findings if item.oracle == name] for name in ("numeric", "qparams")
    )
    unproved = tuple(msgspec.structs.replace(bug, corrections=()) for bug in KNOWN)
    assert examined(known=unproved, confirmed=(*structure, *values))[1] == 2
    assert examined(known=KNOWN[:1], confirmed=tuple(structure))[1] == 2


def test_a_bucket_that_showed_before_is_proved_by_a_correction_that_nobody_listed_for_it(examined):
    [structure] = [item.bucket for item in examined()[0].findings if item.oracle == "qparams"]
    other = msgspec.structs.replace(KNOWN[1], entry="conv-relu-clamp-dropped", bucket=VALUES, operators=("softmax",))
    result, _ = examined(known=(other,), confirmed=(structure,))
    assert [item.state for item in result.findings if item.oracle == "qparams"] == ["known"]


def test_a_correction_is_tried_where_the_case_came_to_its_code_whatever_its_operators_are_called(examined):
    """acosh is drawn with a clamp in front of it, which no graph's words tell."""
    nodes = node("n0", "acosh", "c0"), node("n1", "add", "n0", "x", alpha=1, scalar=None, side=None)
    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4)),),
        constants=(Constant(name="c0", shape=(1, 4), kind="full", parameters={"value": 1.0}),),
        nodes=nodes,
        outputs=("n1",),
    )
    case = Case(graph=graph, calibration={"x": uniform()}, target="TOSA-1.0+INT", recipe="a16w8")
    folded = KnownBug(entry="clamp-of-constant-folded", bucket=VALUES, operators=("softmax",), corrections=(FOLDED,))
    result, _ = examined(case, known=(folded,))
    found = {item.entry for item in result.findings if item.oracle in ("numeric", "constants") and item.known}
    assert found == {"clamp-of-constant-folded"}
    assert not [item for item in result.findings if item.oracle == "constants" and not item.known]
