"""``int16-table-of-zeros``: a 16-bit TABLE whose entries are all zero is shifted by nothing."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="int16-table-of-zeros",
    entries=("int16-table-all-zero",),
    cause=(
        "InsertTableOpsPass shifts the entries of a 16-bit TABLE by the logarithm of the largest. If all are zero, "
        "that is minus infinity, and int() raises."
    ),
    change="The largest entry is taken for at least one, which needs no shift.",
    changes=(
        Change(
            "executorch.backends.arm._passes.insert_table_ops",
            "InsertTableOpsPass.generate_16_bit_table_values",
            {"1.4.1": "783fc44fd62d", "1.5.1": "3f294799ed2d"},
            (
                Edit(
                    "torch.ceil(torch.log2(lut_values.abs().max()))",
                    "torch.ceil(torch.log2(lut_values.abs().max().clamp(min=1)))",
                ),
            ),
        ),
    ),
    patterns=(("erfinv",),),
)
