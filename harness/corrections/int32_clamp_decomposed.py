"""``int32-clamp-decomposed``: a clamp of quantized int32 becomes MAXIMUM and MINIMUM, like any clamp of int32."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="int32-clamp-decomposed",
    entries=("clamp-of-cast-integers",),
    cause=(
        "TOSA has no CLAMP of int32, and DecomposeTOSAUnsupportedClampPass runs before FoldAndAnnotateQParamsPass, "
        "where a clamp that is quantized as int32 is still one of floats."
    ),
    change="The pass runs once more, behind QuantizeClampArgumentsPass.",
    upstream=(
        "https://github.com/pytorch/executorch/pull/15977",
        "https://github.com/pytorch/executorch/pull/16273",
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.arm_pass_manager",
            "ArmPassManager._tosa_pipeline",
            {"1.4.1": "fe4194001772", "1.5.1": "ed04563f52be"},
            (
                Edit(
                    "                QuantizeClampArgumentsPass(),\n",
                    "                QuantizeClampArgumentsPass(),\n"
                    "                # FoldAndAnnotateQParamsPass makes clamps of int32.\n"
                    "                DecomposeTOSAUnsupportedClampPass(),\n",
                ),
            ),
        ),
    ),
    patterns=(("to_float|cast", "clamp|relu|relu6|hardtanh"),),
)
