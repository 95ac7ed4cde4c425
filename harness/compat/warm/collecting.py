"""When garbage is collected in a worker that pauses collections, and what torch and executorch would keep for ever."""

from __future__ import annotations

import gc
import linecache
import os
import sys
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from harness.case.building import CASE_FILE
from harness.case.memory import resident

CACHES = (
    ("executorch.exir.backend.utils", "is_same_node"),
    ("torch.ao.quantization.fx.utils", "assert_and_get_unique_device"),
    ("torchao.utils", "_assert_and_get_unique_device"),
    ("harness.compat.states", "_call"),
)
"""Caches whose keys belong to one graph: nodes and modules, each of which keeps a whole graph (executorch 1.1 to
1.5.1), and the stacks of its calls.
"""
STREAMS = (
    ("harness.ethosu.commands", "decode_commands"),
    ("harness.ethosu.convolution", "_scales"),
    ("harness.ethosu.convolution", "_weights"),
    ("harness.ethosu.state", "_feature_map"),
)
"""What the Ethos-U model keeps of a payload for its next run: of a network's the weights, 3 bytes each."""
LAST_EXPORT = ("torch.fx.experimental.proxy_tensor", "_FAKE_TENSOR_ID_TO_PROXY_MAP_FOR_EXPORT")
"""The nodes of the graph that was exported last, for a check of ``torch.export`` that is off. What was frozen with it
stayed for ever: the graphs of one case in thirty.
"""
DISPATCH = ("torch._subclasses.fake_tensor", "FakeTensorMode")
"""Has the cache of what operators return for fake tensors, by their metadata. It serves later graphs, and the call of a
delegate has the delegate with its graph as key.
"""

MOST_YOUNG = 100_000
"""Objects made since the last collection, and left, behind which the next one is due. It takes 1 us for each that it
looks at, which adds up to a tenth of a worker's time; so many hold about 20 MB.
"""
MOST_AMID = 200_000
"""The same behind a pass, amid a lowering: only those of networks come to it, whose passes leave hundreds of MB."""
MOST_GROWN = 64 << 20
"""Bytes by which the process may grow without a collection: garbage of few objects may hold large tensors."""


class _Pace:
    """How far the process has come since the last full collection.

    :ivar level: bytes that it held after the last one of any kind.
    :ivar kept: was there one amid a graph, which left what is still needed?
    """

    level = 0
    kept = False


def between_cases(done: bool = True) -> None:
    """What is due after a case where collections are paused: the garbage, if it is worth a collection.

    Amid a graph only what was made since the last one is looked at, since the graph's stages are kept for its other
    targets. What is left behind a graph are caches to keep, and imports: they are frozen, and no collection looks at
    them again.

    :param done: the graph that was run last is not needed any more.
    """
    _let_go(done)
    _collect_if_due(done)


def before_forks() -> None:
    """What is due before a process is forked again and again: no fork looks at what it has by now.

    A fork shares the pages that neither it nor its parent writes to, and a collection writes to all that it looks at.
    """
    _let_go(done=True)
    if not gc.isenabled():
        _collect(done=True)


def _let_go(done: bool) -> None:
    _empty(STREAMS)
    if done:
        forget_sources()
        forget_graphs()


def _collect_if_due(done: bool) -> None:
    if not gc.isenabled() and (gc.get_count()[0] > MOST_YOUNG or (done and _Pace.kept) or _has_grown()):
        _collect(done)


def _has_grown() -> bool:
    return resident(os.getpid()) > _Pace.level + MOST_GROWN


def _collect(done: bool) -> None:
    if done:
        gc.collect()
        gc.freeze()
    else:
        gc.collect(0)
    _Pace.kept = not done
    _Pace.level = resident(os.getpid())


def between_runs(everything: bool = False) -> None:
    """What is due where a case runs once more: the garbage of one run of a large graph is 20 MB and more.

    :param everything: look also at what was still needed amid the run before: of a network, at hundreds of MB.
    """
    if everything and not gc.isenabled():
        gc.collect()
    _collect_if_due(done=False)


def between_passes() -> None:
    """What is due behind a pass."""
    if not gc.isenabled() and gc.get_count()[0] > MOST_AMID:
        gc.collect()


def forget_graphs() -> None:
    """Empty the caches that hold graphs which nobody needs any more: 0.7 MB and more a case."""
    from torch.nn import Module

    _empty(CACHES)
    exported = _loaded(*LAST_EXPORT)
    if isinstance(exported, dict):
        exported.clear()
    cached = getattr(_loaded(*DISPATCH), "cache", None)
    if isinstance(cached, dict):
        for key in [key for key in cached if any(isinstance(part, Module) for part in getattr(key, "key", ()))]:
            del cached[key]


def _empty(caches: Iterable[tuple[str, str]]) -> None:
    for module, name in caches:
        clear = getattr(_loaded(module, name), "cache_clear", None)
        if clear is not None:
            clear()


def _loaded(module: str, name: str) -> Any:
    """An attribute of a module, if that was imported and has it."""
    try:
        return attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        return None


def forget_sources() -> None:
    """Drop the text of modules' code, which is kept for tracebacks for ever: 0.2 MB and more a case.

    ``torch.fx.graph_module._loader`` and the entries that it makes in ``linecache`` (seen in torch 2.10 to 2.13), and
    those of cases' modules (``harness.case.building``). Modules that live on run as before; a traceback through them
    lacks the source.
    """
    loader = sys.modules.get("torch.fx.graph_module")
    kept = getattr(getattr(loader, "_loader", None), "eval_cache", None)
    names = [name for name in linecache.cache if name.startswith(CASE_FILE)]
    if isinstance(kept, dict):
        names += kept
        kept.clear()
    for name in names:
        linecache.cache.pop(name, None)
