"""``float-asinh-odd``: a float asinh of a negative number is minus that of the positive one."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-asinh-odd",
    entries=("float-asinh-of-negative",),
    cause=(
        "DecomposeAsinhPass makes log(x + sqrt(x * x + 1)). For a large negative x both summands are equal but for "
        "their signs: little or nothing is left of their sum, and its logarithm is wrong, infinite or NaN."
    ),
    change="The pass computes asinh of the magnitude, and negates it for a negative x.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_asinh_pass",
            "DecomposeAsinhPass.call_operator",
            {"1.4.1": "97902f379066", "1.5.1": "97902f379066"},
            (
                Edit(
                    "        x = args[0]\n",
                    "        signed = args[0]\n"
                    "        x = super().call_operator(\n"
                    "            exir_ops.edge.aten.abs.default, (signed,), {}, meta, True\n"
                    "        )\n",
                ),
                Edit(
                    "        return out\n",
                    "        negated = super().call_operator(\n"
                    "            exir_ops.edge.aten.neg.default, (out,), {}, meta, True\n"
                    "        )\n"
                    "        is_negative = super().call_operator(\n"
                    "            exir_ops.edge.aten.lt.Scalar, (signed, 0.0), {}, meta, True\n"
                    "        )\n"
                    "        return super().call_operator(\n"
                    "            exir_ops.edge.aten.where.self, (is_negative, negated, out), {}, meta, True\n"
                    "        )\n",
                ),
            ),
        ),
    ),
    patterns=(("asinh",),),
    needs=("permute-moves-to-its-own-input",),  # a where, which a permute moves past
)
