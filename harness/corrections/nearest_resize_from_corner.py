"""``nearest-resize-from-corner``: a nearest resize takes the elements that PyTorch takes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_SCALES = """\
            scales = [
                scale_y_n,
"""

CORRECTION = Correction(
    name="nearest-resize-from-corner",
    entries=("nearest-resize-half-a-pixel-off",),
    upstream=("https://github.com/pytorch/executorch/pull/22437",),
    cause=(
        "RewriteUpsamplePass gives a nearest RESIZE the half-pixel offset of a bilinear one. PyTorch takes the element "
        "at floor(index / factor), which is another one unless the factor is whole."
    ),
    change="Where the ratio of the sizes is not whole, the offset cancels the half that TOSA adds before it rounds.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_upsample",
            "RewriteUpsamplePass.call",
            {"1.4.1": "1e78da7fa88a"},
            (
                Edit(
                    _SCALES,
                    '            if resize_mode == "nearest":\n'
                    "                if scale_y_d > 2:\n"
                    "                    border_y -= offset_y + scale_y_n // 2\n"
                    "                    offset_y = -(scale_y_n // 2)\n"
                    "                if scale_x_d > 2:\n"
                    "                    border_x -= offset_x + scale_x_n // 2\n"
                    "                    offset_x = -(scale_x_n // 2)\n"
                    "\n" + _SCALES,
                ),
            ),
        ),
    ),
    patterns=(("upsample_nearest2d",),),
)
