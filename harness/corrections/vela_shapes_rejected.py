"""``vela-shapes-rejected``: operators that Vela computes wrongly for their shapes alone run on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import BINARY, CONSUMERS, EXPOSED, THROUGH, U55, U85, rejected

_ALL = '''\
    """Reject transposed convolutions which lose a stride, as their result has
    one element along an axis, and sums which overflow the type of the operand.
    """

    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target == exir_ops.edge.aten.convolution.default and node.args[6]:
            sizes = get_first_fake_tensor(node.all_input_nodes[0]).shape[2:]
            results = get_first_fake_tensor(node).shape[2:]
            strides = typing.cast(list[int], node.args[3])
            return not any(
                result == 1 and size > 1 and stride > 1
                for result, size, stride in zip(results, sizes, strides)
            )
        if node.target in (
            exir_ops.edge.aten.sum.dim_IntList,
            exir_ops.edge.aten.mean.dim,
        ):
            operand = get_first_fake_tensor(node.all_input_nodes[0])
            dims = typing.cast(list[int], node.args[1]) or range(operand.dim())
            return operand.dtype == torch.int32 or all(
                operand.shape[dim] <= 65536 for dim in dims
            )
        return True
'''

_U55 = (
    '''\
    """Reject casts to a narrower type, which Vela makes saturate, and operands
    of one element that are no constants, for which it leaves no buffer.
    """

'''
    + BINARY
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target == exir_ops.edge.dim_order_ops._to_dim_order_copy.default:
            before = get_first_fake_tensor(node.all_input_nodes[0]).dtype
            after = get_first_fake_tensor(node).dtype
            return before not in (torch.int16, torch.int32) or (
                after.is_floating_point or after.itemsize >= before.itemsize
            )
        if node.target in self.targets and get_first_fake_tensor(node).numel() > 1:
            return all(
                get_first_fake_tensor(operand).numel() > 1
                or self._is_constant(operand)
                for operand in node.all_input_nodes
            )
        return True

    def _is_constant(self, node: fx.Node) -> bool:
        """Return whether all that the node is made of is state of the model."""
        if node.op == "placeholder":
            return node.name.startswith(("p_", "b_", "c_", "_"))
        return all(self._is_constant(operand) for operand in node.all_input_nodes)
'''
)

_U85 = (
    '''\
    """Reject dilated convolutions which Vela makes one part of, and padded
    average pools whose sums it writes behind their tensor.
    """
'''
    + THROUGH
    + CONSUMERS
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target == exir_ops.edge.aten.convolution.default:
            # The CPU has no kernel of a three-dimensional convolution.
            is_flat = get_first_fake_tensor(node).dim() < 5
            return not (is_flat and self._is_one_part(node))
        if node.target == exir_ops.edge.aten.avg_pool2d.default:
            return not (self._is_large_and_padded(node) and self._is_a_part(node))
        return True

    @staticmethod
    def _is_one_part(node: fx.Node) -> bool:
        """Return whether it is dilated along axes of one element only."""
        sizes = get_first_fake_tensor(node).shape[2:]
        kernel = get_first_fake_tensor(node.all_input_nodes[1]).shape[2:]
        dilation = [
            factor if taps > 1 else 1
            for factor, taps in zip(typing.cast(list[int], node.args[5]), kernel)
        ]
        return (
            max(dilation) > 2
            and sizes.numel() > 1
            and all(1 in pair for pair in zip(sizes, dilation))
        )

    @staticmethod
    def _is_large_and_padded(node: fx.Node) -> bool:
        kernel, stride, padding, ceil_mode, counted, divisor = (
            *node.args[1:],
            *(None, (), (), False, True, None)[len(node.args) - 1 :],
        )
        kernel = typing.cast(list[int], kernel)
        stride = typing.cast(list[int], stride) or kernel
        padded = any(typing.cast(list[int], padding)) or ceil_mode
        is_large = max(kernel) > 8 or max(stride) > 3
        return is_large and bool(padded) and not counted and divisor is None

    def _is_a_part(self, node: fx.Node) -> bool:
        """Return whether it is one of several batches, or of a larger tensor."""
        return get_first_fake_tensor(node).shape[:-3].numel() > 1 or any(
            user.target
            in (
                exir_ops.edge.aten.cat.default,
                exir_ops.edge.aten.constant_pad_nd.default,
            )
            for user, _ in self._consumers(node)
        )
'''
)

CORRECTION = Correction(
    name="vela-shapes-rejected",
    entries=(
        "vela-conv-transpose-one-wide",
        "vela-large-sum-in-type-of-operand",
        "vela-u55-narrowing-cast-saturates",
        "vela-u55-no-buffer-for-one-element",
        "vela-u85-batched-padded-avg-pool",
        "vela-u85-dilated-conv-unwritten",
    ),
    cause=(
        "Vela 5.1.0 computes some operators wrongly because of their attributes and shapes alone, most of them where "
        "it takes them apart. The notes of the entries tell how."
    ),
    change=(
        "EthosUPartitioner rejects strided transposed convolutions of one row or column and sums of more than 65536 "
        "elements; for Ethos-U55 and U65, casts to narrower integers and operands of one element; for Ethos-U85, "
        "dilated convolutions of one row or column and large padded average pools of several batches."
    ),
    changes=(
        *rejected("VelaShapesCheck", _ALL),
        *rejected("VelaU55ShapesCheck", _U55, U55),
        *rejected("VelaU85ShapesCheck", _U85, U85),
    ),
    patterns=(
        ("conv1d|conv2d|conv_transpose2d",),
        ("avg_pool2d",),
        ("sum|mean",),
        ("add|sub|mul|minimum|maximum|rsub|div|var",),
    ),
    workaround=True,
    needs=EXPOSED,
)
