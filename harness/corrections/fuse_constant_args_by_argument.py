"""``fuse-constant-args-by-argument``: constants of a list are folded with the qparams of their argument."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fuse_constant_ops_pass"

CORRECTION = Correction(
    name="fuse-constant-args-by-argument",
    entries=("002-cat-constant-fold",),
    cause=(
        "FoldAndAnnotateQParamsPass stores input_qparams by top-level argument, but FuseConstantArgsPass looks them up "
        "by the position in all_input_nodes. Every tensor of a list but the first is folded as raw codes."
    ),
    change=(
        "FuseConstantArgsPass looks qparams up by argument and pushes them through lists and tuples. Keyword "
        "arguments, for which none are stored, get none."
    ),
    changes=(
        Change(
            _MODULE,
            "FuseConstantArgsPass._fuse_nodes",
            {"1.1.0": "79edd5201f5f", "1.2.0": "774620426941"},
            (
                Edit(
                    "        def resolve_arg(arg):\n"
                    "            if isinstance(arg, torch.fx.Node) and arg in input_nodes:\n"
                    "                idx = input_nodes.index(arg)\n",
                    "        def resolve_arg(arg, arg_index=None):\n"
                    "            # FoldAndAnnotateQParamsPass stores qparams by top-level argument, so all\n"
                    "            # tensors of a list share those of the list.\n"
                    "            qparam = (\n"
                    "                qparams.get(arg_index) if qparams and arg_index is not None else None\n"
                    "            )\n"
                    "            if isinstance(arg, torch.fx.Node) and arg in input_nodes:\n",
                ),
                Edit(
                    "                # Check if qparams exist for this arg\n"
                    "                if qparams and idx in qparams.keys():\n"
                    "                    t = qparams[idx].dequantize_value(t)\n",
                    "                if qparam is not None:\n                    t = qparam.dequantize_value(t)\n",
                ),
                Edit(
                    "                return tuple(resolve_arg(x) for x in arg)\n",
                    "                return tuple(resolve_arg(x, arg_index) for x in arg)\n",
                ),
                Edit(
                    "                return [resolve_arg(x) for x in arg]\n",
                    "                return [resolve_arg(x, arg_index) for x in arg]\n",
                ),
                Edit(
                    "        new_args = tuple(resolve_arg(a) for a in node.args)\n",
                    "        new_args = tuple(\n"
                    "            resolve_arg(arg, arg_index) for arg_index, arg in enumerate(node.args)\n"
                    "        )\n",
                ),
            ),
        ),
    ),
    patterns=(
        ("ramp", "cat|stack"),
        ("cat|stack",),
        ("where|add|sub|mul|div|minimum|maximum",),
    ),
    upstream=(
        "https://github.com/pytorch/executorch/issues/18971",
        "https://github.com/pytorch/executorch/pull/19064",
    ),
)
