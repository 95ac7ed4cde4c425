"""``shared-conv-keeps-batch-norm``: a batch_norm is folded into a convolution that nobody else reads."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_CONV = "        if not _is_conv_or_conv_transpose_node(n):\n"
_LINEAR = "        if not _is_linear_node(n):\n"

CORRECTION = Correction(
    name="shared-conv-keeps-batch-norm",
    entries=("batch-norm-folded-into-shared-conv",),
    upstream=("https://github.com/pytorch/ao/pull/3917",),
    cause=(
        "prepare_pt2e folds a batch_norm into the weights of the convolution before it, and does not look at who else "
        "reads the convolution: all of them get what the batch_norm returns."
    ),
    change="_fuse_conv_bn_ and _fuse_linear_bn_ leave a batch_norm alone whose operand has other readers.",
    changes=(
        Change(
            "torchao.quantization.pt2e.utils",
            "_fuse_conv_bn_",
            {"1.4.1": "d9868b24d917", "1.5.1": "d9868b24d917"},
            (Edit(_CONV, _CONV.replace(":\n", " or len(n.users) > 1:\n")),),
        ),
        Change(
            "torchao.quantization.pt2e.utils",
            "_fuse_linear_bn_",
            {"1.4.1": "c471e6fed6cc", "1.5.1": "c471e6fed6cc"},
            (Edit(_LINEAR, _LINEAR.replace(":\n", " or len(n.users) > 1:\n")),),
        ),
    ),
    patterns=(("batch_norm",),),
)
