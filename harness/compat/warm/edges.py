"""When is the edge program that was made for one partitioner the one that another partitioner would get?

``executorch.exir.program._program._gen_edge_manager_for_partitioners`` (seen in 1.1.0 to 1.5.1) asks a partitioner
for operators to keep whole and for a filter on nodes, and decomposes the rest. A *choice* is what one partitioner
answered while an edge program was made: its operators, and its filter's answer for every node that has one of them
once all others are decomposed. Another partitioner that answers alike gets the same edge program, whatever its
target; one that keeps fewer operators whole does, too, if those never came up.

``None`` instead of a choice means that something was not understood, and nobody may take the program.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir.program import _program


@dataclass(frozen=True)
class Choice:
    """How a partitioner answered.

    :param config: the compile configuration, as text.
    :param operators: what it keeps whole.
    :param nodes: nodes that have one of these operators, in a copy of the graph where all others are decomposed.
    :param answers: which of the nodes it keeps whole.
    """

    config: str
    operators: frozenset[Any]
    nodes: Sequence[torch.fx.Node]
    answers: Sequence[bool]

    def is_made_by(self, partitioners: Any, programs: Mapping[str, Any], config: Any) -> bool:
        """Does another partitioner answer alike?"""
        partitioner, program = _only(partitioners), _only(programs)
        if partitioner is None or program is None or repr(config) != self.config or _transforms(partitioner, program):
            return False
        operators, keeps = _asked(partitioner, program)
        met = {node.target for node in self.nodes}
        if keeps is None or not operators <= self.operators or (self.operators - operators) & met:
            return False
        return [bool(keeps(node)) for node in self.nodes] == list(self.answers)


def made_with_choice(
    make: Callable[..., Any], partitioners: Any, programs: Mapping[str, Any], config: Any, *rest: Any, **named: Any
) -> tuple[Any, Choice | None]:
    """Make an edge program, and see what its partitioner answers.

    :param make: ``_gen_edge_manager_for_partitioners``, which gets the other arguments.
    """
    text, found = repr(config), list[Choice]()
    partitioner, program = _only(partitioners), _only(programs)
    original = getattr(_program, _REPLACE, None)
    if partitioner is None or program is None or original is None or any(rest) or any(named.values()):
        return make(partitioners, programs, config, *rest, **named), None
    transforms = _transforms(partitioner, program)

    def replace(name: str, decomposed: Any, *args: Any, **words: Any) -> Any:
        operators, keeps = _asked(partitioner, decomposed)
        graph = torch.fx.Graph()
        graph.graph_copy(decomposed.graph, {})
        nodes = [node for node in graph.nodes if node.op == "call_function" and node.target in operators]
        whole = not any(isinstance(part, torch.fx.GraphModule) for part in decomposed.graph_module.children())
        if whole and keeps is not None:
            found.append(Choice(text, operators, nodes, [bool(keeps(node)) for node in nodes]))
        return original(name, decomposed, *args, **words)

    setattr(_program, _REPLACE, replace)
    try:
        made = make(partitioners, programs, config, *rest, **named)
    finally:
        setattr(_program, _REPLACE, original)
    return made, found[0] if len(found) == 1 and not transforms else None


_REPLACE = "_replace_aten_ops_with_transformed_ops"
"""Called once, with the program where a partitioner's operators are whole and all others decomposed."""
_TRANSFORM = "transform_for_pre_decomposition"
"""First in 1.5; up to 1.5.1 no Arm partitioner transforms anything."""


def _only(items: Any) -> Any:
    """The one program, or the one partitioner of the one program; None if there are more."""
    while isinstance(items, (Mapping, list, tuple)):
        values = list(items.values()) if isinstance(items, Mapping) else items
        if len(values) != 1:
            return None
        items = values[0]
    return items


def _transforms(partitioner: Any, program: Any) -> bool:
    """Does it rewrite the program before anything is decomposed?"""
    transform = getattr(partitioner, _TRANSFORM, None)
    if transform is None:
        return False
    spare = copy.deepcopy(program)  # a transformation may work in place
    return transform(spare) is not spare


def _asked(partitioner: Any, program: Any) -> tuple[frozenset[Any], Callable[[torch.fx.Node], bool] | None]:
    operators, keeps = partitioner.ops_to_not_decompose(program)
    return frozenset(operators), keeps
