"""The cases on which planted faults show; the integration tests' cases serve where they can."""

from harness.case.case import Case, Constant, Graph, Input
from tests.attributes import CONV_3X3
from tests.integration.conftest import node, uniform


def _case(inputs, *nodes, constants=(), outputs=None, **words):
    """Inputs are given as name -> (shape, distribution); the output is the last node's."""
    return Case(
        graph=Graph(
            inputs=tuple(Input(name=name, shape=shape) for name, (shape, _) in inputs.items()),
            constants=constants,
            nodes=nodes,
            outputs=outputs or (nodes[-1].name,),
        ),
        calibration={name: distribution for name, (_, distribution) in inputs.items()},
        target=words.pop("target", "TOSA-1.0+INT"),
        **words,
    )


def add_case():
    """Two operands of different scales and zero points."""
    return _case(
        {"x": ((1, 8), uniform(-1.0, 1.0)), "y": ((1, 8), uniform(-0.5, 3.0))},
        node("n0", "add", "x", "y", scalar=None, side=None, alpha=1),
    )


def mul_case():
    """A product of operands with different domains."""
    return _case(
        {"x": ((1, 8), uniform(-1.0, 1.0)), "y": ((1, 8), uniform(-0.5, 3.0))},
        node("n0", "mul", "x", "y", scalar=None, side=None),
    )


def square_case():
    """A product of a value with itself, after an operator that takes a list."""
    return _case(
        {"x": ((1, 4), uniform(-2.0, 2.0)), "y": ((1, 4), uniform(-1.0, 1.0))},
        node("n0", "cat", "x", "y", dim=1),
        node("n1", "mul", "n0", "n0", scalar=None, side=None),
    )


def join_case():
    """Values of different ranges joined in one domain."""
    return _case(
        {"x": ((1, 2, 4), uniform(-1.0, 1.0)), "y": ((1, 2, 4), uniform(-0.25, 0.25))},
        node("n0", "cat", "x", "y", dim=1),
    )


def clamps_case():
    """clamp -> relu whose domain is wider than the clamp, because a sibling shares it."""
    return _case(
        {"x": ((1, 2, 4), uniform(-1.0, 1.0)), "y": ((1, 2, 4), uniform(-1.0, 1.0))},
        node("n0", "clamp", "x", min=-0.25, max=0.25),
        node("n1", "relu", "n0"),
        node("n2", "cat", "n1", "y", dim=1),
    )


def conv_case(target="TOSA-1.0+INT"):
    """A convolution with one weight scale a channel, a bias and a square kernel."""
    return _case(
        {"x": ((1, 3, 6, 6), uniform(-1.0, 1.0))},
        node("n0", "conv2d", "x", **CONV_3X3),
        target=target,
    )


def conv_relu_case():
    """conv -> relu in a domain of its own, whose zero point is the lowest code."""
    return _case(
        {"x": ((1, 3, 6, 6), uniform(-1.0, 1.0))},
        node("n0", "conv2d", "x", **CONV_3X3),
        node("n1", "relu", "n0"),
    )


def ramps_case():
    """Seed 002: two ramps joined and returned, in the fixed domain of scale 1/127."""
    horizontal, vertical = {"start": -0.8, "stop": 0.8, "dim": 3}, {"start": -0.75, "stop": 0.75, "dim": 2}
    return _case(
        {},
        node("n0", "cat", "k0", "k1", dim=1),
        constants=(
            Constant(name="k0", shape=(1, 1, 4, 5), kind="ramp", parameters=horizontal),
            Constant(name="k1", shape=(1, 1, 4, 5), kind="ramp", parameters=vertical),
        ),
        recipe="a8w8,act=fixed,io=fixed",
    )


def constants_join_case():
    """Constants joined with each other, then used with an activation."""
    values = [-0.8, -0.4, 0.0, 0.4, 0.8]
    return _case(
        {"x": ((1, 10), uniform(-1.0, 1.0))},
        node("n0", "cat", "k0", "k1", dim=1),
        node("n1", "add", "x", "n0", scalar=None, side=None, alpha=1),
        constants=tuple(
            Constant(name=name, shape=(1, 5), kind="literal", parameters={"values": [scale * v for v in values]})
            for name, scale in (("k0", 1.0), ("k1", -0.6))
        ),
    )


def filled_case():
    """A constant that is made inside the delegate, joined with an activation."""
    return _case(
        {"x": ((1, 4), uniform(-1.0, 1.0))},
        node("n0", "full_like", "x", value=0.5),
        node("n1", "cat", "x", "n0", dim=1),
    )


def pad_case():
    """Zero padding of values whose zero point is not code 0."""
    return _case(
        {"x": ((1, 2, 4), uniform(0.0, 2.0))},
        node("n0", "pad", "x", pad=[1, 1], value=0),
    )


def boundary_case(target="ethos-u55-128"):
    """A passthrough operator at the end of a delegate."""
    return _case(
        {"x": ((1, 8), uniform(-1.0, 1.0))},
        node("n0", "sigmoid", "x"),
        node("n1", "view", "n0", shape=[2, 4]),
        target=target,
    )


def conv_sigmoid_case():
    """A convolution with a table, for Ethos-U: weights, scales, a DMA and a kernel."""
    return _case(
        {"x": ((1, 3, 8, 8), uniform(-1.0, 1.0))},
        node("n0", "conv2d", "x", **{**CONV_3X3, "out_channels": 4}),
        node("n1", "sigmoid", "n0"),
        target="ethos-u55-128",
    )
