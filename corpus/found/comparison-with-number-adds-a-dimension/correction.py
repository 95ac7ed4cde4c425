"""``replaced-scalar-adds-no-dimension``: x.sum() > 0 has no dimension, like x.sum().

For ``--correction FILE``; not certified, and so not one of ``harness/corrections``. In 394 comparisons it mended the bug
wherever it showed, and three right graphs became wrong: a logical_and of the comparison and a tensor of rank 1 has
operands of different rank then, and shows logical-unequal-ranks.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="replaced-scalar-adds-no-dimension",
    entries=("comparison-with-number-adds-a-dimension",),
    cause=(
        "ReplaceScalarWithTensorArgPass makes a number a tensor of the shape (1,), whatever rank the other operand "
        "has; with an operand of rank 0 the result has rank 1."
    ),
    change="The tensor has the shape (), which broadcasts to every rank.",
    changes=(
        Change(
            "executorch.backends.transforms.replace_scalar_with_tensor",
            "ReplaceScalarWithTensorArgPass.get_replacement",
            {"1.5.1": "0b4b7b846eba"},
            (Edit("                        (1,),\n", "                        (),\n"),),
        ),
    ),
    patterns=(("gt|ge|lt|le|eq|ne|bitwise_and|bitwise_or|bitwise_xor|remainder",),),
)
