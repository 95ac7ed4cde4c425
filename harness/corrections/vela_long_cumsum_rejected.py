"""``vela-long-cumsum-rejected``: cumulative sums of more rows than an Ethos-U's kernel has run on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import EXPOSED, rejected

_CHECK = '''\
    """Reject cumulative sums of more than 64 elements, as they become
    convolutions of so many rows, and an Ethos-U has kernels of 64.
    """

    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target != exir_ops.edge.aten.cumsum.default:
            return True
        shape = get_first_fake_tensor(node.all_input_nodes[0]).shape
        return not shape or shape[typing.cast(int, node.args[1])] <= 64
'''

CORRECTION = Correction(
    name="vela-long-cumsum-rejected",
    entries=("vela-padding-above-127",),
    cause=(
        "DecomposeCumsumPass makes a cumulative sum of N elements a convolution with a kernel of N rows and N - 1 rows "
        "of padding. Vela 5.1.0 promises kernels of 64 rows, does not refuse larger ones, and writes the padding into "
        "registers of seven bits."
    ),
    change="EthosUPartitioner rejects cumulative sums of more than 64 elements.",
    changes=rejected("VelaCumsumCheck", _CHECK),
    patterns=(("cumsum",),),
    workaround=True,
    needs=EXPOSED,
)
