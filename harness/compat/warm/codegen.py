"""Python code of graphs: written only if somebody looks, and compiled once (two entries of ``tricks``).

``torch.fx.GraphModule.recompile`` writes the Python code of a graph and compiles it, whenever a pass is done with it:
a fifth of the passes' time. The passes interpret the graph and never call that code. ``write_code_when_called`` has it
written when the module is called, its code asked for, or the module copied by pickle; as
``torch.fx._lazy_graph_module`` does it for passes of inductor. Only inside ``ArmPassManager._transform`` and
``transform_for_annotation_pipeline`` (seen in 1.1.0 to 1.5.1): elsewhere torch reads the signature of the code, for
names of arguments.

Of the code that is written outside of these, nine texts in ten are the same as an earlier one of the same graph.
``compile_code_once`` compiles a text once; each module has its own name for it, as ever.

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

import inspect
from functools import lru_cache, wraps
from types import CodeType
from typing import Any

from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from torch.fx import GraphModule, graph_module
from torch.fx.graph import _PyTreeCodeGen

_inside = 0


def write_code_when_called() -> None:
    """From now on, graphs that Arm passes leave have no code until it is needed."""
    at_once, reduced = GraphModule.recompile, GraphModule.__reduce__
    code = GraphModule.code.fget
    assert code is not None

    def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
        at_once(module)
        return module(*args, **kwargs)

    def written(module: Any) -> None:
        if type(module).forward is forward:
            at_once(module)

    @wraps(at_once)
    def recompile(module: Any) -> Any:
        if not _inside:
            return at_once(module)
        if isinstance(module._graph._codegen, _PyTreeCodeGen):
            module._in_spec = module._graph._codegen.pytree_info.in_spec
            module._out_spec = module._graph._codegen.pytree_info.out_spec
        type(module).forward = forward
        return None

    def unwritten(pipeline: Any) -> Any:
        @wraps(pipeline)
        def transforming(manager: Any, *args: Any, **kwargs: Any) -> Any:
            global _inside
            _inside += 1
            try:
                return pipeline(manager, *args, **kwargs)
            finally:
                _inside -= 1

        return transforming

    def annotating(manager: Any, *args: Any, **kwargs: Any) -> Any:
        result = unannotated(manager, *args, **kwargs)
        written(result)
        return result

    def reduce(module: Any) -> Any:
        written(module)
        return reduced(module)

    def code_of(module: Any) -> str:
        written(module)
        return str(code(module))

    GraphModule.recompile = recompile
    GraphModule.code = property(code_of)
    GraphModule.__reduce__ = reduce
    ArmPassManager._transform = unwritten(ArmPassManager._transform)
    unannotated = unwritten(ArmPassManager.transform_for_annotation_pipeline)
    ArmPassManager.transform_for_annotation_pipeline = wraps(unannotated)(annotating)


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
