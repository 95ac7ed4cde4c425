"""Faults in scales, zero points, tables, round modes and code ranges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.faults.cases import add_case, clamps_case, conv_case, conv_relu_case, join_case, mul_case, square_case
from tests.faults.fault import Fault, patched
from tests.integration.conftest import linear_case, sigmoid_case


def _conv_without_output_qparams() -> AbstractContextManager[None]:
    """Seed 001 (#18778): the fold leaves a convolution that has an activation without its output domain."""
    from executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass import FoldAndAnnotateQParamsPass
    from executorch.exir.dialects._ops import ops

    original = FoldAndAnnotateQParamsPass.call

    def wrong(self, graph_module):
        result = original(self, graph_module)
        for node in result.graph_module.graph.nodes:
            if node.target == ops.edge.aten.convolution.default:
                node.meta["output_qparams"] = {}
        return result

    return patched(FoldAndAnnotateQParamsPass, "call", wrong)


def _keyed_by_flattened_input() -> AbstractContextManager[None]:
    """#18971, the writing side: qparams are stored by the place among a node's distinct input nodes."""
    from executorch.backends.arm._passes.fold_qdq_with_annotated_qparams_pass import FoldAndAnnotateQParamsPass

    original = FoldAndAnnotateQParamsPass._annotate_input_params

    def wrong(self, graph_module, node, index, input_qparams, nodes_to_remove, remove_qdq=True):
        argument = node.args[index]
        operands = argument if isinstance(argument, (list, tuple)) else [argument]
        places = [node.all_input_nodes.index(operand) for operand in operands]
        original(self, graph_module, node, index, input_qparams, nodes_to_remove, remove_qdq)
        del node.meta["input_qparams"][index]
        node.meta["input_qparams"].update(dict.fromkeys(places, input_qparams))

    return patched(FoldAndAnnotateQParamsPass, "_annotate_input_params", wrong)


def inputs_rescaled_with(
    target: str, change: Callable[[dict[int, Any]], dict[int, Any]]
) -> AbstractContextManager[None]:
    """``InsertRescaleInt32Pass`` reads changed input qparams of one operator."""
    from executorch.backends.arm._passes.insert_rescales_pass import InsertRescaleInt32Pass

    original = InsertRescaleInt32Pass._rescale_inputs

    def wrong(self, graph, node, rescale_qargs):
        right = node.meta["input_qparams"]
        if node.target.name() == target:
            node.meta["input_qparams"] = change(right)
        try:
            return original(self, graph, node, rescale_qargs)
        finally:
            node.meta["input_qparams"] = right

    return patched(InsertRescaleInt32Pass, "_rescale_inputs", wrong)


def _add_scales_swapped() -> AbstractContextManager[None]:
    """#14645, #14650: each operand of add is rescaled from the other's scale."""

    def change(qparams):
        return {0: qparams[0]._replace(scale=qparams[1].scale), 1: qparams[1]._replace(scale=qparams[0].scale)}

    return inputs_rescaled_with("aten::add.Tensor", change)


def _zero_point_off_by_one() -> AbstractContextManager[None]:
    """#18462's class, a wrong zero: the second operand of mul is rescaled from zero point + 1."""

    def change(qparams):
        return {0: qparams[0], 1: qparams[1]._replace(zp=qparams[1].zp + 1)}

    return inputs_rescaled_with("aten::mul.Tensor", change)


def _clamp_dropped() -> AbstractContextManager[None]:
    """#21013, #16286's class: of two clamps in a row only the first one's bounds survive."""
    from executorch.backends.arm._passes import fuse_consecutive_clamps_pass

    original = fuse_consecutive_clamps_pass._fuse_pair

    def wrong(first, second):
        bounds = fuse_consecutive_clamps_pass._get_bounds(first)
        fused = original(first, second)
        second.args = (second.args[0], *bounds)
        return fused

    return patched(fuse_consecutive_clamps_pass, "_fuse_pair", wrong)


def channel_scales_rotated() -> AbstractContextManager[None]:
    """#17842's class, per-channel scales on the wrong channel: rotated by one."""
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass

    original = RewriteConvPass.insert_output_rescale

    def wrong(self, graph_module, source_node, conv_node, conv_fake_tensor):
        rescale, fake = original(self, graph_module, source_node, conv_node, conv_fake_tensor)
        scales = rescale.args[2]
        rescale.update_arg(2, [*scales[1:], scales[0]])
        return rescale, fake

    return patched(RewriteConvPass, "insert_output_rescale", wrong)


def _table_off_by_one() -> AbstractContextManager[None]:
    """#18873: a sigmoid table off by one entry."""
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    original = InsertTableOpsPass.generate_8bit_table_values

    def wrong(self, torch_op, in_quantargs, out_quantargs):
        values, shift = original(self, torch_op, in_quantargs, out_quantargs)
        return values.roll(1), shift

    return patched(InsertTableOpsPass, "generate_8bit_table_values", wrong)


def _rescale_shift_off_by_one() -> AbstractContextManager[None]:
    """#20401's class, a wrong shift: every RESCALE divides by two."""
    from executorch.backends.arm.operators import op_tosa_rescale

    original = op_tosa_rescale._compute_multiplier_and_shift

    def wrong(scales, scaleWidth=32):
        multipliers, shifts = original(scales, scaleWidth)
        return multipliers, [shift + 1 for shift in shifts]

    return patched(op_tosa_rescale, "_compute_multiplier_and_shift", wrong)


def _round_mode_double() -> AbstractContextManager[None]:
    """#17830's class, RESCALE details: double rounding, as before TOSA 1.0, in place of single rounding."""
    import tosa_serializer
    from executorch.backends.arm.operators.op_tosa_rescale import RescaleVisitor

    original = RescaleVisitor._build_rescale

    def wrong(self, **words):
        original(self, **{**words, "rounding_mode": tosa_serializer.RoundingMode.DOUBLE_ROUND})

    return patched(RescaleVisitor, "_build_rescale", wrong)


def _domain_changed_through_cat() -> AbstractContextManager[None]:
    """#18999: the inputs of cat keep domains of their own, and only the first one's survives the fold."""
    import torch
    from executorch.backends.arm.quantizer import TOSAQuantizer
    from torchao.quantization.pt2e.quantizer import QuantizationSpec

    original = TOSAQuantizer.annotate

    def wrong(self, model):
        model = original(self, model)
        for node in model.graph.nodes:
            if node.target == torch.ops.aten.cat.default:
                inputs = node.meta["quantization_annotation"].input_qspec_map
                own = next(spec for spec in inputs.values() if isinstance(spec, QuantizationSpec))
                inputs.update(dict.fromkeys(inputs, own))
        return model

    return patched(TOSAQuantizer, "annotate", wrong)


FAULTS = (
    Fault(
        "conv-without-qparams",
        "seed 001, #18778: conv left without output qparams",
        "qparams",
        "no output qparams",
        "FoldAndAnnotateQParamsPass",
        conv_relu_case(),
        _conv_without_output_qparams,
    ),
    Fault(
        "qparams-flattened",
        "qparams keyed by flattened input (#18971's writing side)",
        "qparams",
        "input qparams of another argument",
        "FoldAndAnnotateQParamsPass",
        square_case(),
        _keyed_by_flattened_input,
    ),
    Fault(
        "add-scales-swapped",
        "add's input scales (#14645, #14650)",
        "qparams",
        "operand scales differ",
        "InsertRescaleInt32Pass",
        add_case(),
        _add_scales_swapped,
    ),
    Fault(
        "zero-point-off-by-one",
        "a wrong zero in one operand (#18462's class)",
        "qparams",
        "zero point differs",
        "InsertRescaleInt32Pass",
        mul_case(),
        _zero_point_off_by_one,
    ),
    Fault(
        "clamp-dropped",
        "a clamp lost in fusing (#21013, #16286)",
        "qparams",
        "clamp lost",
        "FuseConsecutiveClampsPass",
        clamps_case(),
        _clamp_dropped,
    ),
    Fault(
        "channel-scales-rotated",
        "per-channel scales on the wrong channel (#17842's class)",
        "qparams",
        "scale differs",
        "RewriteConvPass",
        conv_case(),
        channel_scales_rotated,
    ),
    Fault(
        "table-off-by-one",
        "sigmoid LUT off by one (#18873)",
        "qparams",
        "table entry wrong",
        "InsertTableOpsPass",
        sigmoid_case(),
        _table_off_by_one,
    ),
    Fault(
        "rescale-shift",
        "RESCALE shift off by one (#20401's class)",
        "numeric",
        "outside rounding",
        "serializer",
        linear_case(),
        _rescale_shift_off_by_one,
    ),
    Fault(
        "round-mode",
        "RESCALE with the wrong round mode (#17830's class)",
        "qparams",
        "round mode",
        "serializer",
        linear_case(),
        _round_mode_double,
    ),
    Fault(
        "cat-changes-domain",
        "a domain change folded through cat (#18999)",
        "qparams",
        "domain changed by data movement",
        "quantizer",
        join_case(),
        _domain_changed_through_cat,
    ),
)
