"""``vela-slice-beside-whole-rejected``: an operator of a tensor and a slice of it runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import BINARY, EXPOSED, THROUGH, rejected

_CHECK = (
    '''\
    """Reject operators of a tensor and a slice of it: Vela lets them begin
    before the tensor is written.
    """

'''
    + BINARY
    + """\
    _slices = (
        exir_ops.edge.aten.slice_copy.Tensor,
        exir_ops.edge.aten.select_copy.int,
    )
"""
    + THROUGH
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in self.targets:
            return True
        sources = [self._source(operand) for operand in node.all_input_nodes]
        return not any(
            source.target in self._slices
            and self._source(source.all_input_nodes[0]) in sources
            for source in sources
        )

    def _source(self, node: fx.Node) -> fx.Node:
        """Return what the node only moves."""
        while self._moves_data(node):
            node = node.all_input_nodes[0]
        return node
'''
)

CORRECTION = Correction(
    name="vela-slice-beside-whole-rejected",
    entries=("vela-blockdep-both-operands",),
    cause=(
        "Vela 5.1.0 computes BLOCKDEP from one operand. Of an operator that reads the result before it and a slice of "
        "that result it takes the slice, so that the operator may begin before the rest is written."
    ),
    change="EthosUPartitioner rejects add, sub, mul, minimum and maximum of a tensor and a slice or select of it.",
    changes=rejected("VelaSliceBesideWholeCheck", _CHECK),
    patterns=(("slice|narrow|select", "add|sub|mul|minimum|maximum"),),
    workaround=True,
    needs=EXPOSED,
)
