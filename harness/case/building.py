"""From a case to a module: first as Python source, then by executing that source.

The source is what a repro script shows and what every run executes, so a report cannot differ
from what was tested. It is made from checked data only (``harness.case.checking``): identifiers,
numbers and the text of operator entries.

Weights are drawn by numpy from the case's weight seed and the parameter's name (``SEEDING`` is
the text of that function, reused by repro scripts), or come from the case's safetensors file.

Invariants: ``module_of(case)`` is deterministic and in eval mode; parameter and buffer names
equal ``<node>.weight``, ``<constant>``; nodes that the recipe leaves float are submodules, so
that ``set_module_name`` finds them.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.case.arrays import Array
from harness.case.aten import aten_call
from harness.case.case import Case, Constant, Node, TensorType, case_digest
from harness.case.checking import value_types
from harness.case.constants import CONSTANT_KINDS
from harness.case.errors import BadInput
from harness.case.recipe import parse_recipe
from harness.case.registry import operators

if TYPE_CHECKING:
    import torch

CASE_FILE = "<armdiff case "
"""How the name of what a case's module was compiled from begins; its text lies in ``linecache``."""
SEEDING = '''\
def seed_weights(model, seed):
    """Draw every parameter from numpy, by name, within 1/sqrt(fan-in)."""
    for name, parameter in model.named_parameters():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        fan_in = math.prod(parameter.shape[1:]) or 1
        values = rng.uniform(-1.0, 1.0, tuple(parameter.shape)) / math.sqrt(fan_in)
        parameter.data = torch.from_numpy(values.astype(np.float32))
'''

IMPORTS = """\
import math
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""


def model_source(case: Case) -> str:
    """Source text of a class ``Model`` (and helpers it needs) for the case's graph."""
    return _Writer(case).text()


def module_of(case: Case, tensors: Mapping[str, Array] | None = None) -> torch.nn.Module:
    """Build the case's module, with its weights, in eval mode.

    :param tensors: contents of the safetensors file beside the case.
    :raises BadInput: a tensor is missing or has another shape.
    """
    text = f"{IMPORTS}\n{SEEDING}\n\n{model_source(case)}"
    name = f"{CASE_FILE}{case_digest(case)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # readable tracebacks
    scope: dict[str, Any] = {"__name__": "armdiff_case"}
    exec(compile(text, name, "exec"), scope)
    model: torch.nn.Module = scope["Model"]()
    scope["seed_weights"](model, case.seeds.weights)
    _load_tensors(model, case, tensors or {})
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()


def _load_tensors(model: torch.nn.Module, case: Case, tensors: Mapping[str, Array]) -> None:
    import torch

    places = {**dict(model.named_buffers()), **dict(model.named_parameters())}
    for index, constant in enumerate(case.graph.constants):
        if not CONSTANT_KINDS[constant.kind].stored:
            continue
        key, path = constant.parameters["key"], f"$.graph.constants[{index}]"
        if key not in tensors:
            raise BadInput(
                path,
                f"tensor {key!r} is not in {case.tensors or 'any tensor file'}",
                "keep the safetensors file beside the case",
            )
        values = torch.from_numpy(tensors[key].copy())
        if tuple(values.shape) != constant.shape or str(values.dtype) != f"torch.{constant.dtype}":
            raise BadInput(
                path,
                f"tensor {key!r} is {values.dtype} {list(values.shape)}, the case says "
                f"{constant.dtype} {list(constant.shape)}",
                "restore the file that belongs to the case",
            )
        places[constant.name].data = values  # also its dtype: seeded parameters are float32


def load_tensors(case: Case, folder: Path) -> dict[str, Array]:
    """Read the safetensors file of a case that lies in ``folder`` (empty if it has none)."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if case.tensors is None:
        return {}
    file = folder / case.tensors
    if file.name != case.tensors:
        raise BadInput("$.tensors", f"{case.tensors!r} is not a plain file name", "keep it beside the case")
    try:
        tensors: dict[str, Array] = load_file(file)
        return tensors
    except (OSError, SafetensorError) as error:
        raise BadInput(
            str(file), f"cannot be read as safetensors ({error})", "restore the file that belongs to the case"
        ) from None


class _Writer:
    """Writes the source of one case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.graph = case.graph
        self.types = value_types(case.graph)
        self.recipe = parse_recipe(case.recipe)
        self.expressions: dict[str, str] = {item.name: item.name for item in self.graph.inputs}
        self.setup: list[str] = []
        self.body: list[str] = []
        self.helpers: list[str] = []

    def text(self) -> str:
        for constant in self.graph.constants:
            self._constant(constant)
        for node in self.graph.nodes:
            self._node(node)
        results = [self.expressions[name] for name in self.graph.outputs]
        self.body.append("return " + (results[0] if len(results) == 1 else f"({', '.join(results)})"))
        arguments = ", ".join(["self", *(item.name for item in self.graph.inputs)])
        lines = [*self.helpers, "class Model(nn.Module):"]
        if self.setup:
            lines += ["    def __init__(self):", "        super().__init__()"]
            lines += [f"        {line}" for line in self.setup] + [""]
        lines += [f"    def forward({arguments}):"] + [f"        {line}" for line in self.body]
        return "\n".join(lines) + "\n"

    def _constant(self, constant: Constant) -> None:
        kind = CONSTANT_KINDS[constant.kind]
        if kind.place != "forward":
            source = kind.source(constant)
            if kind.place == "buffer":
                self.setup.append(f"self.register_buffer({constant.name!r}, {source})")
            else:
                self.setup.append(f"self.{constant.name} = nn.Parameter({source})")
            self.expressions[constant.name] = f"self.{constant.name}"
        else:
            self.body.append(f"{constant.name} = {kind.source(constant)}")
            self.expressions[constant.name] = constant.name

    def _node(self, node: Node) -> None:
        operands = [self.expressions[name] for name in node.inputs]
        types = [self.types[name] for name in node.inputs]
        entry = operators().get(node.operator)
        if entry is not None and entry.module is not None:
            self.setup.append(f"self.{node.name} = {entry.module(types, node.attributes)}")
            expression = f"self.{node.name}({', '.join(operands)})"
        elif node.name in self.recipe.set_apart:
            expression = self._wrapped(node, types, operands)
        else:
            expression = self._inline(node, types, operands)
        self.body.append(f"{node.name} = {expression}")
        for name in self.types:
            if name == node.name:
                self.expressions[name] = name
            elif name.startswith(f"{node.name}."):
                self.expressions[name] = f"{node.name}[{name.removeprefix(node.name + '.')}]"

    def _inline(self, node: Node, types: list[TensorType], operands: list[str]) -> str:
        entry = operators().get(node.operator)
        if entry is None:
            by_name = dict(zip(node.inputs, operands, strict=True))
            return aten_call(node, by_name.__getitem__)
        assert entry.call is not None
        return entry.call(operands, node.attributes, types)

    def _wrapped(self, node: Node, types: list[TensorType], operands: list[str]) -> str:
        """A node that is not quantized like the rest gets a submodule, which is what ``set_module_name`` selects."""
        formal = [f"a{index}" for index in range(len(operands))]
        kind = f"{'Float' if node.name in self.recipe.float_nodes else 'Mixed'}_{node.name}"
        self.helpers += [
            f"class {kind}(nn.Module):",
            f"    def forward({', '.join(['self', *formal])}):",
            f"        return {self._inline(node, types, formal)}",
            "",
            "",
        ]
        self.setup.append(f"self.{node.name} = {kind}()")
        return f"self.{node.name}({', '.join(operands)})"
