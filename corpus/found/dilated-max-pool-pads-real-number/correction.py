"""``dilated-max-pool-pads-lowest``: a dilated max_pool2d is padded with what is below every value, as a real number."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="dilated-max-pool-pads-lowest",
    entries=("dilated-max-pool-pads-real-number",),
    cause=(
        "DecomposeMaxPool2dPass pads a quantized tensor with the lowest code, and RewritePadPass takes the value of a "
        "pad for a real number and quantizes it. Where values are below -128 (a16w8: -32768), the padding wins."
    ),
    change="The pad's value is minus infinity, which becomes the lowest code of the quantized tensor.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_maxpool2d_with_dilation_pass",
            "DecomposeMaxPool2dPass.call_operator",
            {"1.5.1": "c9ca14fb7c74"},
            (
                Edit(
                    "        pad_value = (\n"
                    '            float("-inf")\n'
                    "            if x.data.dtype.is_floating_point\n"
                    "            else torch.iinfo(x.data.dtype).min\n"
                    "        )\n",
                    "        # RewritePadPass quantizes it.\n"
                    '        pad_value = float("-inf")\n',
                ),
            ),
        ),
    ),
    patterns=(("max_pool2d",),),
)
