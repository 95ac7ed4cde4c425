"""``log-softmax-of-differences``: a log_softmax subtracts a logarithm, and takes none of a quotient."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="log-softmax-of-differences",
    entries=("log-softmax-of-far-scores",),
    cause=(
        "DecomposeSoftmaxPass makes log(softmax(x)) of a log_softmax. A score 104 below the largest has a softmax of 0 "
        "in float32, and the logarithm of that is minus infinity, where log_softmax has the difference. The annotator "
        "makes it of quantized models as well, whose observers then see infinities."
    ),
    change="The pass makes x - max(x) - log(sum(exp(x - max(x)))).",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_softmax_pass",
            "DecomposeSoftmaxPass.call_operator",
            {"1.4.1": "e286dffbc539", "1.5.1": "e286dffbc539"},
            (
                Edit(
                    "        op5 = super().call_operator(",
                    "        if op in log_softmax:\n"
                    "            op4 = super().call_operator(log_op, (op4,), {}, meta, updated=True)\n"
                    "            return super().call_operator(sub_op, (op2, op4), {}, meta, updated=True)\n"
                    "        op5 = super().call_operator(",
                ),
                Edit(
                    "        if op in log_softmax:\n"
                    "            op6 = super().call_operator(log_op, (op6,), {}, meta, updated=True)\n",
                    "",
                ),
            ),
        ),
    ),
    patterns=(("log_softmax",),),
)
