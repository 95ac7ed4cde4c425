"""``vela-u85-where-of-view-rejected``: a where whose operand has another shape elsewhere runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import BESIDE_VIEW, EXPOSED, THROUGH, U85, rejected

_CHECK = (
    '''\
    """Reject selections of an operand which is viewed: on Ethos-U85, Vela reads
    it with the shape of the view.
    """
'''
    + THROUGH
    + BESIDE_VIEW
    + """
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        return node.target != exir_ops.edge.aten.where.self or not self._is_viewed(node)
"""
)

CORRECTION = Correction(
    name="vela-u85-where-of-view-rejected",
    entries=("vela-u85-select-operand-reshaped",),
    cause=(
        "On Ethos-U85, Vela 5.1.0 computes SELECT with the AND and OR of a mask. These read an operand with the shape "
        "of another view of it, if a RESHAPE beside them reads it, too."
    ),
    change="For Ethos-U85, EthosUPartitioner rejects where if an operand has another shape elsewhere.",
    changes=rejected("VelaU85WhereOfViewCheck", _CHECK, U85),
    patterns=(("where", "view|reshape|flatten"), ("view|reshape|flatten", "where")),
    workaround=True,
    needs=EXPOSED,
)
