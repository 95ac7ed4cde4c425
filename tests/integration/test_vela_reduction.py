"""Reductions of programs: a planted fault and a bug that the installed Vela has."""

import os
import signal
from dataclasses import replace
from functools import partial
from itertools import cycle

import msgspec
import pytest

from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vela import VelaPayload
from harness.tosa.causes import Reducer, marked
from harness.tosa.compiling import VelaRefusal, compile_flatbuffer
from harness.tosa.engine import Plan, run
from harness.tosa.judging import BY_CHANCE, Judged, judge
from harness.tosa.program import Operator, Program, Tensor
from harness.tosa.reducing import reduced
from harness.triage.conditions import Condition
from harness.triage.known import KnownBug
from harness.triage.program_entries import program_entries

AMAX_PADDED = Program(
    (
        Tensor("a", (4, 3), "INT8"),
        Tensor("m", (4, 3), "INT8"),
        Tensor("r", (4, 1), "INT8"),
        Tensor("pads", (4,), "SHAPE", (1, 0, 0, 0)),
        Tensor("zero", (1,), "INT8", (0,)),
        Tensor("p", (5, 1), "INT8"),
        Tensor("y", (5, 1), "INT8"),
    ),
    (
        Operator("CLAMP", ("a",), ("m",), {"MinVal": (128,), "MaxVal": (100,), "NanMode": 1}),
        Operator("REDUCE_MAX", ("m",), ("r",), {"Axis": 1, "NanMode": 1}),
        Operator("PAD", ("r", "pads", "zero"), ("p",)),
        Operator("IDENTITY", ("p",), ("y",)),
    ),
    ("a",),
    ("y",),
)
CLAMPED = Program(
    (
        Tensor("a", (1, 4, 4, 8), "INT8"),
        Tensor("t", (1, 4, 8, 4), "INT8"),
        Tensor("r", (1, 4, 8, 4), "INT8"),
        Tensor("c", (1, 4, 8, 4), "INT8"),
    ),
    (
        Operator("TRANSPOSE", ("a",), ("t",), {"Perms": (0, 1, 3, 2)}),
        Operator("REVERSE", ("t",), ("r",), {"Axis": 1}),
        Operator("CLAMP", ("r",), ("c",), {"MinVal": (251,), "MaxVal": (20,), "NanMode": 1}),
    ),
    ("a",),
    ("c",),
)

FIVE_AXES = Program(
    (
        Tensor("a", (1, 1, 2, 1, 3), "INT8"),
        Tensor("t", (1, 3, 2, 1, 1), "INT8"),
        Tensor("c", (1, 3, 2, 1, 1), "INT8"),
    ),
    (
        Operator("TRANSPOSE", ("a",), ("t",), {"Perms": (0, 4, 2, 3, 1)}),
        Operator("CLAMP", ("t",), ("c",), {"MinVal": (251,), "MaxVal": (20,), "NanMode": 1}),
    ),
    ("a",),
    ("c",),
)
"""Vela 5.1.0 makes a stream of it that cannot be executed on Ethos-U55."""


def planted(tosa: bytes, accelerator: str) -> VelaPayload:
    """NPU_SET_ACTIVATION_MAX (opcode 0x127) with the parameter 20 becomes 19."""
    payload = compile_flatbuffer(tosa, accelerator)
    wrong = payload.commands.replace(b"\x27\x01\x14\x00", b"\x27\x01\x13\x00")
    return replace(payload, commands=wrong)


def judged_with_a_fault(program, accelerator, seed=0, **words):
    return judge(program, accelerator, seed, compile_tosa=planted, **words)


def findings(program: Program, judging=judge, accelerator="ethos-u55-128"):
    [result] = [item for item in run(Plan(lambda _: (accelerator, [program]), most=1, judge=judging)) if item.operators]
    assert result.outcome == "finding"
    return result.findings


def test_a_planted_bound_ends_at_its_operator_alone():
    [finding] = findings(CLAMPED, judged_with_a_fault)
    found = reduced(CLAMPED, finding, judging=judged_with_a_fault)
    assert found is not None
    assert found.ended
    assert found.program.ops == ("CLAMP",)
    assert found.program.by_name["x0"].shape == (1,)
    assert found.finding.bucket == finding.bucket


def test_a_bug_of_vela_ends_at_its_two_operators_the_same_way_twice():
    finding = next(item for item in findings(AMAX_PADDED) if item.oracle == "numeric")
    found = [reduced(AMAX_PADDED, finding) for _ in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].program == found[1].program
    assert found[0].program.ops == ("REDUCE_MAX", "PAD")
    assert found[0].program.by_name["x0"].shape == (1, 1)


