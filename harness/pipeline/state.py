"""State: the buffers that a call of a module changes, such as a KV cache.

The evaluation inputs of a case are calls in a row, and state is part of them: every leg begins with the state that the
module was built with and carries it from one input to the next. Whatever runs a module puts its state back afterwards,
so that no leg, and no calibration, sees the state that another one left.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def state_kept(module: torch.nn.Module) -> Iterator[None]:
    """Whatever is called inside, the module's buffers are afterwards what they were."""
    buffers = dict(module.named_buffers())
    if isinstance(module, torch.fx.GraphModule):  # observers keep what they saw
        read = {node.target for node in module.graph.nodes if node.op == "get_attr"}
        buffers = {name: buffer for name, buffer in buffers.items() if name in read}
    versions = {name: buffer._version for name, buffer in buffers.items()}
    before = {name: buffer.detach().clone() for name, buffer in buffers.items()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in buffers.items():
                if buffer._version != versions[name]:
                    buffer.copy_(before[name])
