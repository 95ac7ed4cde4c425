"""``conv-transpose-int4-axis``: 4-bit weights of a transposed convolution have a scale for each output channel."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="conv-transpose-int4-axis",
    entries=("conv-transpose-int4-axis",),
    upstream=("https://github.com/pytorch/executorch/pull/17842",),
    cause=(
        "The weights of conv_transpose2d are (input, output, height, width), and the quantizer moves the axis of their "
        "scales from 0 to 1 (_adjust_weight_qspec_for_conv_transpose), but not for 4-bit weights; RewriteConvPass "
        "takes the scales for those of output channels all the same."
    ),
    change="The axis moves for 4-bit weights, too.",
    changes=(
        Change(
            "executorch.backends.arm.quantizer.quantization_annotator",
            "_adjust_weight_qspec_for_conv_transpose",
            {"1.4.1": "1aad474e6ecc", "1.5.1": "1aad474e6ecc"},
            (
                Edit(
                    "    # For now skip axis adjustment for a8w4 per-channel configs (int4 weights).\n"
                    "    if weight_qspec.quant_min == -7 and weight_qspec.quant_max == 7:\n"
                    "        return weight_qspec\n\n",
                    "",
                ),
            ),
        ),
    ),
    patterns=(("conv_transpose2d",),),
)
