"""``vela-batched-activation-rejected``: an activation that Vela would fuse into a reshaped operator runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import ACTIVATIONS, CONSUMERS, EXPOSED, THROUGH, rejected

_CHECK = (
    '''\
    """Reject activations which Vela fuses into an operator of several batches
    that it reshapes, or that a view reshapes: the output keeps another shape.
    """

'''
    + ACTIVATIONS
    + """\
    _reductions = (
        exir_ops.edge.aten.amax.default,
        exir_ops.edge.aten.amin.default,
        exir_ops.edge.aten.sum.dim_IntList,
    )
    # Their inputs and outputs are transposed to and from channels last.
    _channels_last = (
        exir_ops.edge.aten.convolution.default,
        exir_ops.edge.aten.avg_pool2d.default,
        exir_ops.edge.aten.max_pool2d.default,
        exir_ops.edge.aten.max_pool2d_with_indices.default,
    )
"""
    + THROUGH
    + CONSUMERS
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in self._activations:
            return True
        shape = get_first_fake_tensor(node).shape
        transposed = any(
            self._is_transposed(user, get_first_fake_tensor(operand).shape)
            for user, operand in self._consumers(node)
        )
        producer = node.all_input_nodes[0]
        # Without Q/DQ between them, the activation is a part of the convolution.
        if producer.target in (
            exir_ops.edge.aten.convolution.default,
            exir_ops.edge.aten.linear.default,
        ):
            return True
        while self._moves_data(producer) or "getitem" in str(producer.target):
            if producer.target == exir_ops.edge.aten.permute_copy.default:
                transposed = transposed or (
                    len(shape) > 3 and shape[0] > 1 and 1 in shape
                )
            producer = producer.all_input_nodes[0]
        transposed = transposed or self._is_transposed(
            producer, get_first_fake_tensor(producer).shape
        )
        return not (
            transposed
            or self._is_reshaped(producer)
            or self._is_beside_batches(node)
            or self._is_read_in_rows(node, producer)
        )

    def _is_transposed(self, node: fx.Node, shape: torch.Size) -> bool:
        """Return whether a transpose of several batches is not 3D for Vela."""
        if node.target not in self._channels_last or shape[0] == 1:
            return False
        return len(shape) == 3 or 1 in shape

    def _is_beside_batches(self, node: fx.Node) -> bool:
        """Return whether the node or a view beside it has several batches."""
        views = {*self._views_before(node), *self._views_behind(node)}
        return any(
            any(size != 1 for size in get_first_fake_tensor(beside).shape[:-3])
            for view in views
            for beside in (view, view.all_input_nodes[0])
        )

    def _views_before(
        self, node: fx.Node, operators: int = 2
    ) -> typing.Iterator[fx.Node]:
        """Yield what reshapes the operand, or an operand of its producer."""
        for operand in node.all_input_nodes:
            if self._moves_data(operand):
                if self._is_view(operand):
                    yield operand
                yield from self._views_before(operand, operators)
            elif operators > 1:
                yield from self._views_before(operand, operators - 1)

    def _views_behind(self, node: fx.Node) -> typing.Iterator[fx.Node]:
        for user in filter(self._moves_data, node.users):
            if self._is_view(user):
                yield user
            yield from self._views_behind(user)

    @staticmethod
    def _is_view(node: fx.Node) -> bool:
        return node.target in (
            exir_ops.edge.aten.view_copy.default,
            exir_ops.edge.aten.squeeze_copy.dims,
            exir_ops.edge.aten.unsqueeze_copy.default,
            exir_ops.edge.aten.permute_copy.default,
        )

    def _is_read_in_rows(self, node: fx.Node, producer: fx.Node) -> bool:
        """Return whether a linear takes a computed operand for its batches."""
        return producer.op == "call_function" and any(
            user.target == exir_ops.edge.aten.linear.default
            and any(size != 1 for size in get_first_fake_tensor(operand).shape[:-1])
            for user, operand in self._consumers(node)
        )

    def _is_reshaped(self, node: fx.Node) -> bool:
        if node.op != "call_function" or not node.all_input_nodes:
            return False
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        if node.target in self._reductions:
            return any(size != 1 for size in shape[:-3])
        if node.target == exir_ops.edge.aten.convolution.default:
            weights = get_first_fake_tensor(node.all_input_nodes[1]).shape
            strides, padding = node.args[3:5]
            return (
                shape[0] > 1
                and all(size == 1 for size in weights[2:])
                and all(stride == 1 for stride in strides)
                and not any(padding)
            )
        return False
'''
)

_ACTIVATIONS = "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|relu|relu6|hardtanh|clamp|leaky_relu"

CORRECTION = Correction(
    name="vela-batched-activation-rejected",
    entries=(
        "vela-batched-softmax",
        "vela-batched-amax-sigmoid",
        "vela-batched-pointwise-conv-table",
        "vela-batched-transposed-activation",
        "vela-batched-dilated-pool-activation",
        "vela-batched-activation-transpose",
        "vela-clamp-of-slice-before-linear",
        "vela-pool-reshaped-table",
        "vela-reshaped-elementwise-activation",
        "vela-reshaped-matmul-clamp",
        "vela-reshaped-pool-clamp",
        "vela-reshaped-reduction-activation",
        "vela-reshaped-sub-clamp",
        "vela-u85-elementwise-clamp-before-linear",
        "vela-unit-repeat-clamp-view",
    ),
    cause=(
        "Vela 5.1.0 fuses a TABLE or CLAMP of several batches into a reduction, transpose or 1x1 convolution that it "
        "has reshaped, or into what stands in front of a RESHAPE. The operator gets the activation's shape."
    ),
    change=(
        "EthosUPartitioner rejects an activation beside such an operator, beside a view of several batches, and in "
        "front of a linear of several rows."
    ),
    changes=rejected("VelaBatchedActivationCheck", _CHECK),
    patterns=(
        ("softmax",),
        ("amax|amin|mean|sum", _ACTIVATIONS),
        ("conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d|permute|transpose", _ACTIVATIONS),
        (_ACTIVATIONS, "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d"),
        (_ACTIVATIONS, "view|reshape|flatten|permute|transpose|squeeze|unsqueeze|linear"),
        ("view|reshape|flatten|squeeze|unsqueeze", _ACTIVATIONS),
    ),
    workaround=True,
    needs=EXPOSED,
)
