"""Decisions, metadata, folded constants, layouts and tables on hand-made graphs."""

from dataclasses import replace

import numpy as np
import pytest

from harness.compat.snapshots import Qparams, value_origin
from harness.evidence.inspection.decisions import clamp_bounds, decided, operands
from harness.evidence.inspection.folding import folded, quantized
from harness.evidence.inspection.layout import same_elements, share, weights
from harness.evidence.inspection.lookup import _allowed, _evaluated, with_steps_that_tosa_has
from harness.evidence.inspection.metadata import metadata_faults, start_faults, unfinished_faults
from tests.unit.artifacts import call, dequantize, output, placeholder, quantize, snapshot, trace

ADD = "aten.add.Tensor"
CONV = "aten.convolution.default"
CAT = "aten.cat.default"
SPLIT = "aten.split_with_sizes_copy.default"
SLICE = "aten.slice_copy.Tensor"


def chain(*middle):
    """x, dequantized; ``middle``; what is returned is the last node."""
    return (placeholder("x"), dequantize("dx", "%x", 0.5, 3), *middle, output(middle[-1].name))


def test_a_value_is_decided_by_its_quantize_node_and_through_an_activation():
    graph = snapshot(
        *chain(call("c", CONV, "%dx"), call("r", "aten.relu.default", "%c"), quantize("q", "%r", 0.25, -128))
    )
    assert [item.scale for item in decided("c", graph)] == [0.25]
    assert [item.scale for item in decided("x", graph)] == [0.5]
    assert decided("nothing", graph) == ()


def test_operands_are_found_in_lists():
    graph = snapshot(*chain(dequantize("dy", "%x", 0.1, 0), call("c", CAT, ["%dx", "%dy"], 1)))
    found = list(operands(graph.nodes["c"], graph))
    assert [(item.argument, item.place, item.qparams.scale) for item in found] == [(0, 0, 0.5), (0, 1, 0.1)]


def test_bounds_of_activations():
    def bounds(target, *args):
        return clamp_bounds(call("n", target, "%x", *args))

    assert bounds("aten.relu.default") == (0.0, float("inf"))
    assert bounds("aten.hardtanh.default") == (-1.0, 1.0)
    assert bounds("aten.clamp.default", None, 3) == (float("-inf"), 3.0)
    assert bounds("aten.add.Tensor") is None


def test_unsound_qparams_are_the_quantizers():
    graph = trace(chain(call("a", "aten.abs.default", "%dx"), quantize("q", "%a", 0.0, 0)))
    [fault] = start_faults(graph)
    assert (fault.kind, fault.node, fault.pass_name) == ("unsound qparams", "q", None)
    for wrong in (quantize("q", "%a", 1.0, 200), quantize("q", "%a", 1.0, 4, -32767, 32767, "int16")):
        nodes = chain(call("a", "aten.abs.default", "%dx"), wrong)
        assert [fault.kind for fault in start_faults(trace(nodes))] == ["unsound qparams"]


def test_data_movement_keeps_its_domain_list_arguments_included():
    def joined(scale):
        return chain(dequantize("dy", "%x", scale, 3), call("c", CAT, ["%dx", "%dy"], 1), quantize("q", "%c", 0.5, 3))

    assert list(start_faults(trace(joined(0.5)))) == []
    [fault] = start_faults(trace(joined(0.25)))
    assert fault.kind == "domain changed by data movement"
    assert "operand 0.1" in fault.message


def folded_add(qparams, position=1):
    start = chain(dequantize("dy", "%x", 0.1, 0), call("a", ADD, "%dx", "%dy"), quantize("q", "%a", 0.7, 1))
    right = {0: Qparams(0.5, 3, -128, 127, "int8"), position: qparams}
    state = replace(start[3], input_qparams=right, output_qparams={0: Qparams(0.7, 1, -128, 127, "int8")})
    return trace(start, ("Fold", (start[0], state, start[-1])), ("Later", (start[0], state, start[-1])))


def test_qparams_that_a_pass_alters_are_blamed_on_it():
    assert list(metadata_faults(folded_add(Qparams(0.1, 0, -128, 127, "int8")))) == []
    [fault] = metadata_faults(folded_add(Qparams(0.5, 3, -128, 127, "int8")))
    assert (fault.kind, fault.pass_name, fault.node) == ("input qparams altered", "Fold", "a")
    [fault] = metadata_faults(folded_add(Qparams(0.1, 0, -128, 127, "int8"), position=2))
    assert fault.kind == "input qparams of another argument"


def test_int32_qparams_replace_decided_ones_by_design():
    assert list(metadata_faults(folded_add(Qparams(1e-6, 0, -(2**31), 2**31 - 1, "int32")))) == []


