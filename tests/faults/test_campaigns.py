"""Plants among known bugs: a campaign reports them as new and blames them. A few here; tox -e planted runs all."""

import functools
import io
import os
import signal
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import msgspec
import pytest
from rich.console import Console

from harness.case.case import encode_case
from harness.case.errors import BadInput
from harness.compat.releases import installed
from harness.triage.findings import Finding
from harness.workers.protocol import Task
from tests.faults.campaigns import PLANTS, Row, concluded, outcome, scratch, steps
from tests.faults.payload_plants import at_operations
from tests.faults.planted import Drawn, Plant, verdict_of
from tests.forked import Forked, in_fork
from tests.integration.conftest import sigmoid_case

written_for = pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="written for executorch 1.5.1")
QUICK = {"blockdep": 2, "conv-bias": 1}
"""Plants, and graphs that are enough; among those of the first a known bug shows."""


@pytest.fixture(scope="module")
def row_of(first_cases):
    """The row of a plant, computed once, in a fork: this process is as warm as ``get_ready`` would make it."""
    plants = {plant.name: plant for plant in PLANTS}
    scratch()  # is deleted by this process

    @functools.cache
    def row(name):
        with mock.patch("tests.faults.campaigns.get_ready"):
            made = in_fork(lambda: msgspec.json.encode(outcome(name, QUICK[name])))
        return Row(plants[name], *msgspec.json.decode(made, type=tuple[tuple[Finding, ...], float]))

    return row


@written_for
@pytest.mark.parametrize("name", QUICK)
def test_a_plant_among_known_bugs_is_reported_as_new(name, row_of):
    row = row_of(name)
    assert row.verdict == "new", [(item.bucket, item.state, item.entry, item.proof) for item in row.found]


@written_for
@pytest.mark.parametrize("name", QUICK)
def test_it_is_blamed_and_nobody_else(name, row_of):
    assert set(row_of(name).blamed) == {"right"}
    assert row_of(name).place_right, row_of(name).places


PLANT = Plant("p", "a bug", ("numeric", "stream/hazard"), "RewriteConvPass", Drawn("TOSA-1.0+INT", 1, 1), nullcontext)


def found(pass_name="RewriteConvPass", oracle="numeric", kind="outside rounding", **named):
    bucket = f"v1/{oracle}/{kind}/run/{pass_name}/tosa-int/"
    names = {"target": "TOSA-1.0+INT", "stage": "run", "message": "", "case": "c.json"}
    return Finding(bucket=bucket, oracle=oracle, kind=kind, pass_name=pass_name, **names, **named)


def concluded_of(*findings):
    """Exit status and text of a table with one row that is well, and one with these findings."""
    well = Row(replace(PLANT, name="well"), (found(),), 1.0)
    console = Console(file=io.StringIO(), width=60)
    status = concluded([well, Row(PLANT, findings, 1.0)], console)
    return status, console.file.getvalue()


@pytest.mark.parametrize(
    "findings",
    [
        (found(),),
        (found(), found(None, "qparams", "scale differs")),
        (found("FoldAndAnnotateQParamsPass..ExirToTosaPass"),),
        (found(oracle="stream", kind="hazard"),),
        (found(state="resembling", entry="some-entry"),),
    ],
    ids=["right", "another oracle names nobody", "bracket", "kind", "resembling"],
)
def test_a_table_without_fault_ends_with_zero_and_says_nothing(findings):
    assert concluded_of(*findings) == (0, "")


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ((), "p: MISSED: none of 0 findings is of numeric, stream/hazard"),
        ((found(oracle="qparams"),), "p: MISSED: none of 1 finding is of numeric, stream/hazard"),
        (
            (found(), found(state="known", entry="some-entry", proof="condition of some-entry holds at its place")),
            "p: CALLED KNOWN: numeric/outside rounding/RewriteConvPass/ is some-entry: condition of some-entry holds",
        ),
        ((found(), found("ExirToTosaPass")), "p: BLAMED WRONG: 1 finding names ExirToTosaPass, the plant is in"),
        (
            (found("serializer"), found("serializer")),
            "p: BLAMED WRONG: 2 findings name serializer, the plant is in RewriteConvPass",
        ),
        ((found(None),), "p: BLAMED WRONG: 1 finding names nobody, the plant is in RewriteConvPass"),
        (
            (found("RewriteConvPass..ExirToTosaPass"),),
            "p: BLAMED WRONG: 1 finding names RewriteConvPass..ExirToTosaPass, the plant is in RewriteConvPass",
        ),
    ],
    ids=["nothing", "another oracle", "known", "wrong single name", "wrong twice", "nobody", "bracket behind it"],
)
def test_a_table_with_a_fault_ends_with_one_and_says_which_row_and_why(findings, told):
    status, text = concluded_of(*findings)
    assert status == 1
    assert text.startswith(told)
    assert text.count("\n") == 1


def test_there_are_plants_enough_and_half_of_them_in_the_payload():
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 24
    assert sum(plant.in_payload for plant in PLANTS) >= 12


def test_a_register_is_changed_for_its_operation_only():
    zero, one = {"value": 0}, {"value": 1}
    plant = at_operations(("OP_CONV",), "SET_OFM_ZERO_POINT", "value", lambda value: value + 1)
    stream = [("SET_OFM_ZERO_POINT", zero), ("OP_CONV", {}), ("OP_ELEMENTWISE", {})]
    assert plant(stream, None) == [
        ("SET_OFM_ZERO_POINT", zero),
        ("SET_OFM_ZERO_POINT", one),
        ("OP_CONV", {}),
        ("SET_OFM_ZERO_POINT", zero),
        ("OP_ELEMENTWISE", {}),
    ]
    without = [("OP_CONV", {}), ("OP_STOP", {})]
    assert plant(without, None) == without


@pytest.mark.parametrize(
    ("named", "verdict"),
    [
        ("InsertRescaleInt32Pass", "exact"),
        ("FuseConsecutiveRescalesPass", "WRONG"),
        (None, "none"),
        ("FoldAndAnnotateQParamsPass..FuseConsecutiveRescalesPass", "bracket"),
        ("FoldAndAnnotateQParamsPass..InsertRescaleInt32Pass", "bracket"),
        ("InsertRescaleInt32Pass..ExirToTosaPass", "WRONG"),  # open at its beginning
        ("start..DecomposeLinearPass", "WRONG"),
        ("start..serializer", "bracket"),
        ("FoldAndAnnotateQParamsPass..nothing of that name", "WRONG"),
    ],
)
def test_a_bracket_holds_what_lies_behind_its_first_in_the_order_of_the_pipeline(named, verdict):
    assert verdict_of("InsertRescaleInt32Pass", named, steps()) == verdict


@pytest.fixture
def case(tmp_path):
    file = tmp_path / "case.json"
    file.write_bytes(encode_case(sigmoid_case()))
    return Task(case=str(file))


def test_a_case_that_ends_its_process_is_a_finding(case, monkeypatch):
    def dies(task, announce, *_):
        announce("vela")
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr("harness.workers.case_run.run_task", dies)
    with Forked() as pool:
        [result] = pool.run([case])
    [finding] = result.findings
    assert (finding.oracle, finding.stage) == ("crash", "vela")
    assert "SIGSEGV" in finding.bucket


def test_bad_input_is_a_problem_and_no_finding(case, monkeypatch):
    def refuses(*_):
        raise BadInput("x", "is bad", "mend it")

    monkeypatch.setattr("harness.workers.case_run.run_task", refuses)
    with Forked() as pool:
        [result] = pool.run([case])
    assert result.problem is not None
    assert "mend it" in result.problem
    assert not result.findings
