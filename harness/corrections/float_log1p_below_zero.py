"""``float-log1p-below-zero``: a float log1p of a negative number is a logarithm."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-log1p-below-zero",
    entries=("float-log1p-of-negative",),
    cause=(
        "DecomposeLog1pPass takes the logarithm of 1 + x where x is above 0.001, and six terms of a series elsewhere: "
        "near zero, as is meant, and for all negative numbers too, where the series is wrong by up to a third and more."
    ),
    change="The magnitude of x decides.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_log1p_pass",
            "DecomposeLog1pPass.call_operator",
            {"1.4.1": "f55e0798e013", "1.5.1": "f55e0798e013"},
            (
                Edit(
                    "        mask = super().call_operator(op_gt, (x, 1e-3), {}, meta, updated=True)\n",
                    "        magnitude = super().call_operator(\n"
                    "            exir_ops.edge.aten.abs.default, (x,), {}, meta, updated=True\n"
                    "        )\n"
                    "        mask = super().call_operator(\n"
                    "            op_gt, (magnitude, 1e-3), {}, meta, updated=True\n"
                    "        )\n",
                ),
            ),
        ),
    ),
    patterns=(("log1p|logaddexp|softplus|mish",),),
)
