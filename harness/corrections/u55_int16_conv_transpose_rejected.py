"""``u55-int16-conv-transpose-rejected``: a transposed convolution of int16 is no work for Ethos-U55."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.operator_support.convolution_support"
_RANK = """\
        input_fake_tensor = get_first_fake_tensor(cast(fx.Node, node.args[0]))
"""
_DTYPE = """\
        from executorch.backends.arm.operator_support.ethos_u55_support import (
            _try_determine_dtype,
        )

        if _try_determine_dtype(cast(fx.Node, node.args[0])) == torch.int16:
            self.reporter.report_reject(
                node, "TransposeConv2D does not support int16 input on Ethos-U55."
            )
            return False
"""

CORRECTION = Correction(
    name="u55-int16-conv-transpose-rejected",
    entries=("u55-int16-conv-transpose-vela",),
    cause=(
        "The Ethos-U55 check of transposed convolutions looks at shapes and strides, not at the type of the "
        "activations. Those of int16 are delegated, and Vela does not place them on the NPU."
    ),
    change="_check_transposed_conv_u55 rejects an int16 input, so that the operator falls back to the CPU.",
    changes=(
        Change(
            _MODULE,
            "ConvolutionSupported._check_transposed_conv_u55",
            {"1.4.1": "cf32c20ebf6e", "1.5.1": "cf32c20ebf6e"},
            (Edit(_RANK, _DTYPE + _RANK),),
        ),
    ),
    patterns=(("conv_transpose2d",),),
    workaround=True,
)
