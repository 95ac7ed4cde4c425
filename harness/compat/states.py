"""Read live fx graphs of an exported program into ``NodeState`` data.

Constants are those placeholders that the program's signature lifts; their values are copied once
for every version of a tensor, so that many readings of one graph share them.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import InputKind, TensorArgument

from harness.case.arrays import Array
from harness.case.building import CASE_FILE
from harness.compat.snapshots import NodeState, Qparams, Ref

ORIGIN = "armdiff_origin"
"""Key of the mark in a node's metadata that says which start node it descends from."""
LARGEST_VALUE = 1 << 22
"""Constants with more elements are recorded without their value (16 MB of float32)."""

_LIFTED = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
"""What a placeholder stands for that is no input of the user."""


class StateReader:
    """Reads nodes of the graphs of one exported program.

    :param program: the ExportedProgram whose signature and tensors name the constants; its
        signature may change between readings (``refresh``).
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        self._values: dict[int, tuple[torch.Tensor, int, Array | None]] = {}
        self._lifted: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look at the signature again: once through its inputs, as this is asked after every pass."""
        self._lifted, self._kinds = {}, {}
        for item in self.program.graph_signature.input_specs:
            kind = _LIFTED.get(item.kind)
            if kind is not None and isinstance(item.arg, TensorArgument) and isinstance(item.target, str):
                self._lifted[item.arg.name] = item.target
                self._kinds[item.arg.name] = kind

    def tensor(self, node: torch.fx.Node) -> torch.Tensor | None:
        """The tensor of a constant placeholder; None for every other node."""
        if node.op != "placeholder" or node.name not in self._lifted:
            return None
        name = self._lifted[node.name]
        found = self.program.state_dict.get(name, self.program.constants.get(name))
        return found if isinstance(found, torch.Tensor) else None

    def state(self, node: torch.fx.Node) -> NodeState:
        """One node as data."""
        meta = node.meta
        value = meta.get("val")
        first = value[0] if isinstance(value, (tuple, list)) and value else value
        known = isinstance(first, torch.Tensor)
        tensor = self.tensor(node)
        return NodeState(
            name=node.name,
            op=node.op,
            target=operator_name(node.target) if node.op == "call_function" else str(node.target),
            args=_plain(node.args),
            kwargs={key: _plain(item) for key, item in node.kwargs.items()},
            origin=meta.get(ORIGIN),
            dtype=str(first.dtype).removeprefix("torch.") if known else "",
            shape=tuple(_size(size) for size in first.shape) if known else (),
            dim_order=dim_order_of(first) if known else (),
            input_qparams=_qparams(meta.get("input_qparams")),
            output_qparams=_qparams(meta.get("output_qparams")),
            kind=self._kinds.get(node.name, "") if node.op == "placeholder" else "",
            value=None if tensor is None else self._array(tensor),
            lifted=self._lifted.get(node.name, "") if node.op == "placeholder" else "",
            sources=tuple(str(source.name) for source in meta.get("from_node", ())),
            call=call_of(node),
        )

    def states(self, graph: torch.fx.Graph) -> dict[str, NodeState]:
        """Every node of a graph, by name, in order."""
        return {node.name: self.state(node) for node in graph.nodes}

    def _array(self, tensor: torch.Tensor) -> Array | None:
        held = self._values.get(id(tensor))
        if held is not None and held[0] is tensor and held[1] == tensor._version:
            return held[2]
        array: Array | None = None
        if tensor.numel() <= LARGEST_VALUE and tensor.dtype != torch.bfloat16:
            array = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).numpy()
        self._values[id(tensor)] = (tensor, tensor._version, array)
        return array


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in [^\n]*(?:\n +(\w+) = )?')
_LIBRARIES = ("site-packages", "dist-packages")
_OWN = Path(__file__).resolve().parents[1]


def call_of(node: torch.fx.Node) -> str:
    """The node of the case's graph whose call a node descends from, or ``FILE:LINE`` of the user's own module.

    ``torch.export`` notes the stack of each call, and decompositions and passes hand it on. In the module that
    ``harness.case.building`` makes, each line assigns one node of the case.
    """
    return _call(node.meta.get("stack_trace") or "")


@lru_cache(1 << 12)
def _call(stack: str) -> str:
    assigned = [name for file, _, name in _FRAME.findall(stack) if file.startswith(CASE_FILE) and name]
    if assigned:
        return str(assigned[-1])
    place = _place(stack)
    return "" if place is None else f"{place[0]}:{place[1]}"


def called_at(node: torch.fx.Node) -> tuple[Path, int] | None:
    """The line of the user's innermost ``forward`` that a node was called from, if one was noted.

    Of a stack, ``torch.export`` notes the frames of functions that are called ``forward``.
    """
    return _place(node.meta.get("stack_trace") or "")


def _place(stack: str) -> tuple[Path, int] | None:
    frames = [(Path(file), int(line)) for file, line, _ in _FRAME.findall(stack) if not file.startswith("<")]
    own = [frame for frame in frames if not {*frame[0].parts} & {*_LIBRARIES} and not frame[0].is_relative_to(_OWN)]
    return own[-1] if own else None


@lru_cache(1 << 12)
def operator_name(target: Any) -> str:
    """``aten.conv2d.default`` for an overload of either dialect, else the function's name."""
    schema = getattr(target, "_schema", None) or getattr(getattr(target, "_op", None), "_schema", None)
    if schema is None:
        return str(getattr(target, "__name__", target))
    return f"{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}"


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Axes from the slowest to the fastest in memory; empty where strides do not tell."""
    shape, strides = tuple(tensor.shape), tensor.stride()
    if any(type(number) is not int for number in (*shape, *strides)):
        return _dim_order(tensor)
    return _static_dim_order(shape, strides)


@lru_cache(1 << 14)
def _static_dim_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Asked once for sizes and strides: torch takes long, and a snapshot asks it of every value."""
    return _dim_order(torch.empty_strided(shape, strides, device="meta"))


def _dim_order(tensor: torch.Tensor) -> tuple[int, ...]:
    try:
        return tuple(int(axis) for axis in tensor.dim_order())
    except (RuntimeError, TypeError):  # symbolic or ambiguous strides
        return ()


def _plain(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return str(value)


def _size(size: Any) -> int:
    return size if isinstance(size, int) else -1


def _qparams(held: Any) -> Mapping[int, Qparams]:
    return {int(key): _one(value) for key, value in held.items()} if held else {}


def _one(value: Any) -> Qparams:
    dtype = str(value.dtype).removeprefix("torch.")
    scale, zero_point = _number(value.scale), _number(value.zp)
    return Qparams(scale, zero_point, int(value.qmin), int(value.qmax), dtype, int(getattr(value, "axis", 0)))


def _number(value: Any) -> Any:
    """A number, or a tuple of them for a parameter that there is one of a channel."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    return tuple(value) if isinstance(value, (list, tuple)) else value
