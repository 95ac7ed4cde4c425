"""``folded-codes-fit-int4``: codes of -128 do not count as 4-bit ones.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="folded-codes-fit-int4",
    entries=("folded-zeros-become-int4",),
    cause=(
        "FuseConstantArgsPass gives a folded constant the INT4 of the weights that it was made of if its values fit. It "
        "asks abs(), which is -128 for an int8 of -128."
    ),
    change="The values are widened first.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_constant_ops_pass",
            "FuseConstantArgsPass._propagate_special_dtype",
            {"1.5.1": "d909750be074"},
            (
                Edit(
                    "            if data.abs().max() <= special_dtype.max():\n",
                    "            # abs() of -128 is -128 in int8\n"
                    "            if data.to(torch.int64).abs().max() <= special_dtype.max():\n",
                ),
            ),
        ),
    ),
    patterns=(("linear|addmm|conv1d|conv2d|conv3d|lstm|gru",),),
)
