"""Dimensional analysis of hand-made TOSA blocks."""

import numpy as np
import pytest

from harness.evidence.inspection.analysis import _decided, is_homogeneous, known_meanings
from harness.evidence.inspection.origins import Origins
from harness.evidence.inspection.rules import RULES
from harness.evidence.inspection.units import Meaning, Walk
from tests.unit.artifacts import block, call, constant, dequantize, output, placeholder, quantize, rescale, trace, value

HALF = (1 << 30, 31)  # multiplier and shift of one half


def known(scale, zero_point=0, low=-128, high=127):
    return Meaning(np.asarray(scale), zero_point, low, high, bytes_unsigned=(low, high) == (0, 255))


def walked(graph, start, decided=None, weights=None):
    walk = Walk(
        graph,
        start,
        lambda operator: (decided or {}).get(operator.outputs[0]),
        lambda operator: weights,
        lambda operator: True,
        RULES,
    )
    walk.run()
    return walk


def test_a_rescale_divides_the_unit_and_takes_its_own_zero_point():
    operator, tensors = rescale("r", "x", *HALF, zero_in=3, zero_out=-7)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5, 3)})
    assert walk.problems == []
    assert float(walk.meanings["r"].scale) == 1.0
    assert walk.meanings["r"].zero_point == -7


def test_a_rescale_that_halves_what_was_to_stay_is_a_scale_that_differs():
    operator, tensors = rescale("r", "x", *HALF)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5)}, {"r": known(0.5)})
    [problem] = walk.problems
    assert problem.kind == "scale differs"
    assert problem.measured["ratio"] == 2.0


@pytest.mark.parametrize(("off", "seen"), [(0.4, False), (4.0, True)])
def test_the_tolerance_is_half_a_unit_of_the_multiplier_in_the_file(off, seen):
    multiplier = 1 << 14
    operator, tensors = rescale("r", "x", multiplier, 14)
    wanted = known(1.0 + off / multiplier)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(1.0)}, {"r": wanted})
    assert bool(walk.problems) is seen


@pytest.mark.parametrize(("op", "trusted"), [("CLAMP", True), ("TABLE", False)])
def test_a_clamp_in_an_operator_s_group_leaves_its_unit_known(op, trusted):
    """A correction puts a CLAMP behind each RESCALE: a wrong scale in front of it must not go unseen for that."""
    operators = [("ADD", ("x", "x"), ("a",)), (op, ("a",), ("y",))]
    graph = block(["x"], ["y"], operators, [value("x"), value("a"), value("y")])
    start = trace([placeholder("x"), call("add", "aten.add.Tensor", "%x", "%x"), output("add")])
    assert is_homogeneous("add", Origins({0: "add", 1: "add"}, graph), start) is trusted


def test_a_wrong_input_zero_point_and_a_wrong_round_mode_are_told_apart():
    operator, tensors = rescale("r", "x", *HALF, zero_in=4, RoundingMode=3)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5, 3)})
    assert [problem.kind for problem in walk.problems] == ["zero point differs", "round mode"]
    assert walk.problems[0].measured == {"zero_point": 4, "expected": 3}


@pytest.mark.parametrize(("flagged", "codes"), [(True, (-128, 127)), (False, (0, 255))])
def test_a_rescale_reads_its_operand_with_the_sign_that_it_has(flagged, codes):
    operator, tensors = rescale("r", "x", *HALF, InputUnsigned=flagged)
    graph = block(["x"], ["r"], [operator], [value("x"), *tensors])
    assert [problem.kind for problem in walked(graph, {"x": known(0.5, 0, *codes)}).problems] == ["signedness differs"]
    right, tensors = rescale("r", "x", *HALF, InputUnsigned=not flagged)
    graph = block(["x"], ["r"], [right], [value("x"), *tensors])
    assert walked(graph, {"x": known(0.5, 0, *codes)}).problems == []


def test_a_rescale_writes_with_the_sign_that_was_decided():
    for flagged in (True, False):
        operator, tensors = rescale("r", "x", 1 << 30, 30, OutputUnsigned=flagged)
        graph = block(["x"], ["r"], [operator], [value("x"), *tensors])
        start = {"x": known(0.5, 0)}
        assert walked(graph, start, {"r": known(0.5, 0, *((0, 255) if flagged else (-128, 127)))}).problems == []
        wrong = walked(graph, start, {"r": known(0.5, 0, *((-128, 127) if flagged else (0, 255)))})
        assert [problem.kind for problem in wrong.problems] == ["signedness differs"]


