"""Hand-made observations for oracle tests: one output, one input, int8 domain of step 0.5."""

import numpy as np

from harness.case.case import Case, Distribution, Graph, Input, Node
from harness.case.sampling import EvaluationInput
from harness.evidence.observation import Domain, Envelope, LegResult, LoweringRecord, Observation, OutputType

STEP = 0.5
CASE = Case(
    graph=Graph(
        inputs=(Input(name="x", shape=(1, 4)),),
        nodes=(Node(name="n0", operator="relu", inputs=("x",)),),
        outputs=("n0",),
    ),
    calibration={"x": Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})},
)


def observation(
    reference,
    compiled,
    *,
    low=None,
    high=None,
    origin="calibration",
    in_range=True,
    eager=None,
    quantization=None,
    outputs=1,
):
    """An observation of ``CASE``; arrays are float32, one evaluation input, ``outputs`` equal outputs."""
    wanted, got = (np.asarray(values, np.float32) for values in (reference, compiled))
    envelope = Envelope(
        np.asarray(reference if low is None else low, float), np.asarray(reference if high is None else high, float)
    )
    item = EvaluationInput(origin, (np.zeros((1, 4), np.float32),), in_range)
    types = OutputType(tuple(wanted.shape), "float32", Domain(STEP, 0, -128, 127))
    return Observation(
        CASE,
        (item,),
        LoweringRecord(outputs=(types,) * outputs),
        {
            "eager": LegResult(((np.asarray(reference if eager is None else eager, np.float32),) * outputs,)),
            "quantized-eager": LegResult(((wanted,) * outputs,)),
            "tosa-reference": LegResult(((got,) * outputs,)),
        },
        rounding=((envelope,) * outputs,),
        quantization=None if quantization is None else ((quantization,),),
    )
