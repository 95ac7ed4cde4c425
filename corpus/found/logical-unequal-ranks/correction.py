"""``logical-operands-share-rank``: logical_and, logical_or and logical_xor get operands of one rank.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="logical-operands-share-rank",
    entries=("logical-unequal-ranks",),
    cause=(
        "MatchArgRanksPass reshapes the operands of the operators that it lists, and of the logical ones it lists only "
        "the TOSA dialect's, which come later."
    ),
    change="It lists aten.logical_and, aten.logical_or and aten.logical_xor as well.",
    changes=(
        Change(
            "executorch.backends.arm._passes.match_arg_ranks_pass",
            "MatchArgRanksPass.target_ops",
            {"1.5.1": "461ce8a7c121"},
            (
                Edit(
                    "        exir_ops.edge.aten.bitwise_or.Tensor,\n",
                    "        exir_ops.edge.aten.bitwise_or.Tensor,\n"
                    "        exir_ops.edge.aten.logical_and.default,\n"
                    "        exir_ops.edge.aten.logical_or.default,\n"
                    "        exir_ops.edge.aten.logical_xor.default,\n",
                ),
            ),
        ),
    ),
    patterns=(("logical_and|logical_or|logical_xor",),),
)