@pytest.mark.parametrize(
    ("zero_in", "zero_out", "halves", "kinds"),
    [
        (-128, 0, 0, []),
        (-128, 1, 0, ["zero point differs"]),
        (-128, 0, 1, ["zero point differs"]),
    ],
)
def test_a_rescale_that_only_makes_codes_unsigned_may_subtract_any_zero_point(zero_in, zero_out, halves, kinds):
    """What stands for zero is 127 before, and 255 behind."""
    operator, tensors = rescale("r", "x", 1 << 30, 30 + halves, zero_in=zero_in, zero_out=zero_out, OutputUnsigned=True)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5, 127)})
    assert [problem.kind for problem in walk.problems] == kinds
    assert kinds or walk.meanings["r"].zero_point == 255


def test_few_codes_of_an_unsigned_domain_are_unsigned():
    """The analysis may know that only 0 and 1 occur."""
    operator, tensors = rescale("r", "x", 1 << 30, 30, OutputUnsigned=True)
    graph = block(["x"], ["r"], [operator], [value("x"), *tensors])
    assert walked(graph, {"x": known(0.5, 0, 0, 1)}, {"r": known(0.5, 0, 0, 255)}).problems == []


def test_an_addition_needs_operands_of_one_unit():
    graph = block(["x", "y"], ["s"], [("ADD", ("x", "y"), ("s",), {})], [value(n, dtype="INT32") for n in "xys"])
    assert walked(graph, {"x": known(0.5), "y": known(0.5)}).problems == []
    [problem] = walked(graph, {"x": known(0.5), "y": known(0.25)}).problems
    assert problem.kind == "operand scales differ"
    assert "0.5" in problem.message


@pytest.mark.parametrize(
    ("op", "operand", "ends"),
    [("MAXIMUM", "k", (3, 90)), ("MINIMUM", "k", (-50, 5)), ("MAXIMUM", "y", (-50, 100)), ("MINIMUM", "y", (-60, 90))],
)
def test_a_constant_bounds_an_extreme_as_a_clamp_would(op, operand, ends):
    tensors = [value("x"), value("y"), constant("k", [3, 5]), value("e")]
    graph = block(["x", "y"], ["e"], [(op, ("x", operand), ("e",), {})], tensors)
    found = walked(graph, {"x": known(0.5, 0, -50, 90), "y": known(0.5, 0, -60, 100)}).meanings["e"]
    assert (found.low, found.high) == ends


def test_a_join_needs_one_zero_point_as_well():
    graph = block(["x", "y"], ["c"], [("CONCAT", ("x", "y"), ("c",), {"Axis": 1})], [value(n) for n in "xyc"])
    [problem] = walked(graph, {"x": known(0.5, 1), "y": known(0.5, 2)}).problems
    assert problem.kind == "operand zero points differ"


def test_what_a_scatter_writes_into_and_what_it_writes_bound_its_result():
    tensors = [value("x"), value("k", dtype="INT32"), value("y"), value("s")]
    graph = block(["x", "k", "y"], ["s"], [("SCATTER", ("x", "k", "y"), ("s",), {})], tensors)
    found = walked(graph, {"x": known(0.5, 0, -50, 90), "y": known(0.5, 0, -60, 80)}).meanings["s"]
    assert (found.scale, found.low, found.high) == (0.5, -60, 90)


def test_a_convolution_multiplies_the_units_channel_by_channel():
    graph = block(
        ["x"],
        ["c"],
        [("CONV2D", ("x", "w", "b", "zx", "zw"), ("c",), {})],
        [
            value("x", (1, 2, 2, 1)),
            constant("w", np.ones((2, 1, 1, 1))),
            constant("b", [0, 0], "INT32"),
            constant("zx", [5]),
            constant("zw", [0]),
            value("c", (1, 2, 2, 2), "INT32"),
        ],
    )
    walk = walked(graph, {"x": known(0.5, 5)}, weights=np.asarray([0.1, 0.2]))
    assert walk.problems == []
    assert walk.meanings["c"].scale.tolist() == [0.05, 0.1]
    assert [problem.kind for problem in walked(graph, {"x": known(0.5, 6)}).problems] == ["zero point differs"]


def test_a_clamp_bounds_the_range_of_codes():
    attributes = {"MinVal": (0xF6,), "MaxVal": (0x64,)}  # -10 and 100
    graph = block(["x"], ["c"], [("CLAMP", ("x",), ("c",), attributes)], [value("x"), value("c")])
    meaning = walked(graph, {"x": known(0.5)}).meanings["c"]
    assert (meaning.low, meaning.high) == (-10, 100)


def test_a_rescale_carries_the_range_and_saturates_it():
    operator, tensors = rescale("r", "x", 1 << 30, 28)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5, 0, 0, 10)})
    assert (walk.meanings["r"].low, walk.meanings["r"].high) == (0, 41)
    walk = walked(block(["x"], ["r"], [operator], [value("x"), *tensors]), {"x": known(0.5)})
    assert (walk.meanings["r"].low, walk.meanings["r"].high) == (-128, 127)


