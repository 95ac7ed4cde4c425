"""The steps of a lowering that can be run by themselves: partitioning, and every Arm pass of a delegate.

``steps_run_by`` hands each step of the lowerings inside to somebody else, who has to run it, and may
look at what it leaves (``remains``). ``TOSAPartitioner.partition`` is the method that ExecuTorch calls
(seen in 1.1.0 to 1.5.1; the Ethos-U partitioner inherits it); passes come from ``harness.compat.passes``.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from torch._subclasses import FakeTensor

from harness.compat import passes
from harness.compat.states import ORIGIN

_HISTORY = {
    ORIGIN,
    "from_node",
    "nn_module_stack",
    "original_aten",
    "seq_nr",
    "source_fn_stack",
    "stack_trace",
    "torch_fn",
}


class RunStep(Protocol):
    """Runs one step: ``run(subject)`` does it, ``subject`` is a pass or a partitioner."""

    def __call__(
        self, name: str, subject: Any, run: Callable[[Any], Any], remains: Callable[[Any], str], *, first: bool
    ) -> Any: ...


@contextmanager
def steps_run_by(run_step: RunStep) -> Iterator[None]:
    """Let ``run_step`` run each step of the lowerings inside.

    ``first`` says that the subject is as it was made, so that another one like it may take its place.
    """
    partition = TOSAPartitioner.partition

    def partitioned(self: Any, program: Any) -> Any:
        return run_step("partition", self, lambda item: partition(item, program), _tags, first=True)

    def passed(item: Any, graph_module: Any, program: Callable[[], Any]) -> Any:
        def remains(result: Any) -> str:
            return _digest(passes.graph_after(result, graph_module), program())

        return run_step(type(item).__name__, item, lambda subject: subject(graph_module), remains, first=False)

    TOSAPartitioner.partition = partitioned
    with passes.passes_run_by(passed):
        try:
            yield
        finally:
            TOSAPartitioner.partition = partition


def _tags(result: Any) -> str:
    """What partitioning leaves: the program with tags, and how each tag is delegated."""
    program = result.tagged_exported_program
    tags = [(name, repr(spec)) for name, spec in result.partition_tags.items()]
    return f"{_digest(program.graph_module, program)} {tags}"


def _digest(graph_module: Any, program: Any) -> str:
    """A digest of all that a later step may look at: nodes with their metadata, signature, tensors, submodules.

    Where nodes come from is left out. Metadata is taken as it prints itself.
    """
    found = hashlib.sha256()

    def add(*parts: object) -> None:
        found.update(repr(parts).encode())

    for _, module in graph_module.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                add(node.name, node.op, node.target, node.args, sorted(node.kwargs.items()))
                add([(key, _words(node.meta[key])) for key in sorted(map(str, node.meta)) if key not in _HISTORY])
    add(program.graph_signature)
    held: Mapping[str, Any] = {**program.state_dict, **program.constants, **dict(graph_module.named_buffers())}
    for name in sorted(held):
        value = held[name]
        add(name, _words(value))
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            found.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _words(value: Any) -> str:
    """A value of the metadata in words; tensors by type and layout."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.stride() if value.layout == torch.strided else value.layout}"
    if isinstance(value, Mapping):
        return str([(key, _words(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return str([_words(item) for item in value])
    return repr(value)
