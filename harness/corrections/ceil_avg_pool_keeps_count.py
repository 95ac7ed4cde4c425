"""``ceil-avg-pool-keeps-count``: padding that is put in front of an average pool makes no further window."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="ceil-avg-pool-keeps-count",
    entries=("ceil-avg-pool-window-in-padding",),
    cause=(
        "With ceil_mode ATen drops a last window that starts in the padding behind the input. DecomposeAvgPool2dPass "
        "pads first and pools without padding, so that the window starts in the input. _compute_post_pad asks "
        "adjust_pooling_pad_if_needed how much padding the windows need, and takes all of it where the answer is below "
        "zero, which says that they need none."
    ),
    change="_compute_post_pad pads nothing behind the input where the answer is below zero.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_avg_pool2d_pass",
            "_compute_post_pad",
            {"1.5.1": "62d9a026cfe3"},
            (
                Edit(
                    "    # Padding must never be below 0; the above adjustment may return -1.\n"
                    "    if pad_adjust >= 0:\n"
                    "        return pad_adjust\n"
                    "    return pad\n",
                    "    # Padding must never be below 0; the above adjustment is, if the windows end\n"
                    "    # before the input does.\n"
                    "    if pad_adjust >= 0:\n"
                    "        return pad_adjust\n"
                    "    return 0\n",
                ),
            ),
        ),
    ),
    patterns=(("avg_pool2d",),),
    needs=("ceil-pool-crops-input",),
)
