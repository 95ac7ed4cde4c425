"""Faults that show as a crash, as values, or as damage to the user's own module."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tests.faults.constants import without_constant_folding
from tests.faults.fault import Fault, patched, together
from tests.integration.conftest import constant_join_case, linear_case, sigmoid_case


def _factory_kwargs_refused() -> AbstractContextManager[None]:
    """Seed 000 (#18322): the quantizer annotates ``aten.full``, whose keyword arguments prepare refuses."""
    import torch
    from torchao.quantization.pt2e import prepare

    original = prepare._maybe_insert_input_observers_for_node
    spared = (torch.ops.aten.clone.default, torch.ops.aten.zeros_like.default, torch.ops.aten.gelu.default)

    def wrong(node, *args):
        if node.target not in spared and node.kwargs:
            raise AssertionError("expecting kwargs for aten op IR to be empty")
        original(node, *args)

    return together(without_constant_folding(), patched(prepare, "_maybe_insert_input_observers_for_node", wrong))


def _pass_raises() -> AbstractContextManager[None]:
    """#18778's class, a pass that assumes qparams."""
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    def wrong(self, graph_module):
        raise ValueError(f"no qparams in node {next(iter(graph_module.graph.nodes)).name}")

    return patched(InsertTableOpsPass, "call", wrong)


def _activation_dropped_before_annotation() -> AbstractContextManager[None]:
    """#16286's class, a relu lost before annotation."""
    import torch
    from executorch.backends.arm.quantizer import TOSAQuantizer

    original = TOSAQuantizer.transform_for_annotation

    def wrong(self, model):
        model = original(self, model)
        for node in list(model.graph.nodes):
            if node.target == torch.ops.aten.relu.default:
                node.replace_all_uses_with(node.args[0])
                model.graph.erase_node(node)
        model.recompile()
        return model

    return patched(TOSAQuantizer, "transform_for_annotation", wrong)


def _weights_scaled_in_place() -> AbstractContextManager[None]:
    """A pass that folds a factor into the user's own weights (found by armdiff in FoldScalarMulIntoConvPass)."""
    from executorch.backends.arm.quantizer import TOSAQuantizer

    original = TOSAQuantizer.transform_for_annotation

    def wrong(self, model):
        for parameter in model.parameters():
            parameter.data.mul_(2.0)
        return original(self, model)

    return patched(TOSAQuantizer, "transform_for_annotation", wrong)


FAULTS = (
    Fault(
        "factory-kwargs",
        "seed 000, #18322: prepare refuses the annotated aten.full",
        "crash",
        "exception",
        "quantizer",
        constant_join_case(),
        _factory_kwargs_refused,
    ),
    Fault(
        "pass-raises",
        "a pass that assumes qparams (#18778's class)",
        "crash",
        "exception",
        "InsertTableOpsPass",
        sigmoid_case(),
        _pass_raises,
    ),
    Fault(
        "activation-dropped",
        "a relu lost before annotation (#16286's class)",
        "quality",
        "loss beyond quantization",
        "quantizer",
        sigmoid_case(),
        _activation_dropped_before_annotation,
    ),
    Fault(
        "weights-scaled",
        "a pass that folds a factor into the user's own weights",
        "model-unchanged",
        "parameters changed in place",
        "quantizer",
        linear_case(),
        _weights_scaled_in_place,
    ),
)
