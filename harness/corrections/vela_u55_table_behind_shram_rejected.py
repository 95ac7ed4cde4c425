"""``vela-u55-table-behind-shram-rejected``: a table beside a transpose runs on the CPU for Ethos-U55-32 and -64."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import CONSUMERS, THROUGH, rejected

_CHECK = (
    '''\
    """Reject tables of int8 beside a transpose: on Ethos-U55-32 and -64, Vela
    fuses the two and loads the table behind the end of SHRAM.
    """

    # Their inputs and outputs are transposed to and from channels last.
    _channels_last = (
        exir_ops.edge.aten.convolution.default,
        exir_ops.edge.aten.avg_pool2d.default,
        exir_ops.edge.aten._adaptive_avg_pool2d.default,
        exir_ops.edge.aten.max_pool2d.default,
        exir_ops.edge.aten.max_pool2d_with_indices.default,
        exir_ops.edge.aten.upsample_bilinear2d.vec,
        exir_ops.edge.aten.upsample_nearest2d.vec,
    )
'''
    + THROUGH
    + CONSUMERS
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in TableOps.included_ops():
            return True
        if _try_determine_dtype(node) == torch.int16:
            return True
        producer = node.all_input_nodes[0]
        while self._moves_data(producer) or "getitem" in str(producer.target):
            if self._is_transpose(producer):
                return False
            producer = producer.all_input_nodes[0]
        if self._is_channels_last(producer, producer):
            # Between two of them, the transposes cancel out.
            return self._is_read_channels_last(node)
        return not self._is_transposed(node)

    def _is_read_channels_last(self, node: fx.Node) -> bool:
        return all(
            (
                self._is_read_channels_last(user)
                if self._moves_data(user) and not self._is_transpose(user)
                else self._is_channels_last(user, node)
            )
            for user in node.users
        )

    def _is_transposed(self, node: fx.Node) -> bool:
        """Return whether a reader of the node transposes it."""
        return any(
            self._is_transpose(user)
            or (self._moves_data(user) and self._is_transposed(user))
            for user in node.users
        ) or any(
            self._is_channels_last(user, operand)
            for user, operand in self._consumers(node)
        )

    def _is_transpose(self, node: fx.Node) -> bool:
        if node.target != exir_ops.edge.aten.permute_copy.default:
            return False
        dims = typing.cast(typing.Sequence[int], node.args[1])
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        moved = [dim % len(shape) for dim in dims if shape[dim] != 1]
        return moved != sorted(moved)

    def _is_channels_last(self, node: fx.Node, operand: fx.Node) -> bool:
        if node.target not in self._channels_last:
            return False
        _, channels, *sizes = get_first_fake_tensor(operand).shape
        return channels != 1 and any(size != 1 for size in sizes)
'''
)

_SMALL = 'compile_spec.target.lower() in ("ethos-u55-32", "ethos-u55-64")'
"""The two configurations with 16 banks of SHRAM."""

CORRECTION = Correction(
    name="vela-u55-table-behind-shram-rejected",
    entries=("vela-u55-64-table-behind-shram",),
    cause=(
        "Ethos-U55-32 and -64 reserve no SHRAM for tables, and Vela 5.1.0 does not ask for a bank when it chooses the "
        "blocks of a transpose with a fused TABLE. The table is loaded behind the end of SHRAM."
    ),
    change="For Ethos-U55-32 and -64, EthosUPartitioner rejects a table of int8 beside a transpose.",
    changes=rejected("VelaU55TableBehindShramCheck", _CHECK, _SMALL),
    patterns=(
        (
            "conv1d|conv2d|conv_transpose2d|avg_pool2d|adaptive_avg_pool2d|max_pool2d|upsample|permute|transpose",
            "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|rsqrt|reciprocal|pow|leaky_relu|div|softmax",
        ),
        (
            "sigmoid|tanh|silu|gelu|hardsigmoid|hardswish|elu|exp|log|rsqrt|reciprocal|pow|leaky_relu|div|softmax",
            "conv1d|conv2d|conv_transpose2d|avg_pool2d|adaptive_avg_pool2d|max_pool2d|upsample|permute|transpose",
        ),
    ),
    workaround=True,
)
