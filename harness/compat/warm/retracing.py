"""``walk_operands_plainly``: the operands of a node that a pass makes anew are walked without ado (one of ``tricks``).

An ``ExportPass`` makes every node of its graph anew. For each it flattens the operands twice, for their values and for
their proxies (``tree_map_only``), and then four methods of its tracer, one calling the next, look at every operand and
at the list that holds it, to make nodes of proxies (``create_proxy``). All three are walks through lists of values and
literals, and are made as such here. Operands that hold anything else (modules, tensors, symbols) go the long way.

The method that does all this stays as it is, since a correction changes it. Imports torch and executorch: only worker
processes import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import torch
from executorch.exir import pass_base
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from harness.compat.sources import unchanged
from harness.compat.warm.evaluating import LITERALS

_WRITTEN_FOR = {
    "executorch.exir.pass_base": {
        "_ExportPassBase.ExportTracer.create_arg": "e6e164d8b63f",
        "ExportPass.ExportTracer.create_arg": "e62a74465159",
    },
    "torch.fx.proxy": {
        "TracerBase.create_proxy": "e231173e48cf",
        "TracerBase.create_arg": "eec436601a27",
        "_create_arg_bypass": "62a03abe2156",
    },
    "torch.fx._symbolic_trace": {"Tracer.create_arg": "433a92814bdb"},
    "torch.fx.experimental.proxy_tensor": {"PythonKeyTracer.create_arg": "bde2a3d37f7c"},
    "torch.utils._pytree": {"tree_map_only": "bf3dbbe4aabc"},
}
"""What was read: how operands become values and nodes, and that nothing else is done with literals and proxies."""

_LEAVES = {*LITERALS, float, complex}


class _Other(Exception):
    """An operand is something else."""


def walk_operands_plainly() -> bool:
    """Walk operands of passes plainly, if the installed code is known; returns whether."""
    if not all(unchanged(module, places) for module, places in _WRITTEN_FOR.items()):
        return False
    tracer = pass_base._ExportPassBase.ExportTracer
    theirs = ModuleType(pytree.__name__)
    vars(theirs).update(vars(pytree), tree_map_only=_mapping(pytree.tree_map_only))
    pass_base.pytree = theirs
    tracer.create_proxy = _proxying(tracer.create_proxy, (tracer, pass_base.ExportPass.ExportTracer))
    return True


def _mapping(plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def mapped(kind: Any, change: Any, tree: Any, is_leaf: Any = None) -> Any:
        if kind is pass_base.ProxyValue and is_leaf is None:
            try:
                return _walked(kind, change, tree)
            except _Other:
                pass
        return plain(kind, change, tree, is_leaf)

    return mapped


def _proxying(plain: Callable[..., Any], tracers: tuple[type, ...]) -> Callable[..., Any]:
    @wraps(plain)
    def made(self: Any, kind: str, target: Any, args: Any, kwargs: Any, *words: Any, **named: Any) -> Any:
        if type(self) in tracers and type(args) is tuple and "proxy_factory_fn" not in named and len(words) < 3:
            try:
                nodes = _walked(torch.fx.Proxy, _node_of, (args, kwargs))
            except _Other:
                pass
            else:
                return self.proxy(self.create_node(kind, target, *nodes, *words, **named))
        return plain(self, kind, target, args, kwargs, *words, **named)

    return made


def _node_of(proxy: Any) -> Any:
    return proxy.node


def _walked(wanted: type, change: Callable[[Any], Any], tree: Any) -> Any:
    """A tree with its leaves of one type changed.

    :raises _Other: it holds something else than those, literals, and lists and dictionaries of them.
    """
    kind = type(tree)
    if kind is wanted:
        return change(tree)
    if kind in _LEAVES:
        return tree
    if kind is tuple or kind is list or kind is immutable_list:
        return kind([_walked(wanted, change, item) for item in tree])
    if (kind is dict or kind is immutable_dict) and all(type(key) is str for key in tree):
        return kind({key: _walked(wanted, change, item) for key, item in tree.items()})
    raise _Other
