"""``vela-refused-operators-rejected``: operators that Vela refuses to compile run on the CPU.

Vela refuses the whole delegate, so that the model is not lowered at all.
"""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, U55, U85, rejected

_U55 = '''\
    """Reject what Vela does not place on Ethos-U55, see SUPPORTED_OPS.md."""

    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target == exir_ops.edge.dim_order_ops._to_dim_order_copy.default:
            # the cast belongs to the argmax whose indices it reads
            node = node.all_input_nodes[0]
        if node.target == exir_ops.edge.aten.argmax.default:
            return self._takes_argmax(node)
        if node.target == exir_ops.edge.aten.permute_copy.default:
            return self._takes_permute(node)
        if node.target == exir_ops.edge.aten.convolution.default:
            return self._takes_convolution(node)
        return True

    @staticmethod
    def _takes_argmax(node: fx.Node) -> bool:
        """Return whether it is along the channels of one batch."""
        inputs = get_first_fake_tensor(node.all_input_nodes[0])
        dim = node.args[1] if len(node.args) > 1 else None
        return (
            isinstance(dim, int)
            and dim % inputs.dim() == inputs.dim() - 1
            and inputs.shape[:-3].numel() == 1
            and inputs.shape[-1] <= 127
        )

    @staticmethod
    def _takes_permute(node: fx.Node) -> bool:
        """Return whether it moves the last three axes only, or is small."""
        shape = get_first_fake_tensor(node).shape
        dims = typing.cast(typing.Sequence[int], node.args[1])
        return (
            all(dim % len(dims) == axis for axis, dim in enumerate(dims[:-3]))
            or torch.Size(sorted(shape)[2:]).numel() <= 65536
        )

    @staticmethod
    def _takes_convolution(node: fx.Node) -> bool:
        """Return whether it is no transposed convolution that loses the stride of
        one of its axes: of that where the result has one element.
        """
        if not node.args[6]:
            return True
        kernel = get_first_fake_tensor(node.all_input_nodes[1]).shape[2:]
        sizes = get_first_fake_tensor(node).shape[2:]
        strides = typing.cast(list[int], node.args[3])
        lost = [axis for axis, size in enumerate(sizes) if size == 1]
        return len(lost) != 1 or kernel[lost[0]] == 1 or any(s == 1 for s in strides)
'''

_U85 = '''\
    """Reject padded transposed convolutions with fewer elements than the
    stride: for each of its steps, Vela makes a convolution, some of nothing.
    """

    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target != exir_ops.edge.aten.convolution.default or not node.args[6]:
            return True
        sizes = get_first_fake_tensor(node).shape[2:]
        strides = typing.cast(list[int], node.args[3])
        padding = typing.cast(list[int], node.args[4])
        return not any(
            1 < size < stride and pad > 0
            for size, stride, pad in zip(sizes, strides, padding)
        )
'''

CORRECTION = Correction(
    name="vela-refused-operators-rejected",
    entries=(
        "u55-argmax-not-on-npu",
        "u55-large-permute-not-on-npu",
        "vela-u55-conv-transpose-not-on-npu",
        "vela-u85-conv-transpose-no-block",
    ),
    cause=(
        "The partitioner takes operators that Vela 5.1.0 refuses, most of them against its own list. Transposed "
        "convolutions it decomposes into what it cannot place where the result has one or few elements along an axis."
    ),
    change=(
        "EthosUPartitioner rejects, for Ethos-U55 and U65, argmax that is not along the channels, large permutes "
        "and strided transposed convolutions of one row or column; for Ethos-U85, padded transposed convolutions with "
        "fewer rows or columns than their stride."
    ),
    changes=(
        *rejected("VelaU55RefusedOperatorsCheck", _U55, U55),
        *rejected("VelaU85RefusedOperatorsCheck", _U85, U85),
    ),
    patterns=(("permute|transpose",), ("conv_transpose2d",)),
    workaround=True,
    needs=EXPOSED,
)
