"""``table-steps-fit-int16``: neighbouring entries of a 16-bit TABLE are no further apart than TOSA allows."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="table-steps-fit-int16",
    entries=("int16-table-too-steep",),
    cause=(
        "TOSA's TABLE of int16 asks that the difference of neighbouring entries fits int16. Where a logarithm of zero "
        "saturates beside a positive entry it does not, and the result is unpredictable."
    ),
    change="InsertTableOpsPass moves the entry in front of such a step as near to the next one as TOSA asks.",
    changes=(
        Change(
            "executorch.backends.arm._passes.insert_table_ops",
            "InsertTableOpsPass.generate_16_bit_table_values",
            {"1.4.1": "783fc44fd62d", "1.5.1": "3f294799ed2d"},
            (
                Edit(
                    "        lut_values = lut_values >> rshift\n",
                    "        lut_values = (lut_values >> rshift).to(dtype=torch.int32)\n"
                    "        limit = torch.iinfo(torch.int16).max\n"
                    "        if (lut_values.diff().abs() > limit).any():\n"
                    "            for index in range(len(lut_values) - 1, 0, -1):\n"
                    "                following = int(lut_values[index])\n"
                    "                lut_values[index - 1] = lut_values[index - 1].clamp(\n"
                    "                    following - limit, following + limit\n"
                    "                )\n",
                ),
            ),
        ),
    ),
    patterns=(("log|log2|log10|log1p",),),
    needs=("table-ends-behind-int16",),
)
