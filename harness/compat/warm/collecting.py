"""When garbage is collected in a worker that pauses collections."""

from __future__ import annotations

import gc
import linecache
import sys


def between_cases(done: bool = True) -> None:
    """What is due after a case where collections are paused: one, and what is left then are caches to keep.

    :param done: nothing that is left will be garbage later.
    """
    if done:
        forget_sources()
    if not gc.isenabled():
        gc.collect()
        if done:
            gc.freeze()


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
