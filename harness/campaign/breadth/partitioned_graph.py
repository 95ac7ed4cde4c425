"""The delegates of one quantized graph as partitioned, before the Arm passes, with open qparams.

PT2E's decisions are literals of quantize and dequantize nodes (scale, zero point, qmin, qmax) and constants (codes
of weights and biases, scales a channel). It is made for variants whose converted graphs are alike but for
those. Nodes that have equal literals in every variant form a *class*, and each class gets a made-up scale of its
own: so the literals are found again in the edge program, whatever became of the nodes' names. ``lowered`` puts
a variant's literals and constants in and runs the Arm passes and the serializer.

Invariant: what ``lowered`` returns is what a whole lowering of the variant would hold, byte for byte
(``tests/integration/test_breadth.py``).

Imports torch and executorch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.case.traits import DEQUANTIZE, QUANTIZE
from harness.compat.backend import serialized, stopped_before
from harness.compat.passes import watched_passes
from harness.compat.snapshots import PassTrace
from harness.compat.stack import edge_config, to_edge_transform_and_lower
from harness.compat.states import operator_name
from harness.compat.warm.evaluating import Known, remembered
from harness.evidence.observation import Domain
from harness.evidence.rounding.skipped import literal_domain
from harness.pipeline.lowering import LoweringFailed

_MARK = 2.0**-6
_STEPS = 4096


@dataclass(frozen=True)
class Opened:
    """A delegate before its passes.

    :param specification: what its backend was told.
    """

    program: Any
    specification: Any


@dataclass(frozen=True)
class Made:
    """A delegate of a variant: its flatbuffer, and what the passes did."""

    tosa: bytes
    trace: PassTrace | None


@dataclass(frozen=True)
class PartitionedGraph:
    """Delegates of a quantized graph with open qparams.

    :param classes: for each quantize and dequantize node of the converted graph, in order, its class.
    """

    classes: tuple[int, ...]
    delegates: tuple[Opened, ...]
    _known: Known = field(default_factory=dict, init=False, repr=False)

    def lowered(self, converted: torch.fx.GraphModule) -> Iterator[Made]:
        """Run the Arm passes and the serializer on every delegate, with a variant's decisions.

        :param converted: one of the graphs that it was made for.
        :raises LoweringFailed: chained to whatever upstream raised.
        """
        domains = {_scale(number): item for number, item in zip(self.classes, domains_at(converted), strict=True)}
        constants = converted.state_dict()
        for delegate in self.delegates:
            program = copy.deepcopy(delegate.program)
            for node in _sites(program.graph_module):
                own = domains[node.args[1]]
                node.args = (node.args[0], own.scale, own.zero_point, own.qmin, own.qmax, *node.args[5:])
            for held in (program.state_dict, program.constants):
                held.update({name: constants[name].detach().clone() for name in held if name in constants})
            watched = None
            try:
                with watched_passes() as watched, remembered(self._known):
                    tosa = serialized(program, delegate.specification)
            except (Exception, SystemExit) as error:
                raise LoweringFailed(watched.unfinished if watched else None) from error
            yield Made(tosa, watched.of_tosa.get(tosa))


def partitioned_graph_of(
    alike: Sequence[torch.fx.GraphModule], sample: tuple[torch.Tensor, ...], partitioner: Any
) -> PartitionedGraph:
    """Partition converted graphs of one shape (``shape_of``), which stay as they are.

    :param sample: inputs to export them with.
    :raises Exception: whatever upstream raises.
    """
    together = [*zip(*(domains_at(module) for module in alike), strict=True)]
    numbers = {domains: number for number, domains in enumerate(dict.fromkeys(together))}
    classes = tuple(numbers[domains] for domains in together)
    marked = copy.deepcopy(alike[0])
    for node, number in zip(_sites(marked), classes, strict=True):
        node.args = (node.args[0], _scale(number), *node.args[2:])
    marked.recompile()
    with stopped_before() as opened:
        exported = torch.export.export(marked, sample)
        to_edge_transform_and_lower(exported, partitioner=[partitioner], compile_config=edge_config())
    return PartitionedGraph(classes, tuple(Opened(program, specification) for program, specification in opened))


def domains_at(module: torch.fx.GraphModule) -> tuple[Domain, ...]:
    """The literals of each quantize and dequantize node that has them, in graph order."""
    return tuple(domain for node in module.graph.nodes if (domain := _domain(node)) is not None)


def shape_of(module: torch.fx.GraphModule) -> tuple[str, ...]:
    """A converted graph without its literals and the values of its constants."""
    constants = (f"{name} {value.dtype} {list(value.shape)}" for name, value in module.state_dict().items())
    return (*map(_line, module.graph.nodes), *constants)


def _line(node: torch.fx.Node) -> str:
    arguments = node.args if _domain(node) is None else (node.args[0], *node.args[5:])
    return f"{node.name} {node.op} {node.target} {arguments} {node.kwargs}"


def _sites(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if _domain(node) is not None]


def _domain(node: torch.fx.Node) -> Domain | None:
    known = node.op == "call_function" and operator_name(node.target).startswith((QUANTIZE, DEQUANTIZE))
    return literal_domain(node) if known else None


def _scale(number: int) -> float:
    """The made-up scale of a class, exact in float32, too."""
    return _MARK * (1.0 + (number + 1) / _STEPS)
