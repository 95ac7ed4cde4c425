"""``avg-pool-zero-point-literal``: AVG_POOL2D's zero points are the numbers that PT2E decided on."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.rewrite_avg_pool2d_pass"

CORRECTION = Correction(
    name="avg-pool-zero-point-literal",
    entries=("avg-pool-zero-point-quantized-twice",),
    cause=(
        "RewriteAvgPool2dPass makes the zero points with the pool's metadata, output_qparams included. "
        "ComputeConstantOpsAOTPass quantizes such constants like values, and zero points become 127 or -128."
    ),
    change="The zero points are made with metadata without qparams.",
    changes=(
        Change(
            _MODULE,
            "RewriteAvgPool2dPass.call_operator",
            {"1.4.1": "6283ef4ae1b4", "1.5.1": "72c07725ce17"},
            (
                Edit(
                    "        # Materialize zero-point constants\n",
                    "        from executorch.backends.arm._passes.arm_pass_utils import (\n"
                    "            meta_without_qparams,\n"
                    "        )\n\n"
                    "        # Materialize zero-point constants. They are codes, so no qparams may\n"
                    "        # quantize them once more.\n"
                    "        zp_meta = meta_without_qparams(meta)\n",
                ),
                Edit("super().call_scalar(in_zp_val, meta)", "super().call_scalar(in_zp_val, zp_meta)"),
                Edit("super().call_scalar(out_zp_val, meta)", "super().call_scalar(out_zp_val, zp_meta)"),
            ),
        ),
    ),
    patterns=(("avg_pool2d|avg_pool1d|adaptive_avg_pool2d|mean",),),
)
