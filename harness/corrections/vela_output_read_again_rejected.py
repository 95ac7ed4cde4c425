"""``vela-output-read-again-rejected``: what is an output and is read again runs on the CPU where Vela gets it wrong."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, U85, rejected

_OUTPUT = '''
    @staticmethod
    def _is_output(node: fx.Node) -> bool:
        """Return whether the node, or what it is quantized to, is an output."""
        from executorch.backends.arm.constants import DQ_OPS, Q_OPS

        found = [node]
        for step in found:
            if any(user.op == "output" for user in step.users):
                return True
            found += [user for user in step.users if user.target in (*Q_OPS, *DQ_OPS)]
        return False
'''

_RESHAPED = (
    '''\
    """Reject outputs which are reshaped by axes of one and permuted: Vela drops
    them.
    """

    _reshapes = (
        exir_ops.edge.aten.view_copy.default,
        exir_ops.edge.aten.squeeze_copy.dims,
        exir_ops.edge.aten.unsqueeze_copy.default,
        exir_ops.edge.aten.index_put.default,  # ends in a reshape
    )
'''
    + _OUTPUT
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in self._reshapes or not self._is_output(node):
            return True
        shape = self._without_ones(get_first_fake_tensor(node))
        if (
            node.target != exir_ops.edge.aten.index_put.default
            and self._without_ones(get_first_fake_tensor(node.all_input_nodes[0]))
            != shape
        ):
            return True
        return not self._is_permuted(node, shape)

    def _is_permuted(self, node: fx.Node, shape: list[int]) -> bool:
        """Return whether a permute reads the node, as it is or reshaped again."""
        from executorch.backends.arm.constants import DQ_OPS, Q_OPS

        for user in node.users:
            if user.target in self._permuting and self._moves(user):
                return True
            if user.target in (*Q_OPS, *DQ_OPS, *self._reshapes[:3]):
                same = self._without_ones(get_first_fake_tensor(user)) == shape
                if same and self._is_permuted(user, shape):
                    return True
        return False

    @staticmethod
    def _moves(node: fx.Node) -> bool:
        """Return whether a permute of what the node reads moves elements."""
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        dims: typing.Iterable[int] = (0, *range(2, len(shape)), 1)
        if node.target == exir_ops.edge.aten.permute_copy.default:
            dims = typing.cast(list[int], node.args[1])
        order = [dim % len(shape) for dim in dims if shape[dim] != 1]
        return order != sorted(order)

    @staticmethod
    def _without_ones(tensor: torch.Tensor) -> list[int]:
        return [size for size in tensor.shape if size != 1]

    # those of pictures have their channels last
    _permuting = (
        exir_ops.edge.aten.permute_copy.default,
        exir_ops.edge.aten.convolution.default,
        exir_ops.edge.aten.avg_pool2d.default,
        exir_ops.edge.aten.max_pool2d.default,
        exir_ops.edge.aten.max_pool2d_with_indices.default,
    )
'''
)

_BOOL = (
    '''\
    """Reject flags which are outputs and choose something: Vela takes those that
    it has turned from -1 into 1.
    """

    _choices = (
        exir_ops.edge.aten.where.self,
        exir_ops.edge.aten.any.default,
        exir_ops.edge.aten.any.dim,
        exir_ops.edge.aten.any.dims,
        exir_ops.edge.aten.all.default,
        exir_ops.edge.aten.all.dim,
        exir_ops.edge.aten.all.dims,
    )
'''
    + _OUTPUT
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.op != "call_function" or not self._is_flag(node):
            return True
        return not (self._is_output(node) and self._chooses(node))

    @staticmethod
    def _is_flag(node: fx.Node) -> bool:
        value = node.meta.get("val")
        return isinstance(value, torch.Tensor) and value.dtype == torch.bool

    def _chooses(self, node: fx.Node) -> bool:
        """Return whether the flags, or what logic makes of them, choose."""
        return any(
            user.target in self._choices
            or (self._is_flag(user) and self._chooses(user))
            for user in node.users
        )
'''
)

CORRECTION = Correction(
    name="vela-output-read-again-rejected",
    entries=("vela-drops-reshaped-output", "vela-u85-bool-output-read-again"),
    cause=(
        "Vela 5.1.0 drops an output of the graph that a RESHAPE by axes of one makes and a TRANSPOSE reads. On "
        "Ethos-U85, who reads a BOOL that is an output gets the 0 and 1 that are made for the output, not the mask."
    ),
    change=(
        "EthosUPartitioner rejects a reshape by axes of one that is an output and is permuted, and, for Ethos-U85, "
        "flags that are an output and come to where, any or all."
    ),
    changes=(
        *rejected("VelaReshapedOutputCheck", _RESHAPED),
        *rejected("VelaU85BoolOutputCheck", _BOOL, U85),
    ),
    patterns=(
        ("reshape|view|squeeze|unsqueeze", "permute|transpose"),
        ("eq|ge|gt|le|lt|ne", "where"),
    ),
    workaround=True,
    needs=EXPOSED,
)