def test_a_kernel_without_output_qparams_is_only_a_fault_if_a_pass_raised():
    start = chain(call("c", CONV, "%dx"), call("r", "aten.relu.default", "%c"), quantize("q", "%r", 0.25, -111))
    state = replace(start[2], input_qparams={0: Qparams(0.5, 3, -128, 127, "int8")})
    clamp = replace(start[3], output_qparams={0: Qparams(0.25, -111, -128, 127, "int8")})
    graph = trace(
        start, ("FoldAndAnnotateQParamsPass", (state, clamp)), passes=("FoldAndAnnotateQParamsPass", "RewriteConvPass")
    )
    [fault] = unfinished_faults(graph)
    assert (fault.kind, fault.pass_name) == ("no output qparams", "FoldAndAnnotateQParamsPass")
    assert "r holds them" in fault.message
    assert "RewriteConvPass raised" in fault.message


def test_constant_expressions_are_folded_to_the_codes_of_quantized_eager():
    graph = snapshot(
        placeholder("x"),
        placeholder("a", np.asarray([[-127, 127]], np.int8)),
        placeholder("b", np.asarray([[-1.0, 1.0]], np.float32)),
        dequantize("da", "%a", 1.0 / 127, 0),
        call("c", CAT, ["%da", "%b"], 1),
        quantize("q", "%c", 1.0 / 127, 0),
        call("s", ADD, "%c", "%x"),
        call("k", "aten.full_like.default", "%x", 0.5, shape=(2, 2), dtype="float32"),
        output("q"),
    )
    found = folded(graph)
    assert found["q"].value.tolist() == [[-127, 127, -127, 127]]
    assert "s" not in found
    assert found["k"].value.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_pieces_of_a_split_constant_are_folded_one_by_one():
    found = folded(split_constant())
    assert found["first"].value.tolist() == [[1, 2]]
    assert found["rest"].value.tolist() == [[3, 4, 5]]
    assert "s" not in found


def split_constant():
    """A constant and its two pieces."""
    return snapshot(
        placeholder("a", np.asarray([[1, 2, 3, 4, 5]], np.int32)),
        call("s", SPLIT, "%a", [2, 3], -1, shape=(1, 2)),
        call("first", "getitem", "%s", 0, shape=(1, 2)),
        call("rest", "getitem", "%s", 1, shape=(1, 3)),
        output("first", "rest"),
    )


def test_a_slice_made_from_a_split_has_the_value_of_the_piece_that_it_selects():
    start = split_constant()

    def origin(axis, first, last, shape):
        node = call("slice", SLICE, "%a", axis, first, last, origin="s", shape=shape)
        return value_origin(node, {**start.nodes, "slice": node}, start)

    assert origin(1, 0, 2, (1, 2)) == "first"
    assert origin(1, 2, 5, (1, 3)) == "rest"
    assert origin(1, 1, 4, (1, 3)) is None  # across the pieces
    assert origin(0, 0, 1, (1, 5)) is None


def test_a_helper_has_the_value_of_what_it_reads_unless_it_selects():
    start = snapshot(
        placeholder("a"),
        placeholder("x"),
        call("product", "aten.bmm.default", "%a", "%x", shape=(1, 4)),
        output("product"),
    )
    ahead = call("ahead", "aten.unsqueeze_copy.default", "%a", 0, origin="product", shape=(1, 4))
    part = call("part", SLICE, "%ahead", 1, 0, 2, origin="product", shape=(1, 2))
    graph = {node.name: node for node in (*start.nodes.values(), ahead, part)}
    assert [value_origin(node, graph, start) for node in (ahead, part, start.nodes["product"])] == [
        "a",
        None,
        "product",
    ]


def test_a_view_without_a_mark_has_the_value_of_what_it_reads():
    start = snapshot(placeholder("a"), output("a"))
    view, total = (
        replace(call("made", target, "%a"), origin=None) for target in ("aten.view_copy.default", "aten.sum")
    )
    assert [value_origin(node, {**start.nodes, "made": node}, start) for node in (view, total)] == ["a", None]


@pytest.mark.parametrize(
    ("behind", "reader", "shape", "expected"),
    [
        ("aten.view_copy.default", "sum", (1,), "linear"),
        ("aten.view_copy.default", "conv", (1,), None),  # it has a second way out
        (SLICE, "sum", (2,), None),
    ],
)
def test_what_alone_leaves_a_decomposed_node_has_its_value(behind, reader, shape, expected):
    linear = call("linear", "aten.linear.default", "%a", "%w", shape=(1,))
    start = snapshot(placeholder("a"), placeholder("w"), linear, output("linear"))
    made = [
        call("conv", "aten.conv2d.default", "%a", "%w", origin="linear", shape=(1, 1, 1, 1)),
        call("view", behind, "%conv", [1], origin="linear", shape=shape),
        call("sum", "aten.add.Tensor", "%view", "%a", origin="sum"),
        call("other", "aten.abs.default", f"%{reader}", origin="other"),
    ]
    graph = {node.name: node for node in (*start.nodes.values(), *made) if node.name != "linear"}
    assert value_origin(graph["view"], graph, start) == expected


def test_a_code_near_a_tie_may_be_either_neighbour():
    exact = quantized(np.asarray([0.5, 0.4]), Qparams(1.0, 0, -128, 127, "int8"))
    assert (exact.low.tolist(), exact.high.tolist()) == ([0, 0], [1, 0])


