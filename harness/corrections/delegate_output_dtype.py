"""``delegate-output-dtype``: the parent graph has the dtype that an integer-only delegate writes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_PARTITIONER = "executorch.backends.arm.tosa.partitioner"
_API = "executorch.exir.backend.backend_api"
_CALL = Edit(
    "        # Create partition with nodes containing this tag. There should only be\n",
    "        if any(\n"
    '            "delegate_output_qparams" in node.meta\n'
    "            for node in tagged_graph_module.graph.nodes\n"
    "        ):\n"
    "            _quantize_delegate_outputs(\n"
    "                tagged_graph_module, tag, owning_program, is_submodule\n"
    "            )\n"
    "        # Create partition with nodes containing this tag. There should only be\n",
)
_MARK = Edit(
    "        return tags\n",
    """\
        if self.tosa_spec.support_integer() and not self.tosa_spec.support_float():
            _mark_quantized_outputs(module, tags)
        return tags
""",
)
_HELPERS = Edit(
    '    return "delegation_tag" in node.meta and node.meta["delegation_tag"] == tag\n',
    """\
    return "delegation_tag" in node.meta and node.meta["delegation_tag"] == tag


def _mark_quantized_outputs(module: GraphModule, tags: set[str]) -> None:
    \"\"\"Mark floating-point outputs of integer-only partitions as quantized.

    Such a partition has no floating-point values, so it writes the quantized ones.
    The mark asks the lowering for a quantize node inside the partition and a
    dequantize node behind it, which tell the parent graph what is written.

    \"\"\"
    for node in module.graph.nodes:
        tag = node.meta.get("delegation_tag")
        if tag not in tags or node.op != "call_function" or node.target in DQ_OPS:
            continue
        val = node.meta.get("val")
        if not isinstance(val, torch.Tensor) or not val.dtype.is_floating_point:
            continue
        if all(is_partitioned(user, tag) for user in node.users):
            continue
        qparams = _get_output_quantization(node)
        if qparams is not None:
            node.meta["delegate_output_qparams"] = qparams


def _get_output_quantization(node: torch.fx.Node) -> Optional[tuple]:
    \"\"\"Return the arguments (scale, zp, qmin, qmax, dtype) that quantize a value.

    They come from the quantize nodes that read the value or, for operators that
    only move data, from the dequantize nodes of the inputs.

    \"\"\"
    import operator

    from executorch.backends.arm.constants import (
        DEQUANT_PER_TENSOR_OP,
        QUANT_PER_TENSOR_OP,
    )

    if node.target == DEQUANT_PER_TENSOR_OP:
        return tuple(node.args[1:6])
    from_users = {
        tuple(user.args[1:6])
        for user in node.users
        if user.target == QUANT_PER_TENSOR_OP
    }
    if len(from_users) == 1:
        return from_users.pop()
    aten = exir_ops.edge.aten
    dim_order_ops = exir_ops.edge.dim_order_ops
    if node.target not in {
        operator.getitem,
        aten.alias_copy.default,
        aten.as_strided_copy.default,
        aten.cat.default,
        aten.clone.default,
        aten.constant_pad_nd.default,
        aten.detach_copy.default,
        aten.expand_copy.default,
        aten.flip.default,
        aten.permute_copy.default,
        aten.pixel_shuffle.default,
        aten.pixel_unshuffle.default,
        aten.repeat.default,
        aten.select_copy.int,
        aten.slice_copy.Tensor,
        aten.split_copy.Tensor,
        aten.split_with_sizes_copy.default,
        aten.squeeze_copy.dim,
        aten.squeeze_copy.dims,
        aten.t_copy.default,
        aten.transpose_copy.int,
        aten.unbind_copy.int,
        aten.unsqueeze_copy.default,
        aten.view_copy.default,
        dim_order_ops._clone_dim_order.default,
        dim_order_ops._to_dim_order_copy.default,
    }:
        return None
    from_inputs = {_get_output_quantization(arg) for arg in node.all_input_nodes}
    return from_inputs.pop() if len(from_inputs) == 1 else None
""",
)
_QUANTIZE = Edit(
    "    return tagged_graph_module\n",
    """\
    return tagged_graph_module


