"""Planted faults of part 1: known classes of bugs put back by patching the installed packages.

Each ``Fault`` names the upstream issue it stands for, the oracle that must see it, the case on
which it shows, and a context manager that plants it. The clean twin is the same case without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from harness.case import Case
from tests.integration.conftest import linear_case, sigmoid_case, two_outputs_case


@dataclass(frozen=True)
class Fault:
    """A bug put back on purpose."""

    name: str
    stands_for: str
    oracle: str
    kind: str
    case: Case
    planted: Callable[[], AbstractContextManager[None]]


@contextmanager
def _patched(owner: object, name: str, replacement: object) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _rescale_shift_off_by_one() -> AbstractContextManager[None]:
    from executorch.backends.arm.operators import op_tosa_rescale

    original = op_tosa_rescale._compute_multiplier_and_shift

    def wrong(scales, scaleWidth=32):
        multipliers, shifts = original(scales, scaleWidth)
        return multipliers, [shift + 1 for shift in shifts]

    return _patched(op_tosa_rescale, "_compute_multiplier_and_shift", wrong)


def _table_off_by_one() -> AbstractContextManager[None]:
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    original = InsertTableOpsPass.generate_8bit_table_values

    def wrong(self, torch_op, in_quantargs, out_quantargs):
        values, shift = original(self, torch_op, in_quantargs, out_quantargs)
        return values.roll(1), shift

    return _patched(InsertTableOpsPass, "generate_8bit_table_values", wrong)


def _outputs_swapped() -> AbstractContextManager[None]:
    from executorch.backends.arm.tosa import backend

    original = backend.process_output

    def wrong(node, tosa_graph, tosa_spec):
        [results] = node.args
        node.args = (type(results)(reversed(results)),)
        original(node, tosa_graph, tosa_spec)

    return _patched(backend, "process_output", wrong)


def _pass_raises() -> AbstractContextManager[None]:
    from executorch.backends.arm._passes.insert_table_ops import InsertTableOpsPass

    def wrong(self, graph_module):
        raise ValueError(f"no qparams in node {next(iter(graph_module.graph.nodes)).name}")

    return _patched(InsertTableOpsPass, "call", wrong)


def _activation_dropped_before_annotation() -> AbstractContextManager[None]:
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

    return _patched(TOSAQuantizer, "transform_for_annotation", wrong)


def _input_frozen() -> AbstractContextManager[None]:
    import numpy as np
    from executorch.backends.arm.tosa import backend
    from executorch.backends.arm.tosa.mapping import TosaArg

    original = backend.process_placeholder

    def wrong(node, tosa_graph, edge_program, containing_graph_module, tosa_spec):
        if node.name == edge_program.graph_signature.user_inputs[0]:
            value = TosaArg(node, tosa_spec)
            tosa_graph.addConst(value.shape, value.dtype, np.zeros(value.shape, np.int8), name=value.name)
        else:
            original(node, tosa_graph, edge_program, containing_graph_module, tosa_spec)

    return _patched(backend, "process_placeholder", wrong)


def _weights_scaled_in_place() -> AbstractContextManager[None]:
    from executorch.backends.arm.quantizer import TOSAQuantizer

    original = TOSAQuantizer.transform_for_annotation

    def wrong(self, model):
        for parameter in model.parameters():
            parameter.data.mul_(2.0)
        return original(self, model)

    return _patched(TOSAQuantizer, "transform_for_annotation", wrong)


FAULTS = (
    Fault(
        "rescale-shift",
        "RESCALE shift off by one (#20401's class)",
        "numeric",
        "outside rounding",
        linear_case(),
        _rescale_shift_off_by_one,
    ),
    Fault(
        "table-off-by-one",
        "sigmoid LUT off by one (#18873)",
        "numeric",
        "outside rounding",
        sigmoid_case(),
        _table_off_by_one,
    ),
    Fault(
        "outputs-swapped",
        "output order of a multi-output delegate (#18486)",
        "outputs",
        "order",
        two_outputs_case(),
        _outputs_swapped,
    ),
    Fault(
        "pass-raises",
        "a pass that assumes qparams (#18778, seed 001)",
        "crash",
        "exception",
        sigmoid_case(),
        _pass_raises,
    ),
    Fault(
        "activation-dropped",
        "a relu lost before annotation (#16286's class)",
        "quality",
        "loss beyond quantization",
        sigmoid_case(),
        _activation_dropped_before_annotation,
    ),
    Fault(
        "input-frozen",
        "a delegate input that the payload no longer has",
        "buffers",
        "delegate input dropped, later inputs shift",
        two_outputs_case(),
        _input_frozen,
    ),
    Fault(
        "weights-scaled",
        "a pass that folds a factor into the user's own weights",
        "model-unchanged",
        "parameters changed in place",
        linear_case(),
        _weights_scaled_in_place,
    ),
)
