"""``vela-u85-slice-of-written-row-rejected``: a slice of a tensor into which one row was written runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, THROUGH, U85, rejected

_CHECK = (
    '''\
    """Reject slices of what an index_put with one index wrote: on Ethos-U85,
    Vela lets them begin before it is written.
    """

    targets = (
        exir_ops.edge.aten.slice_copy.Tensor,
        exir_ops.edge.aten.select_copy.int,
        exir_ops.edge.aten.split_copy.Tensor,
        exir_ops.edge.aten.split_with_sizes_copy.default,
    )
'''
    + THROUGH
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if "getitem" in str(node.target):
            node = node.all_input_nodes[0]
        if node.target not in self.targets:
            return True
        source = node.all_input_nodes[0]
        while self._moves_data(source):
            source = source.all_input_nodes[0]
        return not self._writes_one_row(source)

    @staticmethod
    def _writes_one_row(node: fx.Node) -> bool:
        """Return whether the node writes at one index."""
        if node.target != exir_ops.edge.aten.index_put.default:
            return False
        indices = [index for index in node.args[1] if index is not None]
        return all(get_first_fake_tensor(index).numel() == 1 for index in indices)
'''
)

CORRECTION = Correction(
    name="vela-u85-slice-of-written-row-rejected",
    entries=("vela-u85-one-row-dma-not-awaited",),
    cause=(
        "On Ethos-U85, Vela 5.1.0 notes of a SCATTER of one index that it writes the first row, whichever the index "
        "chooses. What reads other rows does not wait for it."
    ),
    change="For Ethos-U85, EthosUPartitioner rejects slices of an index_put that has one index.",
    changes=rejected("VelaU85SliceOfWrittenRowCheck", _CHECK, U85),
    patterns=(("index_put", "slice|narrow|select|split|chunk|unbind"),),
    workaround=True,
    needs=EXPOSED,
)
