"""``nearest-resize-doubles-by-size``: a nearest upsample to the same or twice the size goes by the sizes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="nearest-resize-doubles-by-size",
    entries=("nearest-factor-taken-where-pytorch-doubles",),
    cause=(
        "PyTorch's kernel for nearest takes each element once or twice where the result has as many elements along an "
        "axis, or twice as many, whatever the factor is (nearest_idx in ATen/native/UpSample.h). "
        "get_resize_parameters_1d takes the factor."
    ),
    change="Where sizes are equal or one is twice the other, an explicit factor does not count.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_upsample",
            "RewriteUpsamplePass.get_resize_parameters_1d",
            {"1.5.1": "7e63d31536ab"},
            (
                Edit(
                    "            scale_d = input_size\n",
                    "            scale_d = input_size\n"
                    '        if resize_mode == "nearest" and output_size in (input_size, 2 * input_size):\n'
                    "            scale_factor = None  # PyTorch goes by the sizes then\n",
                ),
            ),
        ),
    ),
    patterns=(("upsample_nearest2d",),),
)
