"""``conv-output-qparams-through-activation``: conv and linear get output qparams if their activation is not fused."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fuse_quantized_activation_pass"
_FUSEABLE = "            if not FuseQuantizedActivationPass._is_fuseable_quantized_activation(node):\n"
_RETURN = "        return PassResult(graph_module, modified)\n"

CORRECTION = Correction(
    name="conv-output-qparams-through-activation",
    entries=("001-conv-relu-cat",),
    cause=(
        "The annotator quantizes the output of relu or hardtanh behind conv and linear, not the edge between them. If "
        "the zero point is not quant_min, the activation is not fused, and the conv is left without output qparams."
    ),
    change=(
        "FuseQuantizedActivationPass puts a q-dq pair of the activation's output domain in front of such an "
        "activation, which stays as an integer clamp."
    ),
    changes=(
        Change(
            _MODULE,
            "FuseQuantizedActivationPass.call",
            {"1.1.0": "801162734655", "1.2.0": "801162734655"},
            (
                Edit(
                    "        for node in graph_module.graph.nodes:\n",
                    "        for node in list(graph_module.graph.nodes):\n",
                ),
                Edit(
                    _FUSEABLE,
                    _FUSEABLE + "                modified |= _quantize_activation_input(graph_module.graph, node)\n",
                ),
                Edit(
                    _RETURN,
                    _RETURN
                    + "\n\n"
                    + "def _quantize_activation_input(graph: torch.fx.Graph, node: Node) -> bool:\n"
                    + '    """Quantize the input of an activation that is not fused like its output.\n'
                    + "\n"
                    + "    Annotation leaves the edge from a conv or linear to its activation\n"
                    + "    unquantized, but the conv or linear needs output qparams of its own. The\n"
                    + "    activation is monotonic, so quantizing before it does not change values.\n"
                    + "\n"
                    + '    """\n'
                    + "    from executorch.backends.arm._passes.arm_pass_utils import insert_q_dq_pair\n"
                    + "\n"
                    + "    if len(node.users) != 1 or node.target not in (\n"
                    + "        exir_ops.edge.aten.relu.default,\n"
                    + "        exir_ops.edge.aten.hardtanh.default,\n"
                    + "    ):\n"
                    + "        return False\n"
                    + "    input_node = node.args[0]\n"
                    + "    quant_node = next(iter(node.users))\n"
                    + "    if (\n"
                    + "        quant_node.target\n"
                    + "        != exir_ops.edge.quantized_decomposed.quantize_per_tensor.default\n"
                    + "        or not FuseQuantizedActivationPass._is_fuseable_input(input_node)\n"
                    + "    ):\n"
                    + "        return False\n"
                    + "    insert_q_dq_pair(graph, input_node, tuple(quant_node.args[1:]))\n"
                    + "    return True\n",
                ),
            ),
        ),
    ),
    patterns=(("conv1d|conv2d|conv3d|conv_transpose2d|linear|addmm", "relu|hardtanh|relu6|clamp"),),
    upstream=("https://github.com/pytorch/executorch/pull/18778",),
)
