"""``batch-norm-without-convolution-decomposed``: a batch norm of rows or volumes is left to the next pass."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="batch-norm-without-convolution-decomposed",
    entries=("float-batch-norm-of-rows",),
    cause=(
        "FuseBatchNorm2dPass puts a convolution with a weight of four axes in front of a batch norm that has none, "
        "unless there are three. BatchNorm1d of [N, C], behind a Linear for one, and BatchNorm3d have other ranks. "
        "Statistics that are plain constants, and no buffers, it cannot read."
    ),
    change="The pass leaves these to DecomposeBatchNormNoStatsPass.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_batch_norm2d_pass",
            "FuseBatchNorm2dPass.call",
            {"1.5.1": "89cdecf54ffc"},
            (
                Edit(
                    "            epsilon = node.args[-1]\n",
                    "            if get_buffer(self.exported_program, bn_mean_node) is None:\n"
                    "                continue\n"
                    "            if get_buffer(self.exported_program, bn_var_node) is None:\n"
                    "                continue\n"
                    "            if (\n"
                    "                input_node.target != exir_ops.edge.aten.convolution.default\n"
                    "                or not is_single_user\n"
                    "            ) and get_first_fake_tensor(node).dim() not in (3, 4):\n"
                    "                continue\n"
                    "\n"
                    "            epsilon = node.args[-1]\n",
                ),
            ),
        ),
    ),
    patterns=(("batch_norm",),),
)
