"""``noop-output-not-delegated``: what only passes an input on to an output stays outside a delegate."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.tosa.partitioner"
_VIEW = """\
    return node.target == exir_ops.edge.aten.view_copy.default
"""
_HELPER = '''

def _is_passthrough(node: torch.fx.Node) -> bool:
    """Return whether the TOSA lowering removes the node."""
    if _is_view_copy(node):
        input_tensor = get_first_fake_tensor(ensure_type(torch.fx.Node, node.args[0]))
        return bool(input_tensor.shape == get_first_fake_tensor(node).shape)
    return (
        _is_noop_clone(node)
        or _is_noop_alias_copy(node)
        or _is_noop_expand(node)
        or _is_noop_detach_copy(node)
        or _is_noop_to_dim_order_copy(node)
        or _is_noop_squeeze(node)
        or _is_noop_flip(node)
        or _is_noop_permute(node)
        or _is_noop_as_strided_copy(node)
        or node.target in Q_OPS
        or node.target in DQ_OPS
    )


def _detag_passthrough_outputs(
    nodes: Sequence[torch.fx.Node], tag: str, reporter: WhyNoPartitionReporter
) -> None:
    """De-tag no-ops which pass an input of the partition on to an output.

    The lowering removes them, so that the output would be the input itself and
    have no writer in the TOSA graph.

    """
    passthrough: list[torch.fx.Node] = []
    for node in sorted(nodes):
        if _is_passthrough(node) and all(
            input_node in passthrough or not is_partitioned(input_node, tag)
            for input_node in node.all_input_nodes
        ):
            passthrough.append(node)

    outputs = [
        node
        for node in passthrough
        if any(not is_partitioned(user, tag) for user in node.users)
    ]
    while outputs:
        node = outputs.pop()
        if not is_partitioned(node, tag):
            continue
        del node.meta["delegation_tag"]
        reporter.report_reject(node, "Passes an input on to an output.")
        outputs.extend(n for n in node.all_input_nodes if n in passthrough)
'''
_CHECK = """\
                # Check whether the partition contains only no-op or non-computational ops. Such partitions \
don't make sense to delegate, and in the worst case may be optimized away during lowering, which can break compilation.
"""
_CALL = """\
                _detag_passthrough_outputs(nodes, active_tag, reporter)
                nodes = [node for node in nodes if is_partitioned(node, active_tag)]

"""

CORRECTION = Correction(
    name="noop-output-not-delegated",
    entries=("noop-branch-vela-reader-error",),
    upstream=("https://github.com/pytorch/executorch/pull/22436",),
    cause=(
        "The partitioner rejects partitions of no-ops only, so a no-op branch beside real work is delegated. "
        "RemoveNoopPass makes an output of the TOSA graph an input of it, which has no writer, and Vela refuses that."
    ),
    change="TOSAPartitioner leaves no-ops that lead from an input of a partition to an output outside the delegate.",
    changes=(
        Change(_MODULE, "_is_view_copy", {"1.5.1": "12a41b4562a0"}, (Edit(_VIEW, _VIEW + _HELPER),)),
        Change(_MODULE, "TOSAPartitioner._tag_module", {"1.5.1": "c443244bca2d"}, (Edit(_CHECK, _CALL + _CHECK),)),
    ),
    patterns=(
        ("squeeze",),
        ("unsqueeze",),
        ("view|reshape|flatten",),
        ("permute|transpose",),
        ("expand",),
    ),
    needs=("delegate-output-dtype",),  # what was not an output of a delegate may become one
)
