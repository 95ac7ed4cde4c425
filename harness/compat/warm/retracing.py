"""``walk_operands_once``: what a pass gives to an operator is looked through once (an entry of ``tricks``).

An ``ExportPass`` makes every node of its graph anew. For each it flattens the operands twice (for their values, and for
their proxies), and then four methods of its tracer, one calling the next, look at every operand and at the list that
holds it, to make nodes of proxies. Here one walk makes both: the values to evaluate, and the nodes to write down.
Operands that are anything but such values and literals (modules, tensors, symbols) go the long way.

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from executorch.exir import pass_base
from torch.fx.immutable_collections import immutable_dict, immutable_list

from harness.compat.sources import unchanged

_WRITTEN_FOR = {
    "executorch.exir.pass_base": {
        "_ExportPassBase._fx": "d21aacbb5c10",
        "_ExportPassBase.ExportTracer.create_arg": "e6e164d8b63f",
        "ExportPass.ExportTracer.create_arg": "e62a74465159",
        "ProxyValue": "2384e82a2057",
    },
    "torch.fx.proxy": {
        "TracerBase.create_proxy": "e231173e48cf",
        "TracerBase.create_arg": "eec436601a27",
        "TracerBase.proxy": "56d22c2078f4",
        "_create_arg_bypass": "62a03abe2156",
    },
    "torch.fx._symbolic_trace": {"Tracer.create_arg": "433a92814bdb"},
    "torch.fx.experimental.proxy_tensor": {"PythonKeyTracer.create_arg": "bde2a3d37f7c"},
}
"""What was read: how operands become values and nodes, and that nothing else is done with literals and proxies."""

_LITERALS = {
    *(bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
}


class _Other(Exception):
    """An operand is something else."""


def walk_operands_once() -> bool:
    """Make nodes of a pass's operands in one walk, if the installed code is known; returns whether."""
    if not all(unchanged(module, places) for module, places in _WRITTEN_FOR.items()):
        return False
    plain, tracers = (
        pass_base._ExportPassBase._fx,
        (
            pass_base._ExportPassBase.ExportTracer,
            pass_base.ExportPass.ExportTracer,
        ),
    )

    @wraps(plain)
    def made(self: Any, kind: str, target: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        tracer = self.tracer
        try:
            if type(tracer) not in tracers:
                raise _Other
            values, operands = _walked(args)
            named_values, named_operands = _walked(kwargs)
        except _Other:
            return plain(self, kind, target, args, kwargs, meta)
        result = getattr(self.interpreter, kind)(target, values, named_values)
        name = None
        if isinstance(target, torch._ops.OpOverload):
            name = tracer.graph._target_to_str(target.overloadpacket.__name__)
        node = tracer.create_node(kind, target, operands, named_operands, name)
        node.meta.update(meta.data)
        tracer.set_metadata(node, result)
        return pass_base.ProxyValue(result, tracer.proxy(node))

    pass_base._ExportPassBase._fx = made
    return True


def _walked(operand: Any) -> tuple[Any, Any]:
    """An operand as the value that is evaluated, and as what a node holds.

    :raises _Other: it is, or holds, something else than values of this pass and literals.
    """
    kind = type(operand)
    if kind is pass_base.ProxyValue:
        if type(operand.proxy_or_node) is not torch.fx.Proxy:
            raise _Other
        return operand.data, operand.proxy_or_node.node
    if kind in _LITERALS:
        return operand, operand
    if kind is tuple or kind is list or kind is immutable_list:
        pairs = [_walked(item) for item in operand]
        nodes = [node for _, node in pairs]
        return kind([value for value, _ in pairs]), tuple(nodes) if kind is tuple else nodes
    if kind is dict or kind is immutable_dict:
        found = {key: _walked(item) for key, item in operand.items()}
        if any(type(key) is not str for key in found):
            raise _Other
        return kind({key: value for key, (value, _) in found.items()}), {key: node for key, (_, node) in found.items()}
    raise _Other
