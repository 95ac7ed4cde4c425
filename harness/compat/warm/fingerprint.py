"""A fingerprint of a prepared graph: equal for graphs that calibration, conversion and export cannot tell apart.

Two quantizers may transform and annotate one float graph alike or not; what they made of it decides, and nothing is
assumed about them. The fingerprint covers the nodes with their names, targets, arguments and metadata (annotations,
scopes, shapes), and everything that hangs on the modules of the graph: observers with their settings, state and
functions (with closures), parameters, buffers. Objects that occur several times are told apart from equal ones.

Left out is what only tells where a node came from (``from_node``, ``stack_trace``, ``seq_nr``), generated code, and
the caches of a graph module. An object that this module does not know makes the whole ``None``: then nothing is
known to be equal.

Imports torch: only worker processes import this module.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree

_HISTORY = ("from_node", "stack_trace", "seq_nr")
_MADE_FROM_THE_GRAPH = (
    *("_graph", "_code", "_lineno_map", "_prologue_start", "_in_spec", "_out_spec", "_tracer_cls", "_tracer_extras"),
    *("train", "eval"),  # replaced by functions that refuse
)
_PLAIN: tuple[type, ...] = (type(None), bool, int, str, bytes, float, complex)
_BY_TEXT: tuple[type, ...] = (
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.qscheme,
    torch.Size,
    pytree.TreeSpec,
)
_NAMED: tuple[type, ...] = (type, types.BuiltinFunctionType, torch._ops.OpOverload, torch._ops.OpOverloadPacket)


def fingerprint(module: torch.fx.GraphModule) -> str | None:
    """Equal texts for graphs that are the same in all that counts; None if something in it is unknown."""
    digest = hashlib.sha256()
    try:
        for word in _Reader().words(module):
            digest.update(word.encode(errors="surrogatepass"))
            digest.update(b"\0")
    except _UnknownError:
        return None
    return digest.hexdigest()


class _UnknownError(Exception):
    """An object of a type that no rule covers."""


class _Reader:
    """Spells objects as words; one that was met before is a number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no number is given twice

    def words(self, value: Any) -> Iterator[str]:
        """The words of anything."""
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            yield f"{type(value).__name__} {value!r}"
        elif isinstance(value, _BY_TEXT):
            yield f"{_name(type(value))} {value!r}"
        elif isinstance(value, enum.Enum):
            yield f"{_name(type(value))} {value.name}"
        elif isinstance(value, _NAMED):
            yield f"named {_name(value)}"
        elif id(value) in self._met:
            yield f"again {self._met[id(value)]}"
        else:
            self._met[id(value)] = len(self._met)
            self._alive.append(value)
            yield _name(type(value))
            yield from self._parts(value)

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, torch.Tensor):
            yield from _tensor(value)
        elif isinstance(value, torch.fx.Node):
            yield f"node {value.name}"
        elif isinstance(value, torch.nn.Module):
            yield from self._module(value)
        elif isinstance(value, (list, tuple)):
            yield from self._sequence(value)
        elif isinstance(value, dict):
            yield from self._sequence([part for pair in value.items() for part in pair])
        elif isinstance(value, (set, frozenset)):
            yield from sorted(" ".join(_Reader().words(item)) for item in value)
        elif isinstance(value, slice):
            yield from self._sequence([value.start, value.stop, value.step])
        elif isinstance(value, functools.partial):
            yield from self._sequence([value.func, value.args, value.keywords])
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.MethodType):
            yield from self._sequence([value.__func__, value.__self__])
        elif dataclasses.is_dataclass(value) or type(value).__module__.startswith(_OPEN):
            yield from self.words(_attributes(value))
        else:
            raise _UnknownError

    def _sequence(self, values: Any) -> Iterator[str]:
        yield str(len(values))
        for item in values:
            yield from self.words(item)

    def _function(self, value: types.FunctionType) -> Iterator[str]:
        yield _name(value)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from self._sequence([value.__defaults__, value.__kwdefaults__, *cells])

    def _module(self, value: torch.nn.Module) -> Iterator[str]:
        left_out: tuple[str, ...] = ()
        if isinstance(value, torch.fx.GraphModule):
            left_out = _MADE_FROM_THE_GRAPH
            for node in value.graph.nodes:
                yield f"{node.op} {node.name}"
                meta = {key: item for key, item in node.meta.items() if key not in _HISTORY}
                yield from self._sequence([node.target, node.args, dict(node.kwargs), node.type, meta])
        yield from self.words({key: item for key, item in vars(value).items() if key not in left_out})


def _tensor(value: torch.Tensor) -> Iterator[str]:
    yield f"{value.dtype} {tuple(value.shape)} {value.device} {value.requires_grad}"
    if value.layout != torch.strided:
        raise _UnknownError
    yield f"{value.stride()} {value.storage_offset()}"
    if not isinstance(value, FakeTensor):
        values = value.detach().clone(memory_format=torch.contiguous_format)  # numpy makes its storage unresizable
        yield hashlib.sha256(values.reshape(-1).view(torch.uint8).numpy()).hexdigest()


_OPEN = ("torchao.quantization.pt2e.", "torch.ao.quantization.")
"""Modules whose objects are what their attributes are."""


def _attributes(value: Any) -> dict[str, Any]:
    if not hasattr(value, "__dict__") or any(getattr(kind, "__slots__", ()) for kind in type(value).__mro__):
        raise _UnknownError
    return dict(vars(value))


def _name(value: Any) -> str:
    module = getattr(value, "__module__", "")
    return f"{module}.{getattr(value, '__qualname__', None) or value}"
