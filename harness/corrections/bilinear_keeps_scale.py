"""``bilinear-keeps-scale``: a bilinear upsample by given factors samples at those factors."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="bilinear-keeps-scale",
    entries=("bilinear-scale-from-sizes",),
    cause=(
        "RewriteUpsamplePass.get_resize_parameters_1d takes the scale of RESIZE from output size over input size. "
        "PyTorch samples at the scale that was given, and the two differ where the factor times the input size is no "
        "whole number. The nearest mode was mended (#22437), the bilinear one was not."
    ),
    change="The factor that was given counts for the bilinear mode, too, unless corners are aligned.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_upsample",
            "RewriteUpsamplePass.get_resize_parameters_1d",
            {"1.5.1": "7e63d31536ab"},
            (
                Edit(
                    '        if resize_mode == "nearest" and scale_factor is not None:\n',
                    "        if not align_corners and scale_factor is not None:\n",
                ),
            ),
        ),
    ),
    patterns=(("upsample_bilinear2d",),),
)
