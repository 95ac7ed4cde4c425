"""What passes evaluate, once (two entries of ``harness.compat.warm.tricks``).

Every ``executorch.exir.pass_base.ExportPass`` has an interpreter of an empty graph module, which does nothing but
call operators, and a tracer that a run of the pass puts another one in the place of. ArmPassManager makes some 160
passes a delegate and uses 15: a sixth of a delegate's time went into empty modules, and a sixth of its garbage is
tracers. ``share_interpreter`` gives all of them one interpreter, and makes the tracer when it is looked at.

A pass that runs evaluates every node anew with fake tensors, most of which the pass before it evaluated, too; a
delegate is evaluated as all that it holds. ``evaluate_once`` remembers results for the length of one run of several
passes (``_RUNS``), or of what is ``remembered`` around several: of an operator with fake tensors of the same mode,
type, shape and strides, and equal literals. Nodes may then share a fake tensor; no pass changes one in place. Real
and symbolic values are evaluated as ever.

Seen in executorch 1.1.0 to 1.5.1. Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from executorch.exir import pass_base
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.program import _program
from torch._guards import active_fake_mode
from torch._subclasses import FakeTensor

LITERALS = (bool, int, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
"""Operands that are what they say; not floats, of which 0.0 and -0.0 are equal."""

_TOLD_BY_VALUE = (*LITERALS, LoweredBackendModule)
"""What a key has as it is: literals, and delegates, which are equal to nothing else and live as long as the key."""

Known = dict[tuple[Any, ...], Any]
"""Results by operator and operands."""

_RUNS: tuple[tuple[Any, str], ...] = (
    (_program, "_generate_edge_program"),
    (ArmPassManager, "_transform"),
    (_program.EdgeProgramManager, "to_executorch"),
)
"""What runs several passes, one after another."""

_known: Known | None = None
"""What is remembered at the moment; None outside."""


class _LaterTracer:
    """Stands in for the tracer of a pass that does not run, and makes it when something else than the mode is asked.

    :param make: makes the tracer.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.fake_tensor_mode: Any = None
        self._make = make
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._made is None:
            self._made = self._make()
        self._made.fake_tensor_mode = self.fake_tensor_mode
        return getattr(self._made, name)


def share_interpreter() -> None:
    """From now on, passes are made with one interpreter of one empty module, and without a tracer."""
    passes = getattr(pass_base, "_ExportPassBase", None)
    if passes is None:
        return
    make = passes.__init__
    empty = torch.fx.Interpreter(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))

    @wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        module, interpreter = torch.fx.GraphModule, torch.fx.Interpreter
        torch.fx.GraphModule = torch.fx.Interpreter = lambda *_: empty
        tracer = self.ExportTracer
        self.ExportTracer = lambda *words: _LaterTracer(lambda: tracer(*words))
        try:
            make(self, *args, **kwargs)
        finally:
            vars(self).pop("ExportTracer", None)
            torch.fx.GraphModule, torch.fx.Interpreter = module, interpreter

    passes.__init__ = made


def evaluate_once() -> None:
    """From now on, passes evaluate an operator with the same operands once a run."""
    call = torch.fx.Interpreter.call_function

    @wraps(call)
    def calling(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        # the passes' own interpreters are a subclass, whose calls go on to the pass
        key = None if _known is None or type(self) is not torch.fx.Interpreter else key_of(target, args, kwargs)
        if key is None or _known is None:
            return call(self, target, args, kwargs)
        if key not in _known:
            _known[key] = call(self, target, args, kwargs)
        return _known[key]

    torch.fx.Interpreter.call_function = calling
    for owner, name in _RUNS:
        setattr(owner, name, _remembering(getattr(owner, name)))


def _remembering(run: Callable[..., Any]) -> Callable[..., Any]:
    """The same run, which remembers until its end what its passes evaluate."""

    @wraps(run)
    def running(*args: Any, **kwargs: Any) -> Any:
        with remembered({} if _known is None else _known):
            return run(*args, **kwargs)

    return running


@contextmanager
def remembered(known: Known) -> Iterator[None]:
    """Let the pipelines inside remember here what they evaluate: for lowerings to one TOSA specification."""
    global _known
    outer, _known = _known, known
    try:
        yield
    finally:
        _known = outer


def key_of(target: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
    """What tells one evaluation from another; None where it must not be remembered.

    Of operators without operands, nothing but the active mode tells whose tensor they make: each pass has its own mode
    where a graph has no input.
    """
    words: list[Any] = [target, id(active_fake_mode())]
    return tuple(words) if _spell(args, words) and _spell(kwargs, words) else None


def _spell(value: Any, words: list[Any]) -> bool:
    """Append what identifies a value; False if nothing does."""
    kind = type(value)
    if kind is FakeTensor:
        shape, strides = tuple(value.shape), value.stride()
        words += (id(value.fake_mode), value.dtype, shape, strides, value.storage_offset(), value.device)
        return value.constant is None and all(type(size) is int for size in (*shape, *strides))
    if kind in _TOLD_BY_VALUE:
        words += (kind, value)
        return True
    if kind is float:
        words.append(value.hex())
        return True
    if kind in (tuple, list, torch.fx.immutable_collections.immutable_list):
        words += (kind, len(value))
        return all(_spell(item, words) for item in value)
    if kind in (dict, torch.fx.immutable_collections.immutable_dict):
        words += (kind, *value)
        return all(_spell(item, words) for item in value.values())
    return False
