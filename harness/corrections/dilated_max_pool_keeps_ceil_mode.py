"""``dilated-max-pool-keeps-ceil-mode``: the windows that ceil_mode adds are computed, and not cropped away."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_SIZES = "        N, C, H, W = x.data.size()\n"
_PACKED = "        W_pack, right_padding, W_final = _pack_dimension(d_w, pad_w, W, k_w, s_w)\n"

CORRECTION = Correction(
    name="dilated-max-pool-keeps-ceil-mode",
    entries=("dilated-max-pool-ceil-mode",),
    cause=(
        "_pack_dimension computes the final size of a dilated max_pool2d with a floor whatever ceil_mode says, so the "
        "last windows are cropped away, and the delegate writes less than the program allocates."
    ),
    change="With ceil_mode, the final size is ATen's, and the input is padded for the last window.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_maxpool2d_with_dilation_pass",
            "DecomposeMaxPool2dPass.call_operator",
            {"1.4.1": "238d73ffe50a", "1.5.1": "c9ca14fb7c74"},
            (
                Edit(
                    _SIZES,
                    _SIZES
                    + "        # With ceil_mode, room for a last window which begins inside of the input or the\n"
                    "        # padding before it, but ends behind the padding after it.\n"
                    "        missing = []\n"
                    "        for size, pad, d, k, s in (\n"
                    "            (H, pad_h, d_h, k_h, s_h),\n"
                    "            (W, pad_w, d_w, k_w, s_w),\n"
                    "        ):\n"
                    "            window = d * (k - 1) + 1\n"
                    "            last = -(-(size + 2 * pad - window) // s)\n"
                    "            if last * s >= size + pad:\n"
                    "                last -= 1\n"
                    "            beyond = max(0, last * s + window - size - 2 * pad)\n"
                    "            missing.append(beyond if ceil_mode else 0)\n"
                    "        H, W = H + missing[0], W + missing[1]\n",
                ),
                Edit(
                    _PACKED,
                    _PACKED + "        bottom_padding += missing[0]\n        right_padding += missing[1]\n",
                ),
            ),
        ),
    ),
    patterns=(("max_pool2d",),),
)
