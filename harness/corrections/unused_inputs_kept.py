"""``unused-inputs-kept``: a delegate's arguments and the inputs of its graph stay the same, one for one."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.tosa.backend"
_MANAGER = "executorch.backends.arm._passes.arm_pass_manager"

_NOT_DECOMPOSED = "        ops_to_not_decompose_if_quant_op = {\n"
_CALL = "            exir_ops.edge.aten.full.default, full_args, full_kwargs, meta\n        )\n"
_HELPER = (
    "\n"
    "\n"
    "def convert_like_ops_of_unread_values(graph_module) -> None:\n"
    '    """Convert ``full_like`` and its kin to ``full`` if nothing else reads the input.\n'
    "\n"
    "    Only the shape of the input matters. Without this, a partition may get an input\n"
    "    that none of its operators reads, and Vela drops such inputs although the\n"
    "    runtime binds them by position.\n"
    "\n"
    '    """\n'
    "    import torch\n"
    "    from torch._prims_common import suggest_memory_format\n"
    "\n"
    "    aten = torch.ops.aten\n"
    "    fill_values = {aten.zeros_like.default: 0, aten.ones_like.default: 1}\n"
    "    like_ops = (aten.full_like.default, *fill_values)\n"
    "    modified = False\n"
    "    for node in list(graph_module.graph.nodes):\n"
    '        if node.op != "call_function" or node.target not in like_ops:\n'
    "            continue\n"
    '        val = node.meta["val"]\n'
    "        if any(user.target not in like_ops for user in node.args[0].users):\n"
    "            continue\n"
    "        if not all(isinstance(dim, int) for dim in val.shape):\n"
    "            continue  # The input gives the shape at runtime\n"
    "        channels_last = suggest_memory_format(val) != torch.contiguous_format\n"
    "        if channels_last and not val.is_contiguous():\n"
    "            continue  # full has no memory format\n"
    "        if node.target in fill_values:\n"
    "            fill_value = fill_values[node.target]\n"
    "        else:\n"
    "            fill_value = node.args[1]\n"
    "        # In place, as the node's name may be in the graph signature.\n"
    "        node.target = aten.full.default\n"
    "        node.args = (list(val.shape), fill_value)\n"
    '        node.kwargs = {"dtype": val.dtype, "device": val.device}\n'
    "        modified = True\n"
    "    if modified:\n"
    "        graph_module.graph.eliminate_dead_code()\n"
    "        graph_module.recompile()\n"
)

CORRECTION = Correction(
    name="unused-inputs-kept",
    entries=("full-like-drops-only-input", "full-like-shifts-inputs"),
    cause=(
        "ConvertFullLikeToFullPass leaves the argument of full_like without users, and TOSABackend._preprocess_module "
        "skips every placeholder without users. The program still passes the argument, so each later one is bound one "
        "place too early."
    ),
    change=(
        "An unused argument becomes a TOSA input, and only unused constants are skipped. Vela drops such an input "
        "again, so full_like of a value that nothing else reads becomes full before the program is partitioned."
    ),
    changes=(
        Change(
            _MODULE,
            "TOSABackend._preprocess_module",
            {"1.4.1": "03252b0fe7ce", "1.5.1": "6a77a69b3b33"},
            (
                Edit(
                    "                    if len(node.users) == 0 and submodule_name is None:\n"
                    "                        # In top level module, we don't need to handle unused placeholders.\n"
                    "                        # In submodules, we do need to handle them to preserve call signature.\n",
                    "                    if (\n"
                    "                        len(node.users) == 0\n"
                    "                        and submodule_name is None\n"
                    "                        and node.name not in edge_program.graph_signature.user_inputs\n"
                    "                    ):\n"
                    "                        # In top level module, we don't need to handle unused constants.\n"
                    "                        # User inputs are bound by position, so they must all be there. So\n"
                    "                        # must all placeholders of submodules.\n",
                ),
            ),
        ),
        Change(
            _MANAGER,
            "ArmPassManager.transform_for_pre_decomposition_pipeline",
            {"1.5.1": "626813bb3603"},
            (
                Edit(
                    "        return exported_program\n",
                    "        from torch import ops\n"
                    "\n"
                    "        like_ops = (\n"
                    "            ops.aten.full_like.default,\n"
                    "            ops.aten.zeros_like.default,\n"
                    "            ops.aten.ones_like.default,\n"
                    "        )\n"
                    "        if any(\n"
                    "            node.target in like_ops\n"
                    "            for module in exported_program.graph_module.modules()\n"
                    "            if isinstance(module, GraphModule)\n"
                    "            for node in module.graph.nodes\n"
                    "        ):\n"
                    "            from executorch.backends.arm._passes.convert_full_like_to_full_pass import (\n"
                    "                convert_like_ops_of_unread_values,\n"
                    "            )\n"
                    "\n"
                    "            for module in exported_program.graph_module.modules():\n"
                    "                if isinstance(module, GraphModule):\n"
                    "                    convert_like_ops_of_unread_values(module)\n"
                    "        return exported_program\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.convert_full_like_to_full_pass",
            "ConvertFullLikeToFullPass.call_operator",
            {"1.4.1": "c9fbf12c73f8", "1.5.1": "f0e0c68f13ea"},
            (Edit(_CALL, _CALL + _HELPER),),
        ),
        # 1.4.1 has no hook before decompositions; the partitioner sees the program here first
        Change(
            "executorch.backends.arm.tosa.partitioner",
            "TOSAPartitioner.ops_to_not_decompose",
            {"1.4.1": "37c5e3fe01ca"},
            (
                Edit(
                    _NOT_DECOMPOSED,
                    "        from executorch.backends.arm._passes.convert_full_like_to_full_pass import (\n"
                    "            convert_like_ops_of_unread_values,\n"
                    "        )\n"
                    "\n"
                    "        for module in ep.graph_module.modules():\n"
                    "            if isinstance(module, torch.fx.GraphModule):\n"
                    "                convert_like_ops_of_unread_values(module)\n"
                    "\n" + _NOT_DECOMPOSED,
                ),
            ),
        ),
    ),
    patterns=(("full_like",), ("zeros_like",), ("ones_like",)),
)
