"""``fused-activation-keeps-clamp``: an activation behind conv or linear stays where RESCALE cannot clamp for it."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fuse_quantized_activation_pass"
_NODE = "            quant_node = next(iter(node.users))\n"

CORRECTION = Correction(
    name="fused-activation-keeps-clamp",
    entries=("conv-relu-clamp-dropped", "linear-relu-clamp-dropped", "001-conv-relu-cat"),
    cause=(
        "FuseQuantizedActivationPass removes relu and hardtanh behind conv and linear whatever the zero point is, and "
        "moves the clamp into quant_min. Nothing reads that: RESCALE saturates at the lowest code of the dtype only."
    ),
    change=(
        "The activation is fused only if its zero point is that code. Otherwise it stays, and a q-dq pair of its "
        "output's domain in front of it gives the conv or linear its output qparams."
    ),
    changes=(
        Change(
            _MODULE,
            "FuseQuantizedActivationPass.call",
            {"1.5.1": "3b3efbb23949"},
            (
                Edit(
                    "        modified = False\n        for node in graph_module.graph.nodes:\n",
                    "        from executorch.backends.arm._passes.arm_pass_utils import insert_q_dq_pair\n"
                    "\n"
                    "        modified = False\n"
                    "        for node in list(graph_module.graph.nodes):\n",
                ),
                Edit(
                    _NODE,
                    _NODE
                    + "            quant_args = QuantArgs.from_operator(quant_node.target, quant_node.args)\n"
                    + "            if quant_args.zp > torch.iinfo(quant_args.dtype).min:\n"
                    + "                # RESCALE saturates at the dtype's lowest code only, so keep the\n"
                    + "                # activation and quantize its input like its output.\n"
                    + "                insert_q_dq_pair(\n"
                    + "                    graph_module.graph, input_node, tuple(quant_node.args[1:])\n"
                    + "                )\n"
                    + "                modified = True\n"
                    + "                continue\n\n",
                ),
            ),
        ),
    ),
    patterns=(("conv1d|conv2d|conv3d|conv_transpose2d|linear|addmm", "relu|hardtanh|relu6|clamp"),),
    upstream=("https://github.com/pytorch/executorch/pull/21974",),
)
