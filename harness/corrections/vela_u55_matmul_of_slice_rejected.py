"""``vela-u55-matmul-of-slice-rejected``: a slice as the first operand of a matrix product runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import SLICES, U55, rejected

_PERMUTE = "            exir_ops.edge.aten.permute_copy.default,\n"
_EXPAND = "            exir_ops.edge.aten.expand_copy.default,\n"  # matmul of rank 4: expand, view, bmm

_CHECK = (
    '''\
    """Reject slices which are the first operand of a matrix product: on
    Ethos-U55, Vela multiplies the whole tensor.
    """
'''
    + SLICES.replace(_PERMUTE, _PERMUTE + _EXPAND)
    + """
    def _is_misread(self, user: fx.Node, operand: fx.Node) -> bool:
        return (
            user.target
            in (exir_ops.edge.aten.bmm.default, exir_ops.edge.aten.mm.default)
            and user.args[0] is operand
        )
"""
)

CORRECTION = Correction(
    name="vela-u55-matmul-of-slice-rejected",
    entries=("vela-u55-matmul-of-slice",),
    cause=(
        "On Ethos-U55 and U65, Vela 5.1.0 makes MATMUL a MUL and a REDUCE_SUM. Where the first operand is a SLICE, MUL "
        "takes the whole tensor."
    ),
    change="For Ethos-U55 and U65, EthosUPartitioner rejects a slice that is the first operand of mm or bmm.",
    changes=rejected("VelaU55MatmulOfSliceCheck", _CHECK, U55),
    patterns=(("slice|chunk|split|narrow|select", "matmul|bmm|mm"),),
    workaround=True,
)
