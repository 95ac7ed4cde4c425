"""Conditions that speak of whole smallest programs, where the place of the finding is a part of one."""

import pytest

from harness.artifacts.tosa import decode_tosa
from harness.evidence.inspection.surroundings import tosa_place
from harness.tosa.causes import classified_as_smallest
from harness.tosa.program import Operator, Program, Tensor
from harness.tosa.smallest import _is_the_same, _likest
from harness.tosa.translating import to_flatbuffer
from harness.triage.conditions import ANY, Condition
from harness.triage.findings import Finding
from harness.triage.known import KnownBug

BUCKET = "v1/stream/hazard/run/Vela/ethos-u85/POOL"
APART = Program(
    (
        Tensor("x", (1, 2), "INT8"),
        Tensor("y", (1, 2), "INT8"),
        Tensor("m", (1, 1), "INT8"),
        Tensor("r", (1, 2), "INT8"),
    ),
    (
        Operator("REDUCE_MAX", ("x",), ("m",), {"Axis": 1, "NanMode": 1}),
        Operator("REVERSE", ("y",), ("r",), {"Axis": 1}),
    ),
    ("x", "y"),
    ("m", "r"),
)
"""What one branch does to memory shows in the other one."""


def state(path: tuple[str, ...], *, whole: bool = True) -> str:
    finding = Finding(
        bucket=BUCKET,
        oracle="stream",
        kind="hazard",
        target="ethos-u85-256",
        message="m",
        case="program.json",
        stage="run",
        pass_name="Vela",
        fingerprint="stream/hazard: x0 int8 [n]",
        chain=("REDUCE_MAX", "REVERSE"),
        place=tosa_place(decode_tosa(to_flatbuffer(APART)).main, ["r"], {"conflict": "overtakes"}),
    )
    condition = Condition(path=path, at=("conflict == overtakes",), through=ANY, whole=whole)
    found = classified_as_smallest(finding, APART, [KnownBug(entry="bug", bucket=BUCKET, conditions=(condition,))])
    assert found.place == finding.place
    return found.state


def test_a_pattern_on_the_whole_program_sees_what_lies_beside_the_place():
    assert state(("REDUCE_MAX",)) == "known"
    assert state(("REDUCE_MIN",)) != "known"
    assert state(("REDUCE_MAX", "REVERSE")) != "known", "no line of data flow joins them"


def test_every_other_condition_speaks_of_the_place_alone():
    assert state(("REDUCE_MAX",), whole=False) != "known"
    assert state(("REVERSE",), whole=False) == "known"


BLAMED = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u85/"


def wrong_at(bucket: str, **measured: int) -> Finding:
    return Finding(
        bucket=bucket,
        oracle="numeric",
        kind="",
        target="ethos-u85-256",
        stage="run",
        message="",
        case="",
        measured=measured,
    )


def test_no_seed_is_judged_behind_the_first_that_shows_the_finding_in_its_bucket():
    told, *others = (wrong_at(BLAMED + name) for name in ("TABLE", "CLAMP", "PAD"))
    seeds = iter([*others, told, told])
    assert _likest(seeds, told) is told
    assert [*seeds] == [told]
    assert _likest(iter(others), told) is others[0]
    assert _likest(iter(()), told) is None


@pytest.mark.parametrize(
    ("operator", "step", "doubt", "same"),
    [
        ("TABLE", 3, {}, True),
        ("CLAMP", 5, {"earliest": 4, "latest": 10}, True),
        ("CLAMP", 3, {"earliest": 4, "latest": 10}, False),
        ("CLAMP", 11, {"earliest": 4, "latest": 10}, False),
        ("CLAMP", 5, {}, False),
    ],
)
def test_the_engine_shows_a_finding_at_its_operator_or_at_a_step_that_may_be_to_blame(operator, step, doubt, same):
    engine, told = wrong_at(BLAMED + operator, operation=step), wrong_at(BLAMED + "TABLE", operation=10, **doubt)
    assert _is_the_same(engine, told) is same
    elsewhere = wrong_at(BLAMED.replace("numeric", "stream") + operator, operation=step)
    assert not _is_the_same(elsewhere, told)
