"""Plants in executorch's Arm passes and serializer, in passes that corpus entries blame.

Each wraps what a pass calls, so that a correction that edits the wrapped function leaves the plant where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.faults.buffers import output_widened
from tests.faults.constants import padded_with_code_zero
from tests.faults.fault import patched
from tests.faults.planted import Drawn, Plant
from tests.faults.qparams import channel_scales_rotated, inputs_rescaled_with

TOSA = "TOSA-1.0+INT"
CONVOLUTIONS = Drawn(TOSA, 2, 2)
VALUES = ("numeric", "qparams", "constants")


def _output_multiplier_off() -> AbstractContextManager[None]:
    """The RESCALE behind a convolution multiplies by 1/32 too much."""
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass

    original = RewriteConvPass.insert_output_rescale

    def wrong(self, graph_module, source_node, conv_node, conv_fake_tensor):
        rescale, fake = original(self, graph_module, source_node, conv_node, conv_fake_tensor)
        rescale.update_arg(2, [scale * 33 / 32 for scale in rescale.args[2]])
        return rescale, fake

    return patched(RewriteConvPass, "insert_output_rescale", wrong)


def _output_zero_point_off() -> AbstractContextManager[None]:
    """The RESCALE behind a convolution adds a zero point that is one too large."""
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass

    original = RewriteConvPass.insert_output_rescale

    def wrong(self, graph_module, source_node, conv_node, conv_fake_tensor):
        rescale, fake = original(self, graph_module, source_node, conv_node, conv_fake_tensor)
        rescale.update_arg(4, min(rescale.args[4] + 1, 127))
        return rescale, fake

    return patched(RewriteConvPass, "insert_output_rescale", wrong)


def _bias_off_by_one() -> AbstractContextManager[None]:
    """Every convolution gets a bias whose codes are one too large."""
    from executorch.backends.arm._passes.arm_pass_utils import get_param_tensor
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass
    from executorch.backends.transforms.utils import create_constant_placeholder
    from executorch.exir.dialects._ops import ops
    from torch.export.graph_signature import InputKind

    original = RewriteConvPass.call

    def wrong(self, graph_module):
        for node in list(graph_module.graph.nodes):
            if node.target != ops.edge.aten.convolution.default or node.args[2] is None:
                continue
            bias = node.args[2]
            with graph_module.graph.inserting_before(bias):
                moved = create_constant_placeholder(
                    exp_program=self.exported_program,
                    graph=graph_module.graph,
                    kind=InputKind.PARAMETER,
                    name=f"{bias.name}_off_by_one",
                    data=get_param_tensor(self.exported_program, bias) + 1,
                )
            moved.meta.update({key: value for key, value in bias.meta.items() if key not in moved.meta})
            node.update_arg(2, moved)
        return original(self, graph_module)

    return patched(RewriteConvPass, "call", wrong)


def _table_entry_off() -> AbstractContextManager[None]:
    """The entry in the middle of every table of bytes is three codes off."""
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    original = InsertTableOpsPass.generate_8bit_table_values

    def wrong(self, torch_op, in_quantargs, out_quantargs):
        values, shift = original(self, torch_op, in_quantargs, out_quantargs)
        values = values.clone()
        values[128] += -3 if values[128] > 0 else 3
        return values, shift

    return patched(InsertTableOpsPass, "generate_8bit_table_values", wrong)


def _clamp_bound_off() -> AbstractContextManager[None]:
    """A CLAMP's lower bound is three codes too high."""
    from executorch.backends.arm._passes import aten_to_tosa_activation_functions as activations

    original = activations.rewrite_clamp

    def wrong(node, pass_):
        made = original(node, pass_)
        if made is not None and isinstance(made.args[1], int):
            value, low, high = made.args
            made = type(made)(made.op, (value, min(low + 3, high), high), made.kwargs)
        return made

    return patched(activations, "rewrite_clamp", wrong)


def _cat_reversed() -> AbstractContextManager[None]:
    """The operands of CONCAT come in the opposite order."""
    from executorch.backends.arm._passes import aten_to_tosa_data_layout as layout

    original = layout._rewrite_cat

    def wrong(node, pass_):
        made = original(node, pass_)
        return type(made)(made.op, (list(reversed(made.args[0])),), made.kwargs)

    return patched(layout, "_rewrite_cat", wrong)


def _permutation_wrong() -> AbstractContextManager[None]:
    """In permutations that the pass leaves, two axes of one size change places."""
    from executorch.backends.arm._passes.propagate_view_copy_permute_pass import PropagateViewCopyPermuteUpPass
    from executorch.exir.dialects._ops import ops

    original = PropagateViewCopyPermuteUpPass.call

    def wrong(self, graph_module):
        result = original(self, graph_module)
        for node in result.graph_module.graph.nodes:
            if node.target == ops.edge.aten.permute_copy.default:
                shape, dims = node.args[0].meta["val"].shape, list(node.args[1])
                pairs = [
                    (one, other)
                    for one in range(len(dims))
                    for other in range(one)
                    if shape[dims[one]] == shape[dims[other]] > 1
                ]
                for one, other in pairs[:1]:
                    dims[one], dims[other] = dims[other], dims[one]
                    node.update_arg(1, dims)
        result.graph_module.recompile()
        return result

    return patched(PropagateViewCopyPermuteUpPass, "call", wrong)


