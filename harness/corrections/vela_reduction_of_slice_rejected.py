"""``vela-reduction-of-slice-rejected``: a slice that is reduced, or a reduction that is joined, runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, JOINED, SLICES_TOO, rejected

_CHECK = (
    '''\
    """Reject slices which a reduction reads, and reductions which become a part
    of a tensor: Vela merges axes which are not contiguous in them.
    """

    _reductions = (
        exir_ops.edge.aten.amax.default,
        exir_ops.edge.aten.amin.default,
        exir_ops.edge.aten.sum.dim_IntList,
        exir_ops.edge.aten.mean.dim,
    )
'''
    + JOINED
    + SLICES_TOO
    + """
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in self._reductions:
            return self._reads_no_slice_wrongly(submodules, node)
        return not any(
            user.target in self._joined_by for user, _ in self._consumers(node)
        )

    def _is_misread(self, user: fx.Node, operand: fx.Node) -> bool:
        if user.target in TableOps.included_ops():
            return any(
                reader.target in self._reductions for reader, _ in self._consumers(user)
            )
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
        "vela-u55-amax-into-slice",
        "vela-u85-amax-into-slice",
        "vela-u85-amax-padded",
        "vela-u85-amin-of-slice-of-constant-cat",
    ),
    cause=(
        "Vela 5.1.0 merges the axes in front of and behind the one that is reduced. Where the operand is a SLICE, or "
        "the result a part of a CONCAT or PAD, these are not contiguous: wrong elements are reduced or written."
    ),
    change="EthosUPartitioner rejects a slice that a reduction reads, and a reduction that a cat or a padding reads.",
    changes=rejected("VelaReductionOfSliceCheck", _CHECK),
    patterns=(
        ("slice|chunk|split|narrow|select", "amax|amin|sum|mean|softmax|log_softmax"),
        ("amax|amin|sum|mean", "cat|stack|pad"),
    ),
    workaround=True,
    needs=EXPOSED,
)
