"""Faults in the values of constants."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tests.faults.cases import constants_join_case, conv_case, filled_case, pad_case, ramps_case
from tests.faults.fault import Fault, patched, together


def without_constant_folding() -> AbstractContextManager[None]:
    """1.2.0 had no ``ConstantFoldingPass`` before annotation: constant expressions reached the delegate."""
    from executorch.backends.arm._passes.constant_folding_pass import ConstantFoldingPass
    from executorch.exir.pass_base import PassResult

    return patched(ConstantFoldingPass, "call", lambda self, graph_module: PassResult(graph_module, False))


class _Flattened:
    """Input qparams as 1.2.0 read them: the n-th constant with key n, raw codes where there is none."""

    def __init__(self, qparams):
        self._qparams = qparams
        self._seen = 0

    def dequantize_value(self, codes):
        place, self._seen = self._seen, self._seen + 1
        return self._qparams[place].dequantize_value(codes) if place in self._qparams else codes


def _cat_of_constants_folded_from_codes() -> AbstractContextManager[None]:
    """Seed 002 (#18971): the elements of a list argument look their qparams up by flattened place."""
    from executorch.backends.arm._passes.fuse_constant_ops_pass import FuseConstantArgsPass

    original = FuseConstantArgsPass._fuse_nodes

    def wrong(self, node):
        right = node.meta.get("input_qparams")
        if right and isinstance(node.args[0], (list, tuple)):
            node.meta["input_qparams"] = {0: _Flattened(right)}
        try:
            return original(self, node)
        finally:
            if right:
                node.meta["input_qparams"] = right

    return together(without_constant_folding(), patched(FuseConstantArgsPass, "_fuse_nodes", wrong))


def _bias_not_rescaled() -> AbstractContextManager[None]:
    """#15370's class, a bias in the wrong domain: its codes have the weights' scale, not input x weights."""
    import torch
    from executorch.backends.arm._passes.arm_pass_utils import get_param_tensor
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass
    from executorch.backends.transforms.utils import create_constant_placeholder
    from executorch.exir.dialects._ops import ops
    from torch.export.graph_signature import InputKind

    original = RewriteConvPass.call

    def wrong(self, graph_module):
        for node in graph_module.graph.nodes:
            if node.target != ops.edge.aten.convolution.default:
                continue
            codes = get_param_tensor(self.exported_program, node.args[2])
            scale = node.meta["input_qparams"][0].get_scale_per_tensor()
            with graph_module.graph.inserting_before(node.args[2]):
                moved = create_constant_placeholder(
                    exp_program=self.exported_program,
                    graph=graph_module.graph,
                    kind=InputKind.PARAMETER,
                    name=f"{node.args[2].name}_not_rescaled",
                    data=torch.round(codes * scale).to(torch.int32),
                )
            node.update_arg(2, moved)
        return original(self, graph_module)

    return patched(RewriteConvPass, "call", wrong)


def _weight_axes_swapped() -> AbstractContextManager[None]:
    """#17842's class, a wrong weight axis: OWHI in place of OHWI, which a square kernel hides from shape checks."""
    from executorch.backends.arm._passes.rewrite_conv_pass import RewriteConvPass

    original = RewriteConvPass._rewrite_weight

    def wrong(self, graph_module, weight_node, conv_node, permute_dims, name_suffix, reshape_dims=None):
        if permute_dims == (0, 2, 3, 1):
            permute_dims = (0, 3, 2, 1)
        return original(self, graph_module, weight_node, conv_node, permute_dims, name_suffix, reshape_dims)

    return patched(RewriteConvPass, "_rewrite_weight", wrong)


class _Cast:
    """Output qparams that only cast."""

    def __init__(self, qparams):
        self._dtype = qparams.dtype

    def quantize_value(self, value):
        return value.to(self._dtype)


def _folded_in_float() -> AbstractContextManager[None]:
    """#15698's class, constants folded ahead of time: the float value is cast, not quantized."""
    from executorch.backends.arm._passes.fuse_constant_ops_pass import ComputeConstantOpsAOTPass

    original = ComputeConstantOpsAOTPass.compute_node_aot

    def wrong(self, node):
        right = node.meta.get("output_qparams")
        if right:
            node.meta["output_qparams"] = {0: _Cast(right[0])}
        try:
            return original(self, node)
        finally:
            if right:
                node.meta["output_qparams"] = right

    return patched(ComputeConstantOpsAOTPass, "compute_node_aot", wrong)


def padded_with_code_zero() -> AbstractContextManager[None]:
    """#18462's class, a literal 0 in place of the zero point: the padding value is not quantized."""
    from executorch.backends.arm._passes.rewrite_pad import RewritePadPass

    original = RewritePadPass._rewrite_constant_pad

    def wrong(self, input_tensor, pad, value, meta):
        qparams = meta.data.get("input_qparams")
        if qparams:  # the value whose code is the literal
            value = (value - qparams[0].zp) * qparams[0].scale
        return original(self, input_tensor, pad, value, meta)

    return patched(RewritePadPass, "_rewrite_constant_pad", wrong)


FAULTS = (
    Fault(
        "cat-fold",
        "seed 002, #18971: cat of constants folded from raw codes, returned as it is",
        "constants",
        "folded constant differs",
        "FuseConstantArgsPass",
        ramps_case(),
        _cat_of_constants_folded_from_codes,
    ),
    Fault(
        "cat-fold-used",
        "the same (#18971) where an operator of the delegate reads the constant",
        "constants",
        "folded constant differs",
        "FuseConstantArgsPass",
        constants_join_case(),
        _cat_of_constants_folded_from_codes,
    ),
    Fault(
        "bias-not-rescaled",
        "a bias in the wrong domain (#15370's class)",
        "constants",
        "bias differs",
        "RewriteConvPass",
        conv_case(),
        _bias_not_rescaled,
    ),
    Fault(
        "weight-layout",
        "weights with height and width swapped (#17842's class)",
        "constants",
        "weights differ",
        "RewriteConvPass",
        conv_case(),
        _weight_axes_swapped,
    ),
    Fault(
        "folded-in-float",
        "a folded constant that was not quantized (#15698's class)",
        "constants",
        "folded constant differs",
        "ComputeConstantOpsAOTPass",
        filled_case(),
        _folded_in_float,
    ),
    Fault(
        "pad-value",
        "padding with code 0 in place of the zero point (#18462's class)",
        "constants",
        "padding value differs",
        "RewritePadPass",
        pad_case(),
        padded_with_code_zero,
    ),
)
