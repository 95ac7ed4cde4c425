"""``vela-part-of-tensor-rejected``: what Vela would write to the wrong place in a cat or padding runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import ACTIVATIONS, CONSUMERS, EXPOSED, JOINED, THROUGH, U55, rejected

_CHECK = (
    '''\
    """Reject operators which Vela writes into a concatenated or padded tensor
    without the offset or the strides of their part.
    """

'''
    + JOINED
    + ACTIVATIONS
    + """\
    _elementwise = (
        exir_ops.edge.aten.abs.default,
        exir_ops.edge.aten.neg.default,
        exir_ops.edge.aten.add.Tensor,
        exir_ops.edge.aten.sub.Tensor,
        exir_ops.edge.aten.mul.Tensor,
        exir_ops.edge.aten.minimum.default,
        exir_ops.edge.aten.maximum.default,
    )
    _transposed = (
        exir_ops.edge.aten.avg_pool2d.default,
        exir_ops.edge.aten.convolution.default,
        exir_ops.edge.aten.max_pool2d.default,
        exir_ops.edge.aten.max_pool2d_with_indices.default,
        exir_ops.edge.aten.permute_copy.default,
    )

    def __init__(self, is_u55: bool) -> None:
        super().__init__()
        self.is_u55 = is_u55
"""
    + THROUGH
    + CONSUMERS
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        return not self._is_misplaced(node) or not any(
            user.target in self._joined_by for user, _ in self._consumers(node)
        )

    def _is_misplaced(self, node: fx.Node) -> bool:
        if node.target == exir_ops.edge.aten.convolution.default:
            # A depthwise convolution with a multiplier becomes several.
            shape = get_first_fake_tensor(node).shape
            channels = get_first_fake_tensor(node.all_input_nodes[0]).shape[1]
            return len(shape) < 5 and 1 < channels == node.args[8] < shape[1]
        if not self.is_u55:
            # The last of a chain of elementwise operators.
            return node.target in self._elementwise and any(
                producer.target in (*self._elementwise, *self._activations)
                for producer in self._producers(node)
            )
        if node.target in self._activations:
            # Without Q/DQ between them, the activation is a part of the convolution.
            if node.all_input_nodes[0].target in (
                exir_ops.edge.aten.convolution.default,
                exir_ops.edge.aten.linear.default,
            ):
                return False
            return any(
                producer.target in self._transposed
                for producer in self._producers(node)
            )
        return node.target in (
            exir_ops.edge.aten.bmm.default,
            exir_ops.edge.aten.mm.default,
        )

    def _producers(self, node: fx.Node) -> typing.Iterator[fx.Node]:
        """Yield what the node reads: operators, and permutes before it."""
        for operand in node.all_input_nodes:
            if operand.target == exir_ops.edge.aten.permute_copy.default:
                yield operand
            if self._moves_data(operand) or "getitem" in str(operand.target):
                yield from self._producers(operand)
            else:
                yield operand
'''
)

CORRECTION = Correction(
    name="vela-part-of-tensor-rejected",
    entries=(
        "vela-u85-abs-into-cat",
        "vela-u85-chained-pad",
        "vela-u55-matmul-into-slice",
        "vela-u55-transposed-activation-cat",
        "vela-depthwise-multiplier-padded-pool",
    ),
    cause=(
        "Vela 5.1.0 lets an operator write its part of a CONCAT or PAD itself. What becomes several operations loses "
        "the part's offset or strides: a matrix product and an activation behind a transpose on Ethos-U55 and U65, a "
        "chain of elementwise operators on Ethos-U85, a depthwise convolution with a multiplier on all."
    ),
    change="EthosUPartitioner rejects such an operator if a cat or a padding reads it.",
    changes=rejected("VelaPartOfTensorCheck", _CHECK, argument=U55),
    patterns=(
        ("add|sub|mul|minimum|maximum|relu", "abs|add|minimum|maximum|mul", "cat|stack|pad"),
        ("matmul|bmm|mm", "cat|stack|pad"),
        ("avg_pool2d|max_pool2d|permute|transpose", "relu|clamp|sigmoid|tanh", "cat|stack|pad"),
        ("conv1d|conv2d", "avg_pool2d|pad|cat"),
    ),
    workaround=True,
    needs=(*EXPOSED, "qmin-clamped"),  # an activation on the CPU reads codes that have a bound
)
