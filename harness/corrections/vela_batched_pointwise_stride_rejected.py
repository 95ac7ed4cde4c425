"""``vela-batched-pointwise-stride-rejected``: a strided 1x1 convolution of several batches runs on the CPU."""

from __future__ import annotations

from harness.corrections.correction import Correction
from harness.corrections.vela_check import rejected

_CHECK = '''\
    """Reject 1x1 convolutions of several batches with a stride above 3: Vela
    computes only some of their columns.
    """

    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        if node.target != exir_ops.edge.aten.convolution.default:
            return True
        inputs, weights = node.all_input_nodes[:2]
        strides = typing.cast(typing.Sequence[int], node.args[3])
        return (
            get_first_fake_tensor(inputs).shape[0] == 1
            or any(size != 1 for size in get_first_fake_tensor(weights).shape[2:])
            or all(stride <= 3 for stride in strides)
        )
'''

CORRECTION = Correction(
    name="vela-batched-pointwise-stride-rejected",
    entries=("vela-batched-pointwise-conv-stride",),
    cause=(
        "Vela 5.1.0 splits a convolution with a stride above 3. With a 1x1 kernel and several batches, the parts write "
        "the same few columns, and the others are never written."
    ),
    change="EthosUPartitioner rejects a 1x1 convolution with batch > 1 and a stride above 3.",
    changes=rejected("VelaBatchedPointwiseStrideCheck", _CHECK),
    patterns=(("conv1d|conv2d|conv_transpose2d",),),
    workaround=True,
)