@pytest.mark.parametrize(("low", "kept"), [(-127, -127), (-128, -128)])
def test_a_mean_of_codes_lies_among_them(low, kept):
    """The RESCALE behind a bilinear RESIZE by 2 and 3, whose result is 24 (4 times 6) times the mean."""
    operator, tensors = rescale("r", "wide", round((1 << 34) / 24), 34)
    resize = ("RESIZE", ("x", "scale"), ("wide",), {})
    sizes = constant("scale", [4, 2, 6, 2], "SHAPE")
    graph = block(["x"], ["r"], [resize, operator], [value("x"), sizes, value("wide", dtype="INT32"), *tensors])
    walk = walked(graph, {"x": known(0.5, 3, low)})
    assert (walk.meanings["r"].low, walk.meanings["r"].high) == (kept, 127)
    assert walk.meanings["r"].scale is None
    assert walk.problems == []


def test_a_wrong_zero_point_of_a_pool_is_reported_once_and_does_not_move_its_result():
    graph = block(
        ["x"],
        ["p"],
        [("AVG_POOL2D", ("x", "zi", "zo"), ("p",), {})],
        [value("x"), constant("zi", [127]), constant("zo", [127]), value("p")],
    )
    walk = walked(graph, {"x": known(0.5, 58)}, {"p": known(0.5, 58)})
    assert [problem.kind for problem in walk.problems] == ["zero point differs"]


def test_nothing_is_said_of_what_is_unknown():
    graph = block(["x", "y"], ["s"], [("ADD", ("x", "y"), ("s",), {})], [value(n, dtype="INT32") for n in "xys"])
    walk = walked(graph, {"x": known(0.5)}, {"s": known(3.0)})
    assert walk.problems == []


def test_what_a_merged_constant_holds_is_known_but_not_what_it_stands_for():
    tensors = [constant("k_common", [[0, 9, -5, 0]]), value("r")]
    graph = block([], ["r"], [("IDENTITY", ("k_common",), ("r",), {})], tensors)
    known_before = known_meanings(trace((placeholder("x"), output("x"))), graph)
    assert known_before == {"k_common": Meaning(low=-5, high=9)}
    found = walked(graph, known_before).meanings["r"]
    assert (found.scale, found.low, found.high) == (None, -5, 9)


def test_an_input_keeps_the_bounds_that_it_was_quantized_with():
    start = (placeholder("x"), dequantize("dx", "%x", 0.5, 3, qmin=-127), output("dx"))
    graph = block(["x"], ["r"], [("IDENTITY", ("x",), ("r",), {})], [value("x"), value("r")])
    [meaning] = known_meanings(trace(start), graph).values()
    assert (float(meaning.scale), meaning.zero_point, meaning.low, meaning.high) == (0.5, 3, -127, 127)


@pytest.mark.parametrize(("op", "scale"), [("TRANSPOSE", None), ("CLAMP", 0.25)])
def test_a_transpose_that_bears_the_mark_of_a_quantize_node_decides_nothing(op, scale):
    """A change of memory format behind a product becomes a transpose of what the product reads."""
    marked = quantize("q", "%product", 0.25, 0)
    start = (placeholder("x"), call("product", "aten.mul.Tensor", "%x", "%x"), marked, output("q"))
    graph = block(["x"], ["t"], [(op, ("x",), ("t",))], [value("x"), value("t")])
    decision = _decided(graph.operators[0], Origins({0: "q"}, graph), trace(start), graph)
    assert (None if decision is None else float(decision.scale)) == scale


@pytest.mark.parametrize(("last", "scale"), [("GATHER", None), ("RESIZE", 0.25)])
def test_a_reshape_that_a_pass_carried_away_from_its_gather_decides_nothing(last, scale):
    """The reshape ahead of a GATHER may stand in front of the TABLE that the GATHER reads, in the table's domain."""
    start = (placeholder("x"), call("taken", "aten.index.Tensor", "%x"), quantize("q", "%taken", 0.25, 0), output("q"))
    operators = [("RESHAPE", ("x",), ("r",)), ("TABLE", ("r",), ("t",)), (last, ("t",), ("g",))]
    graph = block(["x"], ["g"], operators, [value(name) for name in "xrtg"])
    origins = Origins({0: "taken", 1: None, 2: "taken"}, graph)
    decisions = [_decided(operator, origins, trace(start), graph) for operator in graph.operators]
    assert [None if item is None else float(item.scale) for item in decisions] == [None, None, scale]
