"""``scalar-operand-adds-no-dimension``: x.sum() * 2 has no dimension, like x.sum()."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.scalars_to_attribute_pass"

CORRECTION = Correction(
    name="scalar-operand-adds-no-dimension",
    entries=("scalar-operand-adds-a-dimension",),
    cause=(
        "ScalarsToAttributePass makes a number a tensor of the largest rank among the other operands, but of rank 1 at "
        "least; with an operand of rank 0 the result has rank 1."
    ),
    change="The rank begins at 0.",
    changes=(
        Change(
            _MODULE,
            "ScalarsToAttributePass._convert_scalar_args",
            {"1.4.1": "d818a39b1c1d", "1.5.1": "d818a39b1c1d"},
            (Edit("        biggest_rank = 1\n", "        biggest_rank = 0\n"),),
        ),
    ),
    patterns=(("add|sub|rsub|mul|div",),),
)
