"""``bilinear-resize-keeps-scale-factor``: a bilinear upsample samples by the factor that it is given."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_NEAREST = '    if resize_mode == "nearest" and node.args[2] is not None:\n        scale_factors = node.args[2]\n'

CORRECTION = Correction(
    name="bilinear-resize-keeps-scale-factor",
    entries=("bilinear-scale-factor-ignored",),
    upstream=("https://github.com/pytorch/executorch/pull/22437",),
    cause=(
        "get_resize_parameters_1d takes an explicit scale factor for nearest alone; for bilinear it divides the sizes, "
        "and the output's was rounded down, so that TOSA samples elsewhere than PyTorch."
    ),
    change=(
        "Without align_corners, a bilinear upsample's factor is its ratio, too: where it is lowered, where it is asked "
        "whether TOSA supports it, and where a downscale by 16 becomes an average pool."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_upsample",
            "RewriteUpsamplePass.get_resize_parameters_1d",
            {"1.5.1": "7e63d31536ab"},
            (
                Edit(
                    '        if resize_mode == "nearest" and scale_factor is not None:\n',
                    "        if scale_factor is not None and not align_corners:\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm.operator_support.upsample_support",
            "_is_upsample_node_tosa_supported",
            {"1.5.1": "257d3adb1494"},
            (
                Edit(
                    _NEAREST,
                    '    place = 2 if resize_mode == "nearest" else 3\n'
                    "    if node.args[place] is not None:\n"
                    "        scale_factors = node.args[place]\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.decompose_unsupported_bilinear_resize_pass",
            "is_exact_tosa_boundary_bilinear_downscale",
            {"1.5.1": "3e416c68d701"},
            (
                Edit(
                    "    scale_y_n, scale_y_d, offset_y, border_y = (\n",
                    "    factor_y, factor_x = node.args[3] or (None, None)\n\n"
                    "    scale_y_n, scale_y_d, offset_y, border_y = (\n",
                ),
                Edit(
                    "            input_size_yx[0], output_size_yx[0], align_corners\n",
                    "            input_size_yx[0],\n"
                    "            output_size_yx[0],\n"
                    "            align_corners,\n"
                    "            scale_factor=factor_y,\n",
                ),
                Edit(
                    "            input_size_yx[1], output_size_yx[1], align_corners\n",
                    "            input_size_yx[1],\n"
                    "            output_size_yx[1],\n"
                    "            align_corners,\n"
                    "            scale_factor=factor_x,\n",
                ),
            ),
        ),
    ),
    patterns=(("upsample_bilinear2d",),),
)
