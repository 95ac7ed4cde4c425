"""Twins of a quantized graph: other graphs that must return the same bits.

A *relation* says how a twin is made. ``order of cat`` reverses the inputs of a cat; ``channel
rotation`` rotates the output channels of a conv2d or linear (weight, bias and their per-channel
parameters) by one. Both are undone behind the operator's quantize node by slices and a cat, each
between dequantize and quantize nodes of the same parameters, so that everything added moves codes
and computes nothing. ``batch split`` is the same graph, exported with half the batch.

Where a twin is not offered: a rotation whose result a documented liberty of the passes passes on
before rounding (``harness.evidence.rounding.skipped``: the added quantize node would take that liberty
away); a batch split of a graph in which rows are not provably independent.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.shape_prop import ShapeProp

from harness.case.recipe import parse_recipe
from harness.case.sampling import CALIBRATION, ENDPOINTS, EvaluationInput
from harness.case.target import parse_target
from harness.case.traits import DEQUANTIZE, DEQUANTIZE_CHANNELS, QUANTIZE
from harness.compat.capture import uncompiled_payloads
from harness.compat.stack import stack_for
from harness.compat.states import operator_name
from harness.evidence.rounding.rules import base_name
from harness.evidence.rounding.skipped import CLAMPS, name_of, passed_on
from harness.pipeline.lowering import Lowered, StageClock, compile_program, tensors_of
from harness.pipeline.probes import Scene

_DEQUANTIZES = (DEQUANTIZE, DEQUANTIZE_CHANNELS)
_ROTATED = {"aten.conv2d.default": 1, "aten.linear.default": -1}
"""Operators whose output channels can be rotated, and the axis on which they lie."""


@dataclass(frozen=True)
class Relation:
    """A twin that is possible.

    :param operator: the operator that it alters, with its node; both empty for ``batch split``.
    :param build: makes the twin.
    :param parts: into how many parts the inputs' batch is cut before each is run on the twin.
    """

    name: str
    operator: str
    node: str
    build: Callable[[], GraphModule]
    parts: int = 1


def relations(reference: GraphModule, exported: GraphModule, sample: Sequence[torch.Tensor]) -> list[Relation]:
    """Every twin of a quantized graph, in graph order.

    :param exported: the exported form of the same graph, whose nodes know their shapes.
    """
    found = []
    for node in reference.graph.nodes:
        if _joins_codes(node):
            found.append(Relation("order of cat", "aten.cat", node.name, _later(_reversed, reference, node, sample)))
        elif _rotates(reference, node):
            name = base_name(node.target)
            found.append(Relation("channel rotation", name, node.name, _later(_rotated, reference, node, sample)))
    if independent_rows(exported, sample):
        found.append(Relation("batch split", "", "", lambda: copy.deepcopy(reference), 2))
    return found


def _later(edit: Callable[[_Twin], None], reference: GraphModule, node: Node, sample: Any) -> Callable[[], GraphModule]:
    def build() -> GraphModule:
        twin = _Twin(reference, node.name, sample)
        edit(twin)
        return twin.finished()

    return build


def _joins_codes(node: Node) -> bool:
    if name_of(node) != "aten.cat" or _quantize_of(node) is None:
        return False
    operands = node.args[0]
    return (
        isinstance(operands, (list, tuple))
        and len(dict.fromkeys(operands)) > 1
        and all(name_of(item) == DEQUANTIZE for item in operands)
    )


def _rotates(module: GraphModule, node: Node) -> bool:
    if node.op != "call_function" or operator_name(node.target) not in _ROTATED or len(node.args) < 2:
        return False
    if len(node.args) > 6 and node.args[6] != 1:
        return False
    quantize = _quantize_of(_last_clamp(node))
    operand, weight, *bias = node.args[:3]
    if quantize is None or name_of(operand) != DEQUANTIZE:
        return False
    constants = [item for item in (weight, *bias) if item is not None]
    if not all(_is_stored(module, item) for item in constants):
        return False
    readers = [user for user in quantize.users if name_of(user) == DEQUANTIZE]
    return not any(map(passed_on, readers)) and _stored(module, weight.args[0]).shape[0] > 1


def _is_stored(module: GraphModule, node: Any) -> bool:
    """Is this a dequantize node of a constant that the graph holds?"""
    if name_of(node) not in _DEQUANTIZES or node.args[0].op != "get_attr":
        return False
    return isinstance(_stored(module, node.args[0]), torch.Tensor)


def _stored(module: GraphModule, node: Any) -> Any:
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _last_clamp(node: Node) -> Node:
    """The last of the clamps that read a node one after the other with no quantize between."""
    while len(node.users) == 1 and name_of(user := next(iter(node.users))) in CLAMPS:
        node = user
    return node


def _quantize_of(node: Node) -> Node | None:
    """The only reader of a node, if it quantizes with literal parameters."""
    if len(node.users) != 1:
        return None
    [user] = node.users
    literal = name_of(user) == QUANTIZE and isinstance(user.args[1], float) and isinstance(user.args[2], int)
    return user if literal else None


def _reversed(twin: _Twin) -> None:
    node = twin.node
    operands: list[Any] = list(node.args[0])
    shapes = [twin.shape(item) for item in operands]
    axis = int(node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)) % len(shapes[0])
    sizes = [shape[axis] for shape in shapes]
    node.args = (operands[::-1], axis)
    node.kwargs = {}
    pieces = [(sum(sizes[index + 1 :]), sum(sizes[index:])) for index in range(len(sizes))]
    quantize = _quantize_of(node)
    assert quantize is not None
    twin.undo(quantize, pieces, axis)


def _rotated(twin: _Twin) -> None:
    node = twin.node
    channels = _stored(twin.module, node.args[1].args[0]).shape[0]
    rank = len(twin.shape(node))
    axis = (
        _ROTATED[operator_name(node.target)] if rank == 4 or operator_name(node.target) != "aten.conv2d.default" else 0
    )
    for index in (1, 2):
        if len(node.args) > index and node.args[index] is not None:
            node.update_arg(index, twin.rolled(node.args[index], channels))
    quantize = _quantize_of(_last_clamp(node))
    assert quantize is not None
    twin.undo(quantize, [(1, channels), (0, 1)], axis % rank)


class _Twin:
    """A copy of a graph that is being edited at one node."""

    def __init__(self, reference: GraphModule, name: str, sample: Sequence[torch.Tensor]) -> None:
        self.module = copy.deepcopy(reference)
        with torch.no_grad():
            ShapeProp(self.module).propagate(*sample)
        [self.node] = [node for node in self.module.graph.nodes if node.name == name]
        self._graph = self.module.graph

    def shape(self, node: Node) -> tuple[int, ...]:
        return tuple(node.meta["tensor_meta"].shape)

    def rolled(self, node: Any, channels: int) -> Node:
        """A dequantize node like this one, of the same constant with its channels rotated by one."""
        with self._graph.inserting_before(node):
            args = tuple(self._rolled_constant(item, channels) for item in node.args)
        with self._graph.inserting_after(node):
            twin = self._graph.call_function(node.target, args, dict(node.kwargs))
        twin.meta = dict(node.meta)
        return twin

    def _rolled_constant(self, item: Any, channels: int) -> Any:
        if not isinstance(item, Node) or item.op != "get_attr":
            return item
        value = _stored(self.module, item)
        if value.dim() == 0 or value.shape[0] != channels:
            return item
        name = f"_armdiff_rolled_{len(list(self.module.buffers()))}"
        self.module.register_buffer(name, value.detach().roll(1, 0).clone())
        twin = self._graph.get_attr(name)
        twin.meta = dict(item.meta)
        return twin

    def undo(self, quantize: Node, pieces: Sequence[tuple[int, int]], axis: int) -> None:
        """Cut a quantized value and join the pieces in order; every other reader gets the result."""
        parameters, custom = quantize.args[1:], self.node.meta.get("custom")
        readers = list(quantize.users)
        at = quantize

        def call(target: Any, *args: Any) -> Node:
            nonlocal at
            with self._graph.inserting_after(at):
                at = self._graph.call_function(target, args)
            if custom is not None:
                at.meta["custom"] = copy.copy(custom)
            return at

        dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
        parts = []
        for start, end in pieces:
            moved = call(torch.ops.aten.slice.Tensor, call(dequantize, quantize, *parameters), axis, start, end)
            parts.append(call(dequantize, call(quantize.target, moved, *parameters), *parameters))
        joined = call(quantize.target, call(torch.ops.aten.cat.default, parts, axis), *parameters)
        for reader in readers:
            reader.replace_input_with(quantize, joined)

    def finished(self) -> GraphModule:
        self._graph.eliminate_dead_code()
        self._graph.lint()
        self.module.recompile()
        return self.module


def inputs_of_twins(scene: Scene) -> tuple[int, ...]:
    """Indices of the evaluation inputs that a twin runs on."""
    return tuple(index for index, item in enumerate(scene.inputs) if item.origin in (CALIBRATION, ENDPOINTS))


def lower(scene: Scene, twin: GraphModule, item: EvaluationInput, clock: StageClock) -> Lowered:
    """Export a twin and lower it with a fresh partitioner, for the TOSA reference model alone: to no payload.

    :raises Exception: whatever upstream raises.
    """
    partitioner = stack_for(parse_target(scene.case.target), parse_recipe(scene.case.recipe)).partitioner
    exported = torch.export.export(twin, tensors_of(item.arrays))
    quantized = replace(
        scene.quantized, reference=twin, exported=exported, partitioner=partitioner, domains={}, states={}
    )
    with uncompiled_payloads():
        return compile_program(quantized, clock)


_ROWWISE = {
    *("abs", "add", "sub", "mul", "maximum", "minimum", "neg", "exp", "sigmoid", "tanh", "hardswish", "hardsigmoid"),
    *("silu", "gelu", "elu", "leaky_relu", "relu", "relu_", "relu6", "relu6_", "hardtanh", "hardtanh_", "clamp"),
    *("conv1d", "conv2d", "linear", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "dropout", "contiguous"),
}
_ALONG = {"cat", "softmax", "slice", "mean", "sum", "amax", "amin"}
"""Row-wise if the axes that they name do not hold the batch."""


def independent_rows(exported: GraphModule, sample: Sequence[torch.Tensor]) -> bool:
    """Does every output row depend on the same row of every input, and on no other, by construction?

    True only if all activations keep the batch as axis 0 and every operator is known to work row by row.
    """
    if not sample or any(item.dim() < 2 or item.shape[0] != sample[0].shape[0] for item in sample):
        return False
    rows = int(sample[0].shape[0])
    if rows < 2 or rows % 2:
        return False
    names = {node.name for node in _inputs(exported, len(sample))}
    batched = {node for node in exported.graph.nodes if node.name in names}
    for node in exported.graph.nodes:
        if node.op != "call_function" or not any(item in batched for item in node.all_input_nodes):
            continue
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[0] != rows:
            return False
        if not _row_by_row(node, value.dim(), [item for item in node.all_input_nodes if item in batched]):
            return False
        batched.add(node)
    results = exported.graph.output_node().all_input_nodes
    return bool(results) and all(node in batched for node in results)


def _inputs(exported: GraphModule, count: int) -> Iterator[Node]:
    """The user's inputs: the last placeholders (parameters and buffers are lifted before them)."""
    yield from [node for node in exported.graph.nodes if node.op == "placeholder"][-count:]


def _row_by_row(node: Node, rank: int, operands: Sequence[Node]) -> bool:
    name = base_name(node.target)
    if name in (QUANTIZE, DEQUANTIZE):
        return True
    if any(item.meta["val"].dim() != rank for item in operands) and name not in ("aten.mean", "aten.sum"):
        return False
    word = name.removeprefix("aten.")
    if word in _ROWWISE:
        return True
    if word not in _ALONG:
        return False
    axes = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    named = axes if isinstance(axes, (list, tuple)) else (axes,)
    before = operands[0].meta["val"].dim()
    return all(isinstance(axis, int) and axis % before != 0 for axis in named) and bool(named)