def test_a_stream_that_cannot_be_executed_has_the_outputs_for_its_place():
    [finding] = findings(FIVE_AXES)
    assert finding.place is not None
    assert [finding.place.operators[index].op for index in finding.place.here] == ["CLAMP"]
    bugs = tuple(item.bug for item in program_entries("5.1.0") if item.bug is not None)
    cause = Reducer({"5.1.0": bugs}, {"5.1.0": None}).cause(FIVE_AXES, finding)
    assert cause is not None
    assert cause.finding.entry == "vela-activation-shape-inherited"


TRANSPOSED_TWICE = Program(
    (
        Tensor("a", (1, 2, 2), "INT32", span=(-1000, 1000)),
        Tensor("zero", (1, 1, 2), "INT32", (0, 0)),
        Tensor("d", (1, 2, 2), "INT32"),
        Tensor("s", (1, 2, 2), "INT32"),
        Tensor("t", (1, 2, 2), "INT32"),
        Tensor("u", (1, 2, 2), "INT32"),
    ),
    (
        Operator("SUB", ("a", "zero"), ("d",)),
        Operator("REDUCE_SUM", ("d",), ("s",), {"Axis": 0}),
        Operator("TRANSPOSE", ("s",), ("t",), {"Perms": (0, 2, 1)}),
        Operator("TRANSPOSE", ("t",), ("u",), {"Perms": (0, 2, 1)}),
    ),
    ("a",),
    ("u",),
)
"""SUB seems to be wrong first, which the sum behind it is."""


def only_with_sub(program, accelerator, seed=0, **words):
    """What is wrong with a program, if it has a SUB."""
    judged = judge(program, accelerator, seed, **words)
    return judged if "SUB" in program.ops else replace(judged, outcome="clean", mismatches=())


@pytest.mark.parametrize(
    ("judging", "entries", "proved"),
    [(judge, 1, True), (only_with_sub, 1, False), (judge, 0, False)],
    ids=["a known bug and SUB", "a bug that needs SUB", "no known bug"],
)
def test_all_but_the_operator_that_is_wrong_first_proves_a_known_bug(judging, entries, proved):
    finding = next(item for item in findings(TRANSPOSED_TWICE, judging) if item.oracle == "numeric")
    assert str(finding.place) == "INPUT -> [SUB] -> REDUCE_SUM -> TRANSPOSE -> TRANSPOSE"
    known = [item.bug for item in program_entries("5.1.0") if item.name == "vela-sum-transposed-twice"]
    assert len(known) == 1
    cause = Reducer({"5.1.0": known[:entries]}, {"5.1.0": None}, judging=judging).cause(TRANSPOSED_TWICE, finding)
    assert cause is not None
    assert cause.program.ops == ("SUB", "REDUCE_SUM", "TRANSPOSE", "TRANSPOSE")
    assert cause.finding.known == proved
    assert cause.finding.proof.startswith("all but SUB is that bug's: condition of vela-sum-tr") == proved


def test_what_is_proved_on_the_way_need_not_become_smaller():
    finding = next(item for item in findings(AMAX_PADDED) if item.oracle == "numeric")
    smallest, first = reduced(AMAX_PADDED, finding), reduced(AMAX_PADDED, finding, enough=lambda _: True)
    assert smallest is not None
    assert first is not None
    assert first.ended
    assert first.tried < smallest.tried
    assert first.finding.bucket == finding.bucket


def test_a_guess_that_does_not_show_again_is_not_kept():
    def judging(program, accelerator, seed=0, *, twice=True, **words):
        shows = judged_with_a_fault if "REVERSE" in program.ops or not twice else judge
        return shows(program, accelerator, seed, twice=twice, **words)

    [finding] = findings(CLAMPED, judging)
    found = reduced(CLAMPED, finding, judging=judging)
    assert found is not None
    assert found.ended
    assert found.program.ops == ("REVERSE", "CLAMP")


def test_two_payloads_that_differ_are_looked_for_in_every_candidate():
    def judging(program, accelerator, seed=0, **words):
        compilers = cycle((compile_flatbuffer, planted))
        return judge(program, accelerator, seed, compile_tosa=lambda *asked: next(compilers)(*asked), **words)

    finding = next(item for item in findings(CLAMPED, judging) if item.oracle == BY_CHANCE)
    found = reduced(CLAMPED, finding, judging=judging)
    assert found is not None
    assert found.program.ops == ("CLAMP",)


