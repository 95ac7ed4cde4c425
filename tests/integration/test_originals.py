"""Real quantized graphs: every constant's float original is found, so that the float function is known."""

import numpy as np
import pytest

from harness.case.sampling import CALIBRATION, evaluation_inputs
from harness.evidence.rounding.walk import envelopes
from harness.pipeline.lowering import StageClock, quantize
from harness.workers.observing import built, run_eager
from tests.faults.quality import attention_case, layer_norm_case, mean_case
from tests.integration.conftest import linear_case, relu_join_case


@pytest.mark.parametrize("make", [mean_case, layer_norm_case, attention_case, linear_case, relu_join_case])
def test_without_its_rounding_a_quantized_graph_gives_what_the_float_module_gives(make):
    case = make()
    model = built(case)
    inputs = [item for item in evaluation_inputs(case) if item.origin == CALIBRATION]
    eager = run_eager(model, inputs, StageClock())
    reference = quantize(case, StageClock(), model=model).reference
    for item, [wanted] in zip(inputs, eager, strict=True):
        [envelope] = envelopes(reference, item.arrays, "quantization")
        assert envelope.unjudged == ()
        largest = float(np.max(np.abs(wanted)))
        outside = np.maximum(envelope.low - wanted, wanted - envelope.high)
        assert float(np.max(outside)) < 1e-6 * largest  # both sides are float32, a step is 1e-2
        assert float(np.max(envelope.high - envelope.low)) < 1e-3 * largest
