"""``vela-batched-activation-rejected``: an activation that Vela would fuse into a reshaped operator runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import CONSUMERS, THROUGH, rejected

_CHECK = (
    '''\
    """Reject activations which Vela fuses into an operator of several batches
    that it reshapes: the output keeps the shape from before.
    """

    _activations = (
        *TableOps.included_ops(),
        exir_ops.edge.aten.relu.default,
        exir_ops.edge.aten.hardtanh.default,
        exir_ops.edge.aten.clamp.default,
        exir_ops.edge.aten.clamp.Tensor,
    )
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
'''
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
        if producer.target == exir_ops.edge.aten.convolution.default:
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
        return not (transposed or self._is_reshaped(producer))

    def _is_transposed(self, node: fx.Node, shape: torch.Size) -> bool:
        """Return whether a transpose of several batches is not 3D for Vela."""
        if node.target not in self._channels_last or shape[0] == 1:
            return False
        return len(shape) == 3 or 1 in shape

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

CORRECTION = Correction(
    name="vela-batched-activation-rejected",
    entries=(
        "vela-batched-softmax",
        "vela-batched-amax-sigmoid",
        "vela-batched-pointwise-conv-table",
        "vela-batched-transposed-activation",
        "vela-batched-dilated-pool-activation",
    ),
    cause=(
        "Vela 5.1.0 reshapes reductions, transposes and 1x1 convolutions of several batches to fewer axes. A TABLE or "
        "CLAMP that is fused into one of them brings an output shape of its own, which is not reshaped."
    ),
    change="EthosUPartitioner rejects an activation beside such an operator.",
    changes=rejected("VelaBatchedActivationCheck", _CHECK),
    patterns=(
        ("softmax",),
        (
            "amax|amin|mean|sum",
            "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|relu|relu6|hardtanh|clamp|leaky_relu",
        ),
        (
            "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d|permute|transpose",
            "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|relu|relu6|hardtanh|clamp|leaky_relu",
        ),
        (
            "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|relu|relu6|hardtanh|clamp|leaky_relu",
            "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d",
        ),
    ),
    workaround=True,
)
