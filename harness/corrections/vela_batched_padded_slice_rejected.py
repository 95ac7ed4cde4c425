"""``vela-batched-padded-slice-rejected``: a slice that a padded operator of several batches reads runs on the CPU.

A convolution in groups reads slices, too: a pass cuts its input into them, so the whole convolution is left out.
"""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, SLICES_TOO, rejected

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
    + SLICES_TOO
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        return not self._is_cut_wrongly(node) and self._reads_no_slice_wrongly(
            submodules, node
        )

    def _is_cut_wrongly(self, node: fx.Node) -> bool:
        """Return whether ExecuTorch makes slices of what the node reads."""
        if node.target not in self._padding_arguments:
            return False
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        # The CPU has no kernel of a three-dimensional convolution.
        if len(shape) > 4 or not self._is_misread_in_parts(node, shape):
            return False
        if node.target != exir_ops.edge.aten.convolution.default:
            return self._leaves_remainder(node, shape)
        groups = typing.cast(int, node.args[8])
        # one channel a group is a depthwise convolution, which nothing cuts
        is_cut = 1 < groups < shape[1] or (groups > 1 and bool(node.args[6]))
        return is_cut or self._leaves_remainder(node, shape)

    def _is_misread(self, user: fx.Node, operand: fx.Node) -> bool:
        return user.target in self._padding_arguments and self._is_misread_in_parts(
            user, get_first_fake_tensor(operand).shape
        )

    def _is_misread_in_parts(self, node: fx.Node, shape: torch.Size) -> bool:
        """Return whether Vela takes apart an operator which is padded."""
        if node.target == exir_ops.edge.aten.convolution.default and node.args[6]:
            return True
        if not any(self._list(node, self._padding_arguments[node.target])):
            return False
        if shape[0] > 1:
            return True
        if node.target != exir_ops.edge.aten.convolution.default:
            return False
        channels = get_first_fake_tensor(node.all_input_nodes[1]).shape[0]
        return any(dilation > 2 for dilation in self._list(node, 5)) or (
            1 < shape[1] == node.args[8] < channels
        )

    def _leaves_remainder(self, node: fx.Node, shape: torch.Size) -> bool:
        """Return whether the windows do not end where the padded input does."""
        padding = self._list(node, self._padding_arguments[node.target])
        if node.target == exir_ops.edge.aten.convolution.default:
            if node.args[6]:
                return False
            kernel = get_first_fake_tensor(node.all_input_nodes[1]).shape[2:]
            strides, dilations = self._list(node, 3), self._list(node, 5)
        else:
            kernel = self._list(node, 1)
            strides = self._list(node, 2) or kernel
            dilations = [1] * len(kernel)
        return any(
            (size + 2 * pad - dilation * (taps - 1) - 1) % stride != 0
            for size, pad, dilation, taps, stride in zip(
                shape[2:], padding, dilations, kernel, strides
            )
        )

    @staticmethod
    def _list(node: fx.Node, argument: int) -> typing.Sequence[int]:
        if len(node.args) <= argument:
            return ()
        return typing.cast(typing.Sequence[int], node.args[argument])
'''
)

CORRECTION = Correction(
    name="vela-batched-padded-slice-rejected",
    entries=(
        "vela-batched-padded-slice",
        "vela-batched-padded-grouped-conv",
        "vela-u85-conv-of-padding-drops-input",
        "vela-batched-padded-conv-remainder",
        "vela-batched-padded-pool-remainder",
        "vela-dilated-padded-conv-of-slice",
        "vela-u55-transposed-conv-of-slice",
    ),
    cause=(
        "Vela 5.1.0 takes a convolution or pooling apart that has several batches, a dilation above 2 or a "
        "multiplier, or is transposed. Where it reads a SLICE, the padding in front is added behind. ExecuTorch makes "
        "slices of the input of a convolution in groups, and where windows leave a remainder."
    ),
    change=(
        "EthosUPartitioner rejects a slice that such an operator with padding reads, and such an operator where "
        "ExecuTorch makes slices of its input."
    ),
    changes=rejected("VelaBatchedPaddedSliceCheck", _CHECK),
    patterns=(
        ("slice|chunk|split|narrow|select", "conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d"),
        ("conv1d|conv2d|conv_transpose2d",),
    ),
    workaround=True,
    needs=EXPOSED,
)
