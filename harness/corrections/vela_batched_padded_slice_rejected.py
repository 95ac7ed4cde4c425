"""``vela-batched-padded-slice-rejected``: a slice that a padded operator of several batches reads runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import SLICES, rejected

_CHECK = (
    '''\
    """Reject slices which a padded convolution or pooling of several batches
    reads: Vela adds the padding in front behind them.
    """

    _padding_arguments = {
        exir_ops.edge.aten.convolution.default: 4,
        exir_ops.edge.aten.avg_pool2d.default: 3,
        exir_ops.edge.aten.max_pool2d.default: 3,
        exir_ops.edge.aten.max_pool2d_with_indices.default: 3,
    }
'''
    + SLICES
    + """
    def _is_misread(self, user: fx.Node, operand: fx.Node) -> bool:
        return self._is_padded(user) and get_first_fake_tensor(operand).shape[0] > 1

    def _is_padded(self, node: fx.Node) -> bool:
        argument = self._padding_arguments.get(node.target)
        if argument is None or len(node.args) <= argument:
            return False
        padding = node.args[argument]
        if node.target == exir_ops.edge.aten.convolution.default and node.args[6]:
            return True
        return any(typing.cast(typing.Sequence[int], padding))
"""
)

CORRECTION = Correction(
    name="vela-batched-padded-slice-rejected",
    entries=("vela-batched-padded-slice",),
    cause=(
        "Vela 5.1.0 splits a convolution or pooling of several batches into one a batch. Where it reads a SLICE, "
        "the padding in front is added behind."
    ),
    change="EthosUPartitioner rejects a slice that a padded convolution or pooling with batch > 1 reads.",
    changes=rejected("VelaBatchedPaddedSliceCheck", _CHECK),
    patterns=(("slice|chunk|split|narrow|select", "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d"),),
    workaround=True,
)
