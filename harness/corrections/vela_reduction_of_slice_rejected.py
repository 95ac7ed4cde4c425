"""``vela-reduction-of-slice-rejected``: a slice that is reduced at once runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import SLICES, rejected

_CHECK = (
    '''\
    """Reject slices which a reduction reads: Vela merges axes which are not
    contiguous in them.
    """

    _reductions = (
        exir_ops.edge.aten.amax.default,
        exir_ops.edge.aten.amin.default,
        exir_ops.edge.aten.sum.dim_IntList,
        exir_ops.edge.aten.mean.dim,
    )
'''
    + SLICES
    + """
    def _is_misread(self, user: fx.Node, operand: fx.Node) -> bool:
        return user.target in self._reductions
"""
)

CORRECTION = Correction(
    name="vela-reduction-of-slice-rejected",
    entries=(
        "vela-reduction-of-slice",
        "vela-slice-before-unit-reduction",
        "vela-sum-of-slice",
        "vela-u55-softmax-of-slice-segfault",
    ),
    cause=(
        "Vela 5.1.0 merges the axes in front of and behind the one that is reduced. Where the operand is a SLICE these "
        "are not contiguous, and the wrong elements are reduced."
    ),
    change="EthosUPartitioner rejects a slice that a reduction reads.",
    changes=rejected("VelaReductionOfSliceCheck", _CHECK),
    patterns=(("slice|chunk|split|narrow|select", "amax|amin|sum|mean|softmax|log_softmax"),),
    workaround=True,
    # what Ethos-U does not take is read by the CPU, and may leave full_like alone in a delegate, which then goes on to
    # where with a constant
    needs=("delegate-output-dtype", "unused-inputs-kept", "constant-keeps-quantized-dtype"),
)
