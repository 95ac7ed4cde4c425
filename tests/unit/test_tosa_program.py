"""Programs as data: JSON, flatbuffers, rules, and what the strategies draw."""

import re

import msgspec
import numpy as np
import pytest

from generators.programs import draw_programs, tosa_operators
from harness.artifacts.tosa import decode_tosa
from harness.case.errors import BadInput
from harness.compat.tosa import schema
from harness.tosa.inputs import draws
from harness.tosa.program import Fill, Operator, Program, Tensor, decode, encode, limits, problem, pruned
from harness.tosa.translating import from_flatbuffer, stored, to_flatbuffer

POOL = {"Kernel": (2, 2), "Stride": (1, 1), "Pad": (0, 0, 0, 0), "NanMode": 1}
PROGRAM = Program(
    tensors=(
        Tensor("x", (1, 3, 3, 4), "INT8", span=(-5, 7)),
        Tensor("c", (1, 2, 2, 4), "INT8", Fill("uniform", -9, 9, 3)),
        Tensor("s", (2,), "SHAPE", (1, 32)),
        Tensor("p", (1, 2, 2, 4), "INT8"),
        Tensor("j", (1, 2, 2, 8), "INT8"),
        Tensor("y", (1, 32), "INT8"),
    ),
    operators=(
        Operator("MAX_POOL2D", ("x",), ("p",), POOL),
        Operator("CONCAT", ("p", "c"), ("j",), {"Axis": 3}),
        Operator("RESHAPE", ("j", "s"), ("y",)),
    ),
    inputs=("x",),
    outputs=("y",),
)


def with_operators(*operators: Operator) -> Program:
    return msgspec.structs.replace(PROGRAM, operators=operators)


def test_json_gives_the_program_back():
    assert decode(encode(PROGRAM)) == PROGRAM


def test_a_flatbuffer_holds_what_the_program_says():
    block = decode_tosa(to_flatbuffer(PROGRAM)).main
    assert (block.inputs, block.outputs) == (("x",), ("y",))
    assert [item.op for item in block.operators] == ["CONST", "CONST_SHAPE", "MAX_POOL2D", "CONCAT", "RESHAPE"]
    assert block.producers["p"].attributes == POOL
    assert (block.tensors["c"].values() == PROGRAM.by_name["c"].values()).all()
    assert block.tensors["s"].values().tolist() == [1, 32]


def test_a_flatbuffer_read_and_written_again_is_the_same_bytes():
    program = from_flatbuffer(to_flatbuffer(PROGRAM))
    assert program.operators == PROGRAM.operators
    assert from_flatbuffer(to_flatbuffer(program)) == program


def test_a_value_without_axes_has_a_shape_without_values():
    """A reduction to a scalar ends in a RESHAPE to no axes: such programs are read, written and reduced as others."""
    scalar = Program(
        tensors=(
            Tensor("x", (1, 1), "INT8", span=(-5, 7)),
            Tensor("s", (0,), "SHAPE", ()),
            Tensor("y", (), "INT8"),
        ),
        operators=(Operator("RESHAPE", ("x", "s"), ("y",)),),
        inputs=("x",),
        outputs=("y",),
    )
    assert decode(encode(scalar)) == scalar
    read = from_flatbuffer(to_flatbuffer(scalar))
    assert read.by_name["y"].shape == ()
    assert read.by_name["s"].values().tolist() == []
    empty = msgspec.structs.replace(scalar, tensors=(Tensor("x", (1, 0), "INT8"), *scalar.tensors[1:]))
    assert problem(empty) == "x is INT8 [1, 0]"


