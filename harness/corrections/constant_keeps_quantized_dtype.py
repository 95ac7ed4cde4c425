"""``constant-keeps-quantized-dtype``: a quantized full or linspace is an integer from the folding on.

A quantized arange keeps the bug: with an integer dtype its step, 0.5 say, is cast to 0, and the pass' retrace raises.
``float-arange-folded`` is for those.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass"

CORRECTION = Correction(
    name="constant-keeps-quantized-dtype",
    entries=("where-of-constant-dtype",),
    cause=(
        "FoldAndAnnotateQParamsPass gives full and linspace their output_qparams and leaves their dtype, so "
        "that the fake value stays float32. MatchArgDtypePass then casts the int8 operand next to it, and the constant "
        "becomes int8."
    ),
    change="FoldAndAnnotateQParamsPass sets the dtype of these factories to the output qparams', as for sum and casts.",
    changes=(
        Change(
            _MODULE,
            "FoldAndAnnotateQParamsPass._correct_output_dtype",
            {"1.4.1": "9b88b6e33520", "1.5.1": "9b88b6e33520"},
            (
                Edit(
                    "            exir_ops.edge.aten.sum.dim_IntList,\n",
                    "            exir_ops.edge.aten.full.default,\n"
                    "            exir_ops.edge.aten.linspace.default,\n"
                    "            exir_ops.edge.aten.sum.dim_IntList,\n",
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
