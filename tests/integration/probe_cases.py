"""Cases for probes: each offers exactly one metamorphic relation."""

from harness.case.case import Case, Graph, Input
from tests.attributes import CONV_3X3
from tests.integration.conftest import node, uniform


def join_case(target="TOSA-1.0+INT"):
    """sigmoid and tanh joined by a cat: the inputs' order can be reversed."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 2, 4)), Input(name="y", shape=(1, 3, 4))),
            nodes=(
                node("n0", "sigmoid", "x"),
                node("n1", "tanh", "y"),
                node("n2", "cat", "n0", "n1", dim=1),
            ),
            outputs=("n2",),
        ),
        calibration={"x": uniform(), "y": uniform(-2.0, 2.0)},
        target=target,
    )


def conv_case(target="TOSA-1.0+INT", recipe="a8w8"):
    """conv -> relu: the output channels can be rotated."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 3, 6, 6)),),
            nodes=(node("n0", "conv2d", "x", **CONV_3X3), node("n1", "relu", "n0")),
            outputs=("n1",),
        ),
        calibration={"x": uniform()},
        recipe=recipe,
        target=target,
    )


def rows_case(target="TOSA-1.0+INT"):
    """Row-wise operators on a batch of four: the batch can be split."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(4, 6)),),
            nodes=(node("n0", "tanh", "x"), node("n1", "sigmoid", "n0")),
            outputs=("n1",),
        ),
        calibration={"x": uniform(-2.0, 2.0)},
        target=target,
    )


def deep_case(target="TOSA-1.0+INT", recipe="a8w8"):
    """What rounding allows behind a maximum grows with each linear layer, until the output may have any code."""
    layers = [node(f"n{place}", "linear", f"n{place - 1}", out_features=64, bias=True) for place in range(1, 7)]
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 8)), Input(name="y", shape=(1, 8))),
            nodes=(node("n0", "maximum", "x", "y"), *layers),
            outputs=("n6",),
        ),
        calibration={"x": uniform(), "y": uniform(-0.7, 0.8)},
        recipe=recipe,
        target=target,
    )
