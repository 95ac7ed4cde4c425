"""A case and findings of it, for tests of what is written about a bug."""

import re

from harness.case.case import Case, Constant, Distribution, Graph, Input, Node
from harness.case.chains import operator_chain
from harness.triage.findings import Finding
from tests.attributes import CONV_3X3

RELEASES = {"executorch": "1.5.1", "torch": "2.13.0", "torchao": "0.18.0"}

MACHINE = re.compile(r"/(?:tmp|home|work|root|usr)/")


def case(target="TOSA-1.0+INT", recipe="a8w8", **words):
    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4, 8, 8)),),
        constants=(
            Constant(name="k", shape=(1, 4, 1, 1), kind="literal", parameters={"values": [1.0, 2.0, 3.0, 4.0]}),
        ),
        nodes=(
            Node(name="n0", operator="conv2d", inputs=("x",), attributes=CONV_3X3),
            Node(name="n1", operator="maximum", inputs=("n0", "k")),
        ),
        outputs=("n1",),
    )
    calibration = {"x": Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})}
    return Case(graph=graph, calibration=calibration, target=target, recipe=recipe, **words)


def found(oracle, kind, stage="run", pass_name=None, message="", target="TOSA-1.0+INT", **measured):
    return Finding(
        bucket=f"v1/{oracle}/{kind}/{stage}",
        oracle=oracle,
        kind=kind,
        stage=stage,
        pass_name=pass_name,
        message=message,
        measured=measured,
        target=target,
        recipe="a8w8",
        chain=operator_chain(case().graph),
        case="case.json",
    )


NUMERIC = found(
    "numeric", "outside rounding", pass_name="NegPass", input=0, output=0, bound=1.0, distance=9.0, unit="steps"
)

VELA = found("numeric", "differs from the TOSA reference", pass_name="Vela", target="ethos-u55-128")

ETHOS = "ethos-u55-128"
