"""From what ``torch.export`` gives to a case's graph: nodes, constants, and the tensors behind them.

Inputs and outputs of an exported program are flat: a case has the tensors among them, in that order. Everything else
(numbers, flags, text, ``None``) is a constant of the exported graph already. Result ``k`` of an operator with several
results is the value ``name.k``, which takes the place of the ``getitem`` that reads it. A call that returns nothing
and writes nothing (``_assert_tensor_metadata``) is left out: the exporter makes it anew.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from harness.case.arrays import Array
from harness.case.aten import GETITEM, referenced
from harness.case.case import DTYPES, Constant, Graph, Input, Node, TensorType
from harness.case.errors import BadInput
from harness.compat.states import operator_name

_LIFTED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True)
class CapturedGraph:
    """The graph of an exported program.

    :param tensors: parameters, buffers and constants, by their constant's name.
    """

    graph: Graph
    tensors: Mapping[str, Array]


def graph_of(where: str, exported: Any) -> CapturedGraph:
    """Capture an exported program.

    :param where: what messages call its origin.
    :raises BadInput: it holds what a case cannot.
    """
    return _Capture(where, exported).run()


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor's values, as they are stored beside a case."""
    array: Array = tensor.detach().contiguous().numpy().copy()
    return array


class _Capture:
    def __init__(self, where: str, exported: Any) -> None:
        self.where = where
        self.exported = exported
        self.names: dict[torch.fx.Node, str] = {}
        """What the case calls each value that is a node of the graph."""

    def run(self) -> CapturedGraph:
        signature = self.exported.graph_signature
        placeholders = {node.name: node for node in self.exported.graph.nodes if node.op == "placeholder"}
        inputs: list[Input] = []
        constants: list[Constant] = []
        tensors: dict[str, Array] = {}
        lifted = {**self.exported.constants, **self.exported.state_dict}
        for spec in signature.input_specs:
            name = spec.arg.name
            if spec.kind == InputKind.USER_INPUT:
                if isinstance(spec.arg, TensorArgument):
                    kind = self._type(placeholders[name].meta.get("val"), name)
                    inputs.append(Input(name=name, shape=kind.shape, dtype=kind.dtype))
            elif spec.kind in _LIFTED and isinstance(lifted.get(spec.target), torch.Tensor):
                value = lifted[spec.target]
                kind = self._type(value, name)
                tensors[name] = array_of(value)
                place = "parameter" if spec.kind == InputKind.PARAMETER else "tensor"
                constants.append(
                    Constant(name=name, shape=kind.shape, dtype=kind.dtype, kind=place, parameters={"key": name})
                )
            else:
                self._refuse(f"the model holds {name!r}, a {spec.kind.name.lower()}", "check a model of tensors only")
        for spec in signature.output_specs:
            if spec.kind != OutputKind.USER_OUTPUT:
                self._refuse(
                    f"the model changes its state ({spec.kind.name.lower()} of {spec.target})",
                    "check a model whose forward only returns values",
                )
        nodes = tuple(self._nodes(self.exported.graph))
        outputs = self._outputs(self.exported.graph)
        graph = Graph(inputs=tuple(inputs), constants=tuple(constants), nodes=nodes, outputs=outputs)
        return CapturedGraph(graph, tensors)

    def _nodes(self, graph: torch.fx.Graph) -> Iterator[Node]:
        for node in graph.nodes:
            if node.op == "get_attr" or (node.op == "call_function" and "higher_order" in str(type(node.target))):
                self._refuse(
                    f"the model contains control flow ({node.name})", "check a model without cond, while_loop or map"
                )
            value = node.meta.get("val")
            if node.op == "call_function" and not (value is None and not node.users):
                if self._names_result(node):
                    continue
                self.names[node] = node.name
                yield self._node(node, value)
            else:
                self.names[node] = node.name

    def _names_result(self, node: torch.fx.Node) -> bool:
        """Is the node a ``getitem`` of one of several results? That one is a value of its own."""
        if operator_name(node.target) != "getitem" or not isinstance(node.args[0], torch.fx.Node):
            return False
        source, index = node.args[0], node.args[1]
        results = source.meta.get("val")
        if not isinstance(results, (tuple, list)) or len(results) < 2 or not isinstance(index, int):
            return False
        self._type(results[index], node.name)
        self.names[node] = f"{self.names[source]}.{index % len(results)}"
        return True

    def _node(self, node: torch.fx.Node, value: Any) -> Node:
        operator = operator_name(node.target)
        args = [self._argument(item) for item in node.args]
        kwargs = {key: self._argument(item) for key, item in node.kwargs.items()}
        values = value if isinstance(value, (tuple, list)) else (value,)
        return Node(
            name=node.name,
            operator=GETITEM if operator == "getitem" else operator,
            inputs=tuple(referenced([args, list(kwargs.values())])),
            attributes={"args": args, "kwargs": kwargs},
            types=tuple(self._type(item, node.name) for item in values),
        )

    def _argument(self, item: Any) -> Any:
        if isinstance(item, torch.fx.Node):
            return {"value": self.names[item]}
        if isinstance(item, (list, tuple)):
            return [self._argument(child) for child in item]
        if isinstance(item, torch.dtype):
            return {"dtype": str(item).removeprefix("torch.")}
        if isinstance(item, torch.device):
            return {"device": item.type}
        if isinstance(item, torch.layout):
            return {"layout": str(item).removeprefix("torch.")}
        if isinstance(item, torch.memory_format):
            return {"memory_format": str(item).removeprefix("torch.")}
        if isinstance(item, float) and not math.isfinite(item):
            return {"float": str(item)}
        if isinstance(item, (bool, int, float, str, type(None))):
            return item
        return self._refuse(
            f"the captured graph has an argument {item!r} of type {type(item).__name__}",
            "check a model whose operators take tensors and plain numbers",
        )

    def _outputs(self, graph: torch.fx.Graph) -> tuple[str, ...]:
        """The tensors that the model returns. What else it returns, no compiled program computes."""
        leaves = torch.utils._pytree.tree_leaves(graph.output_node().args[0])
        names = tuple(self.names[leaf] for leaf in leaves if isinstance(leaf, torch.fx.Node))
        if not names:
            self._refuse("the model returns no tensor", "return at least one")
        return names

    def _type(self, value: Any, name: str) -> TensorType:
        if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
            self._refuse(
                f"value {name!r} of the captured graph is no tensor of fixed shape",
                "check a model with tensors of static shapes",
            )
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            self._refuse(
                f"value {name!r} of the captured graph is {dtype}, which no case holds",
                f"check the model in one of {', '.join(DTYPES)}",
            )
        return TensorType(tuple(value.shape), dtype)

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        raise BadInput(self.where, problem, remedy)
