"""A stored softmax of TFLite: 40 values, compiled by Vela 5.1.0, against what TFLite's reference kernel returned.

``python -m tests.tflite softmax --keep DIR`` makes such payloads and calls.
"""

from pathlib import Path

import numpy as np
import pytest

from harness.ethosu import run

STORED = Path(__file__).parent / "tflite_softmax"


@pytest.mark.parametrize("accelerator", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_softmax_of_tflite_is_exact(accelerator):
    with np.load(STORED / f"{accelerator}.npz") as payload, np.load(STORED / "calls.npz") as calls:
        assert len(np.unique(calls["outputs"])) > 20
        for array, wanted in zip(calls["inputs"], calls["outputs"], strict=True):
            [output] = run(payload, [array], accelerator)
            np.testing.assert_array_equal(output.reshape(wanted.shape), wanted)
