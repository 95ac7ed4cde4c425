"""The code of a graph module, compiled when somebody runs it (an entry of ``harness.compat.warm.tricks``).

``torch.fx.GraphModule.recompile`` writes a graph as Python source and compiles that into the class's ``forward``
(``torch.fx.graph_module._forward_from_src``, seen in torch 2.10 to 2.13). Passes recompile after every change, and
few of these modules are ever called: the interpreters and passes of a lowering walk the graph. Here source and globals
are taken at the same moment as ever, so what runs is the same function; only compiling them waits until ``forward``
is asked for, of the module or of its class. Source that Python cannot compile would be an error at that time only.

Imports torch: only worker processes import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import graph_module


class _Late:
    """Stands for ``forward`` in a class, and puts the function in its place when it is asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._made: Any = None

    def __get__(self, instance: Any, owner: type) -> Any:
        if self._make is not None:
            self._made, self._make = self._make(), None
        for kind in owner.__mro__:
            if vars(kind).get("forward") is self:
                kind.forward = self._made  # type: ignore[attr-defined]
        return self._made.__get__(instance, owner)


def compile_late() -> None:
    """Let graph modules compile their code when it is first needed."""
    original = getattr(graph_module, "_forward_from_src", None)
    if original is None:
        return

    def forward_from_src(src: str, names: dict[str, Any], *rest: Any, **named: Any) -> Any:
        taken = names.copy()
        return _Late(lambda: original(src, taken, *rest, **named))

    graph_module._forward_from_src = forward_from_src
