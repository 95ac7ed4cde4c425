"""A quantized graph cut into pieces: where, and what each piece may give. Graphs are traced, not exported."""

import numpy as np
import pytest
import torch
from torch.ao.quantization.fx import _decomposed

from harness.evidence.observation import Domain
from harness.evidence.rounding.cuts import Piecewise, can_be_cut, chosen_cuts, codes_of, piecewise, values_of

assert _decomposed  # registers torch.ops.quantized_decomposed
ATEN = torch.ops.aten
Q = torch.ops.quantized_decomposed.quantize_per_tensor.default
DQ = torch.ops.quantized_decomposed.dequantize_per_tensor.default
INPUT = (np.array([0.013, 0.067, -0.03], np.float32), np.array([0.04, 0.02, 0.09], np.float32))


def held(value, scale):
    return DQ(Q(value, scale, 0, -128, 127, torch.int8), scale, 0, -128, 127, torch.int8)


def grown(x, y):
    """Behind ``maximum`` half a code is free; ``mul`` makes ten of it."""
    most = held(ATEN.maximum.default(held(x, 0.01), held(y, 0.03)), 0.01)
    return held(ATEN.neg.default(held(ATEN.mul.Tensor(most, 20.0), 0.02)), 0.04)


def traced(function):
    graph = torch.fx.symbolic_trace(function)
    return graph, [node.name for node in graph.graph.nodes if node.target is Q]


def with_output(graph, quantize):
    """The graph returns what a quantize node holds as well."""
    last = graph.graph.output_node()
    [reader] = next(node for node in graph.graph.nodes if node.name == quantize).users
    last.args = ((last.args[0], reader),)
    return graph


def test_a_graph_is_cut_where_much_is_free_and_the_next_piece_begins_with_what_was_seen():
    graph, quantizes = traced(grown)
    [cut] = chosen_cuts(graph, [INPUT])
    assert cut == quantizes[3]  # of mul; not of maximum, where little is free, nor of the output
    seen = np.array([7, -3, 100])
    output, _ = piecewise(with_output(graph, cut), INPUT, "rounding", {cut: seen})
    assert (output.high - output.low).max() <= 0.041  # a tie may go either way
    assert output.low == pytest.approx(np.round(-seen / 2) * 0.04, abs=0.041)


def test_the_value_at_a_cut_is_judged_by_what_came_before_it():
    graph, quantizes = traced(grown)
    with_output(graph, quantizes[3])
    for seen in (np.array([0, 0, 0]), np.array([100, -100, 5])):
        *_, at_cut = piecewise(graph, INPUT, "rounding", {quantizes[3]: seen})
        own = Piecewise(graph, {quantizes[3]: seen})
        own.run(*map(torch.from_numpy, INPUT))
        value = values_of(own.own[quantizes[3]], Domain(0.02, 0, -128, 127))
        assert np.all((at_cut.low <= value + 1e-6) & (value - 1e-6 <= at_cut.high))
        assert at_cut.high.max() - at_cut.low.min() > 0


def test_pieces_go_on_with_given_codes():
    graph, quantizes = traced(grown)
    assert Piecewise(graph, {quantizes[3]: np.array([50, 0, -50])}).run(*map(torch.from_numpy, INPUT)).tolist() == (
        pytest.approx([-1.0, 0.0, 1.0], abs=0.041)
    )


def test_no_cut_where_upstream_may_pass_on_another_value():
    """Between two clamps the value is not rounded; a program's own input is no piece, nor is its output."""
    graph, _ = traced(lambda x: held(ATEN.relu.default(held(ATEN.relu.default(held(x, 0.1)), 0.1)), 0.1))
    assert [can_be_cut(node) for node in graph.graph.nodes if node.target is Q] == [False, False, False]
    graph, _ = traced(lambda x: held(ATEN.relu.default(held(ATEN.neg.default(held(x, 0.1)), 0.1)), 0.1))
    assert [can_be_cut(node) for node in graph.graph.nodes if node.target is Q] == [False, True, False]


def test_what_is_no_code_is_told():
    domain = Domain(0.25, 3, -128, 127)
    assert codes_of(np.array([0.25, -1.0]), domain).tolist() == [4, -1]
    assert codes_of(np.array([0.3]), domain) is None
    assert codes_of(np.array([1000.0]), domain) is None
