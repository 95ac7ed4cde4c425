"""Python code of graphs between two Arm passes, written only if somebody looks.

``torch.fx.GraphModule.recompile`` writes the Python code of a graph and compiles it, whenever a pass is done with it:
a fifth of the passes' time. The passes interpret the graph and never call that code. Here it is written when the
module is called, its code asked for, or the module copied by pickle; as ``torch.fx._lazy_graph_module`` does it
for passes of inductor. Only inside ``ArmPassManager._transform`` (seen in 1.1.0 to 1.5.1): elsewhere torch reads the
signature of the code, for names of arguments.

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from torch.fx import GraphModule
from torch.fx.graph import _PyTreeCodeGen

_inside = 0


def write_code_when_called() -> None:
    """From now on, graphs that Arm passes leave have no code until it is needed."""
    at_once, transform, reduced = GraphModule.recompile, ArmPassManager._transform, GraphModule.__reduce__
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

    @wraps(transform)
    def transforming(manager: Any, *args: Any, **kwargs: Any) -> Any:
        global _inside
        _inside += 1
        try:
            return transform(manager, *args, **kwargs)
        finally:
            _inside -= 1

    def reduce(module: Any) -> Any:
        written(module)
        return reduced(module)

    def code_of(module: Any) -> str:
        written(module)
        return str(code(module))

    GraphModule.recompile = recompile
    GraphModule.code = property(code_of)
    GraphModule.__reduce__ = reduce
    ArmPassManager._transform = transforming
