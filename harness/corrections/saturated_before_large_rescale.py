"""``saturated-before-large-rescale``: a sum or product far beyond its output's range saturates as RESCALE allows."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_FIRST = """\
        with graph.inserting_after(node):
            rescale_node = create_node(
                graph,
                exir_ops.backend.tosa.RESCALE.default,
                (
                    node,
                    qarg.dtype,
                    [
                        rescale_qargs.get_scale_per_tensor()
                        / qarg.get_scale_per_tensor()
                    ],  # [Old scale / new scale]
"""
_SATURATED = """\
        # For a scale in [2 ** (e - 1); 2 ** e), RESCALE requires an input of 31 - e
        # bits. The result of add and sub has up to 29 bits (see
        # _get_inputs_rescaled_qparams), that of an int8 mul up to 17, so saturate it
        # first if the scale is 4 or more. What the output dtype can't hold now, it
        # can't hold afterwards either. No shift is left beyond 2 ** 30: go in steps.
        input_node = node
        scale = rescale_qargs.get_scale_per_tensor() / qarg.get_scale_per_tensor()
        wide = [exir_ops.edge.aten.add.Tensor, exir_ops.edge.aten.sub.Tensor]
        if qarg.dtype == torch.int8:
            wide.append(exir_ops.edge.aten.mul.Tensor)
        if node.target in wide and scale >= 4:
            steps, step = [1.0], 2.0**20 if qarg.dtype == torch.int8 else 2.0**12
            while scale > step:
                steps.append(step)
                scale /= step
            for step in steps:
                with graph.inserting_after(input_node):
                    input_node = create_node(
                        graph,
                        exir_ops.backend.tosa.RESCALE.default,
                        (input_node, qarg.dtype, [step], 0, 0),
                        from_node=node,
                    )

        with graph.inserting_after(input_node):
            rescale_node = create_node(
                graph,
                exir_ops.backend.tosa.RESCALE.default,
                (
                    input_node,
                    qarg.dtype,
                    [scale],  # [Old scale / new scale]
"""

CORRECTION = Correction(
    name="saturated-before-large-rescale",
    entries=("rescale-shift-unpredictable", "rescale-overflow-aborts-table"),
    cause=(
        "InsertRescaleInt32Pass gives the operands of add and sub 20 fraction bits (12 of int16), and takes those of "
        "mul as they are, whatever the scale of the output. With a tiny one the ratio is far above 1, and the int32 "
        "result needs more bits than the shift of the output RESCALE allows, or there is no such shift."
    ),
    change=(
        "If that ratio is 4 or more, a RESCALE of scale 1 saturates the result of add, sub and int8 mul to the dtype "
        "of the output before: what it cuts off saturates behind the ratio too. Ratios that no shift has go in steps."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.insert_rescales_pass",
            "InsertRescaleInt32Pass._rescale_outputs",
            {"1.4.1": "2ff422ca4903", "1.5.1": "2ff422ca4903"},
            (Edit(_FIRST, _SATURATED),),
        ),
    ),
    patterns=(("add|sub|mul|rsub|addmm|linear|softmax|log_softmax|mean|layer_norm|div",),),
)
