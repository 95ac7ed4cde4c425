"""``table-ends-behind-int16``: the last entry of a 16-bit TABLE is that of the code behind the largest one."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="table-ends-behind-int16",
    entries=("int16-table-last-entry",),
    cause=(
        "TOSA interpolates the codes from 32640 on towards entry 512 of an int16 TABLE, which stands for code 32768. "
        "InsertTableOpsPass clamps that code to 32767 and drops 7 bits, so the entry is once more that of 32640."
    ),
    change="Entry 512 is computed from the real number that code 32768 would be, as executorch 1.5.1 does.",
    changes=(
        Change(
            "executorch.backends.arm._passes.insert_table_ops",
            "InsertTableOpsPass.generate_16_bit_table_values",
            {"1.4.1": "783fc44fd62d"},
            (
                Edit(
                    "            x = torch_op(x)\n",
                    "            if in_quantargs.dtype == torch.int16 and in_quantargs.qmax == 32767:\n"
                    "                # Entry 512 is for code 32768, which int16 does not have.\n"
                    "                x[-1] = (\n"
                    "                    32768 - in_quantargs.get_zp_per_tensor()\n"
                    "                ) * in_quantargs.get_scale_per_tensor()\n"
                    "            x = torch_op(x)\n",
                ),
            ),
        ),
    ),
    patterns=(
        (
            "sigmoid|tanh|exp|log|rsqrt|reciprocal|silu|gelu|elu|erf|sin|cos|atan|atanh|asin|acos|asinh|acosh|sinh|cosh|"
            "tan|ceil|floor|round|hardsigmoid|hardswish|leaky_relu|pow|sqrt|softmax|log_softmax|expm1|log1p|layer_norm",
        ),
    ),
)
