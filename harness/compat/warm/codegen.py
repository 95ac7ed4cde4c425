"""Python code of graphs: written only if somebody looks, and compiled once (two entries of ``tricks``).

``torch.fx.GraphModule.recompile`` writes the Python code of a graph and compiles it, whenever a pass is done with it:
a fifth of the passes' time. The passes interpret the graph and never call that code. ``write_code_when_called`` has it
written when ``forward`` is read (to call it, or for the names of its arguments), the code asked for, or the module
copied by pickle; as ``torch.fx._lazy_graph_module`` does it for passes of inductor.

Of the code that is written all the same, nine texts in ten are the same as an earlier one of the same graph.
``compile_code_once`` compiles a text once; each module has its own name for it, as ever.

Imports torch: only worker processes import this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from types import CodeType
from typing import Any

from torch.fx import GraphModule, graph_module
from torch.fx.graph import _PyTreeCodeGen


def write_code_when_called() -> None:
    """From now on, graphs have no code until it is needed."""
    at_once, reduced = GraphModule.recompile, GraphModule.__reduce__
    code = GraphModule.code.fget
    assert code is not None

    class Unwritten:
        """The ``forward`` of a module whose code is not written: reading it writes the code."""

        def __init__(self, module: GraphModule) -> None:
            self.module = module

        def __get__(self, instance: GraphModule | None, owner: type[GraphModule]) -> Any:
            at_once(self.module)
            return (instance or owner).forward

    def written_first(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @wraps(read)
        def reading(module: Any) -> Any:
            if isinstance(vars(type(module)).get("forward"), Unwritten):
                at_once(module)
            return read(module)

        return reading

    @wraps(at_once)
    def recompile(module: Any) -> None:
        if isinstance(module._graph._codegen, _PyTreeCodeGen):
            module._in_spec = module._graph._codegen.pytree_info.in_spec
            module._out_spec = module._graph._codegen.pytree_info.out_spec
        type(module).forward = Unwritten(module)
        for inner in module.children():
            if isinstance(inner, GraphModule):
                inner.recompile()

    def reduce(module: Any) -> Any:
        GraphModule.recompile = at_once  # whose result it needs
        try:
            return reduced(module)
        finally:
            GraphModule.recompile = recompile

    GraphModule.recompile = recompile
    GraphModule.code = property(written_first(code))
    GraphModule.__reduce__ = written_first(reduce)
    GraphModule.__str__ = written_first(GraphModule.__str__)


@lru_cache(64)
def compiled(text: str) -> CodeType:
    """The code of a graph module's text, under no name."""
    return compile(text, "", "exec", dont_inherit=True)


def compile_code_once() -> None:
    """From now on, ``torch.fx`` compiles a text that it had lately under another name (seen in torch 2.13)."""
    if "dont_inherit=True" not in inspect.getsource(graph_module._exec_with_source):
        return  # the code depends on the module that compiles it

    def compile_named(text: str, name: str, mode: str, *, dont_inherit: bool) -> CodeType:
        assert mode == "exec"
        return _named(compiled(text), name)

    graph_module.compile = compile_named  # instead of the builtin one


def _named(code: CodeType, name: str) -> CodeType:
    constants = tuple(_named(item, name) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_filename=name, co_consts=constants)
