"""Wrong on purpose: an output has as many bytes as the parent planned, in a type that nobody told the parent."""

from harness.corrections import Change, Correction, Edit

CORRECTION = Correction(
    name="widens-dtype",
    entries=("split-fallback-output-dtype",),
    cause="The delegate writes one byte an element where four are planned. Wrong correction.",
    change="int8 outputs of the delegate become int32, and the parent goes on reading float32.",
    changes=(
        Change(
            "executorch.backends.arm._passes.ensure_unique_output_nodes_pass",
            "EnsureUniqueOutputNodesPass.call",
            {"1.5.1": "4b74f2ea9c7c"},
            (
                Edit(
                    "        output_value = output_node.args[0]\n",
                    "        for value in list(output_node.all_input_nodes):\n"
                    "            if value.meta['val'].dtype == torch.int8:\n"
                    "                with graph.inserting_before(output_node):\n"
                    "                    wide_node = create_node(\n"
                    "                        graph,\n"
                    "                        exir_ops.backend.tosa.RESCALE.default,\n"
                    "                        args=(value, torch.int32, [1.0], 0, 0),\n"
                    "                        from_node=value,\n"
                    "                    )\n"
                    "                wide_node.meta['val'] = value.meta['val'].to(torch.int32)\n"
                    "                output_node.replace_input_with(value, wide_node)\n"
                    "        output_value = output_node.args[0]\n",
                ),
                Edit(
                    "            return PassResult(graph_module, False)\n",
                    "            graph_module.recompile()\n            return super().call(graph_module)\n",
                ),
            ),
        ),
    ),
    patterns=(("split",),),
)
