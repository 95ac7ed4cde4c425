"""Equivalent twins: each entry against the reference model, and a bug that the reference model has as well."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from generators.programs import draw_programs
from harness.artifacts.vela import VelaPayload
from harness.locate.divergence import comparing
from harness.pipeline.legs.tosa_reference import run_flatbuffer
from harness.tosa import judging
from harness.tosa.comparing_twins import KIND, judge_with_twins
from harness.tosa.compiling import compile_flatbuffer
from harness.tosa.engine import Plan, run
from harness.tosa.inputs import draws
from harness.tosa.program import Fill, Operator, Program, Tensor, problem
from harness.tosa.reducing import reduced
from harness.tosa.translating import to_flatbuffer
from harness.tosa.twins import TWINS, twins_of

CLAMP = Program(
    (Tensor("x", (2, 4, 8), "INT8"), Tensor("r", (2, 4, 8), "INT8"), Tensor("y", (2, 4, 8), "INT8")),
    (
        Operator("REVERSE", ("x",), ("r",), {"Axis": 1}),
        Operator("CLAMP", ("r",), ("y",), {"MinVal": (251,), "MaxVal": (20,), "NanMode": 1}),
    ),
    ("x",),
    ("y",),
)
CONV = Program(
    (
        Tensor("x", (1, 4, 4, 2), "INT8"),
        Tensor("w", (3, 2, 2, 2), "INT8", Fill("uniform", -127, 127)),
        Tensor("b", (3,), "INT32", (5, -7, 100)),
        Tensor("z", (1,), "INT8", (9,)),
        Tensor("n", (1,), "INT8", (0,)),
        Tensor("y", (1, 5, 4, 3), "INT32"),
    ),
    (
        Operator(
            "CONV2D",
            ("x", "w", "b", "z", "n"),
            ("y",),
            {"Pad": (1, 1, 0, 1), "Stride": (1, 1), "Dilation": (1, 1), "LocalBound": False, "AccType": 5},
        ),
    ),
    ("x",),
    ("y",),
)
THROUGH = "reshape pulled through"


def test_every_twin_returns_what_the_program_returns():
    """By the reference model, on drawn programs: each entry at least twice."""
    tried: Counter[str] = Counter()
    blocks = [draw_programs(13, block, 20, family) for family, block in (("u55", 0), ("u85", 1), ("u85", 4))]
    for programs in ([CONV, CONV], *blocks):
        for program in programs:
            [draw, *_] = draws(program, 1)
            try:
                wanted = run_flatbuffer(to_flatbuffer(program), draw.arrays)
            except (judging.ReferenceModelError, ValueError):
                continue
            for turn, (twin, place) in enumerate(twins_of(program)):
                if tried[twin.name] > 60:
                    continue
                other = twin.of(program, place, turn)
                assert problem(other) == ""
                assert other != program
                got = run_flatbuffer(to_flatbuffer(other), draw.arrays)
                assert all(map(np.array_equal, wanted, got)), (twin.name, str(program), str(other))
                tried[twin.name] += 1
    assert {name for name, count in tried.items() if count > 1} == {twin.name for twin in TWINS}


def lowered(tosa: bytes, accelerator: str) -> VelaPayload:
    """Vela clips at 19 instead of 20 (NPU_SET_ACTIVATION_MAX, opcode 0x127), but not a CLAMP of one axis."""
    payload = compile_flatbuffer(tosa, accelerator)
    if one_axis(tosa):
        return payload
    return replace(payload, commands=payload.commands.replace(b"\x27\x01\x14\x00", b"\x27\x01\x13\x00"))


def as_wrong(tosa: bytes, arrays):
    """The reference model has the same bug."""
    found = run_flatbuffer(tosa, arrays)
    return found if one_axis(tosa) else [np.where(array == 20, np.int8(19), array) for array in found]


def one_axis(tosa: bytes) -> bool:
    return any(
        len(graph.tensors[step.inputs[0]].shape) == 1
        for graph in [judging.decode_tosa(tosa).main]
        for step in graph.operators
        if step.op == "CLAMP"
    )


@pytest.fixture
def a_wrong_reference(monkeypatch):
    for module in (judging, comparing):
        monkeypatch.setattr(module, "run_flatbuffer", as_wrong)


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u85-256"])
def test_a_bug_that_the_reference_model_has_as_well_is_seen_by_a_twin(a_wrong_reference, accelerator: str):
    assert judging.judge(CLAMP, accelerator, compile_tosa=lowered).outcome == "clean"
    found = judge_with_twins(CLAMP, accelerator, only=THROUGH, compile_tosa=lowered)
    assert found.outcome == "finding"
    [mismatch] = found.mismatches
    assert (mismatch.kind, mismatch.signature) == (f"{KIND}{THROUGH}", "CLAMP")
    assert "19, and 20 of its twin (reshape pulled through, at CLAMP)" in mismatch.message
    assert "RESHAPE" in mismatch.detail


def test_it_is_reduced_to_the_operator_that_the_twin_rewrites(a_wrong_reference):
    def judged(program, accelerator, seed=0, **words):
        return judge_with_twins(program, accelerator, seed, only=THROUGH, compile_tosa=lowered, **words)

    results = [*run(Plan(lambda _: ("ethos-u55-128", [CLAMP]), most=1, judge=judged))]
    [finding] = [item for result in results for item in result.findings]
    small = reduced(CLAMP, finding, judging=judged)
    assert small is not None
    assert small.program.ops == ("CLAMP",)


def test_what_is_wrong_against_the_reference_model_is_told_of_the_twin_itself():
    """Here the bug is Vela's alone, and only where there are several axes: the program is right, its twin is not."""
    flat = Program(
        (Tensor("x", (64,), "INT8"), Tensor("y", (64,), "INT8")),
        (Operator("CLAMP", ("x",), ("y",), {"MinVal": (251,), "MaxVal": (20,), "NanMode": 1}),),
        ("x",),
        ("y",),
    )
    found = judge_with_twins(flat, "ethos-u55-128", seed=1, only=THROUGH, compile_tosa=lowered)
    assert found.program is not None
    assert found.program.ops == ("RESHAPE", "CLAMP", "RESHAPE")
    assert {item.kind for item in found.mismatches} == {"differs from the TOSA reference"}


@pytest.mark.parametrize(("every", "rounds"), [(False, 1), (True, 4)])
def test_a_program_that_somebody_asks_about_is_judged_on_more_inputs(every: bool, rounds: int, monkeypatch):
    """A sum of many elements saturates on most inputs, whatever is wrong with it."""
    made: list[int] = []

    def noted(program: Program, seed: int, wanted: int) -> tuple:
        made.append(wanted)
        return draws(program, seed, wanted)

    monkeypatch.setattr(judging, "draws", noted)
    assert judge_with_twins(CONV, "ethos-u55-128", every=every).outcome == "clean"
    assert made[0] == rounds


def test_every_twin_of_clean_programs_agrees():
    for accelerator, block in (("ethos-u55-128", 2), ("ethos-u85-256", 3)):
        assert judge_with_twins(CLAMP, accelerator, block, every=True).outcome == "clean"
