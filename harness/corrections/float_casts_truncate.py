"""``float-casts-truncate``: a float that becomes a small integer loses its fraction."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-casts-truncate",
    entries=("float-cast-to-int8-rounds",),
    cause=(
        "TOSA's CAST rounds a float to the nearest integer, where PyTorch drops the fraction. "
        "DecorateFp32toInt32CastingPass puts floor or ceil in front of it, but of casts to int32 alone."
    ),
    change="The pass takes casts to int8 and int16 as well.",
    upstream=("https://github.com/pytorch/executorch/pull/12243",),
    changes=(
        Change(
            "executorch.backends.arm._passes.decorate_fp32_to_int32_casting_pass",
            "DecorateFp32toInt32CastingPass.call_operator",
            {"1.4.1": "21747f69c822", "1.5.1": "21747f69c822"},
            (
                Edit(
                    "        if not (input_dtype == torch.float32 and output_dtype == torch.int32):\n",
                    "        integers = (torch.int8, torch.int16, torch.int32)\n"
                    "        if not (input_dtype == torch.float32 and output_dtype in integers):\n",
                ),
            ),
        ),
    ),
    patterns=(("to_int8",),),
)
