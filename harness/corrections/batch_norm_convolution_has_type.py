"""``batch-norm-convolution-has-type``: the convolution made for a batch norm can be the operand of another."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="batch-norm-convolution-has-type",
    entries=("float-batch-norm-of-batch-norm",),
    cause=(
        "FuseBatchNorm2dPass makes a convolution for a batch norm that has none, and leaves its type open until the "
        "pass ends. If its result goes to the next batch norm, that one asks for the type: KeyError."
    ),
    change="The convolution gets the type of the batch norm.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_batch_norm2d_pass",
            "FuseBatchNorm2dPass.call",
            {"1.5.1": "89cdecf54ffc"},
            (
                Edit(
                    "                    node.replace_input_with(input_node, new_input_node)\n",
                    '                    new_input_node.meta["val"] = get_first_fake_tensor(node)\n'
                    "                    node.replace_input_with(input_node, new_input_node)\n",
                ),
            ),
        ),
    ),
    patterns=(("batch_norm", "batch_norm"),),
)
