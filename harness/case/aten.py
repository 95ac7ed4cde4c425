"""ATen overloads as nodes: how a captured graph's arguments are written down and turned to source.

A captured node has ``operator`` "aten.conv2d.default" and the attributes ``args`` (list) and
``kwargs`` (object). Inside them a JSON scalar or list stands for itself, and an object with one
key for what JSON lacks: ``{"value": "x"}`` a reference to a value, ``{"dtype": "float32"}``,
``{"device": "cpu"}``, ``{"layout": "strided"}``, ``{"memory_format": "channels_last"}``,
``{"float": "inf"}``.

Only operators of the namespaces ``aten`` and ``prims`` and ``_operator.getitem`` are taken, by
exact overload, and text is made from checked words and ``repr`` of plain data: a case file cannot smuggle in code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.case.case import Graph, Node, maker_of
from harness.case.errors import BadInput
from harness.case.traits import ATEN_VIEWS

GETITEM = "_operator.getitem"
_OVERLOAD = re.compile(r"(aten|prims)\.[A-Za-z_][A-Za-z_0-9]*\.[A-Za-z_][A-Za-z_0-9]*\Z")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_FLOATS = ("inf", "-inf", "nan")


def check_aten_node(node: Node, path: str) -> None:
    """Check a node of a captured graph.

    :raises BadInput: naming the field.
    """
    if node.operator != GETITEM and not _OVERLOAD.match(node.operator):
        raise BadInput(
            f"{path}.operator",
            f"{node.operator!r} is not an ATen overload",
            "write namespace, name and overload, for example aten.relu.default",
        )
    if not node.types:
        raise BadInput(
            f"{path}.types",
            "is missing for an ATen overload",
            'record the result types, for example [{"shape": [1, 4], "dtype": "float32"}]',
        )
    if set(node.attributes) != {"args", "kwargs"}:
        raise BadInput(
            f"{path}.attributes",
            f"are {sorted(node.attributes)}, not ['args', 'kwargs']",
            "give a captured node its args and kwargs",
        )
    args, kwargs = node.attributes["args"], node.attributes["kwargs"]
    if not isinstance(args, list) or not isinstance(kwargs, dict) or not all(_WORD.match(k) for k in kwargs):
        raise BadInput(
            f"{path}.attributes",
            "args is not a list or kwargs not an object of words",
            "see harness/case/aten.py for the form",
        )
    used = referenced([args, list(kwargs.values())])
    if list(node.inputs) != used:
        raise BadInput(
            f"{path}.inputs",
            f"are {list(node.inputs)}, but the arguments use {used}",
            "list the values that args and kwargs refer to, in order of first use",
        )
    _check_argument([args, list(kwargs.values())], f"{path}.attributes")


def referenced(argument: Any) -> list[str]:
    """Names of the values that an argument refers to, in order of first use."""
    found: list[str] = []

    def walk(item: Any) -> None:
        if isinstance(item, list):
            for child in item:
                walk(child)
        elif isinstance(item, dict) and "value" in item and item["value"] not in found:
            found.append(item["value"])

    walk(argument)
    return found


def writes(operator: str) -> bool:
    """Does an overload write into its first operand (``aten.copy_.default``)?"""
    name = operator.rpartition(".")[0]
    return name.endswith("_") and not name.endswith("__") and name != "aten.detach_"


def changed_state(graph: Graph) -> frozenset[str]:
    """Constants of a captured graph that a call of the module changes: its state, such as a KV cache."""
    return frozenset({*written_values(graph).values()} & {item.name for item in graph.constants})


def written_values(graph: Graph) -> dict[str, str]:
    """What each in-place operator of a captured graph writes into: node -> the value whose memory that is."""
    nodes = {node.name: node for node in graph.nodes}
    return {node.name: owner_of(node.inputs[0], nodes) for node in graph.nodes if node.inputs and writes(node.operator)}


def needed(graph: Graph, outputs: Iterable[str]) -> frozenset[str]:
    """What some values depend on: names of inputs, constants and nodes.

    Whatever writes into something that they depend on belongs to it, also where nobody reads what it returns.
    """
    written = {name: maker_of(value) for name, value in written_values(graph).items()}
    wanted = set(map(maker_of, outputs))
    before = 0
    while len(wanted) > before:  # a write reads more, which others write into
        before = len(wanted)
        for node in reversed(graph.nodes):
            if node.name in wanted or written.get(node.name) in wanted:
                wanted |= {node.name, *map(maker_of, node.inputs)}
    return frozenset(wanted)


def owner_of(name: str, nodes: Mapping[str, Node]) -> str:
    """The value whose memory a value of a captured graph lies in: views and in-place operators have none.

    :param nodes: those of the graph, by name.
    """
    while (writer := nodes.get(maker_of(name))) is not None and writer.inputs:
        shares = writes(writer.operator) or writer.operator == GETITEM
        if not (shares or writer.operator.rpartition(".")[0] in ATEN_VIEWS):
            break
        name = writer.inputs[0]
    return name


def _check_argument(item: Any, path: str) -> None:
    if isinstance(item, list):
        for index, child in enumerate(item):
            _check_argument(child, f"{path}[{index}]")
        return
    if isinstance(item, dict):
        if len(item) == 1:
            key, word = next(iter(item.items()))
            if isinstance(word, str):
                if key == "value" or (key == "float" and word in _FLOATS):
                    return
                if key in ("dtype", "device", "layout", "memory_format") and _WORD.match(word):
                    return
        raise BadInput(path, f"argument {item!r} is not understood", "see harness/case/aten.py for the form")
    plain = item.isprintable() if isinstance(item, str) else isinstance(item, (bool, int, float, type(None)))
    if not plain:
        raise BadInput(path, f"argument {item!r} is not understood", "see harness/case/aten.py for the form")


def aten_call(node: Node, expression: Callable[[str], str]) -> str:
    """Source text of a captured node, given each value's expression."""

    def text(item: Any) -> str:
        if isinstance(item, list):
            return "[" + ", ".join(text(child) for child in item) + "]"
        if isinstance(item, dict):
            key, word = next(iter(item.items()))
            if key == "value":
                return expression(word)
            return {"float": f"float({word!r})", "device": f"torch.device({word!r})"}.get(key, f"torch.{word}")
        return repr(item)

    args = [text(item) for item in node.attributes["args"]]
    if node.operator == GETITEM:
        return f"{args[0]}[{args[1]}]"
    args += [f"{key}={text(value)}" for key, value in node.attributes["kwargs"].items()]
    return f"torch.ops.{node.operator}({', '.join(args)})"
