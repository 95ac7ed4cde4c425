"""The checks that make a decoded case trustworthy, and the types of all its values.

``check_case`` is what stands between a hand-edited JSON file and code that executes: names are
identifiers, references resolve, shapes follow, numbers are finite. Each failure is one
``BadInput`` naming the JSON path and the remedy. No torch here: shapes come from the operators'
own rules, or are recorded in the node (captured ATen graphs).
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.case.aten import check_aten_node
from harness.case.case import DTYPES, SCHEMA, Case, Distribution, Graph, Node, TensorType
from harness.case.constants import check_constant
from harness.case.errors import BadInput
from harness.case.operators import ShapeError
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target

RANK_LIMIT = 8
ELEMENT_LIMIT = 1 << 28


def value_types(graph: Graph) -> Mapping[str, TensorType]:
    """The type of every value of a graph that has been checked."""
    return _Checker(graph).run()


def retargeted(case: Case, target: str) -> Case:
    """A case for another target.

    :raises BadInput: its recipe does not fit the target.
    """
    changed = msgspec.structs.replace(case, target=target)
    check_case(changed)
    return changed


def check_case(case: Case) -> None:
    """Check a whole case.

    :raises BadInput: the first thing that is wrong.
    """
    if case.schema != SCHEMA:
        raise BadInput(
            "$.schema", f"version {case.schema} is not {SCHEMA}", "use the armdiff version that wrote the case"
        )
    _Checker(case.graph).run()
    recipe = parse_recipe(case.recipe, "$.recipe")
    target = parse_target(case.target, "$.target")
    if target.quantized != (recipe.widths != "float"):
        raise BadInput(
            "$.recipe",
            f"recipe {case.recipe!r} does not fit target {case.target!r}",
            "use 'float' with TOSA-1.0+FP or vgf+FP and a quantized recipe elsewhere",
        )
    nodes = {node.name for node in case.graph.nodes}
    for name in recipe.set_apart:
        if name not in nodes:
            raise BadInput("$.recipe", f"{name!r} is no node of the graph", "use names of $.graph.nodes")
    if not 1 <= case.samples <= 64:
        raise BadInput("$.samples", f"{case.samples} calibration samples", "use 1 to 64")
    for field in ("weights", "calibration", "evaluation"):
        if not 0 <= getattr(case.seeds, field) < 1 << 63:
            raise BadInput(f"$.seeds.{field}", "is not a natural number below 2**63", "use one")
    inputs = {item.name for item in case.graph.inputs}
    for name, distribution in case.calibration.items():
        path = f"$.calibration.{name}"
        if name not in inputs:
            raise BadInput(path, "names no input", f"use {', '.join(sorted(inputs)) or 'nothing'}")
        _check_distribution(distribution, path)
    for name in sorted(inputs - set(case.calibration)):
        raise BadInput(
            "$.calibration",
            f"has no distribution for input {name!r}",
            'add one, for example {"kind": "uniform", "parameters": {"low": -1, "high": 1}}',
        )


def _check_distribution(distribution: Distribution, path: str) -> None:
    from harness.case.registry import calibration_kinds

    kinds = calibration_kinds()
    kind = kinds.get(distribution.kind)
    if kind is None:
        raise BadInput(
            f"{path}.kind", f"unknown distribution {distribution.kind!r}", f"use one of {', '.join(sorted(kinds))}"
        )
    given, wanted = set(distribution.parameters), set(kind.parameters)
    if given != wanted:
        raise BadInput(
            f"{path}.parameters",
            f"are {sorted(given)}, not {sorted(wanted)}",
            f"give {distribution.kind} exactly the latter",
        )
    _check_finite(distribution.parameters, f"{path}.parameters")


def _check_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(path, f"{value} is not finite", "use a finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_finite(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_finite(item, f"{path}[{index}]")


class _Checker:
    """Walks a graph once, collecting types and refusing the first thing that is wrong."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.types: dict[str, TensorType] = {}
        self.names: set[str] = set()

    def run(self) -> Mapping[str, TensorType]:
        graph = self.graph
        for index, item in enumerate(graph.inputs):
            path = f"$.graph.inputs[{index}]"
            self._name(item.name, path)
            self._type(item.name, TensorType(item.shape, item.dtype), path)
        for index, constant in enumerate(graph.constants):
            path = f"$.graph.constants[{index}]"
            self._name(constant.name, path)
            self._type(constant.name, TensorType(constant.shape, constant.dtype), path)
            _check_finite(constant.parameters, f"{path}.parameters")
            try:
                check_constant(constant)
            except (ShapeError, KeyError) as error:
                raise BadInput(path, str(error), "mend the constant's kind or parameters") from None
        for index, node in enumerate(graph.nodes):
            self._node(node, f"$.graph.nodes[{index}]")
        if not graph.outputs:
            raise BadInput("$.graph.outputs", "is empty", "name at least one value")
        for index, name in enumerate(graph.outputs):
            if name not in self.types:
                raise BadInput(
                    f"$.graph.outputs[{index}]", f"{name!r} names no value", "name a node, an input or a constant"
                )
        return self.types

    def _node(self, node: Node, path: str) -> None:
        from harness.case.registry import operators

        self._name(node.name, path)
        for index, name in enumerate(node.inputs):
            if name not in self.types:
                raise BadInput(
                    f"{path}.inputs[{index}]",
                    f"{name!r} names no earlier value",
                    "list nodes in topological order and use existing names",
                )
        operands = [self.types[name] for name in node.inputs]
        if "." in node.operator:
            check_aten_node(node, path)
            results = node.types or ()
        else:
            _check_finite(node.attributes, f"{path}.attributes")
            entry = operators().get(node.operator)
            if entry is None:
                raise BadInput(
                    f"{path}.operator",
                    f"unknown operator {node.operator!r}",
                    "use an entry of generators/ops or an ATen overload such as aten.relu.default",
                )
            given, wanted = set(node.attributes), set(entry.attributes)
            if given != wanted:
                raise BadInput(
                    f"{path}.attributes",
                    f"are {sorted(given)}, not {sorted(wanted)}",
                    f"give {node.operator} exactly the latter",
                )
            try:
                results = entry.infer(operands, node.attributes)
            except (ShapeError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise BadInput(
                    path,
                    f"{node.operator} cannot take {', '.join(str(list(t.shape)) for t in operands)}: {error}",
                    "mend the operands' shapes or the attributes",
                ) from None
        names = [node.name] if len(results) == 1 else [f"{node.name}.{k}" for k in range(len(results))]
        for name, result in zip(names, results, strict=True):
            self._type(name, result, path)

    def _name(self, name: str, path: str) -> None:
        if (
            not name.isidentifier()
            or keyword.iskeyword(name)
            or name.startswith("__")
            or name in ("self", "torch", "nn", "np", "F")
        ):
            raise BadInput(f"{path}.name", f"{name!r} cannot name a value", "use a plain identifier such as n0")
        if name in self.names:
            raise BadInput(f"{path}.name", f"{name!r} is used twice", "give every value its own name")
        self.names.add(name)

    def _type(self, name: str, type_: TensorType, path: str) -> None:
        if type_.dtype not in DTYPES:
            raise BadInput(f"{path}.dtype", f"unknown dtype {type_.dtype!r}", f"use one of {', '.join(DTYPES)}")
        if type_.rank > RANK_LIMIT or any(size < 1 for size in type_.shape) or type_.elements > ELEMENT_LIMIT:
            raise BadInput(
                f"{path}.shape",
                f"{list(type_.shape)} is not a shape armdiff can build",
                f"use sizes of at least 1, rank at most {RANK_LIMIT}, at most {ELEMENT_LIMIT} elements",
            )
        self.types[name] = type_
