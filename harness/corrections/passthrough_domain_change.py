"""``passthrough-domain-change``: operators that only move data keep a change of domain between their q-dq nodes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass"
_CHECK = "            # Make sure we haven't already set qparams meta information on the node\n"
_HELPER = '''

def _keep_domain_change(graph_module: GraphModule, node: Node) -> None:
    """Quantize the output of an op that only moves data like its inputs.

    Such an op moves codes as they are. A quantize node of another domain behind
    it must not be folded into it, but stay as a dq-q pair for InsertRescalePass.

    """
    from executorch.backends.arm._passes.arm_pass_utils import insert_q_dq_pair
    from executorch.backends.arm.constants import (
        DEQUANT_PER_TENSOR_OP,
        QUANT_PER_TENSOR_OP,
    )

    if node.target not in (
        exir_ops.edge.aten.alias_copy.default,
        exir_ops.edge.aten.cat.default,
        exir_ops.edge.aten.expand_copy.default,
        exir_ops.edge.aten.flip.default,
        exir_ops.edge.aten.permute_copy.default,
        exir_ops.edge.aten.repeat.default,
        exir_ops.edge.aten.select_copy.int,
        exir_ops.edge.aten.slice_copy.Tensor,
        exir_ops.edge.aten.squeeze_copy.dims,
        exir_ops.edge.aten.unsqueeze_copy.default,
        exir_ops.edge.aten.view_copy.default,
    ):
        return
    inputs = node.all_input_nodes
    if any(arg.target != DEQUANT_PER_TENSOR_OP for arg in inputs):
        return
    input_qparams = {arg.args[1:] for arg in inputs}
    output_qparams = {
        user.args[1:] for user in node.users if user.target == QUANT_PER_TENSOR_OP
    }
    if len(input_qparams) == 1 and not output_qparams <= input_qparams:
        insert_q_dq_pair(graph_module.graph, node, input_qparams.pop())
'''


def _change(digests: dict[str, str], modified: str) -> Change:
    end = f"        return PassResult(graph_module, {modified})\n"
    return Change(
        _MODULE,
        "FoldAndAnnotateQParamsPass.call",
        digests,
        (
            Edit(_CHECK, f"            _keep_domain_change(graph_module, n)\n\n{_CHECK}"),
            Edit(end, end + _HELPER),
        ),
    )


CORRECTION = Correction(
    name="passthrough-domain-change",
    entries=("004-passthrough-domain-change",),
    cause=(
        "FoldAndAnnotateQParamsPass folds the dequantize and quantize nodes around every annotated operator. One that "
        "only moves data, such as cat or view, does not compute the change from the first domain to the second."
    ),
    change=(
        "If the qparams behind such an operator differ from those before it, a q-dq pair of the input's domain follows "
        "it. It moves codes of one domain, and the change stays behind it as a RESCALE."
    ),
    changes=(
        _change(dict.fromkeys(("1.1.0", "1.2.0", "1.3.1"), "6a210293178c"), "True"),
        _change({"1.4.1": "78c3e7aabad7"}, "modified"),
        _change({"1.5.1": "7bffb9db8cef"}, "metadata_modified or graph_modified"),
    ),
    patterns=(("cat|stack|view|reshape|flatten|permute|transpose|slice|select|squeeze|unsqueeze|expand|repeat",),),
    upstream=("https://github.com/pytorch/executorch/issues/18999",),
)
