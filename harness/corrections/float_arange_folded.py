"""``float-arange-folded``: a float arange is a constant of the model from annotation on."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="float-arange-folded",
    entries=("where-of-arange-dtype",),
    cause=(
        "FoldAndAnnotateQParamsPass gives an arange its output_qparams and leaves its dtype, so that the fake value "
        "stays float32 beside int8 operands. An arange of integers cannot be retraced: its step, 0.5 say, becomes 0."
    ),
    change=(
        "ConstantFoldingPass, which runs ahead of annotation, makes a constant of every arange of floats, so that it "
        "is quantized as any other constant is."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.constant_folding_pass",
            "ConstantFoldingPass.call",
            {"1.4.1": "49f4cdad7b10", "1.5.1": "981306b2f496"},
            (
                Edit(
                    "        constant_fold(graph_module)\n",
                    """\
        from torchao.quantization.pt2e.constant_fold import replace_node_with_constant

        for node in list(graph_module.graph.nodes):
            if "aten.arange." not in str(node.target):
                continue
            numbers = all(isinstance(arg, (int, float)) for arg in node.args)
            if numbers and node.meta["val"].dtype.is_floating_point:
                value = node.target(*node.args, **node.kwargs)
                replace_node_with_constant(graph_module, node, value)
        constant_fold(graph_module)
""",
                ),
            ),
        ),
    ),
    patterns=(
        ("where|choose|select_scatter|slice_scatter|sub|add|mul|div|minimum|maximum|eq|ne|ge|gt|le|lt|cat|stack",),
    ),
    needs=("addmm-bias-get-attr",),  # a bias that was an arange is a constant now
)