def _folded_with_wrong_scale() -> AbstractContextManager[None]:
    """Codes of constants are read with a scale that is 1/8 too large when they are folded."""
    from executorch.backends.arm._passes.fuse_constant_ops_pass import FuseConstantArgsPass

    original = FuseConstantArgsPass._fuse_nodes

    def wrong(self, node):
        right = node.meta.get("input_qparams")
        if right:
            node.meta["input_qparams"] = {
                key: item if item.per_channel else item._replace(scale=item.scale * 9 / 8)
                for key, item in right.items()
            }
        try:
            return original(self, node)
        finally:
            if right:
                node.meta["input_qparams"] = right

    return patched(FuseConstantArgsPass, "_fuse_nodes", wrong)


def _pool_counts_too_many() -> AbstractContextManager[None]:
    """AVG_POOL2D averages over one row more, above the window."""
    from executorch.backends.arm._passes.rewrite_avg_pool2d_pass import RewriteAvgPool2dPass
    from executorch.exir.dialects._ops import ops

    original = RewriteAvgPool2dPass.call

    def wrong(self, graph_module):
        result = original(self, graph_module)
        for node in result.graph_module.graph.nodes:
            if node.target == ops.backend.tosa.AVG_POOL2D.default:
                (rows, columns), (top, *pad) = node.args[3], node.args[5]
                node.update_arg(3, [rows + 1, columns])
                node.update_arg(5, [top + 1, *pad])
        result.graph_module.recompile()
        return result

    return patched(RewriteAvgPool2dPass, "call", wrong)


def _divisor_off() -> AbstractContextManager[None]:
    """What a sum (of a mean, say) is divided by is 1/8 too large."""
    from executorch.backends.arm._passes.insert_rescales_pass import InsertRescaleInt32Pass
    from executorch.exir.dialects._ops import ops

    original = InsertRescaleInt32Pass._get_output_qparams

    def wrong(self, target, inputs_qparams):
        made = original(self, target, inputs_qparams)
        return made._replace(scale=made.scale * 8 / 9) if target == ops.edge.aten.sum.dim_IntList else made

    return patched(InsertRescaleInt32Pass, "_get_output_qparams", wrong)


def _slice_start_off() -> AbstractContextManager[None]:
    """A slice that does not begin at the front begins one element early."""
    from executorch.backends.arm._passes.rewrite_slice import RewriteSlicePass

    original = RewriteSlicePass._fixup_start

    def wrong(self, start, input_shape, dim):
        return max(0, original(self, start, input_shape, dim) - 1)

    return patched(RewriteSlicePass, "_fixup_start", wrong)


def _add_zero_point_off() -> AbstractContextManager[None]:
    """The second operand of add is rescaled from a zero point that is one too large."""

    def change(qparams):
        return {key: item._replace(zp=item.zp + 1) if key == 1 else item for key, item in qparams.items()}

    return inputs_rescaled_with("aten::add.Tensor", change)


def _plant(
    name: str,
    stands_for: str,
    blame: str,
    drawn: Drawn,
    planted: Callable[[], AbstractContextManager[None]],
    *shows: str,
) -> Plant:
    return Plant(name, stands_for, shows or VALUES, blame, drawn, planted)


PLANTS = (
    _plant("conv-multiplier", "a RESCALE multiplier is off", "RewriteConvPass", CONVOLUTIONS, _output_multiplier_off),
    _plant(
        "conv-zero-point", "an output zero point is off by one", "RewriteConvPass", CONVOLUTIONS, _output_zero_point_off
    ),
    _plant(
        "conv-channel-scales", "scales on the wrong channel", "RewriteConvPass", CONVOLUTIONS, channel_scales_rotated
    ),
    _plant("conv-bias", "a bias off by one", "RewriteConvPass", CONVOLUTIONS, _bias_off_by_one),
    _plant("pass-table-entry", "a table entry off", "InsertTableOpsPass", Drawn(TOSA, 3, 3), _table_entry_off),
    _plant("clamp-bound", "a clamp's bound off", "ExirToTosaPass", Drawn(TOSA, 24, 2), _clamp_bound_off),
    _plant("cat-reversed", "operands of cat in another order", "ExirToTosaPass", Drawn(TOSA, 3, 2), _cat_reversed),
    _plant(
        "permutation", "a wrong permutation", "PropagateViewCopyPermuteUpPass", Drawn(TOSA, 3, 6), _permutation_wrong
    ),
    _plant(
        "fold-scale",
        "constants folded with a wrong scale",
        "FuseConstantArgsPass",
        Drawn(TOSA, 100, 3),
        _folded_with_wrong_scale,
    ),
    _plant("pool-count", "the count of an average", "RewriteAvgPool2dPass", Drawn(TOSA, 143, 3), _pool_counts_too_many),
    _plant(
        "divisor",
        "the divisor of a mean or the scale of a sum",
        "InsertRescaleInt32Pass",
        Drawn(TOSA, 28, 3),
        _divisor_off,
    ),
    _plant("pass-pad-value", "a wrong padding value", "RewritePadPass", Drawn(TOSA, 105, 3), padded_with_code_zero),
    _plant("slice-start", "a slice begins too early", "RewriteSlicePass", Drawn(TOSA, 23, 3), _slice_start_off),
    _plant(
        "add-zero-point", "an operand's zero point", "InsertRescaleInt32Pass", Drawn(TOSA, 30, 5), _add_zero_point_off
    ),
    _plant("output-widened", "a delegate output's dtype", "serializer", Drawn(TOSA, 2, 1), output_widened, "buffers"),
)
