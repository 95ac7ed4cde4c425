"""``float-casts-truncate``: a cast of a float to int8 or int16 drops the fraction, as one to int32 does."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-casts-truncate",
    entries=("float-cast-to-int8-rounds",),
    cause=(
        "TOSA's CAST rounds to the nearest integer, PyTorch drops the fraction. DecorateFp32toInt32CastingPass puts "
        "floor and ceil before a cast to int32, and leaves one to int8 or int16 as it is."
    ),
    change="The pass does so before casts to int8 and int16, too.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decorate_fp32_to_int32_casting_pass",
            "DecorateFp32toInt32CastingPass.call_operator",
            {"1.4.1": "21747f69c822", "1.5.1": "21747f69c822"},
            (
                Edit(
                    "        if not (input_dtype == torch.float32 and output_dtype == torch.int32):\n",
                    "        if not (\n"
                    "            input_dtype == torch.float32\n"
                    "            and output_dtype in (torch.int8, torch.int16, torch.int32)\n"
                    "        ):\n",
                ),
            ),
        ),
    ),
    patterns=(("to_integer",),),
    needs=("float-log1p-below-zero",),  # a wrong logarithm that was rounded to the right number
)
