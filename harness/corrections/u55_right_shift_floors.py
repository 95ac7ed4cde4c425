"""``u55-right-shift-floors``: an arithmetic right shift for Ethos-U55 rounds down, as PyTorch's does."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="u55-right-shift-floors",
    entries=("u55-right-shift-rounds",),
    cause=(
        "RshiftVisitor.define_node sets round to true for Ethos-U55 (MLETORCH-525), so that TOSA rounds half up where "
        "PyTorch rounds down: every odd multiple of half a unit comes out one too large."
    ),
    change="round is false on every target; Vela 5.1.0 compiles that for Ethos-U55, and the payload is exact.",
    changes=(
        Change(
            "executorch.backends.arm.operators.op_tosa_rshift_tensor",
            "RshiftVisitor.define_node",
            {"1.5.1": "e0d6f8e1c643"},
            (Edit("            round = True\n", "            round = False\n"),),
        ),
    ),
    patterns=(("bitwise_right_shift",),),
)