@pytest.mark.parametrize(("dtype", "values"), [("INT4", [-8, 7, 3]), ("INT48", [-(1 << 40), 5]), ("BOOL", [0, 1])])
def test_constants_of_odd_widths_come_back(dtype: str, values: list[int]):
    tensor = Tensor("k", (len(values),), dtype, tuple(values))
    made = Tensor("v", (len(values),), dtype)
    program = Program((tensor, made), (Operator("IDENTITY", ("k",), ("v",)),), (), ("v",))
    assert from_flatbuffer(to_flatbuffer(program)).by_name["k"].data == tuple(values)
    assert len(stored(tensor.values(), dtype)) == {"INT4": 2, "INT48": 12, "BOOL": 2}[dtype]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (with_operators(*PROGRAM.operators[1:]), "CONCAT reads p"),
        (with_operators(*PROGRAM.operators, PROGRAM.operators[0]), "MAX_POOL2D writes p"),
        (with_operators(Operator("RESCALE", ("x", "x", "s", "c", "c"), ("y",))), "RESCALE takes x for a parameter"),
        (msgspec.structs.replace(PROGRAM, outputs=("z",)), "z has no tensor"),
        (msgspec.structs.replace(PROGRAM, tensors=(*PROGRAM.tensors, PROGRAM.tensors[0])), "two tensors"),
        (
            msgspec.structs.replace(PROGRAM, tensors=(*PROGRAM.tensors, Tensor("k", (3,), "INT8", (1,)))),
            "k has 1 values for shape [3]",
        ),
        (
            msgspec.structs.replace(
                PROGRAM, tensors=(*PROGRAM.tensors, Tensor("i", (3, 4), "INT32", span=(0, 2), distinct=True))
            ),
            "i cannot have 4 values that differ in [0, 2]",
        ),
        (
            Program(
                (Tensor("x", (4,), "INT8"), Tensor("t", (1,), "INT8", (7,)), Tensor("y", (4,), "INT8")),
                (Operator("TABLE", ("x", "t"), ("y",)),),
                ("x",),
                ("y",),
            ),
            "t is no table: it has 1 of 256 or 513 entries",
        ),
    ],
)
def test_what_is_no_program_is_named(program: Program, words: str):
    assert words in problem(program)
    with pytest.raises(BadInput, match="armdiff vela"):
        decode(encode(program))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (with_operators(*PROGRAM.operators[1:]), "CONCAT reads p"),
        (with_operators(*PROGRAM.operators[::-1]), "RESHAPE reads j"),
        (with_operators(*PROGRAM.operators, PROGRAM.operators[0]), "MAX_POOL2D writes p"),
        (msgspec.structs.replace(PROGRAM, outputs=("y", "j"), operators=PROGRAM.operators[:1]), "output y is made by"),
        (
            msgspec.structs.replace(
                PROGRAM,
                tensors=tuple(
                    msgspec.structs.replace(item, shape=(0, *item.shape[1:])) if item.name == "x" else item
                    for item in PROGRAM.tensors
                ),
            ),
            "x is INT8 [0, 3, 3, 4]",
        ),
    ],
)
def test_a_flatbuffer_that_is_no_program_is_named(program: Program, words: str):
    with pytest.raises(BadInput, match=re.escape(words)):
        from_flatbuffer(to_flatbuffer(program))


def test_pruning_takes_away_what_no_output_needs():
    left = pruned(msgspec.structs.replace(PROGRAM, outputs=("p",)))
    assert left.ops == ("MAX_POOL2D",)
    assert {tensor.name for tensor in left.tensors} == {"x", "p"}
    assert problem(left) == ""


@pytest.mark.parametrize("rule", ["uniform", "normal", "sparse", "ends", "same"])
def test_a_rule_stays_in_its_range_and_repeats(rule: str):
    values = Fill(rule, -3, 5, 7).values(500)
    assert values.min() >= -3
    assert values.max() <= 5
    assert (values == Fill(rule, -3, 5, 7).values(500)).all()
    assert (len(set(values.tolist())) == 1) == (rule == "same")


def test_inputs_stay_in_their_range():
    for draw in draws(PROGRAM, 3, rounds=4):
        [array] = draw.arrays
        assert (array.dtype, array.shape) == (np.int8, (1, 3, 3, 4))
        assert array.min() >= -5
        assert array.max() <= 7
    ends = next(draw for draw in draws(PROGRAM, 3) if draw.name.startswith("end points"))
    assert {-5, 7} <= set(ends.arrays[0].ravel().tolist())


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_drawn_programs_are_programs_with_names_of_the_schema(family: str):
    known = set(vars(schema("Op")))
    found = draw_programs(11, 0, 60, family)
    assert len({encode(program) for program in found}) == len(found) == 60
    assert [problem(program) for program in found if problem(program)] == []
    assert {op for program in found for op in program.ops} <= known
    assert {tensor.dtype for program in found for tensor in program.tensors if tensor.name in program.inputs} >= {
        "INT8",
        "INT16",
    }


def test_a_block_is_the_same_every_time_and_grows_at_its_end():
    assert draw_programs(3, 2, 12, "u55") == draw_programs(3, 2, 30, "u55")[:12]
    assert draw_programs(3, 2, 12, "u55") != draw_programs(3, 3, 12, "u55")


def test_every_entry_is_drawn():
    """An entry whose predicate never holds would be dead."""
    drawn = {op for block in range(12) for program in draw_programs(5, block, 40, "u85") for op in program.ops}
    wanted = "CONV2D DEPTHWISE_CONV2D TRANSPOSE_CONV2D CONV3D MATMUL AVG_POOL2D MAX_POOL2D ADD SUB MUL MAXIMUM MINIMUM "
    wanted += "ABS CLZ NEGATE CLAMP TABLE RESIZE CAST IDENTITY RESHAPE TRANSPOSE SLICE PAD CONCAT TILE REVERSE GATHER "
    wanted += "SCATTER REDUCE_SUM REDUCE_MAX REDUCE_MIN ARGMAX SELECT ARITHMETIC_RIGHT_SHIFT LOGICAL_LEFT_SHIFT"
    assert set(wanted.split()) - drawn == set()
    assert len(tosa_operators()) > 50


def test_limits_of_booleans_are_zero_and_one():
    assert (limits("BOOL"), limits("INT16")) == ((0, 1), (-32768, 32767))
