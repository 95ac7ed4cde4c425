"""``copy-keeps-own-shape``: what is written into a tensor is repeated to that tensor's shape."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="copy-keeps-own-shape",
    entries=("copy-of-broadcast-shrinks",),
    upstream=("https://github.com/pytorch/executorch/pull/15457",),
    cause=(
        "RemoveNoopPass replaces a copy by what is copied. That has fewer elements where it is broadcast, so the "
        "value is smaller than promised."
    ),
    change=(
        "Before the program is partitioned, a copy into a value that nothing else shares becomes an expand of what is "
        "copied, or a clone: the delegate gets no input that nothing reads, which Vela would drop. Of other copies, "
        "RemoveNoopPass repeats what is copied to the shape of what it is copied into."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.arm_pass_manager",
            "ArmPassManager.transform_for_pre_decomposition_pipeline",
            {"1.5.1": "626813bb3603"},
            (
                Edit(
                    "        return exported_program\n",
                    """\
        from torch import ops

        def aliases(value):
            schema = getattr(value.target, "_schema", None)
            return schema is None or any(item.alias_info for item in schema.returns)

        for module in exported_program.graph_module.modules():
            if not isinstance(module, GraphModule):
                continue
            places = {node: place for place, node in enumerate(module.graph.nodes)}
            for node in places:
                if node.target not in (ops.aten.copy_.default, ops.aten.copy.default):
                    continue
                value, source = node.args[:2]
                if value.op != "call_function" or aliases(value):
                    continue
                others = [user for user in value.users if user is not node]
                if any(map(aliases, others)):
                    continue  # A view of the value, or another write into it
                for user in others:
                    if places[user] > places[node]:
                        user.replace_input_with(value, node)
                shape = list(node.meta["val"].shape)
                if list(source.meta["val"].shape) == shape:
                    node.target, node.args = ops.aten.clone.default, (source,)
                else:
                    node.target, node.args = ops.aten.expand.default, (source, shape)
                node.kwargs = {}
            module.graph.eliminate_dead_code()
            module.recompile()
        return exported_program
""",
                ),
            ),
        ),
        # what is written into a view, and what decompositions make of fill_
        Change(
            "executorch.backends.arm._passes.remove_noop_pass",
            "RemoveNoopPass.call_operator",
            {"1.4.1": "0eeab4527448", "1.5.1": "c064d3232d6e"},
            (
                Edit(
                    """\
        if op == exir_ops.edge.aten.copy.default:
            return args[1]
""",
                    """\
        if op == exir_ops.edge.aten.copy.default:
            source, shape = args[1], list(args[0].data.shape)
            sizes = list(source.data.shape)
            if sizes == shape:
                return source
            source_meta = meta.copy()
            qparams = meta.data.get("input_qparams") or {}
            if 1 in qparams:
                source_meta["input_qparams"] = {0: qparams[1]}
            extended = [1] * (len(shape) - len(sizes)) + sizes
            if extended != sizes:
                source = super().call_operator(
                    exir_ops.edge.aten.view_copy.default,
                    (source, extended),
                    {},
                    source_meta,
                )
            multiples = [
                size if own == 1 else 1
                for size, own in zip(shape, extended, strict=True)
            ]
            return super().call_operator(
                exir_ops.edge.aten.repeat.default,
                (source, multiples),
                {},
                source_meta,
            )
""",
                ),
            ),
        ),
    ),
    patterns=(("overwrite",),),
)
