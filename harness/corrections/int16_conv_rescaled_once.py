"""``int16-conv-rescaled-once``: readers of a 16-bit convolution that ask for several types all read its codes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_NONE = """\
        if not direct_int32_users and not permute_int32_users:
            return
"""
_ONCE = """\
        # A second RESCALE of the accumulator asks for an INT48 tensor in memory,
        # which Ethos-U55 cannot write: then all users read the INT16 output.
        moved = [*direct_int32_users, *permute_int32_users]
        if len(moved) > 1 or len(node.users) > 1:
            return
        if any(len(reader.users) > 1 for reader in permute_int32_users):
            return
"""

CORRECTION = Correction(
    name="int16-conv-rescaled-once",
    entries=("u55-int16-conv-two-readers",),
    upstream=("https://github.com/pytorch/executorch/pull/22566",),
    cause=(
        "RewriteConvPass gives an int16 convolution one RESCALE of its INT48 accumulator for readers of int16 and one "
        "for each reader of int32. Vela fuses one into a convolution, and Ethos-U55 cannot write the accumulator."
    ),
    change="RewriteConvPass makes the RESCALE to int32 only for a convolution with that one reader.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_conv_pass",
            "RewriteConvPass._insert_a16w8_output_branches",
            {"1.5.1": "e4529204cfd9"},
            (Edit(_NONE, _NONE + _ONCE),),
        ),
    ),
    patterns=(
        (
            "conv1d|conv2d|conv3d|conv_transpose2d|linear",
            "add|sub|rsub|mul|minimum|maximum|eq|ne|ge|gt|le|lt|abs|sum|mean|where|softmax",
        ),
    ),
    needs=("qmin-clamped", "neg-rescaled"),  # what Vela refused comes as far: INT16 codes with a bound, and a neg
)
