"""``constant-keeps-quantized-dtype``: a quantized full has an integer fake value from the folding of its q node on."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass"

CORRECTION = Correction(
    name="constant-keeps-quantized-dtype",
    entries=("where-of-constant-dtype",),
    cause=(
        "FoldAndAnnotateQParamsPass gives full its output_qparams and leaves its dtype, so that its fake value stays "
        "float32. MatchArgDtypePass then casts the int8 operand next to it, and the constant becomes int8."
    ),
    change="FoldAndAnnotateQParamsPass sets full's dtype to the output qparams', as for sum and casts.",
    changes=(
        Change(
            _MODULE,
            "FoldAndAnnotateQParamsPass._correct_output_dtype",
            {"1.4.1": "9b88b6e33520", "1.5.1": "9b88b6e33520"},
            (
                Edit(
                    "            exir_ops.edge.aten.sum.dim_IntList,\n",
                    "            exir_ops.edge.aten.full.default,\n            exir_ops.edge.aten.sum.dim_IntList,\n",
                ),
            ),
        ),
    ),
    patterns=(
        (
            "where|sub|add|mul|div|minimum|maximum|eq|ne|ge|gt|le|lt|cat|stack|full_like|ones_like|zeros_like|matmul|bmm|mm",
        ),
    ),
)
