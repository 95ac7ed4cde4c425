"""``batch-norm-fuses-into-own-weights``: batch norms behind two calls of one convolution get weights of their own."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="batch-norm-fuses-into-own-weights",
    entries=("float-batch-norms-of-shared-conv",),
    cause=(
        "FuseBatchNorm2dPass names the weights and the bias that it makes after those of the convolution. Where a "
        "module calls one convolution twice, with a batch norm behind each call, the names are the same, and both "
        "calls get the constants that were made first."
    ),
    change="The names begin with that of the batch norm.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_batch_norm2d_pass",
            "FuseBatchNorm2dPass.call",
            {"1.5.1": "89cdecf54ffc"},
            (
                Edit(
                    '                    name=input_weight_node.name + "_fused_bn",\n',
                    '                    name=f"{node.name}_{input_weight_node.name}_fused_bn",\n',
                ),
                Edit(
                    "                        name=self.get_bias_name(input_weight_node, input_bias_node),\n",
                    "                        name=node.name\n"
                    '                        + "_"\n'
                    "                        + self.get_bias_name(input_weight_node, input_bias_node),\n",
                ),
            ),
        ),
    ),
    patterns=(("conv1d|conv2d|conv3d|conv_transpose2d", "batch_norm"),),
)