def test_nan_may_become_any_code_and_nothing_is_claimed_of_what_is_made_of_it():
    codes = Qparams(1.0, 3, -127, 127, "int8")
    undefined = quantized(np.asarray([np.nan, np.inf, -np.inf, 2.0]), codes)
    assert (undefined.low.tolist(), undefined.high.tolist()) == ([-127, 127, -127, 5], [127, 127, -127, 5])
    values = folded(
        snapshot(
            placeholder("k", np.asarray([-0.25], np.float32)),
            call("acosh", "aten.acosh.default", "%k"),
            quantize("q", "%acosh", 1.0, 3, -127),
            dequantize("d", "%q", 1.0, 3, -127),
            quantize("again", "%d", 1.0, 3, -127),
            call("amax", "aten.amax.default", "%d", [0]),
            output("amax"),
        )
    )
    assert (values["again"].low, values["again"].high) == (-127, 127)
    assert "amax" not in values


def test_weights_in_the_layout_of_each_operator():
    codes = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert weights(codes, "CONV2D", 1).shape == (2, 4, 5, 3)
    assert weights(codes, "TRANSPOSE_CONV2D", 1).shape == (3, 4, 5, 2)
    assert weights(codes[:, :, 0, 0], "CONV2D", 1).shape == (2, 1, 1, 3)
    depthwise = weights(codes[:, :1], "DEPTHWISE_CONV2D", 2)
    assert depthwise.shape == (4, 5, 2, 1)
    assert depthwise[1, 2, 1, 0] == codes[1, 0, 1, 2]
    assert weights(codes, "DEPTHWISE_CONV2D", 2) is None
    assert share(codes, 1, 2).tolist() == codes[1:].tolist()


def test_a_folded_constant_may_be_moved_but_not_changed():
    value = np.arange(6).reshape(2, 3)
    assert same_elements(value, value, value.T.copy())
    assert same_elements(value, value, value.reshape(1, 6))
    assert same_elements(value, value, np.broadcast_to(value, (4, 2, 3)))
    assert not same_elements(value, value, value + 1)
    assert not same_elements(value, value, value[::-1].copy())


def test_tables_are_evaluated_in_float64():
    start = call("n", "aten.sigmoid.default", "%x")
    assert _evaluated(start, np.asarray([0.0, 100.0])).tolist() == [0.5, 1.0]
    low, high = _allowed(start, np.asarray([0.0, 100.0]), Qparams(1 / 256, -128, -128, 127, "int8"))
    assert (low.tolist(), high.tolist()) == ([0, 127], [0, 127])
    assert _allowed(call("n", ADD, "%x", "%y"), np.zeros(2), Qparams(1.0, 0, -128, 127, "int8")) is None


@pytest.mark.parametrize(("argument", "allowed"), [(-3.5504706390202045, (113, 114)), (-3.45, (108, 108))])
def test_an_entry_of_a_function_that_cancels_may_be_either_neighbour_of_a_tie(argument, allowed):
    """gelu in float32 gives 113.4999 where float64 gives 113.5008 (a drawn graph, 2026-11-23)."""
    arguments = np.asarray([argument])
    start = call("n", "aten.gelu.default", "%x")
    low, high = _allowed(start, arguments, Qparams(5.057004091213457e-05, 127, -128, 127, "int8"))
    assert (low[0], high[0]) == allowed


def test_an_entry_at_a_jump_may_lie_on_either_side_of_it():
    """127 times the float32 scale 1/127 is 1 in float32 and below it in float64 (a drawn graph, 2026-11-25)."""
    argument = np.asarray([-127, -126]) * float(np.float32(1 / 127))
    low, high = _allowed(call("n", "aten.ceil.default", "%x"), argument, Qparams(1 / 127, 0, -128, 127, "int8"))
    assert (low.tolist(), high.tolist()) == ([-127, 0], [0, 0])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_an_entry_of_a_wave_far_from_zero_may_be_anything(name):
    """tan(46343.3125 * 70): its argument, 26 bits long, is another one in float32 (a drawn graph, 2026-11-28)."""
    arguments = np.asarray([0.5, 46343.3125 * 70])
    low, high = _allowed(call("n", f"aten.{name}.default", "%x"), arguments, Qparams(0.02, -128, -128, 127, "int8"))
    assert low[0] == high[0]
    assert (low[1], high[1]) == (-128, 127)


def test_entries_beside_a_step_that_no_table_has_may_be_all_that_is_between():
    exact = np.array([-3, -32767, 32767, 32766, 4])
    low, high = with_steps_that_tosa_has(exact, exact)
    assert low.tolist() == [-3, -32767, -32767, 32766, 4]
    assert high.tolist() == [-3, 32767, 32767, 32766, 4]
    gentle = np.array([-3, 0, 32767])
    assert [item.tolist() for item in with_steps_that_tosa_has(gentle, gentle)] == [gentle.tolist()] * 2
