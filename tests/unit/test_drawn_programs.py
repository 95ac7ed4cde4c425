"""What the Vela engine draws: valid programs are the reference model's to tell; here, that nothing is left out."""

import math
from collections import Counter

import pytest

from generators.programs import draw_programs
from generators.tosa_graph import CHANNELS_FIRST, CHANNELS_LAST
from harness.tosa.program import Operator, Program

MOVES = ("SLICE", "TRANSPOSE", "RESHAPE")


def moved_operands(program: Program):
    """(mover, is it a constant that is moved?) for second operands, and those of a CONCAT, that nothing else reads."""
    for step in program.operators:
        for name in step.inputs[1:] if step.op != "CONCAT" else step.inputs:
            maker = program.producers.get(name)
            if maker is not None and maker.op in MOVES and maker.inputs[0] not in program.producers:
                yield maker.op, program.by_name[maker.inputs[0]].constant


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_operands_and_constants_are_moved_before_they_are_read(family: str):
    programs = [program for block in range(20) for program in draw_programs(3, block, 20, family)]
    seen = Counter(item for program in programs for item in moved_operands(program))
    assert {(op, constant) for op in MOVES for constant in (False, True)} <= {*seen}


def unscaled(program: Program, name: str) -> Operator | None:
    """What makes a tensor, looked at through RESCALE."""
    maker = program.producers.get(name)
    return unscaled(program, maker.inputs[0]) if maker is not None and maker.op == "RESCALE" else maker


def test_a_value_meets_a_piece_of_itself_and_products_have_any_rank():
    met, ranks, alike = 0, set(), 0
    for program in (program for block in range(20) for program in draw_programs(3, block, 20, "u85")):
        for step in program.operators:
            makers = [unscaled(program, name) for name in step.inputs[:2]]
            pieces = {maker.inputs[0] for maker in makers if maker is not None and maker.op == "SLICE"}
            met += step.op in ("ADD", "SUB", "MUL") and any(name in program.producers for name in pieces)
            if step.op == "MATMUL" and makers[0] is not None and makers[0].op == "RESHAPE":
                ranks.add(len(program.by_name[makers[0].inputs[0]].shape))
        alike += sum(step.op == "TABLE" for step in program.operators) > 1
    assert met
    assert {2, 4} <= ranks
    assert alike


def order_before(program: Program, step: Operator):
    """The order of the TRANSPOSE that makes what a step works on; None if no TRANSPOSE does."""
    maker = program.producers.get(step.inputs[0])
    return None if maker is None else maker.attributes.get("Perms")


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_windows_stand_between_transposes_too_and_most_inputs_are_small(family: str):
    programs = [program for block in range(10) for program in draw_programs(3, block, 20, family)]
    between, activated = set(), 0
    for program in programs:
        for step in program.operators:
            activated += step.op in ("CLAMP", "TABLE") and order_before(program, step) == CHANNELS_FIRST
            window = unscaled(program, step.inputs[0])
            if step.attributes.get("Perms") == CHANNELS_FIRST and window is not None:
                between |= {window.op} if order_before(program, window) == CHANNELS_LAST else set()
    assert "CONV2D" in between
    assert between & {"MAX_POOL2D", "AVG_POOL2D"}
    assert activated > 3
    sizes = [math.prod(program.by_name[program.inputs[0]].shape) for program in programs]
    assert sum(size <= 64 for size in sizes) > len(sizes) // 2
    assert max(sizes) > 512


@pytest.mark.parametrize("family", ["u55", "u85"])
def test_a_block_is_the_same_again_and_begins_alike_for_a_larger_one(family: str):
    whole = draw_programs(3, 1, 20, family)
    assert draw_programs(3, 1, 20, family) == whole
    assert draw_programs(3, 1, 5, family) == whole[:5]
    assert draw_programs(3, 2, 5, family) != whole[:5]