def test_who_asks_in_haste_is_told_what_a_condition_on_all_of_the_smallest_proves_without_its_fingerprint(tmp_path):
    first, *others = TRANSPOSED_TWICE.operators[1:]
    operators = (msgspec.structs.replace(first, inputs=("a",)), *others)
    tensors = tuple(item for item in TRANSPOSED_TWICE.tensors if item.name not in ("zero", "d"))
    program = msgspec.structs.replace(TRANSPOSED_TWICE, tensors=tensors, operators=operators)
    asked = tmp_path / "asked"

    def judging(*args, **words):
        with asked.open("a") as file:
            file.write("x")
        return judge(*args, **words)

    finding = next(item for item in findings(program) if item.oracle == "numeric")
    [known] = [item.bug for item in program_entries("5.1.0") if item.name == "vela-sum-transposed-twice"]
    told = {}
    for hasty in (False, True):
        asked.write_text("")
        cause = Reducer({"5.1.0": [known]}, {"5.1.0": None}, judging=judging, hasty=hasty).cause(program, finding)
        assert cause is not None
        told[hasty] = cause.finding.entry, cause.finding.proof, bool(cause.fingerprint), len(asked.read_text())
    assert told[True][:2] == told[False][:2]
    assert told[True][0] == known.entry
    assert (told[True][2], told[False][2]) == (False, True)
    assert told[True][3] < told[False][3]


def test_one_fault_in_two_programs_has_one_fingerprint():
    """The second has a pool before the operator, another rank behind it and a TRANSPOSE beside it."""
    pooled = Program(
        (
            *(item for item in CLAMPED.tensors if item.name in ("a", "c")),
            Tensor("r", (1, 4, 4, 8), "INT8"),
            Tensor("shape", (2,), "SHAPE", (4, 32)),
            Tensor("y", (4, 32), "INT8"),
            Tensor("w", (1, 4, 4, 8), "INT8"),
            Tensor("z", (1, 4, 4, 8), "INT8"),
        ),
        (
            Operator("MAX_POOL2D", ("a",), ("r",), {"Kernel": (1, 1), "Stride": (1, 1), "Pad": (0,) * 4, "NanMode": 1}),
            msgspec.structs.replace(CLAMPED.operators[-1], inputs=("r",)),
            Operator("RESHAPE", ("c", "shape"), ("y",)),
            Operator("TRANSPOSE", ("w",), ("z",), {"Perms": (0, 2, 1, 3)}),
        ),
        ("a", "w"),
        ("y", "z"),
    )
    tensors = tuple(
        msgspec.structs.replace(item, shape=(1, 4, 4, 8)) if item.name == "c" else item for item in pooled.tensors
    )
    pooled = msgspec.structs.replace(pooled, tensors=tensors)
    reducer = Reducer({"5.1.0": ()}, {"5.1.0": None}, judging=judged_with_a_fault)
    causes = [reducer.cause(program, findings(program, judged_with_a_fault)[0]) for program in (CLAMPED, pooled)]
    assert [cause and cause.fingerprint for cause in causes] == ["values: x0 int8 [1]; v0 = CLAMP(x0)"] * 2
    assert causes[0] is not None
    assert causes[0].velas == {"5.1.0": "yes"}


def tabled(given: str) -> Program:
    """MATMUL of ``a`` and the TABLE of ``b``, one of which is the input."""
    shape = (1, 1, 1)
    held = [
        Tensor(name, shape, dtype, None if name == given else (0,)) for name, dtype in (("a", "INT8"), ("b", "INT32"))
    ]
    results = [Tensor("v", shape, "INT8"), Tensor("t", shape, "INT8"), Tensor("y", shape, "INT32")]
    scale = [Tensor("m", (1,), "INT32", (1 << 30,)), Tensor("s", (1,), "INT8", (44,)), Tensor("w", (1,), "INT32", (0,))]
    more = [Tensor("z", (1,), "INT8", (0,)), Tensor("l", (256,), "INT8", (0,) * 256)]
    flags = {"InputUnsigned": False, "OutputUnsigned": False, "PerChannel": False, "RoundingMode": 1, "Scale32": True}
    steps = (
        Operator("RESCALE", ("b", "m", "s", "w", "z"), ("v",), flags),
        Operator("TABLE", ("v", "l"), ("t",)),
        Operator("MATMUL", ("a", "t", "z", "z"), ("y",)),
    )
    return Program((*held, *scale, *more, *results), steps, (given,), ("y",))


