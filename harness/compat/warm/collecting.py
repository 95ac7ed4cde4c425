"""When garbage is collected in a worker that pauses collections, and what torch and executorch would keep for ever."""

from __future__ import annotations

import gc
import itertools
import linecache
import sys
from operator import attrgetter
from typing import Any

CACHES = (
    ("executorch.exir.backend.utils", "is_same_node"),
    ("torch.ao.quantization.fx.utils", "assert_and_get_unique_device"),
    ("torchao.utils", "_assert_and_get_unique_device"),
)
"""Caches without a bound whose keys are nodes or modules: each call keeps a whole graph (executorch 1.1 to 1.5.1)."""
DISPATCH = ("torch._subclasses.fake_tensor", "FakeTensorMode")
"""Has the cache of what operators return for fake tensors, by their metadata. It serves later graphs, has no bound, and
the call of a delegate has the delegate with its graph as key.
"""
MOST_DISPATCHES = 5_000
"""Entries behind which that cache begins anew; a graph adds about 90."""


FREEZE_EVERY = 10
"""Graphs between two freezes, after a first one for what is imported late. torch holds on to the last graph that it
exported: what of it is frozen stays for ever. What is not frozen is looked at by every collection.
"""
_graphs = itertools.count()


def between_cases(done: bool = True) -> None:
    """What is due after a case where collections are paused: one, and what is left now and then are caches to keep.

    :param done: the graph that was run last is not needed any more.
    """
    if done:
        forget_sources()
        forget_graphs()
    if not gc.isenabled():
        gc.collect()
        if done and next(_graphs) % FREEZE_EVERY == 0:
            gc.freeze()


def forget_graphs() -> None:
    """Empty the caches that hold graphs which nobody needs any more: 0.7 MB and more a case."""
    from torch.nn import Module

    for module, name in CACHES:
        clear = getattr(_loaded(module, name), "cache_clear", None)
        if clear is not None:
            clear()
    dispatch = _loaded(*DISPATCH)
    cached = getattr(dispatch, "cache", None)
    if isinstance(cached, dict):
        if len(cached) > MOST_DISPATCHES:
            dispatch.cache_clear()
        for key in [key for key in cached if any(isinstance(part, Module) for part in getattr(key, "key", ()))]:
            del cached[key]


def _loaded(module: str, name: str) -> Any:
    """An attribute of a module, if that was imported and has it."""
    try:
        return attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


def forget_sources() -> None:
    """Drop the text of graph modules' code, which torch.fx keeps for tracebacks for ever: 0.2 MB and more a case.

    ``torch.fx.graph_module._loader`` and the entries that it makes in ``linecache`` (seen in torch 2.10 to 2.13). Graph
    modules that live on run as before; a traceback through them lacks the source.
    """
    loader = sys.modules.get("torch.fx.graph_module")
    kept = getattr(getattr(loader, "_loader", None), "eval_cache", None)
    if isinstance(kept, dict):
        for name in kept:
            linecache.cache.pop(name, None)
        kept.clear()
