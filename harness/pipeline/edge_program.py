"""Run an edge program in eager with its delegates handed to a function of ours.

Upstream's own dispatcher drops surplus outputs and needs every delegate to be of one backend;
this one interprets the edge graph node by node and checks counts. Tensors keep the logical shape
that the graph gives them; memory order matters only at a delegate's border.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from harness.case.arrays import Array
from harness.compat.states import dim_order_of, operator_name
from harness.evidence.observation import ValueType

Delegate = Callable[[str, Any, list[torch.Tensor]], list[torch.Tensor]]


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
    """fx's interpreter, with ``executorch_call_delegate`` replaced."""

    def __init__(self, module: torch.fx.GraphModule, delegate: Delegate) -> None:
        super().__init__(module)
        self._delegate = delegate

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "call_function" and "executorch_call_delegate" in str(n.target):
            name = n.args[0].target
            operands = [self.env[argument] for argument in n.args[1:]]
            return self._delegate(str(name), getattr(self.module, str(name)), operands)
        return super().run_node(n)


def run_edge_program(
    program: Any, arrays: tuple[Array, ...], delegate: Delegate, state: dict[str, torch.Tensor] | None = None
) -> list[Any]:
    """Execute an ``EdgeProgram`` (``harness.pipeline.lowering``) and return the user's outputs.

    :param delegate: ``delegate(name, lowered_module, tensors)`` returns the delegate's outputs.
    :param state: buffers that earlier calls changed, by name; receives what this call changes.
    """
    from torch.export.graph_signature import InputKind, OutputKind

    state = {} if state is None else state
    user = iter(torch.from_numpy(array.copy()) for array in arrays)
    arguments = []
    for spec in program.signature.input_specs:
        held = state.get(spec.target, program.tensors.get(spec.target))
        arguments.append(next(user) if spec.kind == InputKind.USER_INPUT else held)
    results = _Interpreter(program.graph_module, delegate).run(*arguments, enable_io_processing=False)
    outputs = list(results) if isinstance(results, (tuple, list)) else [results]
    returned = []
    for output, spec in zip(outputs, program.signature.output_specs, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            returned.append(output)
        elif spec.kind == OutputKind.BUFFER_MUTATION:
            state[spec.target] = output
    return returned


def border_types(program: Any) -> tuple[list[ValueType | None], list[ValueType | None]]:
    """What an ``EdgeProgram`` takes and what it promises, in user order; None for what is no tensor."""
    from torch.export.graph_signature import InputKind, OutputKind

    graph = program.graph_module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    taken = zip(placeholders, program.signature.input_specs, strict=True)
    promised = zip(graph.output_node().args[0], program.signature.output_specs, strict=True)
    return (
        [_type_of(node) for node, spec in taken if spec.kind == InputKind.USER_INPUT],
        [_type_of(node) for node, spec in promised if spec.kind == OutputKind.USER_OUTPUT],
    )


def _type_of(node: Any) -> ValueType | None:
    value = getattr(node, "meta", {}).get("val")
    return value_type(value) if isinstance(value, torch.Tensor) else None


def value_type(value: torch.Tensor) -> ValueType:
    """Shape, dtype and dim order of a (fake) tensor."""
    return ValueType(tuple(map(int, value.shape)), str(value.dtype).removeprefix("torch."), dim_order_of(value))


def cpu_nodes(module: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """Calls of an edge graph that no delegate took, quantize and dequantize aside."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            name = operator_name(node.target)
            if not name.startswith("quantized_decomposed.") and name not in ("getitem", "executorch_call_delegate"):
                yield node


def placeholder_names(program: Any) -> list[str]:
    """Names of a delegate's user inputs, in call order."""
    return [node.name for node in _user_placeholders(program)]


def placeholder_values(program: Any) -> list[torch.Tensor]:
    """Fake tensors of a delegate's user inputs, in call order."""
    return [node.meta["val"] for node in _user_placeholders(program)]


def _user_placeholders(program: Any) -> list[torch.fx.Node]:
    names = set(program.graph_signature.user_inputs)
    return [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]


def result_values(program: Any) -> list[torch.Tensor]:
    """Fake tensors that the delegate's graph promises as outputs."""
    return [node.meta["val"] for node in program.graph.output_node().args[0]]


def to_memory_order(tensor: torch.Tensor, like: torch.Tensor) -> Array:
    """The array that a TOSA graph takes for ``tensor``: dimensions in the memory order of ``like``."""
    return np.ascontiguousarray(tensor.detach().permute(like.dim_order()).contiguous().numpy())


def from_memory_order(array: Array, like: torch.Tensor) -> torch.Tensor:
    """Undo ``to_memory_order`` for an output.

    TOSA has no unsigned tensors: where uint8 is promised, the int8 bytes are taken as such.

    :raises ValueError: the TOSA output has another number of elements than promised.
    """
    order = like.dim_order()
    stored = [int(like.shape[axis]) for axis in order]
    if array.size != int(np.prod(stored, dtype=np.int64)):
        raise ValueError(f"the TOSA graph returned shape {list(array.shape)}, the delegate promises {list(like.shape)}")
    if like.dtype == torch.uint8 and array.dtype == np.int8:
        array = array.view(np.uint8)
    inverse = [order.index(axis) for axis in range(len(order))]
    return torch.from_numpy(array.reshape(stored).copy()).permute(inverse).contiguous()
