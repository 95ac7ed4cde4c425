"""``folded-constant-contiguous``: what constants are folded to is contiguous.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_PLACE = "        # needed to suppress `does not reference an nn.Module, nn.Parameter, or buffer` warning\n"

CORRECTION = Correction(
    name="folded-constant-contiguous",
    entries=("transposed-constant-output-order",),
    cause=(
        "torchao folds the permute of a constant to a constant with the strides of the view. to_edge makes that contiguous "
        "and leaves the strides of what is computed from it, in which order the delegate writes its output; "
        "to_executorch traces the delegate again, and the program says that the output is contiguous."
    ),
    change="The folded constant is made contiguous.",
    changes=(
        Change(
            "torchao.quantization.pt2e.constant_fold",
            "replace_node_with_constant",
            {"1.5.1": "5954ddd6cad2"},
            (Edit(_PLACE, "        constant = constant.contiguous()\n" + _PLACE),),
        ),
    ),
    patterns=(("permute|transpose",),),
)
