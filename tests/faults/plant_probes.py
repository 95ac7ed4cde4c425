"""Planted faults that only a probe can see, and the one of ``delegation``: observe with ``probes="all"``.

``model-unchanged``'s older fault (parameters) needs no probe and stands with the others.
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager

from tests.faults.fault import Fault, patched
from tests.integration.conftest import linear_case, sigmoid_case
from tests.integration.probe_cases import deep_case, join_case


def _table_depends_on_the_run() -> AbstractContextManager[None]:
    """A constant that is another one each time, as from an uninitialized buffer or an unordered set."""
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    original, count = InsertTableOpsPass.generate_8bit_table_values, itertools.count()

    def wrong(self, torch_op, in_quantargs, out_quantargs):
        values, shift = original(self, torch_op, in_quantargs, out_quantargs)
        return values.roll(next(count)), shift

    return patched(InsertTableOpsPass, "generate_8bit_table_values", wrong)


def _training_flags_flipped() -> AbstractContextManager[None]:
    """Export leaves the user's module in training mode."""
    import torch

    original = torch.export.export

    def wrong(model, *args, **kwargs):
        program = original(model, *args, **kwargs)
        if not isinstance(model, torch.fx.GraphModule):
            model.train()
        return program

    return patched(torch.export, "export", wrong)


def _mark_left_on_the_parameters() -> AbstractContextManager[None]:
    """A quantizer that remembers on the user's own parameters that it has seen them."""
    import torch
    from executorch.backends.arm.quantizer import TOSAQuantizer

    original = TOSAQuantizer.transform_for_annotation

    def wrong(self, model):
        seen = any(hasattr(parameter, "_armdiff_seen") for parameter in model.parameters())
        for parameter in model.parameters():
            parameter._armdiff_seen = True
        for node in [item for item in model.graph.nodes if seen and item.target == torch.ops.aten.linear.default]:
            with model.graph.inserting_after(node):
                clamp = model.graph.call_function(torch.ops.aten.relu.default, (node,))
            clamp.meta = dict(node.meta)
            node.replace_all_uses_with(clamp, delete_user_cb=lambda user, clamp=clamp: user is not clamp)
        model.recompile()
        return original(self, model)

    return patched(TOSAQuantizer, "transform_for_annotation", wrong)


def _cat_in_graph_order() -> AbstractContextManager[None]:
    """A serializer that writes the inputs of CONCAT in the order in which they were made (#21380's class)."""
    from executorch.backends.arm.operators.op_tosa_concat import CatVisitor

    original = CatVisitor.define_node

    def wrong(self, node, tosa_graph, inputs, output):
        places = {item.name: index for index, item in enumerate(node.graph.nodes)}
        inputs[0].special = sorted(inputs[0].special, key=lambda item: places[item.name])
        return original(self, node, tosa_graph, inputs, output)

    return patched(CatVisitor, "define_node", wrong)


def _listed_operator_refused() -> AbstractContextManager[None]:
    """A partitioner that refuses what its own table lists."""
    from executorch.backends.arm.operator_support.tosa_supported_operators import TOSAProINTSupportList

    original = TOSAProINTSupportList.is_node_supported

    def wrong(self, submodules, node):
        return "sigmoid" not in str(node.target) and original(self, submodules, node)

    return patched(TOSAProINTSupportList, "is_node_supported", wrong)


def _maximum_written_as_minimum() -> AbstractContextManager[None]:
    """The serializer's table has the wrong line."""
    from executorch.backends.arm.operators.op_tosa_maximum import MaximumVisitor
    from executorch.backends.arm.operators.op_tosa_minimum import MinimumVisitor

    return patched(MaximumVisitor, "get_config", classmethod(lambda _: MinimumVisitor.get_config()))


PROBE_FAULTS = (
    Fault(
        "table-depends-on-run",
        "a constant that differs from run to run",
        "deterministic",
        "TOSA differs",
        "InsertTableOpsPass",
        sigmoid_case(),
        _table_depends_on_the_run,
    ),
    Fault(
        "training-flags",
        "export leaves the user's module in training mode",
        "model-unchanged",
        "training flags changed",
        "quantizer",
        sigmoid_case(),
        _training_flags_flipped,
    ),
    Fault(
        "quantized-twice",
        "state that quantizing leaves on the user's parameters",
        "model-unchanged",
        "quantizing twice differs",
        "quantizer",
        linear_case(),
        _mark_left_on_the_parameters,
    ),
    Fault(
        "cat-order",
        "CONCAT's inputs written in graph order, right for most graphs",
        "metamorphic",
        "order of cat",
        None,
        join_case(),
        _cat_in_graph_order,
    ),
    Fault(
        "maximum-as-minimum",
        "a wrong operator in front of so many that rounding may come to any code",
        "inside",
        "outside rounding",
        None,
        deep_case(),
        _maximum_written_as_minimum,
    ),
    Fault(
        "listed-refused",
        "an operator that the support tables list stays on the CPU",
        "delegation",
        "supported operator on the CPU",
        None,
        sigmoid_case(),
        _listed_operator_refused,
    ),
)
"""Faults without a blame have no one place that a probe could name."""
