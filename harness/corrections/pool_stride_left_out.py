"""``pool-stride-left-out``: a pool whose stride is left out has that of its kernel."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_SUPPORT = "executorch.backends.arm.operator_support.pool_2d_support"
_STRIDE = "        stride = cast(tuple[int, int], node.args[2])\n"
_OR_KERNEL = (
    "        stride = cast(\n"
    "            tuple[int, int],\n"
    "            node.args[2] if len(node.args) > 2 and node.args[2] else kernel,\n"
    "        )\n"
)

CORRECTION = Correction(
    name="pool-stride-left-out",
    entries=("avg-pool-stride-left-out", "max-pool-stride-left-out"),
    cause=(
        "torch.export writes an empty list for the stride of a pool that is left out where a later argument is given. "
        "DecomposeAvgPool2dPass asks for None alone, and the support checks and later passes take two numbers."
    ),
    change="An empty stride is the kernel's size in the pass and in both support checks, as in executorch 1.5.1.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_avg_pool2d_pass",
            "DecomposeAvgPool2dPass.call_operator",
            {"1.4.1": "e163029b0e8e"},
            (Edit("        if len(args) > 2 and args[2] is not None:\n", "        if len(args) > 2 and args[2]:\n"),),
        ),
        Change(
            _SUPPORT,
            "AvgPool2dSupported.is_node_tosa_supported",
            {"1.4.1": "07fce6b931a7"},
            (Edit(_STRIDE, _OR_KERNEL),),
        ),
        Change(
            _SUPPORT,
            "MaxPool2dSupported.is_node_tosa_supported",
            {"1.4.1": "0e5ff1416e55"},
            (Edit(_STRIDE, _OR_KERNEL),),
        ),
        Change(
            "executorch.backends.arm._passes.decompose_maxpool2d_with_dilation_pass",
            "DecomposeMaxPool2dPass.call_operator",
            {"1.4.1": "238d73ffe50a"},
            (
                Edit(
                    "        stride = args[2]\n",
                    "        stride = args[2] if len(args) > 2 and args[2] else kernel_size\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.size_adjust_input_pass",
            "get_slices_pooling",
            {"1.4.1": "1ed5b3ed727e"},
            (
                Edit(
                    "    stride = pooling_node.args[2]\n",
                    "    stride = (\n"
                    "        pooling_node.args[2]\n"
                    "        if len(pooling_node.args) > 2 and pooling_node.args[2]\n"
                    "        else kernel_size\n"
                    "    )\n",
                ),
            ),
        ),
    ),
    patterns=(("avg_pool2d|max_pool2d",),),
    needs=("avg-pool-zero-point-literal",),
)
