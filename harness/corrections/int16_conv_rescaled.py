"""``int16-conv-rescaled``: what reads a convolution of int16 as int32 gets its codes, not its accumulator."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_CODES = """\
            node_replacement, node_replacement_fake_tensor = (
                self.insert_output_rescale(
                    graph_module, node, tosa_op, tosa_node_fake_tensor
                )
            )
"""
_IDENTITY = """\
            if self._has_int32_rescale_user(node):
                node_replacement, node_replacement_fake_tensor = (
                    self.insert_identity_int32_rescale(
                        graph_module, node, tosa_op, tosa_node_fake_tensor
                    )
                )
            else:
                node_replacement, node_replacement_fake_tensor = (
                    self.insert_output_rescale(
                        graph_module, node, tosa_op, tosa_node_fake_tensor
                    )
                )
"""

CORRECTION = Correction(
    name="int16-conv-rescaled",
    entries=("int16-conv-read-as-int32",),
    upstream=("https://github.com/pytorch/executorch/pull/21910",),
    cause=(
        "Where a RESCALE to int32 reads a convolution of int16, RewriteConvPass narrows the INT48 accumulator to int32 "
        "by a factor of one. The reader's RESCALE takes it for codes of the convolution's result."
    ),
    change="RewriteConvPass rescales every accumulator of int16 to the codes of the convolution's result.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_conv_pass",
            "RewriteConvPass._insert_output_conversion",
            {"1.4.1": "fb2a1f562b69"},
            (Edit(_IDENTITY, _CODES),),
        ),
    ),
    patterns=(
        (
            "conv1d|conv2d|conv3d|conv_transpose2d|linear",
            "add|sub|rsub|mul|minimum|maximum|eq|ne|ge|gt|le|lt|abs|sum|mean|where",
        ),
    ),
)