def _quantize_delegate_outputs(
    tagged_graph_module: torch.fx.GraphModule,
    tag: str,
    owning_program: ExportedProgram,
    is_submodule: bool,
) -> None:
    \"\"\"
    Quantize the outputs of a partition that the partitioner marked with
    "delegate_output_qparams" (scale, zero point, qmin, qmax, dtype), and dequantize
    them for users outside of the partition. The values that cross the boundary then
    have the dtype that the delegate writes.
    \"\"\"
    from executorch.exir.dialects._ops import ops as exir_ops

    quantized_decomposed = exir_ops.edge.quantized_decomposed
    quantize = quantized_decomposed.quantize_per_tensor.default
    dequantize = quantized_decomposed.dequantize_per_tensor.default
    graph = tagged_graph_module.graph
    replace_ctx = (
        tagged_graph_module._set_replace_hook(
            owning_program.graph_signature.get_replace_hook()
        )
        if not is_submodule
        else nullcontext()
    )
    marked = [
        node
        for node in graph.nodes
        if node.meta.get("delegation_tag") == tag
        and "delegate_output_qparams" in node.meta
    ]
    with replace_ctx:
        for node in marked:
            qparams = node.meta.pop("delegate_output_qparams")
            users = [
                user for user in node.users if user.meta.get("delegation_tag") != tag
            ]
            with graph.inserting_after(node):
                q_node = graph.call_function(quantize, (node, *qparams))
            q_node.meta = {**node.meta, "val": node.meta["val"].to(qparams[-1])}
            with graph.inserting_after(q_node):
                dq_node = graph.call_function(dequantize, (q_node, *qparams))
            dq_node.meta = dict(node.meta)
            del dq_node.meta["delegation_tag"]
            node.replace_all_uses_with(dq_node, lambda user: user in users)
            for user in users:
                # A quantize node of the same parameters only moves into the partition.
                if user.target == quantize and user.args[1:] == qparams:
                    user.replace_all_uses_with(q_node)
                    graph.erase_node(user)
            if not dq_node.users:
                graph.erase_node(dq_node)
""",
)

CORRECTION = Correction(
    name="delegate-output-dtype",
    entries=("split-fallback-output-dtype", "003-attention-boundary-dtype", "boundary-dtype-before-linear"),
    upstream=(
        "https://github.com/pytorch/executorch/issues/19364",
        "https://github.com/pytorch/executorch/pull/22966",
    ),
    cause=(
        "An operator that only moves data can be the last of an integer-only partition while its quantize node is "
        "outside or missing, so that the parent graph has a float32 output. FoldAndAnnotateQParamsPass then folds the "
        "dequantize node before it, and the delegate writes int8 into a buffer that was planned for float32."
    ),
    change=(
        "TOSAPartitioner marks such outputs with their quantization; exir quantizes them inside the partition and "
        "dequantizes them behind it. Delegate call, getitem and planned buffer have the dtype that is written."
    ),
    changes=(
        Change(
            _PARTITIONER,
            "TOSAPartitioner._tag_module",
            {"1.1.0": "4746147eeb1c", "1.4.1": "3b46eed5001f", "1.5.1": "c443244bca2d"},
            (_MARK,),
        ),
        Change(
            _PARTITIONER,
            "is_partitioned",
            {"1.1.0": "50caf642205f", "1.4.1": "50caf642205f", "1.5.1": "50caf642205f"},
            (_HELPERS,),
        ),
        Change(
            _API,
            "_partition_and_lower_one_graph_module",
            {"1.1.0": "afb7b2622a3b", "1.4.1": "afb7b2622a3b", "1.5.1": "afb7b2622a3b"},
            (_CALL, _QUANTIZE),
        ),
        Change(
            _API,
            "_create_partitions_in_graph_module",
            {"1.1.0": "2c8bd8d290ec", "1.4.1": "2c8bd8d290ec", "1.5.1": "2c8bd8d290ec"},
            (_CALL,),
        ),
    ),
    patterns=(
        (
            "split|chunk|view|reshape|permute|transpose|slice|select|unsqueeze|expand|flatten",
            "relu6|softmax|matmul|bmm",
        ),
        ("split|chunk|view|permute",),
        ("matmul",),
    ),
)
