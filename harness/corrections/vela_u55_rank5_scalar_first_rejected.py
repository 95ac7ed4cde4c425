"""``vela-u55-rank5-scalar-first-rejected``: one element and a tensor of five axes are combined on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import BINARY, U55, rejected

_CHECK = (
    '''\
    """Reject elementwise operators of five axes whose first operand has one
    element: on Ethos-U55, Vela reads it as a whole tensor.
    """

'''
    + BINARY
    + """
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target not in self.targets or not isinstance(node.args[0], fx.Node):
            return True
        output = get_first_fake_tensor(node)
        first = get_first_fake_tensor(node.args[0])
        return output.dim() < 5 or first.numel() != 1 or output.numel() == 1
"""
)

CORRECTION = Correction(
    name="vela-u55-rank5-scalar-first-rejected",
    entries=("vela-u55-rank5-scalar-first",),
    cause=(
        "Only the second operand can be broadcast on Ethos-U55 and U65, and Vela 5.1.0 swaps the operands if the shape "
        "of the first is a part of the other's. With more than four axes one of them is folded before, so it is not."
    ),
    change="For Ethos-U55 and U65, EthosUPartitioner rejects such an operator if the first operand has one element.",
    changes=rejected("VelaU55Rank5ScalarFirstCheck", _CHECK, U55),
    patterns=(("add|sub|mul|minimum|maximum|rsub|div",),),
    workaround=True,
)
