"""Envelopes of float models: what is known to the last bit, and what the forms of their lowering leave free."""

import math

import numpy as np
import pytest
import torch

from harness.evidence.rounding import freedom
from harness.evidence.rounding.decomposing import computes_floats, decomposed
from harness.evidence.rounding.interval import FLOAT32_EPSILON, point
from harness.evidence.rounding.walk import envelopes

ATEN = torch.ops.aten


def graph_of(target, *others, inputs=1):
    """A graph of one call, which has the types that export notes."""
    graph = torch.fx.Graph()
    given = [graph.placeholder(f"x{place}") for place in range(inputs)]
    call = graph.call_function(target, (*given, *others))
    call.meta["val"] = torch.zeros(())
    graph.output((call,))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def envelope(target, *arrays, others=()):
    [found] = envelopes(graph_of(target, *others, inputs=len(arrays)), arrays, "rounding")
    return found


def floats(*values):
    return np.array(values, np.float32)


def test_a_step_of_a_given_number_is_known():
    halves = floats(0.5, 1.5, 2.5, -0.5, 3.0)
    found = envelope(ATEN.round.default, halves)
    assert np.abs(found.high - [0, 2, 2, 0, 3]).max() < 1e-4
    assert np.abs(found.low - [0, 2, 2, 0, 3]).max() < 1e-4


def test_a_step_of_a_computed_number_may_go_either_way():
    graph = graph_of(ATEN.mul.Tensor, inputs=2)
    [output] = [node for node in graph.graph.nodes if node.op == "output"]
    with graph.graph.inserting_before(output):
        output.args = ((graph.graph.call_function(ATEN.floor.default, (output.args[0][0],)),),)
    [found] = envelopes(graph, (floats(3.0), floats(1 / 3)), "rounding")
    assert (round(float(found.low[0])), round(float(found.high[0]))) == (0, 1)


@pytest.mark.parametrize(
    ("target", "shapes", "others"),
    [
        (ATEN.lerp.Scalar, [(4,), (4,)], (0.3,)),
        (ATEN.addcmul.default, [(4,), (4,), (4,)], ()),
        (ATEN.baddbmm.default, [(1, 2, 2), (1, 2, 3), (1, 3, 2)], ()),
        (ATEN.cosine_similarity.default, [(2, 4), (2, 4)], (-1, 1e-8)),
        (ATEN.linalg_vector_norm.default, [(2, 4)], (2.0, [1])),
        (ATEN.log_softmax.int, [(2, 4)], (1,)),
        (ATEN.scaled_dot_product_attention.default, [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)], ()),
    ],
    ids=str,
)
def test_an_operator_without_a_rule_is_judged_by_what_it_is_made_of(target, shapes, others):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = envelope(target, *arrays, others=others)
    exact = target(*(torch.from_numpy(array) for array in arrays), *others).numpy()
    assert found.unjudged == ()
    assert (found.low <= exact).all()
    assert (exact <= found.high).all()
    assert 0 < (found.high - found.low).max() < 1e-4


def test_nothing_is_claimed_of_an_operator_that_pytorch_leaves_whole():
    found = envelope(ATEN.lgamma.default, floats(0.5))
    assert found.unjudged == ("aten.lgamma",)
    assert np.isinf(found.high).all()
    assert decomposed(ATEN.lgamma.default, (point(torch.ones(2)),), {}) is None


def test_what_moves_elements_or_yields_truth_computes_no_floats():
    def node(target, value):
        made = torch.fx.Graph().call_function(target, ())
        made.meta["val"] = value
        return made

    assert computes_floats(node(ATEN.lgamma.default, torch.zeros(2)))
    assert computes_floats(node(ATEN.max.dim, (torch.zeros(2), torch.zeros(2, dtype=torch.int64))))
    assert not computes_floats(node(ATEN.flip.default, torch.zeros(2)))
    assert not computes_floats(node(ATEN.isnan.default, torch.zeros(2, dtype=torch.bool)))


def series(x):
    return x + x**2 / 2 + x**3 / 6 + x**4 / 24


def rational(z):
    return z * (1 + 0.3529666667 * z**2 - 0.0287666667 * z**4) / (1 + 0.6863 * z**2)


@pytest.mark.parametrize(
    ("target", "others", "value", "lowered", "wrong"),
    [
        (ATEN.expm1.default, (), 0.34, series(0.34), 0.4042),
        (ATEN.elu.default, (2.0,), -0.34, 2 * series(-0.34), -0.5769),
        (ATEN.selu.default, (), -0.34, 1.7580993408473766 * series(-0.34), -0.5072),
        (ATEN.celu.default, (0.5,), -0.17, 0.5 * series(-0.34), -0.1443),
        (ATEN.atan.default, (), 0.9, rational(0.9), 0.7340),
        (ATEN.atan.default, (), 40.0, math.pi / 2 - rational(1 / 40), 1.5466),
        (ATEN.tanh.default, (), 1e-6, 1.1e-6, 2e-6),
        (ATEN.sinh.default, (), 1e-4, 1.0004e-4, 1.1e-4),
        (ATEN.log1p.default, (), -0.9, -2.302585, -1.9187),
    ],
    ids=str,
)
def test_a_float_form_of_a_function_may_be_off_by_what_it_leaves_out_and_no_more(target, others, value, lowered, wrong):
    found = envelope(target, floats(value), others=others)
    assert found.low[0] <= lowered <= found.high[0]
    assert not found.low[0] <= wrong <= found.high[0]


def test_beyond_the_series_expm1_is_an_exponential():
    assert freedom.float_form("expm1", torch.tensor([0.4, 3.0])).tolist() == [0.0, 0.0]
    assert freedom.float_form("cos", torch.tensor([0.4])).tolist() == [0.0]
    assert freedom.float_form("sigmoid", torch.tensor([40.0]))[0] == pytest.approx(2.5 * FLOAT32_EPSILON)
