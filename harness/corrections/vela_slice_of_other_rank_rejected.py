"""``vela-slice-of-other-rank-rejected``: a slice that is read with another number of axes runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, SLICES, rejected

_CHECK = (
    '''\
    """Reject slices of or to five axes which are read with another number of
    them, or by a three-dimensional convolution: Vela reads other elements.
    """
'''
    + SLICES.replace(
        """            self._is_misread(user, operand)
""",
        """            self._is_misread(sliced, user, operand)
""",
    )
    + """
    def _is_misread(self, sliced: fx.Node, user: fx.Node, operand: fx.Node) -> bool:
        ranks = {
            get_first_fake_tensor(node).dim()
            for node in (*sliced.all_input_nodes, operand, user)
        }
        if user.target == exir_ops.edge.aten.convolution.default:
            return max(ranks) > 4
        return max(ranks) > 4 and len(ranks) > 1
"""
)

CORRECTION = Correction(
    name="vela-slice-of-other-rank-rejected",
    entries=(
        "vela-rank5-broadcast-of-slice",
        "vela-slice-read-with-fewer-axes",
        "vela-u55-conv3d-of-slice-segfault",
        "vela-u85-conv3d-of-slice",
        "vela-u85-matmul-of-rank5-slice",
        "vela-u85-repeat-of-slice",
    ),
    cause=(
        "Vela 5.1.0 moves a SLICE into its reader also where a RESHAPE between them adds or removes axes. The offset "
        "and strides of the slice then belong to other axes; a CONV3D loses them where it becomes CONV2Ds."
    ),
    change=(
        "EthosUPartitioner rejects a slice with five axes or more on either side of its readers, if their number "
        "changes or a three-dimensional convolution reads it."
    ),
    changes=rejected("VelaSliceOfOtherRankCheck", _CHECK),
    patterns=(
        ("slice|chunk|split|narrow|select", "add|sub|mul|minimum|maximum|sigmoid|tanh|relu|repeat|matmul|conv3d"),
        (
            "slice|chunk|split|narrow|select",
            "view|reshape|flatten|squeeze|unsqueeze",
            "add|mul|sigmoid|tanh|relu|matmul",
        ),
    ),
    workaround=True,
    needs=EXPOSED,
)
