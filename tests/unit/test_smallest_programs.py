"""Conditions that speak of whole smallest programs, where the place of the finding is a part of one."""

from harness.artifacts.tosa import decode_tosa
from harness.evidence.inspection.surroundings import tosa_place
from harness.tosa.causes import classified_as_smallest
from harness.tosa.program import Operator, Program, Tensor
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
