"""``vela-batched-padded-slice-rejected``: a slice that a padded operator of several batches reads runs on the CPU.

A convolution in groups reads slices, too: a pass cuts its input into them, so the whole convolution is left out.
"""

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
    + SLICES.replace("def is_node_supported(", "def _reads_no_slice_wrongly(")
    + """
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        return not self._is_cut_wrongly(node) and self._reads_no_slice_wrongly(
            submodules, node
        )

    def _is_cut_wrongly(self, node: fx.Node) -> bool:
        if node.target != exir_ops.edge.aten.convolution.default:
            return False
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        groups = typing.cast(int, node.args[8])
        # one channel a group is a depthwise convolution, which nothing cuts
        is_cut = 1 < groups < shape[1] or (groups > 1 and bool(node.args[6]))
        return is_cut and shape[0] > 1 and self._is_padded(node)

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
    entries=("vela-batched-padded-slice", "vela-batched-padded-grouped-conv", "vela-u85-conv-of-padding-drops-input"),
    cause=(
        "Vela 5.1.0 splits a convolution or pooling of several batches into one a batch. Where it reads a SLICE, "
        "the padding in front is added behind. ExecuTorch cuts the input of a convolution in groups into slices."
    ),
    change=(
        "EthosUPartitioner rejects a slice that a padded convolution or pooling with batch > 1 reads, and a padded "
        "convolution in groups with batch > 1."
    ),
    changes=rejected("VelaBatchedPaddedSliceCheck", _CHECK),
    patterns=(
        ("slice|chunk|split|narrow|select", "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d"),
        ("conv1d|conv2d|conv_transpose2d",),
    ),
    workaround=True,
)
