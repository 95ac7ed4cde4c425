"""``grouped-conv-transpose-bias``: a grouped conv_transpose2d with per-channel weights keeps a float bias."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_AXIS = "                            # Bias is 1-D so channel axis is always 0 even for transpose conv\n"

CORRECTION = Correction(
    name="grouped-conv-transpose-bias",
    entries=("grouped-conv-transpose-convert",),
    cause=(
        "Weights of a grouped conv_transpose2d are quantized per input channel, and get_bias_qspec derives the scales "
        "of the bias from theirs. The bias has one element per output channel, and convert_pt2e fails on other lengths."
    ),
    change="get_bias_qspec gives such a convolution, which no delegate takes, no bias spec if the lengths differ.",
    changes=(
        Change(
            "executorch.backends.arm.quantizer.quantization_config",
            "QuantizationConfig.get_bias_qspec",
            {"1.4.1": "a668ba060d45", "1.5.1": "b41562df7def"},
            (
                Edit(
                    _AXIS,
                    "                            # Grouped weights are quantized per input channel, so\n"
                    "                            # there may not be a scale for each element of the bias.\n"
                    "                            groups = node.args[6] if len(node.args) > 6 else 1\n"
                    '                            in_channels, per_group = weight.meta["val"].shape[:2]\n'
                    "                            if groups != 1 and in_channels != groups * per_group:\n"
                    "                                return None\n" + _AXIS,
                ),
            ),
        ),
    ),
    patterns=(("conv_transpose2d",),),
)