@pytest.mark.parametrize("given", ["a", "b"])
def test_a_bug_is_known_whichever_operand_a_reduction_left_as_the_input(given: str):
    """The entry has the fingerprint of the program whose input is ``b``."""
    [entry] = [item for item in program_entries("5.1.0") if item.name == "vela-u85-fused-pair-twice"]
    assert entry.bug is not None
    bug = msgspec.structs.replace(entry.bug, conditions=())
    program = tabled(given)
    [finding] = findings(program, accelerator="ethos-u85-256")
    cause = Reducer({"5.1.0": (bug,)}, {"5.1.0": None}).cause(program, finding)
    assert cause is not None
    assert (cause.finding.entry, "MATMUL(c, v1)" in cause.fingerprint) == (entry.name, given == "b")


def judged_with_a_fault_of_two(program, accelerator, seed=0, **words):
    """The fault needs a REVERSE in front of the CLAMP, as bugs of fused operators do."""
    fused = any(step.op == "CLAMP" and program.producers[step.inputs[0]].op == "REVERSE" for step in _inner(program))
    return (judged_with_a_fault if fused else judge)(program, accelerator, seed, **words)


def _inner(program: Program):
    return [step for step in program.operators if step.inputs[0] in program.producers]


@pytest.mark.parametrize(
    ("judging", "fingerprint"),
    [
        (judged_with_a_fault, "values: x0 int8 [1]; v0 = CLAMP(x0)"),
        (judged_with_a_fault_of_two, "values: x0 int8 [1]; v0 = REVERSE(x0) along 1; v1 = CLAMP(v0)"),
    ],
)
def test_a_planted_bound_is_no_bug_of_the_corpus_whatever_that_says_of_clamps(judging, fingerprint):
    bugs = tuple(entry.bug for entry in program_entries("5.1.0") if entry.bug is not None)
    assert any(condition.whole for bug in bugs for condition in bug.conditions)
    cause = Reducer({"5.1.0": bugs}, {"5.1.0": None}, judging=judging).cause(CLAMPED, findings(CLAMPED, judging)[0])
    assert cause is not None
    assert (cause.finding.known, cause.fingerprint) == (False, fingerprint)


def test_a_smallest_program_of_a_known_bug_that_the_program_does_not_have_resembles_it():
    """A cut may have made the bug: the one that was looked for may be another."""
    smallest = Condition(path=("CLAMP: elements == 1",), shows=("values",), whole=True)
    bug = KnownBug(entry="an-entry", bucket="", conditions=(smallest,))
    reducer = Reducer({"5.1.0": (bug,)}, {"5.1.0": None}, judging=judged_with_a_fault)
    [finding] = findings(CLAMPED, judged_with_a_fault)
    cause = reducer.cause(CLAMPED, finding)
    assert cause is not None
    assert (cause.finding.state, cause.finding.entry) == ("resembling", "an-entry")
    told = marked(finding, cause)
    assert (told.state, told.entry, told.fingerprint) == ("resembling", "an-entry", cause.fingerprint)


def test_a_death_keeps_no_operator_that_it_does_not_need():
    def dies_of_a_transposition(program, accelerator, seed=0, *, announce=lambda *_: None, **words):
        announce("vela")
        if "TRANSPOSE" in program.ops:
            os.kill(os.getpid(), signal.SIGSEGV)
        return Judged("clean")

    [finding] = findings(CLAMPED, dies_of_a_transposition)
    found = reduced(CLAMPED, finding, judging=dies_of_a_transposition)
    assert found is not None
    assert found.ended
    assert found.program.ops == ("TRANSPOSE",)


@pytest.mark.parametrize("op", ["TRANSPOSE", "REVERSE"])
def test_a_refusal_does_not_become_another_one(op: str):
    def refusing(tosa: bytes, accelerator: str) -> VelaPayload:
        seen = [item.op for item in decode_tosa(tosa).main.operators]
        named = next((name for name in (op, "TRANSPOSE", "REVERSE", "CLAMP") if name in seen), "none")
        raise VelaRefusal(f"Non-passthrough operation ({named.title()}) could not run on NPU")

    judging = partial(judge, compile_tosa=refusing)
    [finding] = findings(CLAMPED, judging)
    found = reduced(CLAMPED, finding, judging=judging)
    assert found is not None
    assert found.program.ops == (op,)
    assert f"({op.title()})" in found.finding.bucket


def test_what_does_not_show_is_not_reduced():
    finding = next(item for item in findings(AMAX_PADDED) if item.oracle == "numeric")
    assert reduced(CLAMPED, finding) is None
