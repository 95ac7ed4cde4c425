"""``vela-u55-squeezed-minimum-rejected``: a minimum that loses its axis, or of a viewed operand, runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import BESIDE_VIEW, EXPOSED, THROUGH, U55, rejected

_CHECK = (
    '''\
    """Reject minima which are reshaped, or whose operand is: on Ethos-U55, Vela
    subtracts with the broadcast of another shape.
    """
'''
    + THROUGH
    + BESIDE_VIEW
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target != exir_ops.edge.aten.amin.default:
            return True
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        dims = typing.cast(typing.Sequence[int], node.args[1]) or range(len(shape))
        reduced = list(shape)
        for dim in dims:
            reduced[dim] = 1
        return not self._is_viewed(node) and self._keeps_shape(
            node, self._without_leading_ones(reduced)
        )

    def _keeps_shape(self, node: fx.Node, shape: list[int]) -> bool:
        """Return whether the node and what reshapes it has a shape."""
        if self._without_leading_ones(get_first_fake_tensor(node).shape) != shape:
            return False
        return all(
            self._keeps_shape(user, shape)
            for user in node.users
            if self._moves_data(user)
        )

    @staticmethod
    def _without_leading_ones(shape: typing.Sequence[int]) -> list[int]:
        sizes = list(shape)
        while sizes and sizes[0] == 1:
            sizes.pop(0)
        return sizes
'''
)

CORRECTION = Correction(
    name="vela-u55-squeezed-minimum-rejected",
    entries=("vela-u55-reduce-min-squeezed", "vela-u55-amin-segfault", "vela-u55-amin-beside-view"),
    cause=(
        "On Ethos-U55 and U65, Vela 5.1.0 computes REDUCE_MIN as -1 - max(-1 - x). Where a RESHAPE follows, the last "
        "subtraction has the reshaped output and the unreshaped maximum, which it broadcasts. The first one reads x "
        "with the shape of another view of it."
    ),
    change="For Ethos-U55 and U65, EthosUPartitioner rejects amin if its result or its operand is reshaped.",
    changes=rejected("VelaU55SqueezedMinimumCheck", _CHECK, U55),
    patterns=(("amin",), ("view|reshape|flatten", "amin"), ("amin", "view|reshape|flatten")),
    workaround=True,
    needs=(*EXPOSED, "noop-output-copied"),  # a reshape that does nothing then stays alone
)
