"""``vela-u85-sum-in-chain-rejected``: a sum that loses its axis and is computed with runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import CONSUMERS, EXPOSED, THROUGH, U85, rejected

_CHECK = (
    '''\
    """Reject sums which lose an axis in front of an elementwise operator: on
    Ethos-U85, Vela reserves the memory of their chain for another shape.
    """
'''
    + THROUGH
    + CONSUMERS
    + """
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target != exir_ops.edge.aten.sum.dim_IntList:
            return True
        rank = get_first_fake_tensor(node.all_input_nodes[0]).dim()
        return not any(
            get_first_fake_tensor(operand).dim() < rank
            for user, operand in self._consumers(node)
            if user.target in TableOps.included_ops()
        )
"""
)

CORRECTION = Correction(
    name="vela-u85-sum-in-chain-rejected",
    entries=("vela-u85-cosine-similarity-overwritten",),
    cause=(
        "On Ethos-U85, Vela 5.1.0 keeps a chain that begins with REDUCE_SUM in bricks of the sum's shape, and reserves "
        "the memory that the shape behind a RESHAPE takes. What is computed next lies on the rest of it."
    ),
    change="For Ethos-U85, EthosUPartitioner rejects a sum that loses its axis if a table operator reads it.",
    changes=rejected("VelaU85SumInChainCheck", _CHECK, U85),
    patterns=(("sum|mean", "exp|log|rsqrt|sigmoid|tanh"),),
    workaround=True,
    needs=EXPOSED,
)
