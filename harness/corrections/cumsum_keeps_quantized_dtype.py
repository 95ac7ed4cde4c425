"""``cumsum-keeps-quantized-dtype``: the sums of a quantized cumsum have the type of its codes, and not int64."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_SUMS = "            exir_ops.edge.aten.sum.dim_IntList,\n"

CORRECTION = Correction(
    name="cumsum-keeps-quantized-dtype",
    entries=("cumsum-of-codes-is-int64",),
    upstream=("https://github.com/pytorch/executorch/pull/13457",),
    cause=(
        "FoldAndAnnotateQParamsPass has a quantized cumsum take codes. ATen sums integers in int64 unless it is told "
        "otherwise, and the pass tells sum alone."
    ),
    change="FoldAndAnnotateQParamsPass gives cumsum the type of its output's codes, as it does for sum.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass",
            "FoldAndAnnotateQParamsPass._correct_output_dtype",
            {"1.4.1": "9b88b6e33520", "1.5.1": "9b88b6e33520"},
            (Edit(_SUMS, _SUMS + "            exir_ops.edge.aten.cumsum.default,\n"),),
        ),
    ),
    patterns=(("cumsum",),),
    needs=("int32-clamp-decomposed",),  # sums that are cast and clamped come as far
)
